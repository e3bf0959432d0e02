#include "transport/sums.h"

#include <algorithm>
#include <bit>

namespace sparsesel {
namespace {

// Sums stay in the first-level cache while all ranks' terms are added to them.
constexpr size_t kBlock = 2048;

float FromBf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t ToBf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  // Rounding must not carry a NaN's payload away: that would make it an infinity.
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x0040u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

uint16_t Add(uint16_t a, uint16_t b) { return ToBf16(FromBf16(a) + FromBf16(b)); }

int32_t Add(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}

template <typename Element>
void Sum(std::span<const Element* const> terms, size_t count, Element* sums) {
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t size = std::min(kBlock, count - begin);
    Element* const to = sums + begin;
    std::copy_n(terms[0] + begin, size, to);
    for (const Element* const term : terms.subspan(1)) {
      for (size_t i = 0; i < size; ++i) to[i] = Add(to[i], term[begin + i]);
    }
  }
}

}  // namespace

void SumBf16(std::span<const uint16_t* const> terms, size_t count, uint16_t* sums) {
  Sum(terms, count, sums);
}

void SumInt32(std::span<const int32_t* const> terms, size_t count, int32_t* sums) {
  Sum(terms, count, sums);
}

}  // namespace sparsesel
