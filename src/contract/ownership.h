// Which rank owns which rows: contiguous blocks, as even as possible, the longer blocks first.
#ifndef SPARSESEL_CONTRACT_OWNERSHIP_H_
#define SPARSESEL_CONTRACT_OWNERSHIP_H_

#include "contract/order.h"

namespace sparsesel {

struct RowRange {
  int32_t begin = 0;
  int32_t end = 0;
  SPARSESEL_HOST_DEVICE constexpr int32_t size() const { return end - begin; }
};

// The rows of `rank` when `rows` rows are dealt to `world` ranks; empty for some ranks when
// rows < world.
SPARSESEL_HOST_DEVICE constexpr RowRange OwnedRows(int32_t rows, int32_t world, int32_t rank) {
  const int32_t base = rows / world;
  const int32_t longer = rows % world;
  const int32_t begin = rank * base + (rank < longer ? rank : longer);
  return {begin, begin + base + (rank < longer ? 1 : 0)};
}

// The inverse: the rank that owns `row`.
SPARSESEL_HOST_DEVICE constexpr int32_t OwnerOfRow(int32_t rows, int32_t world, int32_t row) {
  const int32_t base = rows / world;
  const int32_t longer = rows % world;
  const int32_t in_longer = longer * (base + 1);
  return row < in_longer ? row / (base + 1) : longer + (row - in_longer) / base;
}

}  // namespace sparsesel

#endif  // SPARSESEL_CONTRACT_OWNERSHIP_H_
