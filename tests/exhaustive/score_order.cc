// All 2^32 score patterns: ScoreOrder against a comparison of floats, and its inverse, with and
// without the modes in which the processor takes subnormal numbers for zero.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "contract/order.h"

namespace {

using sparsesel::CandidateKey;
using sparsesel::KeyId;
using sparsesel::KeyScoreOrder;
using sparsesel::ScoreFromOrder;
using sparsesel::ScoreOrder;

// Flush-to-zero and denormals-are-zero, where there is a way to switch them on.
void SetFlushing(bool on) {
#if defined(__SSE__)
  _mm_setcsr(on ? _mm_getcsr() | 0x8040u : _mm_getcsr() & ~0x8040u);
#elif defined(__aarch64__)
  uint64_t mode;
  __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
  mode = on ? mode | (uint64_t{1} << 24) : mode & ~(uint64_t{1} << 24);
  __asm__ volatile("msr fpcr, %0" : : "r"(mode));
#endif
}

// The next pattern downwards in the order of scores, walked on bits: positive numbers fall, then
// the zeros, then negative numbers fall.
uint32_t Below(uint32_t bits) {
  return bits == 0 ? 0x80000001u : bits < 0x80000000u ? bits - 1 : bits + 1;
}

bool IsNan(uint32_t bits) { return (bits & 0x7fffffffu) > 0x7f800000u; }

// Neighbours in the order decide all pairs, since the order of integers is transitive.
uint64_t WrongPatterns(uint64_t begin, uint64_t end, bool flushing) {
  uint64_t wrong = 0;
  for (uint64_t pattern = begin; pattern < end; ++pattern) {
    const auto bits = static_cast<uint32_t>(pattern);
    const uint32_t order = ScoreOrder(bits);
    if (IsNan(bits)) {
      wrong += order != ScoreOrder(0x7fc00000u) || ScoreFromOrder(order) != 0x7fc00000u;
      continue;
    }
    const bool zero = (bits & 0x7fffffffu) == 0;
    wrong += order == ScoreOrder(0x7fc00000u) || order < ScoreOrder(0xff800000u);
    wrong += ScoreFromOrder(order) != (zero ? 0u : bits);
    for (int32_t id : {0, 1, 0x7fffffff}) {
      const uint64_t key = CandidateKey(bits, id);
      wrong += KeyScoreOrder(key) != order || KeyId(key) != id;
    }
    if (bits == 0x80000000u) {
      wrong += order != ScoreOrder(0);
    } else if (bits != 0xff800000u) {
      wrong += !(order > ScoreOrder(Below(bits)));
      // The same said by the processor, if it does not take the two for zero.
      if (!flushing) wrong += !(std::bit_cast<float>(bits) > std::bit_cast<float>(Below(bits)));
    }
  }
  return wrong;
}

uint64_t WrongPatterns(bool flushing) {
  const uint64_t threads = std::max(1u, std::thread::hardware_concurrency());
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> workers;
  for (uint64_t t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      SetFlushing(flushing);
      const uint64_t all = uint64_t{1} << 32;
      wrong += WrongPatterns(all * t / threads, all * (t + 1) / threads, flushing);
    });
  }
  for (std::thread& worker : workers) worker.join();
  return wrong;
}

}  // namespace

int main() {
  uint64_t wrong = 0;
  for (bool flushing : {false, true}) {
    const uint64_t found = WrongPatterns(flushing);
    std::printf("flush-to-zero %s: %llu of 4294967296 patterns wrong\n", flushing ? "on" : "off",
                static_cast<unsigned long long>(found));
    wrong += found;
  }
  return wrong == 0 ? 0 : 1;
}
