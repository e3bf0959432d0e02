#include "contract/ownership.h"

#include <catch2/catch.hpp>

namespace sparsesel {
namespace {

void CheckDeal(int32_t rows, int32_t world) {
  int32_t next = 0;
  int32_t last_size = rows / world + (rows % world != 0 ? 1 : 0);
  for (int32_t rank = 0; rank < world; ++rank) {
    const RowRange range = OwnedRows(rows, world, rank);
    REQUIRE(range.begin == next);
    REQUIRE(range.size() >= rows / world);
    REQUIRE(range.size() <= last_size);  // the longer blocks first
    last_size = range.size();
    next = range.end;
  }
  REQUIRE(next == rows);
}

TEST_CASE("ownership: every row has one owner, in blocks as even as possible") {
  for (int32_t world = 1; world <= 64; ++world) {
    for (int32_t rows = 0; rows <= 200; ++rows) CheckDeal(rows, world);
    CheckDeal(1048576, world);
  }
}

TEST_CASE("ownership: OwnerOfRow is the inverse of OwnedRows") {
  for (int32_t world = 1; world <= 64; ++world) {
    for (int32_t rows : {1, 2, 5, 63, 64, 65, 130}) {
      for (int32_t row = 0; row < rows; ++row) {
        const RowRange range = OwnedRows(rows, world, OwnerOfRow(rows, world, row));
        REQUIRE(range.begin <= row);
        REQUIRE(row < range.end);
      }
    }
  }
}

}  // namespace
}  // namespace sparsesel
