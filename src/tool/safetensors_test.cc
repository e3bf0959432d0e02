#include "tool/safetensors.h"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace sparsesel_tool {
namespace {

using Catch::Contains;

// A file with this header, whose length is told truly unless `length` says otherwise.
std::vector<std::byte> File(const std::string& header, size_t data_bytes,
                            uint64_t length = UINT64_MAX) {
  if (length == UINT64_MAX) length = header.size();
  std::vector<std::byte> file;
  for (int i = 0; i < 8; ++i) file.push_back(static_cast<std::byte>(length >> (8 * i)));
  for (const char c : header) file.push_back(static_cast<std::byte>(c));
  for (size_t i = 0; i < data_bytes; ++i) file.push_back(static_cast<std::byte>(i));
  return file;
}

std::string Refusal(std::vector<std::byte> file) {
  Safetensors parsed;
  const Result result = Safetensors::Parse(std::move(file), &parsed);
  CHECK(result.exit == (result.text.empty() ? 0 : kExitError));
  CHECK(result.text.find('\n') == std::string::npos);
  CHECK(parsed.tensors().empty() == !result.ok());
  return result.text;
}

std::string Refusal(const std::string& header, size_t data_bytes = 8) {
  return Refusal(File(header, data_bytes));
}

std::string Entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
         offsets + "}";
}

// A path in the temporary folder that goes with the object.
class TemporaryPath {
 public:
  TemporaryPath() {
    char name[] = "/tmp/sparsesel_test_XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~TemporaryPath() {
    std::remove(path().c_str());
    std::remove(folder_.c_str());
  }
  std::string folder() const { return folder_; }
  std::string path() const { return folder_ + "/file"; }

 private:
  std::string folder_;
};

}  // namespace

TEST_CASE("safetensors: what a good file says") {
  const std::string header =
      R"({"__metadata__":{"a":"b"},)" + Entry("second", "I32", "[1,2]", "[4,12]") + "," +
      Entry("first", "F32", "[1]", "[0,4]") + "," + Entry("empty", "U8", "[0,7]", "[4,4]") + "," +
      Entry("scalar", "F64", "[]", "[12,20]") + "}   ";
  Safetensors parsed;
  REQUIRE(Safetensors::Parse(File(header, 20), &parsed).text.empty());
  REQUIRE(parsed.tensors().size() == 4);
  const auto* second = parsed.Find("second");
  REQUIRE(second != nullptr);
  REQUIRE(second->dtype == "I32");
  REQUIRE(second->shape == std::vector<int64_t>{1, 2});
  REQUIRE(second->data.size() == 8);
  REQUIRE(second->data[0] == std::byte{4});
  REQUIRE(parsed.Find("scalar")->data.size() == 8);
  REQUIRE(parsed.Find("empty")->data.empty());
  REQUIRE(parsed.Find("third") == nullptr);
}

TEST_CASE("safetensors: no tensors and no data") {
  Safetensors parsed;
  REQUIRE(Safetensors::Parse(File("{}", 0), &parsed).ok());
  REQUIRE(parsed.tensors().empty());
}

TEST_CASE("safetensors: truncated anywhere") {
  const std::vector<std::byte> whole = File("{" + Entry("x", "F32", "[2]", "[0,8]") + "}", 8);
  REQUIRE(Refusal(whole).empty());
  for (size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    REQUIRE_FALSE(Refusal(std::vector(whole.data(), whole.data() + size)).empty());
  }
}

TEST_CASE("safetensors: lengths of the header that lie") {
  const std::string header = "{" + Entry("x", "F32", "[2]", "[0,8]") + "}";
  for (const uint64_t length :
       {uint64_t{0}, uint64_t{header.size() - 1}, uint64_t{header.size() + 8},
        uint64_t{header.size() + 9}, Safetensors::kMaxHeaderBytes + 1, uint64_t{1} << 63,
        UINT64_MAX - 1}) {
    CAPTURE(length);
    REQUIRE_FALSE(Refusal(File(header, 8, length)).empty());
  }
}

