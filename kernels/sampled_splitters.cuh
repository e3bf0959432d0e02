// Splitters: every block contributes samples, all blocks learn all samples, each block ranks its
// own and publishes those that are good enough to all. Two exchanges, no sort.
#ifndef SPARSESEL_KERNELS_SAMPLED_SPLITTERS_CUH_
#define SPARSESEL_KERNELS_SAMPLED_SPLITTERS_CUH_

#include <cstdint>

#include "kernels/ptx.cuh"
#include "kernels/sampled_shared.cuh"

namespace sparsesel::kernels {
namespace {

// Threads t with equal t >> group_log2 serve one sample; `key` is that sample in all of them. The
// low bits of a sample are replaced by its index: samples are distinct, whatever the keys, and
// since any number can be a splitter nothing else changes.
template <class TeamT>
__device__ __forceinline__ void SendSample(const TeamT& team, const SampledPlan& plan,
                                           const BlockShared& shared, uint64_t key) {
  const uint32_t group = 1u << plan.group_log2;
  const uint32_t index = team.Rank() * plan.samples_per_block + (threadIdx.x >> plan.group_log2);
  const uint64_t sample = (key & ~uint64_t{plan.samples - 1}) | index;
  for (uint32_t block = threadIdx.x & (group - 1); block < team.Size(); block += group) {
    team.Send(shared.samples + index, block, sample, shared.state->mailbox + kSampleMail);
  }
}

// Ranks kMine of this block's samples, from `first` on, against all of the row's, and publishes
// those that are among the first `published`. One warp; it reads every sample once, since the
// bandwidth of shared memory is what limits this step.
template <int kMine, class TeamT>
__device__ __forceinline__ void RankSome(const TeamT& team, const SampledPlan& plan,
                                         const BlockShared& shared, uint32_t first) {
  const uint32_t lane = threadIdx.x & (kWarp - 1);
  const ulonglong2* pairs = reinterpret_cast<const ulonglong2*>(shared.samples);
  uint64_t mine[kMine];
  uint32_t rank[kMine];
#pragma unroll
  for (int m = 0; m < kMine; ++m) {
    mine[m] = shared.samples[team.Rank() * plan.samples_per_block + first + m];
    rank[m] = 0;
  }
#pragma unroll 4
  for (uint32_t p = lane; p < plan.samples / 2; p += kWarp) {
    const ulonglong2 pair = pairs[p];
#pragma unroll
    for (int m = 0; m < kMine; ++m) {
      rank[m] += pair.x > mine[m];
      rank[m] += pair.y > mine[m];
    }
  }
#pragma unroll
  for (int m = 0; m < kMine; ++m) {
    rank[m] = __reduce_add_sync(kFullWarp, rank[m]);
    // Absent samples, and keys so small that their own bits are lost, count as nothing.
    const uint64_t splitter = mine[m] < plan.samples ? 0 : mine[m];
    if (rank[m] < plan.published && lane < team.Size()) {
      team.Send(shared.splitters + rank[m], lane, splitter, shared.state->mailbox + kSplitterMail);
    }
  }
}

// After the samples have arrived: shared.splitters[r] of every block becomes the r-th greatest of
// the first `published`.
template <class TeamT>
__device__ __forceinline__ void RankSamples(const TeamT& team, const SampledPlan& plan,
                                            const BlockShared& shared) {
  const uint32_t each = kWarp >> plan.group_log2;
  const uint32_t first = threadIdx.x / kWarp * each;
  if (each == 1) {
    RankSome<1>(team, plan, shared, first);
  } else if (each == 2) {
    RankSome<2>(team, plan, shared, first);
  } else {
    for (uint32_t m = 0; m < each; m += 4) RankSome<4>(team, plan, shared, first + m);
  }
}

}  // namespace
}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_SAMPLED_SPLITTERS_CUH_
