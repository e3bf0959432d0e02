#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/restore.h"

namespace sparsesel::kernels {
namespace {

constexpr int kThreads = 1024;
constexpr uint32_t kWarp = 32;
constexpr uint32_t kWarps = kThreads / kWarp;
constexpr uint32_t kFullWarp = 0xffffffffu;
constexpr uint32_t kNoSource = 0xffffffffu;
constexpr int64_t kMaxBlocks = 1 << 16;

// More than one bit pattern has this score order.
__device__ __forceinline__ bool Ambiguous(uint64_t key) {
  const uint32_t order = KeyScoreOrder(key);
  return key != kAbsentKey && (order == kZeroOrder || order == kNanOrder);
}

// First of the `count` descending keys that is not greater than `key`.
__device__ __forceinline__ uint32_t FirstSlot(const uint64_t* keys, uint32_t count, uint64_t key) {
  uint32_t low = 0;
  uint32_t high = count;
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (keys[middle] > key) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// A source is list * longest + position. Slots whose key stands once take the smallest source that
// has it; where a key stands several times, one warp deals its slots in source order.
__global__ void __launch_bounds__(kThreads)
    RestoreKernel(const __grid_constant__ RestoreArgs args, uint32_t longest) {
  __shared__ uint32_t any_group;
  const uint32_t lane = threadIdx.x & (kWarp - 1);
  const uint32_t warp = threadIdx.x / kWarp;
  const uint32_t sources = static_cast<uint32_t>(args.input.lists) * longest;
  for (int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const uint64_t* keys = args.keys + row * args.key_stride;
    uint32_t* scores = args.scores + row * args.score_stride;
    const Record* records = args.input.base + row * args.input.row_stride;
    const auto count = static_cast<uint32_t>(args.selected[row]);
    const auto record_at = [&](uint32_t source) -> Record {
      const uint32_t list = source / longest;
      const uint32_t at = source - list * longest;
      if (static_cast<int32_t>(at) >= args.input.length[list]) return {0, -1};
      return records[list * args.input.list_stride + at];
    };
    uint32_t* const put_sources =
        args.sources == nullptr ? nullptr : args.sources + row * static_cast<int64_t>(args.k);
    // Whether a slot's record has to be looked for.
    const auto wanted = [&](uint64_t key) {
      return put_sources != nullptr ? key != kAbsentKey : Ambiguous(key);
    };
    if (threadIdx.x == 0) any_group = 0;
    bool any = false;
    for (uint32_t i = threadIdx.x; i < static_cast<uint32_t>(args.k); i += kThreads) {
      if (i >= count) {
        scores[i] = kMinusInfinityBits;
      } else if (wanted(keys[i])) {
        scores[i] = kNoSource;
        any = true;
      } else {
        scores[i] = ScoreFromOrder(KeyScoreOrder(keys[i]));
      }
    }
    if (__syncthreads_or(any) == 0) continue;

    for (uint32_t source = threadIdx.x; source < sources; source += kThreads) {
      const uint64_t key = CandidateKey(record_at(source));
      if (!wanted(key)) continue;
      const uint32_t slot = FirstSlot(keys, count, key);
      if (slot == count || keys[slot] != key) continue;
      if (slot + 1 < count && keys[slot + 1] == key) {
        any_group = 1;
      } else {
        atomicMin(scores + slot, source);
      }
    }
    __syncthreads();
    if (any_group != 0) {
      for (uint32_t first = 0; first < sources; first += kWarp) {
        const uint32_t source = first + lane;
        const uint64_t key = source < sources ? CandidateKey(record_at(source)) : kAbsentKey;
        uint32_t slot = count;
        if (wanted(key)) slot = FirstSlot(keys, count, key);
        const bool mine =
            slot + 1 < count && keys[slot] == key && keys[slot + 1] == key && slot % kWarps == warp;
        if (__ballot_sync(kFullWarp, mine) == 0) continue;
        const uint32_t peers = __match_any_sync(kFullWarp, mine ? slot : kNoSource);
        uint32_t free = slot;
        if (mine) {
          const volatile uint32_t* filled = scores;
          while (free < count && keys[free] == key && filled[free] != kNoSource) ++free;
        }
        __syncwarp();
        free += __popc(peers & ((1u << lane) - 1));
        if (mine && free < count && keys[free] == key) scores[free] = source;
        __syncwarp();
      }
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < count; i += kThreads) {
      if (!wanted(keys[i])) continue;
      const uint32_t source = scores[i];
      if (put_sources != nullptr) put_sources[i] = source;
      scores[i] = record_at(source).score_bits;
    }
    __syncthreads();
  }
}

}  // namespace

cudaError_t PrepareRestore() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, RestoreKernel);
}

cudaError_t LaunchRestore(const RestoreArgs& args, cudaStream_t stream) {
  if (args.rows <= 0) return cudaSuccess;
  const int32_t longest =
      *std::max_element(args.input.length, args.input.length + args.input.lists);
  const int64_t blocks = std::min<int64_t>(args.rows, kMaxBlocks);
  RestoreKernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(
      args, static_cast<uint32_t>(std::max(1, longest)));
  return cudaPeekAtLastError();
}

}  // namespace sparsesel::kernels
