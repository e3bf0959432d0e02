#include "transport/sums.h"

#include <bit>
#include <catch2/catch.hpp>
#include <vector>

namespace sparsesel {
namespace {

float Widen(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t Bf16Sum(std::vector<uint16_t> terms) {
  std::vector<const uint16_t*> pointers;
  for (const uint16_t& term : terms) pointers.push_back(&term);
  uint16_t sum = 0;
  SumBf16(pointers, 1, &sum);
  return sum;
}

// Written another way than the code: the nearest of the two neighbours, the even one when tied.
uint16_t NearestEven(float value) {
  const auto below = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
  const auto above = static_cast<uint16_t>(below + 1);
  // Doubles hold the differences of floats exactly enough to compare them.
  const double low = static_cast<double>(value) - static_cast<double>(Widen(below));
  const double high = static_cast<double>(Widen(above)) - static_cast<double>(value);
  const double down = low < 0 ? -low : low;
  const double up = high < 0 ? -high : high;
  if (down != up) return down < up ? below : above;
  return below % 2 == 0 ? below : above;
}

TEST_CASE("bf16 sums round each step to nearest, ties to even") {
  REQUIRE(Bf16Sum({0x3f80, 0x3f80}) == 0x4000);          // 1 + 1
  REQUIRE(Bf16Sum({0x3f80, 0x3b80}) == 0x3f80);          // 1 + 2^-8: a tie, to the even 1
  REQUIRE(Bf16Sum({0x3f81, 0x3b80}) == 0x3f82);          // 1 + 2^-7 + 2^-8: a tie, up
  REQUIRE(Bf16Sum({0x3f80, 0x3b80, 0x3b80}) == 0x3f80);  // each step is rounded
  REQUIRE(Bf16Sum({0x3b80, 0x3b80, 0x3f80}) == 0x3f81);  // in rank order
  REQUIRE(Bf16Sum({0x7f7f, 0x7f7f}) == 0x7f80);          // overflow is infinite
  REQUIRE(Bf16Sum({0x8000, 0x8000}) == 0x8000);          // -0 + -0
  uint32_t state = 1;
  for (int i = 0; i < 100000; ++i) {
    state = state * 1664525 + 1013904223;
    // Positive numbers of similar size, so that sums are normal and finite.
    const auto a = static_cast<uint16_t>(0x3c00 + (state >> 16) % 0x400);
    const auto b = static_cast<uint16_t>(0x3c00 + (state & 0xffff) % 0x400);
    REQUIRE(Bf16Sum({a, b}) == NearestEven(Widen(a) + Widen(b)));
  }
}

TEST_CASE("bf16 sums keep NaNs NaN") {
  for (const int nan : {0x7f81, 0x7fff, 0xff81, 0xffff, 0x7fc0}) {
    const uint16_t sum = Bf16Sum({static_cast<uint16_t>(nan), 0x3f80});
    REQUIRE((sum & 0x7fff) > 0x7f80);
  }
  REQUIRE((Bf16Sum({0x7f80, 0xff80}) & 0x7fff) > 0x7f80);  // inf - inf
}

TEST_CASE("int32 sums wrap") {
  const int32_t a[] = {INT32_MAX, INT32_MIN, -1, 7};
  const int32_t b[] = {1, -1, 1, 8};
  const int32_t* const terms[] = {a, b};
  int32_t sums[4];
  SumInt32(terms, 4, sums);
  REQUIRE(sums[0] == INT32_MIN);
  REQUIRE(sums[1] == INT32_MAX);
  REQUIRE(sums[2] == 0);
  REQUIRE(sums[3] == 15);
}

TEST_CASE("sums of many elements and ranks") {
  constexpr size_t kCount = 10007;  // several blocks, the last one partial
  std::vector<std::vector<int32_t>> data(64, std::vector<int32_t>(kCount));
  std::vector<const int32_t*> terms;
  for (size_t rank = 0; rank < 64; ++rank) {
    for (size_t i = 0; i < kCount; ++i) data[rank][i] = static_cast<int32_t>(rank * i);
    terms.push_back(data[rank].data());
  }
  std::vector<int32_t> sums(kCount);
  SumInt32(terms, kCount, sums.data());
  for (size_t i = 0; i < kCount; ++i) REQUIRE(sums[i] == static_cast<int32_t>(2016 * i));
}

}  // namespace
}  // namespace sparsesel