TEST_CASE("safetensors: headers that are not what the format says") {
  CHECK_THAT(Refusal(""), Contains("does not begin"));
  CHECK_THAT(Refusal(" {}"), Contains("does not begin"));
  CHECK_THAT(Refusal("\xef\xbb\xbf{}"), Contains("does not begin"));
  CHECK_THAT(Refusal("[]"), Contains("does not begin"));
  CHECK_THAT(Refusal("{"), Contains("not JSON"));
  CHECK_THAT(Refusal("{}{}"), Contains("not JSON"));
  CHECK_THAT(Refusal("{} //"), Contains("not JSON"));
  CHECK_THAT(Refusal("{\"\xff\":1}"), Contains("not JSON"));
  CHECK_THAT(Refusal(std::string("{}\0{}", 5)), Contains("zero byte"));
  CHECK_THAT(Refusal(R"({"x":1})"), Contains("out of place"));
  CHECK_THAT(Refusal(R"({"x":null})"), Contains("out of place"));
  CHECK_THAT(Refusal(R"({"x":true})"), Contains("out of place"));
  CHECK_THAT(Refusal(R"({"x":"y"})"), Contains("out of place"));
  CHECK_THAT(Refusal(R"({"x":[]})"), Contains("out of place"));
  CHECK_THAT(Refusal(R"({"x":{}})"), Contains("lacks"));
  CHECK_THAT(Refusal(R"({"__metadata__":1})"), Contains("out of place"));
  CHECK_THAT(Refusal(R"({"__metadata__":{"a":1}})"), Contains("out of place"));
  CHECK_THAT(Refusal(R"({"__metadata__":{"a":{}}})"), Contains("out of place"));
  CHECK_THAT(Refusal(R"({"__metadata__":{"a":"","a":""}})"), Contains("twice"));
  CHECK_THAT(Refusal(R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1}})"),
             Contains("unknown field"));
  CHECK_THAT(Refusal(R"({"x":{"dtype":"F32","shape":[2],"shape":[2]}})"), Contains("twice"));
  CHECK_THAT(Refusal(R"({"x":{"dtype":{"a":1},"shape":[2]}})"), Contains("out of place"));
  CHECK_THAT(Refusal(R"({"x":{"dtype":["F32"],"shape":[2]}})"), Contains("out of place"));
  CHECK_THAT(Refusal(R"({"x":{"dtype":"F32","shape":"2"}})"), Contains("out of place"));
  CHECK_THAT(Refusal(R"({"x":{"dtype":"F32","shape":[[2]]}})"), Contains("out of place"));
  const std::string x = Entry("x", "F32", "[1]", "[0,4]");
  CHECK_THAT(Refusal("{" + x + "," + x + "}"), Contains("twice"));
}

