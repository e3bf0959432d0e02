// Random numbers that are the same on every rank and machine: made of integers alone.
#ifndef SPARSESEL_RACE_RANDOM_H_
#define SPARSESEL_RACE_RANDOM_H_

#include <algorithm>
#include <cstdint>

namespace sparsesel {

// The output function of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): a bijection without visible
// structure.
inline uint64_t SplitMix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// SplitMix64: numbers that depend on nothing but where the stream begins.
class RandomStream {
 public:
  explicit RandomStream(uint64_t start) : state_(start) {}
  uint64_t Next() { return SplitMix(state_ += 0x9e3779b97f4a7c15u); }
  // 0 .. limit - 1; limit below 2^32.
  uint32_t Below(uint32_t limit) { return static_cast<uint32_t>(((Next() >> 32) * limit) >> 32); }
  bool OneIn(uint32_t n) { return Below(n) == 0; }
  // True with a probability of part / whole.
  bool Chance(int64_t part, int64_t whole) {
    return static_cast<int64_t>((Next() >> 32) * static_cast<uint64_t>(whole) >> 32) < part;
  }

 private:
  uint64_t state_;
};

// A bijection of 0 .. 2^bits - 1, chosen by `key`.
class Permutation {
 public:
  Permutation(int bits, uint64_t key) : bits_(bits), key_(SplitMix(key)) {}
  uint32_t operator()(uint32_t x) const {
    const uint32_t mask = (uint32_t{1} << bits_) - 1;
    const int half = std::max(bits_ / 2, 1);
    for (int round = 0; round < 3; ++round) {
      const auto odd = static_cast<uint32_t>(key_ >> (round * 16)) | 1u;
      x = (x * odd + static_cast<uint32_t>(key_ >> 32)) & mask;
      x ^= x >> half;
    }
    return x;
  }

 private:
  int bits_;
  uint64_t key_;
};

}  // namespace sparsesel

#endif  // SPARSESEL_RACE_RANDOM_H_
