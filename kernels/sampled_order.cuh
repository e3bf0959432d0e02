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

// Puts a key of bin `bin` at `place` among that bin's.
__device__ __forceinline__ void PlaceKey(const BlockShared& shared, uint64_t key, uint32_t bin,
                                         uint32_t place) {
  shared.staged[shared.bins[bin] + place] = key;
}

__device__ __forceinline__ void WriteKey(const BlockShared& shared, uint64_t key, uint32_t bin,
                                         uint32_t place, uint32_t base, uint32_t k,
                                         const OutputRow& out) {
  const uint32_t begin = shared.bins[bin];
  const uint32_t end = shared.bins[bin + 1];
  uint32_t slot = base + begin;
  // Four loads in flight; those past the end are read from the slack and not counted.
  for (uint32_t i = begin; i < end; i += 4) {
    uint64_t other[4];
#pragma unroll
    for (uint32_t j = 0; j < 4; ++j) other[j] = shared.staged[i + j];
#pragma unroll
    for (uint32_t j = 0; j < 4; ++j) {
      const bool earlier = other[j] > key || (other[j] == key && i + j < begin + place);
      slot += earlier && i + j < end;
    }
  }
  if (slot < k) out.Write(slot, key);
}

// `base`: output slot of the bucket's greatest key. Entries of region c: messages[c].x. Each thread
// keeps its first two entries in registers; the rest, rare, go back to shared memory in between.
template <int kThreads>
__device__ __forceinline__ void OrderBucket(const SampledPlan& plan, const BlockShared& shared,
                                            uint32_t base, uint32_t k, const OutputRow& out) {
  constexpr int kHeld = 2;
  const uint32_t share = kThreads >> plan.cluster_log2;  // threads per region
  const uint32_t source = threadIdx.x / share;
  const uint32_t first = threadIdx.x & (share - 1);
  const uint32_t length = shared.messages[source].x;
  const uint32_t rest = first + kHeld * share;
  uint4* region = shared.entries + source * plan.region;

  uint4 held[kHeld];
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    if (first + i * share < length) held[i] = region[first + i * share];
  }
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    if (first + i * share < length) held[i].w = atomicAdd(&shared.bins[held[i].z], 1u);
  }
  for (uint32_t e = rest; e < length; e += share) {
    region[e].w = atomicAdd(&shared.bins[region[e].z], 1u);
  }
  __syncthreads();
  ScanBins<kThreads>(shared);
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    if (first + i * share < length) PlaceKey(shared, EntryKey(held[i]), held[i].z, held[i].w);
  }
  for (uint32_t e = rest; e < length; e += share) {
    PlaceKey(shared, EntryKey(region[e]), region[e].z, region[e].w);
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    if (first + i * share < length) {
      WriteKey(shared, EntryKey(held[i]), held[i].z, held[i].w, base, k, out);
    }
  }
  for (uint32_t e = rest; e < length; e += share) {
    WriteKey(shared, EntryKey(region[e]), region[e].z, region[e].w, base, k, out);
  }
}

}  // namespace
}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_SAMPLED_ORDER_CUH_