TEST_CASE("safetensors: names from the file cannot break the line") {
  const std::string text = Refusal(R"({"a\nb\u001b[2J":{}})");
  CHECK_THAT(text, Contains("lacks"));
  CHECK(text.find('\x1b') == std::string::npos);
  const std::string other = Refusal("{" + Entry("a\\nb\\u001b", "F99", "[2]", "[0,8]") + "}");
  CHECK(other.find('\x1b') == std::string::npos);
}

TEST_CASE("safetensors: nesting without end") {
  CHECK_THAT(Refusal("{\"x\":" + std::string(1 << 20, '{')), Contains("not JSON"));
  CHECK_THAT(Refusal("{\"x\":" + std::string(1 << 20, '[')), Contains("out of place"));
}

TEST_CASE("safetensors: more tensors or dimensions than there is a use for") {
  std::string many = "{";
  for (size_t i = 0; i <= Safetensors::kMaxTensors; ++i) {
    many += (i > 0 ? "," : "") + Entry("t" + std::to_string(i), "U8", "[0]", "[0,0]");
  }
  CHECK_THAT(Refusal(many + "}", 0), Contains("too many tensors"));
  std::string deep = "[1";
  for (size_t i = 0; i < Safetensors::kMaxDimensions; ++i) deep += ",1";
  CHECK_THAT(Refusal("{" + Entry("x", "U8", deep + "]", "[0,1]") + "}", 1), Contains("too long"));
}

TEST_CASE("safetensors: numbers that lie") {
  const auto refuse = [](const char* dtype, const char* shape, const char* offsets,
                         size_t bytes = 8) {
    return Refusal("{" + Entry("x", dtype, shape, offsets) + "}", bytes);
  };
  CHECK(refuse("F32", "[2]", "[0,8]").empty());
  CHECK_THAT(refuse("F32", "[3]", "[0,8]"), Contains("12 bytes by its shape"));
  CHECK_THAT(refuse("F32", "[2]", "[0,16]"), Contains("of 8"));
  CHECK_THAT(refuse("F32", "[2]", "[8,0]"), Contains("bytes 8 to 0"));
  CHECK_THAT(refuse("F32", "[2]", "[0]"), Contains("no two data offsets"));
  CHECK_THAT(refuse("F32", "[2]", "[0,4,8]"), Contains("no two data offsets"));
  CHECK_THAT(refuse("F31", "[2]", "[0,8]"), Contains("unknown dtype"));
  CHECK_THAT(refuse("", "[2]", "[0,8]"), Contains("unknown dtype"));
  CHECK_THAT(refuse("F32", "[-2]", "[0,8]"), Contains("negative"));
  CHECK_THAT(refuse("F32", "[2.0]", "[0,8]"), Contains("whole"));
  CHECK_THAT(refuse("F32", "[2]", "[0,8e0]"), Contains("whole"));
  CHECK_THAT(refuse("F32", "[18446744073709551616]", "[0,8]"), Contains("whole"));
  CHECK_THAT(refuse("F32", "[18446744073709551615]", "[0,8]"), Contains("beyond 64 bits"));
  // 2^62 * 4 bytes, and 2^32 * 2^32, are 0 in 64 bits.
  CHECK_THAT(refuse("F32", "[4611686018427387904]", "[0,0]", 0), Contains("beyond 64 bits"));
  CHECK_THAT(refuse("U8", "[4294967296,4294967296]", "[0,0]", 0), Contains("beyond 64 bits"));
  CHECK_THAT(refuse("F32", "[2]", "[18446744073709551608,18446744073709551615]"),
             Contains("lies at"));
}

TEST_CASE("safetensors: data that is not covered once") {
  const auto refuse = [](const char* first, const char* second, size_t bytes) {
    return Refusal(
        "{" + Entry("a", "U8", "[4]", first) + "," + Entry("b", "U8", "[4]", second) + "}", bytes);
  };
  CHECK(refuse("[0,4]", "[4,8]", 8).empty());
  CHECK(refuse("[4,8]", "[0,4]", 8).empty());
  CHECK_THAT(refuse("[0,4]", "[0,4]", 4), Contains("overlaps"));
  CHECK_THAT(refuse("[0,4]", "[2,6]", 6), Contains("overlaps"));
  CHECK_THAT(refuse("[0,4]", "[5,9]", 9), Contains("hole"));
  CHECK_THAT(refuse("[1,5]", "[5,9]", 9), Contains("hole"));
  CHECK_THAT(refuse("[0,4]", "[4,8]", 9), Contains("behind the last"));
}

TEST_CASE("safetensors: every byte of a header replaced by every other value") {
  const std::string header = "{" + Entry("x", "I8", "[2]", "[0,2]") + "}";
  for (size_t i = 0; i < header.size(); ++i) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = header;
      changed[i] = static_cast<char>(value);
      Safetensors parsed;
      const Result result = Safetensors::Parse(File(changed, 2), &parsed);
      REQUIRE((result.ok() || !result.text.empty()));
      for (const auto& tensor : parsed.tensors()) REQUIRE(tensor.data.size() <= 2);
    }
  }
}

TEST_CASE("files that are none") {
  std::vector<std::byte> bytes;
  const TemporaryPath temporary;
  CHECK_THAT(ReadWholeFile(temporary.path(), &bytes).text, Contains("No such file"));
  CHECK_THAT(ReadWholeFile(temporary.folder(), &bytes).text, Contains("not a regular file"));
  CHECK_THAT(ReadWholeFile("/dev/zero", &bytes).text, Contains("not a regular file"));
  REQUIRE(mkfifo(temporary.path().c_str(), 0600) == 0);  // must not wait for a writer
  CHECK_THAT(ReadWholeFile(temporary.path(), &bytes).text, Contains("not a regular file"));
}

}  // namespace sparsesel_tool
