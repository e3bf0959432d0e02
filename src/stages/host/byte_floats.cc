#include "stages/host/byte_floats.h"

#include <array>

namespace sparsesel {
namespace {

constexpr std::array<uint16_t, 256> MakeTable() {
  std::array<uint16_t, 256> table{};
  for (size_t i = 0; i < table.size(); ++i) table[i] = ByteToBf16(static_cast<uint8_t>(i));
  return table;
}
constexpr std::array<uint16_t, 256> kTable = MakeTable();

}  // namespace

void EncodeBytes(std::span<const int32_t> words, uint16_t* bf16) {
  for (const int32_t word : words) {
    const auto bits = static_cast<uint32_t>(word);
    for (int32_t byte = 0; byte < 4; ++byte) *bf16++ = kTable[(bits >> (8 * byte)) & 0xff];
  }
}

Status DecodeBytes(std::span<const uint16_t> bf16, int32_t* words) {
  bool exact = true;
  for (size_t i = 0; i < bf16.size(); i += 4) {
    uint32_t bits = 0;
    for (size_t byte = 0; byte < 4; ++byte) {
      const auto value = std::bit_cast<float>(static_cast<uint32_t>(bf16[i + byte]) << 16);
      // NaN fails both comparisons; conversion is defined only inside the range.
      const bool in_range = value >= 0.0f && value <= 255.0f;
      const auto whole = static_cast<uint32_t>(in_range ? value : 0.0f);
      exact = exact && in_range && static_cast<float>(whole) == value;
      bits |= whole << (8 * byte);
    }
    *words++ = static_cast<int32_t>(bits);
  }
  if (!exact) {
    return Status::Error(SPARSESEL_INTERNAL, "a bf16 sum returned a value that is not a byte");
  }
  return {};
}

}  // namespace sparsesel
