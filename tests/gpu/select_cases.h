// Inputs for tests and benchmarks of device selection, and what they must give. Lists of records
// are laid out as RecordLists wants them: list-major, rows inside a list.
#ifndef SPARSESEL_TESTS_GPU_SELECT_CASES_H_
#define SPARSESEL_TESTS_GPU_SELECT_CASES_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "contract/order.h"

namespace sparsesel::testing {

enum class Pattern {
  kRandom,
  kTies,          // scores rounded to halves
  kTwoValues,     // two scores, ids everywhere
  kEqualScores,   // one score
  kGroupsOfFour,  // four neighbours share a score
  kAllAbsent,
  kFewPresent,  // about one in 50
  kHalfAbsent,
  kSameListOnAll,  // every list is the first one
  kOneKey,         // one (score, id) everywhere
  kFewKeys,        // 40 distinct (score, id)
  kInfinities,
  kNans,  // both signs, several payloads, among numbers
  kAllNan,
  kZeros,  // both zeros and a few tiny numbers
  kSubnormals,
  kExtremeIds,
  kContiguous,   // list l is better than list l + 1
  kOneListOnly,  // the others are empty
  kAscending,
  kDescending,  // each list descending, equally good
  kPeriodic,    // every 16th position is good
  kOutlier,     // one enormous score
  kCount,
};

inline const char* PatternName(Pattern pattern) {
  static const char* const names[] = {
      "random",     "ties",        "two-values",  "equal-scores",     "groups-of-four",
      "all-absent", "few-present", "half-absent", "same-list-on-all", "one-key",
      "few-keys",   "infinities",  "nans",        "all-nan",          "zeros",
      "subnormals", "extreme-ids", "contiguous",  "one-list-only",    "ascending",
      "descending", "periodic",    "outlier"};
  return names[static_cast<int>(pattern)];
}

struct Case {
  Pattern pattern = Pattern::kRandom;
  int32_t rows = 1;
  std::vector<int32_t> length;  // per list
  int32_t list_capacity = 0;    // records between rows
  std::vector<Record> records;  // [list][row][list_capacity]

