// Loading of the exchange's kernels, one function per file that has some.
#ifndef SPARSESEL_KERNELS_PEER_PREPARE_H_
#define SPARSESEL_KERNELS_PEER_PREPARE_H_

#include <cuda_runtime_api.h>

namespace sparsesel::kernels {

cudaError_t PreparePeerCollect();

}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_PEER_PREPARE_H_
