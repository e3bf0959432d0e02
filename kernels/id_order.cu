#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/block_sort.cuh"
#include "kernels/restore.h"

namespace sparsesel::kernels {
namespace {

constexpr int kThreads = 1024;
constexpr uint32_t kSharedSlots = 4096;
constexpr int64_t kMaxBlocks = 1 << 16;
constexpr size_t kWorkspaceBlocks = 264;

struct IdElement {
  uint64_t order;  // id, then source or slot
  uint32_t score_bits;
  uint32_t unused;
};

__global__ void __launch_bounds__(kThreads)
    IdOrderKernel(const __grid_constant__ IdOrderArgs args, IdElement* workspace, uint32_t slots) {
  extern __shared__ __align__(16) unsigned char memory[];
  IdElement* elements = workspace != nullptr ? workspace + static_cast<int64_t>(blockIdx.x) * slots
                                             : reinterpret_cast<IdElement*>(memory);
  for (int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    int32_t* ids = args.ids + row * args.id_stride;
    uint32_t* scores = args.scores == nullptr ? nullptr : args.scores + row * args.score_stride;
    const auto count = static_cast<uint32_t>(args.selected[row]);
    const uint32_t used = SortSlots(max(1u, count));
    for (uint32_t i = threadIdx.x; i < used; i += kThreads) {
      const bool present = i < count;
      const uint32_t second =
          present && args.sources != nullptr ? args.sources[row * args.k + i] : i;
      elements[i] = {present ? static_cast<uint64_t>(ids[i]) << 32 | second : ~uint64_t{0},
                     present && scores != nullptr ? scores[i] : 0, 0};
    }
    BlockSort(elements, used,
              [](const IdElement& a, const IdElement& b) { return a.order < b.order; });
    for (uint32_t i = threadIdx.x; i < count; i += kThreads) {
      ids[i] = static_cast<int32_t>(elements[i].order >> 32);
      if (scores != nullptr) scores[i] = elements[i].score_bits;
    }
    __syncthreads();
  }
}

}  // namespace

size_t IdOrderWorkspaceBytes(const IdOrderArgs& args) {
  const uint32_t slots = SortSlots(static_cast<uint32_t>(std::max(1, args.k)));
  if (slots <= kSharedSlots) return 0;
  return std::min<size_t>(static_cast<size_t>(args.rows), kWorkspaceBlocks) * slots *
         sizeof(IdElement);
}

cudaError_t PrepareIdOrder() {
  return cudaFuncSetAttribute(IdOrderKernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(kSharedSlots * sizeof(IdElement)));
}

cudaError_t LaunchIdOrder(const IdOrderArgs& args, void* workspace, size_t workspace_bytes,
                          cudaStream_t stream) {
  if (args.rows <= 0 || args.k <= 0) return cudaSuccess;
  const uint32_t slots = SortSlots(static_cast<uint32_t>(args.k));
  const bool in_shared = slots <= kSharedSlots;
  int64_t blocks = std::min<int64_t>(args.rows, kMaxBlocks);
  if (!in_shared) {
    blocks = std::min<int64_t>(blocks,
                               static_cast<int64_t>(workspace_bytes / (slots * sizeof(IdElement))));
    if (workspace == nullptr || blocks < 1) return cudaErrorInvalidValue;
  }
  IdOrderKernel<<<static_cast<unsigned>(blocks), kThreads,
                  in_shared ? slots * sizeof(IdElement) : 0, stream>>>(
      args, in_shared ? nullptr : static_cast<IdElement*>(workspace), slots);
  return cudaPeekAtLastError();
}

}  // namespace sparsesel::kernels