  int32_t lists() const { return static_cast<int32_t>(length.size()); }
  int64_t list_stride() const { return int64_t{rows} * list_capacity; }
  Record& at(int32_t list, int32_t row, int32_t i) {
    return records[list * list_stride() + int64_t{row} * list_capacity + i];
  }
  const Record& at(int32_t list, int32_t row, int32_t i) const {
    return records[list * list_stride() + int64_t{row} * list_capacity + i];
  }
};

inline uint32_t Bits(float value) { return std::bit_cast<uint32_t>(value); }

inline Record MakeRecord(Pattern pattern, int32_t list, int32_t lists, int32_t i, int32_t length,
                         std::mt19937& random) {
  std::normal_distribution<float> normal;
  const int32_t id = i * lists + list;
  const float x = normal(random);
  switch (pattern) {
    case Pattern::kTies:
      return {Bits(std::rint(x * 2) / 2), id};
    case Pattern::kTwoValues:
      return {Bits(x > 0 ? 1.0f : -1.0f), id};
    case Pattern::kEqualScores:
      return {Bits(0.5f), id};
    case Pattern::kGroupsOfFour:
      return {Bits(std::sin(static_cast<float>((i + 1) / 4 * 7919 + list))), id};
    case Pattern::kAllAbsent:
      return {Bits(x), -1 - i};
    case Pattern::kFewPresent:
      return {Bits(x), random() % 50 == 0 ? id : INT32_MIN};
    case Pattern::kHalfAbsent:
      return {Bits(x), random() % 2 == 0 ? id : -1};
    case Pattern::kOneKey:
      return {Bits(1.5f), 77};
    case Pattern::kFewKeys: {
      const int32_t v = static_cast<int32_t>(random() % 40);
      return {Bits(static_cast<float>(v / 2)), v};
    }
    case Pattern::kInfinities: {
      const uint32_t r = random() % 4;
      return {r == 0 ? kMinusInfinityBits : r == 1 ? kInfinityBits : Bits(x), id};
    }
    case Pattern::kNans: {
      static const uint32_t nan[] = {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xffffffffu};
      return {random() % 3 != 0 ? nan[random() % 4] : Bits(x), id};
    }
    case Pattern::kAllNan:
      return {random() % 2 != 0 ? 0x7fc00001u : 0xffc00000u, id};
    case Pattern::kZeros: {
      const uint32_t r = random() % 8;
      return {r == 0 ? 1u : r == 1 ? 0x80000001u : (r & 1) != 0 ? kSignBit : 0u, id};
    }
    case Pattern::kSubnormals:
      return {static_cast<uint32_t>(random() % 0x7fffff) | (random() % 2 != 0 ? kSignBit : 0u), id};
    case Pattern::kExtremeIds:
      return {Bits(x), random() % 2 != 0 ? INT32_MAX - id : id};
    case Pattern::kContiguous:
      return {Bits(x * 0.1f - static_cast<float>(list)), id};
    case Pattern::kOneListOnly:
      return {Bits(x), list == lists - 1 ? id : -1};
    case Pattern::kPeriodic:
      return {Bits(i % 16 == 3 ? 10 + x : x), id};
    case Pattern::kOutlier:
      return {i == length / 2 ? 0x7f7fffffu : Bits(x), id};
    default:
      return {Bits(x), id};
  }
}

inline bool Before(const Record& a, const Record& b) { return CandidateKey(a) > CandidateKey(b); }

inline void SortLists(Case& c) {
  for (int32_t l = 0; l < c.lists(); ++l) {
    for (int32_t r = 0; r < c.rows; ++r) {
      Record* begin = &c.at(l, r, 0);
      std::stable_sort(begin, begin + c.length[l], Before);
    }
  }
}

// Records past a list's length are the best ones imaginable: whoever looks at them is caught.
inline Case MakeCase(Pattern pattern, int32_t rows, const std::vector<int32_t>& length,
                     uint32_t seed, int32_t extra_capacity = 0) {
  Case c;
  c.pattern = pattern;
  c.rows = rows;
  c.length = length;
  c.list_capacity = std::max(1, *std::max_element(length.begin(), length.end()) + extra_capacity);
  c.records.assign(static_cast<size_t>(c.list_stride()) * length.size(), Record{kInfinityBits, 0});
  std::mt19937 random(seed);
  for (int32_t r = 0; r < rows; ++r) {
    for (int32_t l = 0; l < c.lists(); ++l) {
      for (int32_t i = 0; i < length[l]; ++i) {
        c.at(l, r, i) = pattern == Pattern::kSameListOnAll && l > 0 && i < length[0]
                            ? c.at(0, r, i)
                            : MakeRecord(pattern, l, c.lists(), i, length[l], random);
      }
    }
  }
  if (pattern == Pattern::kAscending || pattern == Pattern::kDescending) SortLists(c);
  if (pattern == Pattern::kAscending) {
    for (int32_t l = 0; l < c.lists(); ++l) {
      for (int32_t r = 0; r < rows; ++r) {
        std::reverse(&c.at(l, r, 0), &c.at(l, r, 0) + length[l]);
      }
    }
  }
  return c;
}

// The present keys of a row among the first `limit` records of each list, greatest first, at most
// k.
inline std::vector<uint64_t> ExpectedKeys(const Case& c, int32_t row, int32_t k, int32_t limit) {
  std::vector<uint64_t> keys;
  for (int32_t l = 0; l < c.lists(); ++l) {
    for (int32_t i = 0; i < std::min(c.length[l], limit); ++i) {
      const uint64_t key = CandidateKey(c.at(l, row, i));
      if (key != kAbsentKey) keys.push_back(key);
    }
  }
  const size_t size = std::min<size_t>(keys.size(), static_cast<size_t>(k));
  std::partial_sort(keys.begin(), keys.begin() + size, keys.end(), std::greater<uint64_t>());
  keys.resize(size);
  return keys;
}

// Whether the first `limit` records of sorted lists decide the row.
inline bool ExpectedProof(const Case& c, int32_t row, int32_t k, int32_t limit, bool need_source) {
  const std::vector<uint64_t> keys = ExpectedKeys(c, row, k, limit);
  const uint64_t last = keys.size() == static_cast<size_t>(k) ? keys.back() : 0;
  for (int32_t l = 0; l < c.lists(); ++l) {
    if (c.length[l] <= limit) continue;
    const uint64_t unseen = CandidateKey(c.at(l, row, limit - 1));
    if (unseen != kAbsentKey && (unseen > last || (need_source && unseen == last))) return false;
  }
  return true;
}

}  // namespace sparsesel::testing

#endif  // SPARSESEL_TESTS_GPU_SELECT_CASES_H_
