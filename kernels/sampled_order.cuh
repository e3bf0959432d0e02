// The last step: one block puts its bucket in order and writes it. A counting sort by bin, then
// comparison among the few keys that share a bin; any distribution is exact, an even one is fast.
#ifndef SPARSESEL_KERNELS_SAMPLED_ORDER_CUH_
#define SPARSESEL_KERNELS_SAMPLED_ORDER_CUH_

#include <cstdint>

#include "kernels/sampled_shared.cuh"
#include "kernels/select.h"

namespace sparsesel::kernels {
namespace {

// One row of the outputs.
struct OutputRow {
  int32_t* ids;
  uint64_t* keys;  // may be null

  __device__ __forceinline__ OutputRow(const SelectOutput& output, int64_t row)
      : ids(output.ids + row * output.id_stride),
        keys(output.keys == nullptr ? nullptr : output.keys + row * output.key_stride) {}
  __device__ __forceinline__ void Write(uint32_t slot, uint64_t key) const {
    ids[slot] = KeyId(key);
    if (keys != nullptr) keys[slot] = key;
  }
};

// Turns counts into starts, in place; bins[bins] becomes the total. Whole block.
template <int kThreads>
__device__ __forceinline__ void ScanBins(const BlockShared& shared) {
  constexpr uint32_t kPerThread = SampledBins(kThreads) / kThreads;
  const uint32_t lane = threadIdx.x & (kWarp - 1);
  const uint32_t warp = threadIdx.x / kWarp;
  uint32_t* mine = shared.bins + threadIdx.x * kPerThread;
  uint32_t count[kPerThread];
  uint32_t sum = 0;
#pragma unroll
  for (uint32_t i = 0; i < kPerThread; ++i) {
    count[i] = mine[i];
    sum += count[i];
  }
  const uint32_t inclusive = WarpScan(sum, lane);
  if (lane == kWarp - 1) shared.state->warp_total[warp] = inclusive;
  __syncthreads();
  const uint32_t others = lane < warp ? shared.state->warp_total[lane] : 0;
  uint32_t start = __reduce_add_sync(kFullWarp, others) + inclusive - sum;
#pragma unroll
  for (uint32_t i = 0; i < kPerThread; ++i) {
    mine[i] = start;
    start += count[i];
  }
  if (threadIdx.x == kThreads - 1) shared.bins[SampledBins(kThreads)] = start;
  __syncthreads();
}

// `base`: output slot of the bucket's greatest key. Entries of region c: messages[c].length.
template <int kThreads>
__device__ __forceinline__ void OrderBucket(const SampledPlan& plan, const BlockShared& shared,
                                            uint32_t base, uint32_t k, const OutputRow& out) {
  const uint32_t share = kThreads >> plan.cluster_log2;  // threads per region
  const uint32_t source = threadIdx.x / share;
  const uint32_t first = threadIdx.x & (share - 1);
  const uint32_t length = shared.messages[source].x;
  uint4* region = shared.entries + source * plan.region;

  for (uint32_t e = first; e < length; e += share) {
    region[e].w = atomicAdd(&shared.bins[region[e].z], 1u);
  }
  __syncthreads();
  ScanBins<kThreads>(shared);
  for (uint32_t e = first; e < length; e += share) {
    const uint4 entry = region[e];
    shared.staged[shared.bins[entry.z] + entry.w] = EntryKey(entry);
  }
  __syncthreads();
  for (uint32_t e = first; e < length; e += share) {
    const uint4 entry = region[e];
    const uint64_t key = EntryKey(entry);
    const uint32_t begin = shared.bins[entry.z];
    const uint32_t end = shared.bins[entry.z + 1];
    const uint32_t mine = begin + entry.w;
    uint32_t slot = base + begin;
    for (uint32_t i = begin; i < end; ++i) {
      const uint64_t other = shared.staged[i];
      slot += other > key || (other == key && i < mine);
    }
    if (slot < k) out.Write(slot, key);
  }
}

}  // namespace
}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_SAMPLED_ORDER_CUH_
