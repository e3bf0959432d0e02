#include "contract/order.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace sparsesel {
namespace {

constexpr int32_t kMaxId = std::numeric_limits<int32_t>::max();

// All exponents and signs with the mantissas where patterns meet, and some at random.
std::vector<uint32_t> Patterns() {
  std::vector<uint32_t> patterns;
  std::mt19937 random(7);
  for (uint32_t high = 0; high < 512; ++high) {
    for (uint32_t low : {0u, 1u, 2u, 0x3fffffu, 0x400000u, 0x7ffffeu, 0x7fffffu}) {
      patterns.push_back(high << 23 | low);
    }
    patterns.push_back(high << 23 | (static_cast<uint32_t>(random()) & 0x7fffffu));
  }
  return patterns;
}

bool ScoreBefore(uint32_t a, uint32_t b) {
  const float x = std::bit_cast<float>(a);
  const float y = std::bit_cast<float>(b);
  if (std::isnan(x) || std::isnan(y)) return !std::isnan(x) && std::isnan(y);
  return x > y;
}

TEST_CASE("order: ScoreOrder compares as the contract says") {
  const std::vector<uint32_t> patterns = Patterns();
  int64_t wrong = 0;
  for (uint32_t a : patterns) {
    for (uint32_t b : patterns) wrong += ScoreBefore(a, b) != (ScoreOrder(a) > ScoreOrder(b));
  }
  CHECK(wrong == 0);
}

TEST_CASE("order: ScoreFromOrder gives back the bits, but for zeros and NaNs") {
  int64_t wrong = 0;
  for (uint32_t bits : Patterns()) {
    const float score = std::bit_cast<float>(bits);
    const uint32_t expected = std::isnan(score) ? 0x7fc00000u : score == 0 ? 0u : bits;
    wrong += ScoreFromOrder(ScoreOrder(bits)) != expected;
  }
  CHECK(wrong == 0);
}

TEST_CASE("order: a key orders by score, then by id, and absences come last") {
  constexpr uint32_t kOne = 0x3f800000u;
  constexpr uint32_t kNan = 0x7fc00000u;
  CHECK(CandidateKey(kOne, 5) > CandidateKey(kOne, 6));
  CHECK(CandidateKey(kOne, 0) > CandidateKey(kOne, kMaxId));
  CHECK(CandidateKey(kOne, kMaxId) > CandidateKey(kOne - 1, 0));
  CHECK(CandidateKey(0x80000000u, 3) > CandidateKey(0u, 4));
  CHECK(CandidateKey(0x80000000u, 3) == CandidateKey(0u, 3));
  CHECK(CandidateKey(kMinusInfinityBits, kMaxId) > CandidateKey(kNan, 0));
  CHECK(CandidateKey(0xffffffffu, 2) == CandidateKey(kNan, 2));
  CHECK(CandidateKey(kNan, kMaxId) > kAbsentKey);
  CHECK(CandidateKey(kInfinityBits, -1) == kAbsentKey);
  CHECK(CandidateKey(kInfinityBits, std::numeric_limits<int32_t>::min()) == kAbsentKey);
}

TEST_CASE("order: KeyId gives back every id") {
  for (int32_t id : {0, 1, 2, 0x7ffffffe, kMaxId}) {
    CHECK(KeyId(CandidateKey(0x7fc00000u, id)) == id);
    CHECK(KeyId(CandidateKey(0x3f800000u, id)) == id);
    CHECK(KeyScoreOrder(CandidateKey(0x3f800000u, id)) == ScoreOrder(0x3f800000u));
  }
  CHECK(KeyId(kAbsentKey) == -1);
}

}  // namespace
}  // namespace sparsesel
