// Inputs of whole groups, with the answers, for the programs that run groups on GPUs.
#ifndef SPARSESEL_TESTS_GPU_PEER_CASES_H_
#define SPARSESEL_TESTS_GPU_PEER_CASES_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "contract/order.h"

namespace sparsesel::testing {

enum class Kind { kRandom, kTies, kEqual, kDuplicates, kFew, kSpecial };
inline constexpr const char* kKindNames[] = {"random",     "ties", "equal",
                                             "duplicates", "few",  "special"};

// What is promised of the lists' order, and whether it is so.
enum class Order { kNone, kKept, kBroken };
inline constexpr const char* kOrderNames[] = {"", " in order", " said to be in order"};

struct Shape {
  int world, rows, candidates, k;
  Order order = Order::kNone;
};

// Host copies of one rank's input, and all ranks' expected ids.
struct Data {
  std::vector<std::vector<float>> scores;  // [rank][rows * candidates]
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<int32_t>> counts;
  std::vector<int32_t> expected;  // rows * k
};

// Puts each list in the order of the contract, absent candidates last.
inline void SortLists(const Shape& s, const std::vector<int32_t>& counts,
                      std::vector<float>* scores, std::vector<int32_t>* ids) {
  struct Candidate {
    uint64_t key;
    float score;
    int32_t id;
  };
  const auto candidates = static_cast<size_t>(s.candidates);
  std::vector<Candidate> list(candidates);
  for (size_t row = 0; row < static_cast<size_t>(s.rows); ++row) {
    const auto count = static_cast<size_t>(std::clamp(counts[row], 0, s.candidates));
    for (size_t i = 0; i < candidates; ++i) {
      Candidate& c = list[i];
      c.score = (*scores)[row * candidates + i];
      c.id = (*ids)[row * candidates + i];
      uint32_t bits;
      std::memcpy(&bits, &c.score, 4);
      c.key = i < count ? CandidateKey(bits, c.id) : 0;
    }
    std::stable_sort(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(count),
                     [](const Candidate& a, const Candidate& b) { return a.key > b.key; });
    for (size_t i = 0; i < candidates; ++i) {
      (*scores)[row * candidates + i] = list[i].score;
      (*ids)[row * candidates + i] = list[i].id;
    }
  }
}

inline Data Make(const Shape& s, Kind kind, unsigned seed) {
  Data data;
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  const size_t n = static_cast<size_t>(s.rows) * static_cast<size_t>(s.candidates);
  for (int rank = 0; rank < s.world; ++rank) {
    std::vector<float> scores(n);
    std::vector<int32_t> ids(n);
    std::vector<int32_t> counts(static_cast<size_t>(s.rows), s.candidates);
    for (size_t i = 0; i < n; ++i) {
      const auto position = static_cast<int32_t>(i % static_cast<size_t>(s.candidates));
      ids[i] = position * s.world + rank;
      switch (kind) {
        case Kind::kRandom:
          scores[i] = normal(random);
          break;
        case Kind::kTies:
          scores[i] = std::rint(normal(random) * 2);
          break;
        case Kind::kEqual:
          scores[i] = 1.0f;
          break;
        case Kind::kDuplicates:
          ids[i] = position;
          scores[i] = static_cast<float>(position % 97);
          break;
        case Kind::kFew:
          scores[i] = normal(random);
          if (random() % 64 != 0) ids[i] = -1 - static_cast<int32_t>(random() % 5);
          break;
        case Kind::kSpecial: {
          const uint32_t bits[] = {0x7fc00000u, 0xffc00001u, 0x7f800000u, 0xff800000u, 0u,
                                   0x80000000u, 1u,          0x80000001u, 0x3f800000u};
          const uint32_t chosen = bits[random() % 9];
          std::memcpy(&scores[i], &chosen, 4);
          break;
        }
      }
    }
    if (kind == Kind::kFew) {
      for (int32_t& count : counts) count = static_cast<int32_t>(random() % 3000) - 100;
    }
    if (s.order != Order::kNone) {
      SortLists(s, counts, &scores, &ids);
      // One candidate of every third row of every second rank stands where it should not.
      for (int row = 0; s.order == Order::kBroken && rank % 2 == 1 && row < s.rows; row += 3) {
        const auto first = static_cast<size_t>(row) * static_cast<size_t>(s.candidates);
        std::swap(scores[first], scores[first + static_cast<size_t>(s.candidates) - 1]);
        std::swap(ids[first], ids[first + static_cast<size_t>(s.candidates) - 1]);
      }
    }
    data.scores.push_back(std::move(scores));
    data.ids.push_back(std::move(ids));
    data.counts.push_back(std::move(counts));
  }
  data.expected.assign(static_cast<size_t>(s.rows) * static_cast<size_t>(s.k), -1);
  for (int row = 0; row < s.rows; ++row) {
    std::vector<uint64_t> keys;
    for (int rank = 0; rank < s.world; ++rank) {
      const auto r = static_cast<size_t>(rank);
      const int count = std::clamp(data.counts[r][static_cast<size_t>(row)], 0, s.candidates);
      for (int i = 0; i < count; ++i) {
        const size_t at =
            static_cast<size_t>(row) * static_cast<size_t>(s.candidates) + static_cast<size_t>(i);
        uint32_t bits;
        std::memcpy(&bits, &data.scores[r][at], 4);
        const uint64_t key = CandidateKey(bits, data.ids[r][at]);
        if (key != 0) keys.push_back(key);
      }
    }
    std::sort(keys.begin(), keys.end(), std::greater<>());
    for (size_t i = 0; i < std::min(keys.size(), static_cast<size_t>(s.k)); ++i) {
      data.expected[static_cast<size_t>(row) * static_cast<size_t>(s.k) + i] = KeyId(keys[i]);
    }
  }
  return data;
}

}  // namespace sparsesel::testing

#endif  // SPARSESEL_TESTS_GPU_PEER_CASES_H_
