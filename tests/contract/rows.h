// Rows of input that have broken such programs before, as functions of a seed.
#ifndef SPARSESEL_TESTS_CONTRACT_ROWS_H_
#define SPARSESEL_TESTS_CONTRACT_ROWS_H_

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "contract/batch.h"
#include "contract/group_fixture.h"
#include "oracle/answer.h"

namespace contract {

using Random = std::mt19937_64;

inline constexpr uint32_t kOne = 0x3f800000u;
inline constexpr uint32_t kInfinity = 0x7f800000u;
inline constexpr uint32_t kMinusInfinity = 0xff800000u;
inline constexpr uint32_t kMinusZero = 0x80000000u;
inline constexpr uint32_t kNan = 0x7fc00000u;
inline constexpr uint32_t kMinusNan = 0xffc00000u;

struct RowShape {
  std::vector<int32_t> lengths;  // by rank
  int32_t k = 1;

  int32_t total() const;
};
RowShape ShapeOf(const Job& job);

using Row = std::vector<oracle::List>;  // by rank

struct RowKind {
  const char* name;
  Row (*make)(const RowShape& shape, Random& random);
};
std::span<const RowKind> RowKinds();

// Full lists of the given lengths: ids 0 .. total - 1 dealt in no order, and scores by `score`,
// which is given the id.
template <typename Score>
Row DealRow(const RowShape& shape, Random& random, Score score);

// A batch whose rows are of all kinds in turn, beginning with kind `first`.
Batch BatchOfKinds(const Job& job, int32_t rows, uint64_t seed, size_t first = 0);

// Each list in the contract's order, absent candidates last and counted.
Row InFullOrder(Row row);

void SetRow(const Job& job, int32_t row, const Row& lists, Batch* batch);

// ---------------------------------------------------------------------------------------------

std::vector<int32_t> ShuffledIds(int32_t total, Random& random);

template <typename Score>
Row DealRow(const RowShape& shape, Random& random, Score score) {
  const std::vector<int32_t> ids = ShuffledIds(shape.total(), random);
  size_t next = 0;
  Row row;
  for (int32_t length : shape.lengths) {
    oracle::List list;
    list.count = length;
    for (int32_t i = 0; i < length; ++i) {
      list.ids.push_back(ids[next++]);
      list.score_bits.push_back(score(list.ids.back()));
    }
    row.push_back(list);
  }
  return row;
}

}  // namespace contract

#endif  // SPARSESEL_TESTS_CONTRACT_ROWS_H_
