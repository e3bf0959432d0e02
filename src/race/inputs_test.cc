#include "race/inputs.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "contract/order.h"
#include "sparsesel.h"

namespace sparsesel {
namespace {

struct Lists {
  std::vector<std::vector<float>> scores;
  std::vector<std::vector<int32_t>> ids;
  std::vector<int32_t> counts;

  // The candidates that are present, of all ranks.
  std::vector<Record> Present() const {
    std::vector<Record> present;
    for (size_t rank = 0; rank < ids.size(); ++rank) {
      for (size_t i = 0; i < static_cast<size_t>(counts[rank]); ++i) {
        const int32_t id = ids[rank][i];
        if (id >= 0) present.push_back({std::bit_cast<uint32_t>(scores[rank][i]), id});
      }
    }
    return present;
  }
};

Lists Make(InputKind kind, const InputShape& shape, int64_t row, uint64_t seed = 42) {
  Lists lists;
  for (int32_t rank = 0; rank < shape.world; ++rank) {
    const auto length = static_cast<size_t>(shape.candidates[static_cast<size_t>(rank)]);
    lists.scores.emplace_back(length, -123.0f);
    lists.ids.emplace_back(length, -123);
    lists.counts.push_back(FillInput(kind, seed, shape, rank, row, lists.scores.back().data(),
                                     lists.ids.back().data()));
  }
  return lists;
}

bool SameBits(const Lists& a, const Lists& b) {
  for (size_t rank = 0; rank < a.ids.size(); ++rank) {
    const size_t bytes = a.scores[rank].size() * sizeof(float);
    if (std::memcmp(a.scores[rank].data(), b.scores[rank].data(), bytes) != 0) return false;
  }
  return a.ids == b.ids && a.counts == b.counts;
}

size_t DistinctIds(const std::vector<Record>& records) {
  std::set<int32_t> ids;
  for (const Record& record : records) ids.insert(record.id);
  return ids.size();
}

size_t DistinctScores(const std::vector<Record>& records) {
  std::set<uint32_t> scores;
  for (const Record& record : records) scores.insert(record.score_bits);
  return scores.size();
}

const std::vector<int32_t> kLengths = {512, 700, 1, 512};
const InputShape kShape{.world = 4, .k = 600, .candidates = kLengths, .input_order = {}};

TEST_CASE("inputs: every kind has a name of its own and writes whole lists") {
  std::set<std::string> names;
  for (int k = 0; k < kInputKinds; ++k) {
    const auto kind = static_cast<InputKind>(k);
    names.insert(InputKindName(kind));
    for (int64_t row = 0; row < 8; ++row) {
      const Lists lists = Make(kind, kShape, row);
      for (size_t rank = 0; rank < 4; ++rank) {
        REQUIRE(lists.counts[rank] >= 0);
        REQUIRE(lists.counts[rank] <= kLengths[rank]);
        REQUIRE(std::count(lists.ids[rank].begin(), lists.ids[rank].end(), -123) == 0);
      }
    }
  }
  CHECK(names.size() == kInputKinds);
}

TEST_CASE("inputs: depend on kind, seed, rank and row, and on nothing else") {
  for (int k = 0; k < kInputKinds; ++k) {
    const auto kind = static_cast<InputKind>(k);
    INFO(InputKindName(kind));
    CHECK(SameBits(Make(kind, kShape, 3), Make(kind, kShape, 3)));
    CHECK_FALSE(SameBits(Make(kind, kShape, 3), Make(kind, kShape, 3, 43)));
    CHECK_FALSE(SameBits(Make(kind, kShape, 3), Make(kind, kShape, 4)));
  }
}

TEST_CASE("inputs: of the trial are distinct, in scores and in ids, across ranks") {
  for (int32_t order : {SPARSESEL_ORDER_NONE, SPARSESEL_ORDER_BY_SCORE, SPARSESEL_ORDER_FULL}) {
    const std::vector<int32_t> orders(4, order);
    InputShape shape = kShape;
    shape.input_order = orders;
    const std::vector<Record> present = Make(InputKind::kTrial, shape, 1).Present();
    CHECK(present.size() == 1725);
    CHECK(DistinctIds(present) == present.size());
    CHECK(DistinctScores(present) == present.size());
  }
}

TEST_CASE("inputs: of the greatest trial are distinct, too") {
  const std::vector<int32_t> lengths(64, 65536);
  for (int32_t order : {SPARSESEL_ORDER_NONE, SPARSESEL_ORDER_FULL}) {
    const std::vector<int32_t> orders(64, order);
    const InputShape shape{.world = 64, .k = 2048, .candidates = lengths, .input_order = orders};
    std::vector<bool> ids(size_t{1} << 23);
    std::vector<bool> scores(size_t{1} << 31);
    std::vector<float> list_scores(65536);
    std::vector<int32_t> list_ids(65536);
    int64_t repeated = 0;
    for (int32_t rank = 0; rank < 64; ++rank) {
      FillInput(InputKind::kTrial, 5, shape, rank, 0, list_scores.data(), list_ids.data());
      for (size_t i = 0; i < 65536; ++i) {
        const uint32_t bits = std::bit_cast<uint32_t>(list_scores[i]);
        repeated += ids[static_cast<size_t>(list_ids[i])] || scores[bits];
        ids[static_cast<size_t>(list_ids[i])] = true;
        scores[bits] = true;
      }
    }
    CHECK(repeated == 0);
  }
}

bool IsInOrder(const Lists& lists, bool reversed) {
  for (size_t rank = 0; rank < lists.ids.size(); ++rank) {
    uint64_t last = ~uint64_t{0};
    for (size_t j = 0; j < lists.ids[rank].size(); ++j) {
      const size_t i = reversed ? lists.ids[rank].size() - 1 - j : j;
      const uint64_t key =
          CandidateKey(std::bit_cast<uint32_t>(lists.scores[rank][i]), lists.ids[rank][i]);
      if (key > last) return false;
      last = key;
    }
  }
  return true;
}

TEST_CASE("inputs: sorted ones are in full order, absences last") {
  const std::vector<int32_t> orders(4, SPARSESEL_ORDER_FULL);
  InputShape promised = kShape;
  promised.input_order = orders;
  for (int64_t row = 0; row < 8; ++row) {
    CHECK(IsInOrder(Make(InputKind::kTrial, promised, row), false));
    CHECK(IsInOrder(Make(InputKind::kSorted, kShape, row), false));
    CHECK(IsInOrder(Make(InputKind::kReverseSorted, kShape, row), true));
  }
  CHECK_FALSE(IsInOrder(Make(InputKind::kTrial, kShape, 0), false));
}

// How many present candidates satisfy `predicate` in each of the first rows.
template <typename Predicate>
std::vector<int64_t> Count(InputKind kind, Predicate predicate) {
  std::vector<int64_t> found;
  for (int64_t row = 0; row < 6; ++row) {
    const std::vector<Record> present = Make(kind, kShape, row).Present();
    found.push_back(std::count_if(present.begin(), present.end(), predicate));
  }
  return found;
}

bool IsNan(const Record& record) { return ScoreOrder(record.score_bits) == kNanOrder; }

TEST_CASE("inputs: have what their names say") {
  const auto any = [](const Record&) { return true; };
  for (int64_t n : Count(InputKind::kAllAbsent, any)) CHECK(n == 0);
  for (int64_t n : Count(InputKind::kFewPresent, any)) CHECK(n < kShape.k);
  for (int64_t n : Count(InputKind::kCutoffTies,
                         [](const Record& record) { return record.score_bits > 0x40000000u; })) {
    CHECK(n < kShape.k);
  }
  for (int64_t n : Count(InputKind::kCutoffTies,
                         [](const Record& record) { return record.score_bits >= 0x40000000u; })) {
    CHECK(n > kShape.k);
  }
  CHECK(DistinctScores(Make(InputKind::kAllEqual, kShape, 0).Present()) == 1);
  const std::vector<Record> duplicates = Make(InputKind::kDuplicateIds, kShape, 0).Present();
  CHECK(DistinctIds(duplicates) * 3 < duplicates.size());

  const std::vector<int64_t> minus_infinities =
      Count(InputKind::kInfinities,
            [](const Record& record) { return record.score_bits == kMinusInfinityBits; });
  CHECK(*std::max_element(minus_infinities.begin(), minus_infinities.end()) > 1725 - kShape.k);
  const std::vector<int64_t> nans = Count(InputKind::kNans, IsNan);
  CHECK(nans[2] == 1725);
  CHECK(nans[1] > 1725 - kShape.k);
  CHECK(nans[0] < 1725 - kShape.k);
  for (uint32_t zero : {0u, kSignBit}) {
    for (int64_t n : Count(InputKind::kZeros,
                           [zero](const Record& record) { return record.score_bits == zero; })) {
      CHECK(n > 300);
    }
  }
  for (int64_t n : Count(InputKind::kSubnormals, [](const Record& record) {
         const uint32_t magnitude = record.score_bits & ~kSignBit;
         return magnitude > 0 && magnitude < 0x00800000u;
       })) {
    CHECK(n > 1000);
  }
  for (int32_t extreme : {0, std::numeric_limits<int32_t>::max()}) {
    for (int64_t n : Count(InputKind::kExtremeIds,
                           [extreme](const Record& record) { return record.id == extreme; })) {
      CHECK(n > 100);
    }
  }
}

TEST_CASE("inputs: one rank only, and contiguous shards, hold the winners together") {
  const std::vector<int32_t> lengths(4, 1000);
  const InputShape shape{.world = 4, .k = 600, .candidates = lengths, .input_order = {}};
  for (int64_t row = 0; row < 8; ++row) {
    const Lists one = Make(InputKind::kOneRankOnly, shape, row);
    CHECK(one.Present().size() == 1000);
    const Lists shards = Make(InputKind::kContiguousShards, shape, row);
    std::vector<std::pair<float, float>> extremes;
    for (const std::vector<float>& scores : shards.scores) {
      const auto [low, high] = std::minmax_element(scores.begin(), scores.end());
      extremes.emplace_back(*low, *high);
    }
    std::sort(extremes.begin(), extremes.end());
    for (size_t i = 1; i < extremes.size(); ++i) {
      CHECK(extremes[i - 1].second < extremes[i].first);
    }
  }
}

TEST_CASE("inputs: absences stand in the middle, with scores that would win") {
  const Lists lists = Make(InputKind::kAbsencesInMiddle, kShape, 0);
  int changes = 0;
  for (size_t i = 1; i < static_cast<size_t>(lists.counts[0]); ++i) {
    changes += (lists.ids[0][i - 1] < 0) != (lists.ids[0][i] < 0);
  }
  CHECK(changes > 4);
}

}  // namespace
}  // namespace sparsesel
