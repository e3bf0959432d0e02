#include "contract/json_writer.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

namespace sparsesel {
namespace {

template <typename T>
std::string Text(const T& value) {
  std::string text;
  JsonWriter(&text).Value(value);
  return text;
}

TEST_CASE("json: objects and arrays within each other") {
  std::string text;
  JsonWriter json(&text);
  json.BeginObject();
  json.Member("one", 1);
  json.Key("empty");
  json.BeginObject();
  json.EndObject();
  json.ArrayMember("list", std::vector<double>{1.5, 2.0});
  json.ArrayMember("names", std::vector<std::string>{"a", "b"});
  json.Key("objects");
  json.BeginArray();
  for (int i = 0; i < 2; ++i) {
    json.BeginObject();
    json.Member("i", i);
    json.EndObject();
  }
  json.EndArray();
  json.Member("last", true);
  json.EndObject();
  CHECK(nlohmann::json::parse(text) ==
        nlohmann::json::parse(R"({"one": 1, "empty": {}, "list": [1.5, 2], "names": ["a", "b"],
                                  "objects": [{"i": 0}, {"i": 1}], "last": true})"));
}

TEST_CASE("json: numbers in full, and none that JSON does not have") {
  CHECK(Text(std::numeric_limits<uint64_t>::max()) == "18446744073709551615");
  CHECK(Text(std::numeric_limits<int64_t>::min()) == "-9223372036854775808");
  CHECK(Text(int32_t{-5}) == "-5");
  CHECK(Text(0.1) == "0.1");
  CHECK(nlohmann::json::parse(Text(1e300)).get<double>() == 1e300);
  CHECK(Text(std::nan("")) == "null");
  CHECK(Text(std::numeric_limits<double>::infinity()) == "null");
  CHECK(Text(true) == "true");
}

TEST_CASE("json: text comes back as it was") {
  std::string all;
  for (int c = 0; c < 128; ++c) all += static_cast<char>(c);
  for (const std::string& text :
       {std::string(), all, std::string("\u00e9 \u20ac \U0001f600"), std::string("\xed\x9f\xbf")}) {
    CHECK(nlohmann::json::parse(Text(text)).get<std::string>() == text);
  }
}

TEST_CASE("json: bytes that are no UTF-8 are replaced") {
  const std::string replacement = "\xef\xbf\xbd";
  for (const char* bad : {"\x80", "\xbf", "\xc0", "\xc1", "\xf5", "\xff", "\xc3", "\xfe"}) {
    CHECK(Text(std::string(bad) + "z") == "\"" + replacement + "z\"");
  }
  // Overlong, surrogate, too great, cut short: byte by byte.
  for (const char* bad : {"\xc0\xaf", "\xe0\x80\xaf", "\xf0\x80\x80\xaf", "\xed\xa0\x80",
                          "\xf4\x90\x80\x80", "\xe2\x82", "\xf0\x9f\x98"}) {
    std::string expected = "\"";
    for (size_t i = 0; i < std::string(bad).size(); ++i) expected += replacement;
    CHECK(Text(std::string(bad)) == expected + "\"");
  }
}

}  // namespace
}  // namespace sparsesel
