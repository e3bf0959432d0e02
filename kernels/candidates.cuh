// The record of one candidate: counts, absence, positions and the id map, as host pack does it. A
// position or global id out of range becomes absent and is reported, since a kernel has nobody to
// refuse to.
#ifndef SPARSESEL_KERNELS_CANDIDATES_CUH_
#define SPARSESEL_KERNELS_CANDIDATES_CUH_

#include <cstdint>

#include "contract/order.h"
#include "kernels/candidates.h"

namespace sparsesel::kernels {
namespace {

__device__ __forceinline__ int32_t PresentCount(const CandidateArrays& input, int64_t row) {
  if (input.counts == nullptr) return input.candidates;
  return max(0, min(input.candidates, input.counts[row]));
}

// The record at `position` of `row`, which is below the row's count. `*bad` is set, never cleared.
__device__ __forceinline__ Record PackCandidate(const CandidateArrays& input, int64_t row,
                                                int32_t position, bool* bad) {
  const int32_t id = input.ids[row * input.id_stride + position];
  if (id < 0) return {0, -1};
  int64_t at = position;
  if (input.positions) {
    at = int64_t{id} + (input.row_starts == nullptr ? 0 : input.row_starts[row]);
    if (at < 0 || at >= input.score_row_length) {
      *bad = true;
      return {0, -1};
    }
  }
  const int64_t global = MapId(input.id_map, id);
  if (global > INT32_MAX) {
    *bad = true;
    return {0, -1};
  }
  return {input.scores[row * input.score_stride + at], static_cast<int32_t>(global)};
}

}  // namespace
}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_CANDIDATES_CUH_
