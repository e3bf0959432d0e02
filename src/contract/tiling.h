// How the rows of one call are dealt to owners and cut into tiles.
//
// A tile holds up to `step` rows of *each* owner, so that ownership is the same with and without
// tiling, and an in-place output never overwrites a row that a later tile still has to read. Inside
// a tile, rows stand in slots ordered by owner, then by row; without tiling slot s is row s.
#ifndef SPARSESEL_CONTRACT_TILING_H_
#define SPARSESEL_CONTRACT_TILING_H_

#include <algorithm>
#include <cstdint>

#include "contract/ownership.h"

namespace sparsesel {

struct Tiling {
  int32_t dealt = 0;   // rows dealt to owners
  int32_t active = 0;  // rows that are worked on: those below it
  int32_t world = 1;
  int32_t step = 1;

  constexpr int32_t tiles() const {
    const int32_t longest = OwnedRows(dealt, world, 0).size();
    return longest == 0 ? 0 : (longest + step - 1) / step;
  }

  // The active rows of `owner` in tile `tile`; may be empty.
  constexpr RowRange rows(int32_t tile, int32_t owner) const {
    const RowRange owned = OwnedRows(dealt, world, owner);
    const int64_t begin = std::min<int64_t>(owned.begin + int64_t{tile} * step, owned.end);
    const int64_t end = std::min<int64_t>(begin + step, owned.end);
    return {static_cast<int32_t>(std::min<int64_t>(begin, active)),
            static_cast<int32_t>(std::min<int64_t>(end, active))};
  }
};

}  // namespace sparsesel

#endif  // SPARSESEL_CONTRACT_TILING_H_
