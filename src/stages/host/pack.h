// Pack: one rank's input rows become wire records. Counts, absence and the id map end here.
#ifndef SPARSESEL_STAGES_HOST_PACK_H_
#define SPARSESEL_STAGES_HOST_PACK_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "contract/order.h"
#include "contract/problem.h"

namespace sparsesel {

// The input arrays of one execute, strides filled in.
struct PackInput {
  const float* scores = nullptr;
  const int32_t* ids = nullptr;
  const int32_t* counts = nullptr;      // may be null
  const int32_t* row_starts = nullptr;  // may be null
  int64_t score_stride = 0;
  int64_t id_stride = 0;
};

// Writes problem.candidates records, absent ones as {0, -1}. INVALID_ARGUMENT names a position
// outside its score row, or an id that the map takes beyond int32.
Status PackRow(const Problem& problem, const PackInput& input, int64_t row, Record* records);

size_t SortListScratchBytes(int32_t length);

// Brings the first `top` places of the list into descending key order, absences last, equal keys in
// their original order; the rest follow in their original order. `top` >= length sorts it all.
// Lists that are in order already cost one pass.
void SortList(std::span<Record> list, int32_t top, std::span<std::byte> scratch);

}  // namespace sparsesel

#endif  // SPARSESEL_STAGES_HOST_PACK_H_
