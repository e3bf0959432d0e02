// From keys to buckets: keys that reach the pivot are gathered in the block, then each is stored into
// the region that its bucket's owner reserves for this block. No remote atomics, no second exchange.
#ifndef SPARSESEL_KERNELS_SAMPLED_SCATTER_CUH_
#define SPARSESEL_KERNELS_SAMPLED_SCATTER_CUH_

#include <cstdint>

#include "kernels/ptx.cuh"
#include "kernels/sampled_shared.cuh"

namespace sparsesel::kernels {
namespace {

// Appends the keys that reach `pivot` (at least 1, so absent ones never do). Called by whole warps.
// What does not fit is counted but not stored: ScatterStaged reports it.
template <int kKeys>
__device__ __forceinline__ void StageKeys(const SampledPlan& plan, const BlockShared& shared,
                                          const uint64_t (&key)[kKeys], uint64_t pivot) {
  const uint32_t lane = threadIdx.x & (kWarp - 1);
  uint32_t count = 0;
#pragma unroll
  for (int i = 0; i < kKeys; ++i) count += key[i] >= pivot;
  const uint32_t inclusive = WarpScan(count, lane);
  uint32_t base = 0;
  if (lane == kWarp - 1 && inclusive != 0) {
    base = atomicAdd(&shared.state->staged_count, inclusive);
  }
  uint32_t at = __shfl_sync(kFullWarp, base, kWarp - 1) + inclusive - count;
#pragma unroll
  for (int i = 0; i < kKeys; ++i) {
    if (key[i] >= pivot) {
      if (at < plan.staged) shared.staged[at] = key[i];
      ++at;
    }
  }
}

// The bin of a key inside its interval [low, high) of neighbouring splitters, greater keys first.
// Only monotone, never exact: keys of one bin are compared in full later. The top interval has no
// upper end and takes the logarithm of the score's distance instead, which any outlier survives.
__device__ __forceinline__ uint32_t BinInSub(uint64_t key, uint64_t low, uint64_t high, bool top,
                                             uint32_t bins) {
  if (top) {
    const uint32_t distance = static_cast<uint32_t>((key - low) >> 32);
    // Exponent and two bits of mantissa: 1..128, and 0 for no distance.
    const uint32_t level =
        distance == 0 ? 0 : (__float_as_uint(__uint2float_rz(distance)) >> 21) - (127u << 2) + 1;
    return bins - 1 - ((level * bins * 508) >> 16);
  }
  // The reciprocal is the same for the whole interval, so the product is monotone in the key.
  const float scale = __fdividef(static_cast<float>(bins), __ull2float_rn(high - low));
  return min(bins - 1, static_cast<uint32_t>(__fmul_rn(__ull2float_rn(high - key), scale)));
}

// Number of splitters greater than the key. Entries beyond the published ones are 0.
__device__ __forceinline__ uint32_t SubOf(const SampledPlan& plan, const BlockShared& shared,
                                          uint64_t key) {
  uint32_t sub = 0;
  for (uint32_t step = plan.search_step; step != 0; step >>= 1) {
    if (shared.splitters[sub + step - 1] > key) sub += step;
  }
  return sub;
}

// Sends the staged keys to their buckets, then tells every owner what it was sent. All threads of the
// block; the caller follows with team.Sync. Begins after a barrier that ends the staging.
template <int kThreads, class TeamT>
__device__ __forceinline__ void ScatterStaged(const TeamT& team, const SampledPlan& plan,
                                              const BlockShared& shared, bool need_source) {
  const uint32_t staged = min(shared.state->staged_count, plan.staged);
  const uint64_t bound = shared.state->bound;
  uint32_t at_least = 0;
  for (uint32_t e = threadIdx.x; e < staged; e += kThreads) {
    const uint64_t key = shared.staged[e];
    at_least += need_source ? key > bound : key >= bound;
    const uint32_t sub = SubOf(plan, shared, key);
    const uint32_t owner = plan.subs_per_block == 1 ? sub : __umulhi(sub, plan.subs_magic);
    const bool top = sub == 0;
    const uint64_t high = top ? 0 : shared.splitters[sub - 1];
    const uint32_t bin = (sub - owner * plan.subs_per_block) * plan.bins_per_sub +
                         BinInSub(key, shared.splitters[sub], high, top, plan.bins_per_sub);
    const uint32_t at = atomicAdd(&shared.state->sent[owner], 1u);
    if (at < plan.region) {
      team.Store(shared.entries + team.Rank() * plan.region + at, owner,
                 make_uint4(static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32), bin, 0));
    }
  }
  __syncwarp();
  at_least = __reduce_add_sync(kFullWarp, at_least);
  if ((threadIdx.x & (kWarp - 1)) == 0) atomicAdd(&shared.state->at_least, at_least);
  __syncthreads();

  if (threadIdx.x < kWarp) {
    const uint32_t lane = threadIdx.x;
    const uint32_t sent = lane < team.Size() ? shared.state->sent[lane] : 0;
    const uint32_t inclusive = WarpScan(sent, lane);
    const uint32_t total = __shfl_sync(kFullWarp, inclusive, kWarp - 1);
    const bool spilled = __any_sync(kFullWarp, sent > plan.region) ||
                         shared.state->staged_count > plan.staged;
    if (lane < team.Size()) {
      team.Store(shared.messages + team.Rank(), lane,
                 make_uint4(min(sent, plan.region), inclusive - sent, total,
                            shared.state->at_least | (spilled ? kSpilled : 0)));
    }
    __syncwarp();
  }
}

}  // namespace
}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_SAMPLED_SCATTER_CUH_
