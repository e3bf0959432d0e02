// The library's own judge against the oracles of the tests.
#include "contract/reference.h"

#include <bit>
#include <catch2/catch.hpp>
#include <limits>

#include "oracle/answer.h"
#include "race/inputs.h"

namespace sparsesel {
namespace {

struct Row {
  std::vector<std::vector<float>> scores;
  std::vector<std::vector<int32_t>> ids;
  std::vector<int32_t> counts;
};

Row MakeRow(InputKind kind, uint64_t seed, const InputShape& shape, int64_t row) {
  Row made;
  for (int32_t rank = 0; rank < shape.world; ++rank) {
    const auto length = static_cast<size_t>(shape.candidates[static_cast<size_t>(rank)]);
    made.scores.emplace_back(length);
    made.ids.emplace_back(length);
    made.counts.push_back(
        FillInput(kind, seed, shape, rank, row, made.scores.back().data(), made.ids.back().data()));
  }
  return made;
}

void CheckRow(const Row& row, int32_t k, bool by_id) {
  std::vector<ReferenceList> lists;
  std::vector<oracle::List> oracle_lists;
  for (size_t rank = 0; rank < row.ids.size(); ++rank) {
    lists.push_back({row.scores[rank], row.ids[rank], row.counts[rank]});
    oracle::List list{{}, row.ids[rank], row.counts[rank]};
    for (float score : row.scores[rank]) list.score_bits.push_back(std::bit_cast<uint32_t>(score));
    oracle_lists.push_back(list);
  }
  const ReferenceRow actual = SelectReference(lists, k, by_id);
  const oracle::Answer expected = oracle::Expect(oracle_lists, k, by_id);
  REQUIRE(actual.ids == expected.ids);
  REQUIRE(actual.score_bits == expected.score_bits);
  REQUIRE(actual.count == expected.count);
}

TEST_CASE("reference: agrees with the oracles on every kind of input") {
  const std::vector<int32_t> lengths = {300, 1, 257, 64, 300};
  for (int kind = 0; kind < kInputKinds; ++kind) {
    for (int64_t row = 0; row < 6; ++row) {
      for (int32_t k : {1, 100, 256, 2000}) {
        INFO(InputKindName(static_cast<InputKind>(kind)) << " row " << row << " k " << k);
        const InputShape shape{.world = 5, .k = k, .candidates = lengths};
        CheckRow(MakeRow(static_cast<InputKind>(kind), 11, shape, row), k, row % 2 == 1);
      }
    }
  }
}

TEST_CASE("reference: counts outside the list are clamped") {
  for (int32_t count :
       {std::numeric_limits<int32_t>::min(), -1, 0, 3, 4, std::numeric_limits<int32_t>::max()}) {
    CheckRow({{{1, 2, 3}}, {{4, 5, 6}}, {count}}, 2, false);
  }
}

}  // namespace
}  // namespace sparsesel
