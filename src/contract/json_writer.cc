#include "contract/json_writer.h"

#include <array>
#include <charconv>
#include <cmath>

namespace sparsesel {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

// The length of the well-formed UTF-8 sequence that `text` begins with; 0 if there is none.
// The Unicode Standard 15, table 3-7.
size_t SequenceLength(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (at(i) < 0x80 || at(i) > 0xbf) return 0;
  }
  const bool overlong = (lead == 0xe0 && at(1) < 0xa0) || (lead == 0xf0 && at(1) < 0x90);
  const bool surrogate = lead == 0xed && at(1) > 0x9f;
  const bool too_great = lead == 0xf4 && at(1) > 0x8f;
  return overlong || surrogate || too_great ? 0 : length;
}

template <typename Number>
std::string_view Digits(Number number, std::array<char, 32>* buffer) {
  // Locale-independent; a double in the fewest digits that give it back.
  const auto [end, error] = std::to_chars(buffer->data(), buffer->data() + buffer->size(), number);
  return {buffer->data(), end};
}

}  // namespace

void JsonWriter::Separate() {
  if (needs_comma_) out_ += ',';
  needs_comma_ = true;
}

void JsonWriter::Open(char bracket) {
  Separate();
  out_ += bracket;
  needs_comma_ = false;
}

void JsonWriter::Close(char bracket) {
  out_ += bracket;
  needs_comma_ = true;
}

void JsonWriter::Key(std::string_view name) {
  if (needs_comma_) out_ += ',';
  if (!out_.empty() && out_.back() != '{') out_ += '\n';
  Quote(name);
  out_ += ": ";
  needs_comma_ = false;
}

void JsonWriter::Quote(std::string_view text) {
  constexpr const char* kHex = "0123456789abcdef";
  out_ += '"';
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    const char first = text.front();
    if (length == 0) {
      out_ += kReplacement;
    } else if (first == '"' || first == '\\') {
      out_ += '\\';
      out_ += first;
    } else if (static_cast<unsigned char>(first) < 0x20) {
      out_ += "\\u00";
      out_ += kHex[first >> 4];
      out_ += kHex[first & 15];
    } else {
      out_ += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out_ += '"';
}

void JsonWriter::Value(std::string_view text) {
  Separate();
  Quote(text);
}

void JsonWriter::Value(double number) {
  Separate();
  std::array<char, 32> buffer;
  out_ += std::isfinite(number) ? Digits(number, &buffer) : std::string_view("null");
}

void JsonWriter::Value(bool truth) {
  Separate();
  out_ += truth ? "true" : "false";
}

void JsonWriter::Signed(int64_t number) {
  Separate();
  std::array<char, 32> buffer;
  out_ += Digits(number, &buffer);
}

void JsonWriter::Unsigned(uint64_t number) {
  Separate();
  std::array<char, 32> buffer;
  out_ += Digits(number, &buffer);
}

}  // namespace sparsesel
