// The per-input halves of PrepareSampled.
#ifndef SPARSESEL_KERNELS_SAMPLED_PREPARE_H_
#define SPARSESEL_KERNELS_SAMPLED_PREPARE_H_

#include "kernels/select.h"

namespace sparsesel::kernels {

cudaError_t PrepareSampledRecords(const SelectDevice& device);
cudaError_t PrepareSampledSplit(const SelectDevice& device);

}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_SAMPLED_PREPARE_H_
