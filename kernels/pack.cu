#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/block_sort.cuh"
#include "kernels/candidates.cuh"
#include "kernels/pack.h"
#include "sparsesel.h"

namespace sparsesel::kernels {
namespace {

constexpr int kCopyThreads = 256;
constexpr int kSortThreads = 1024;
constexpr int64_t kMaxBlocks = 1 << 16;
constexpr uint32_t kSharedSlots = 4096;  // elements that are sorted in shared memory
constexpr size_t kSortBlocks = 264;      // rows in flight when sorting in the workspace

struct SortElement {
  uint64_t key;
  uint32_t score_bits;
  uint32_t position;
};

// Rows here are rows of the input.
__device__ __forceinline__ int32_t RowCount(const PackArgs& args, int64_t row) {
  if (args.active_rows != nullptr && row >= *args.active_rows) return 0;
  return PresentCount(args.input, row);
}

__device__ __forceinline__ Record ReadCandidate(const PackArgs& args, int64_t row, int32_t at,
                                                int32_t count) {
  if (at >= count) return {0, -1};
  bool out_of_range = false;
  const Record record = PackCandidate(args.input, row, at, &out_of_range);
  if (out_of_range && args.status_word != nullptr) *args.status_word = SPARSESEL_INVALID_ARGUMENT;
  return record;
}

__global__ void __launch_bounds__(kCopyThreads) CopyKernel(const __grid_constant__ PackArgs args) {
  const int64_t total = static_cast<int64_t>(args.rows) * args.input.candidates;
  const int64_t step = static_cast<int64_t>(gridDim.x) * kCopyThreads;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kCopyThreads + threadIdx.x; i < total;
       i += step) {
    const int64_t out = i / args.input.candidates;
    const auto at = static_cast<int32_t>(i - out * args.input.candidates);
    const int64_t row = args.first_row + out;
    args.out[out * args.out_stride + at] = ReadCandidate(args, row, at, RowCount(args, row));
  }
}

// One row a block in turn; `workspace` is null when shared memory holds a row.
__global__ void __launch_bounds__(kSortThreads)
    SortKernel(const __grid_constant__ PackArgs args, SortElement* workspace, uint32_t slots) {
  extern __shared__ __align__(16) unsigned char memory[];
  SortElement* elements = workspace != nullptr
                              ? workspace + static_cast<int64_t>(blockIdx.x) * slots
                              : reinterpret_cast<SortElement*>(memory);
  const int32_t keep =
      args.keep > 0 ? min(args.keep, args.input.candidates) : args.input.candidates;
  for (int64_t out = blockIdx.x; out < args.rows; out += gridDim.x) {
    const int64_t row = args.first_row + out;
    const int32_t count = RowCount(args, row);
    for (uint32_t i = threadIdx.x; i < slots; i += kSortThreads) {
      const Record record = ReadCandidate(args, row, static_cast<int32_t>(i), count);
      elements[i] = {CandidateKey(record), record.score_bits, i};
    }
    BlockSort(elements, slots, [](const SortElement& a, const SortElement& b) {
      return a.key > b.key || (a.key == b.key && a.position < b.position);
    });
    for (int32_t i = static_cast<int32_t>(threadIdx.x); i < keep; i += kSortThreads) {
      args.out[out * args.out_stride + i] = {elements[i].score_bits, KeyId(elements[i].key)};
    }
    __syncthreads();
  }
}

}  // namespace

size_t PackWorkspaceBytes(const PackArgs& args) {
  const uint32_t slots = SortSlots(static_cast<uint32_t>(std::max(1, args.input.candidates)));
  if (!args.sort || slots <= kSharedSlots) return 0;
  return std::min<size_t>(static_cast<size_t>(args.rows), kSortBlocks) * slots *
         sizeof(SortElement);
}

cudaError_t PreparePack() {
  cudaFuncAttributes attributes;
  const cudaError_t error = cudaFuncGetAttributes(&attributes, CopyKernel);
  if (error != cudaSuccess) return error;
  return cudaFuncSetAttribute(SortKernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(kSharedSlots * sizeof(SortElement)));
}

cudaError_t LaunchPack(const PackArgs& args, void* workspace, size_t workspace_bytes,
                       cudaStream_t stream) {
  if (args.rows <= 0 || args.input.candidates <= 0) return cudaSuccess;
  if (!args.sort) {
    const int64_t total = static_cast<int64_t>(args.rows) * args.input.candidates;
    const int64_t blocks = std::min(kMaxBlocks, (total + kCopyThreads - 1) / kCopyThreads);
    CopyKernel<<<static_cast<unsigned>(blocks), kCopyThreads, 0, stream>>>(args);
    return cudaPeekAtLastError();
  }
  const uint32_t slots = SortSlots(static_cast<uint32_t>(args.input.candidates));
  const bool in_shared = slots <= kSharedSlots;
  int64_t blocks = std::min<int64_t>(args.rows, kMaxBlocks);
  if (!in_shared) {
    blocks = std::min<int64_t>(
        blocks, static_cast<int64_t>(workspace_bytes / (slots * sizeof(SortElement))));
    if (workspace == nullptr || blocks < 1) return cudaErrorInvalidValue;
  }
  const auto threads = static_cast<unsigned>(kSortThreads);
  SortKernel<<<static_cast<unsigned>(blocks), threads, in_shared ? slots * sizeof(SortElement) : 0,
               stream>>>(args, in_shared ? nullptr : static_cast<SortElement*>(workspace), slots);
  return cudaPeekAtLastError();
}

}  // namespace sparsesel::kernels
