// One rank's input arrays on the device, as kernels are given them.
#ifndef SPARSESEL_KERNELS_CANDIDATES_H_
#define SPARSESEL_KERNELS_CANDIDATES_H_

#include <cstdint>

#include "contract/id_map.h"

namespace sparsesel::kernels {

// Strides count elements.
struct CandidateArrays {
  const uint32_t* scores = nullptr;
  const int32_t* ids = nullptr;
  const int32_t* counts = nullptr;      // may be null
  const int32_t* row_starts = nullptr;  // may be null
  int64_t score_stride = 0;
  int64_t id_stride = 0;
  int64_t score_row_length = 0;
  int32_t candidates = 0;
  bool positions = false;  // ids are positions into the score row, from row_starts[row] on
  IdMap id_map;
};

}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_CANDIDATES_H_
