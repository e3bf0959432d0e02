// JSON text, written straight into a string.
//
// No document in memory: nlohmann's allocates while it is destroyed, which ends the process when
// there is no memory (a destructor must not throw).
#ifndef SPARSESEL_CONTRACT_JSON_WRITER_H_
#define SPARSESEL_CONTRACT_JSON_WRITER_H_

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace sparsesel {

// Appends to `out`; may throw std::bad_alloc, and nothing else. The caller keeps begins and ends in
// pairs, and puts a key before every value of an object.
class JsonWriter {
 public:
  explicit JsonWriter(std::string* out) : out_(*out) {}

  void BeginObject() { Open('{'); }
  void EndObject() { Close('}'); }
  void BeginArray() { Open('['); }
  void EndArray() { Close(']'); }
  void Key(std::string_view name);

  // Control characters are escaped; bytes that are no UTF-8 become the replacement character.
  void Value(std::string_view text);
  void Value(const char* text) { Value(std::string_view(text)); }
  void Value(double number);  // null if it is infinite or no number
  void Value(bool truth);
  template <std::integral Integer>
  void Value(Integer number) {
    if constexpr (std::signed_integral<Integer>) {
      Signed(number);
    } else {
      Unsigned(number);
    }
  }

  template <typename T>
  void Member(std::string_view name, const T& value) {
    Key(name);
    Value(value);
  }
  // An array of values, or a member that is one.
  template <typename Range>
  void Values(const Range& values) {
    BeginArray();
    for (const auto& value : values) Value(value);
    EndArray();
  }
  template <typename Range>
  void ArrayMember(std::string_view name, const Range& values) {
    Key(name);
    Values(values);
  }

 private:
  void Separate();
  void Open(char bracket);
  void Close(char bracket);
  void Quote(std::string_view text);
  void Signed(int64_t number);
  void Unsigned(uint64_t number);

  std::string& out_;
  bool needs_comma_ = false;
};

}  // namespace sparsesel

#endif  // SPARSESEL_CONTRACT_JSON_WRITER_H_
