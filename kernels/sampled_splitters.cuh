// Splitters: every block contributes samples, all blocks learn all samples, each block ranks its own
// and publishes those that are good enough to all. Two exchanges, no sort.
#ifndef SPARSESEL_KERNELS_SAMPLED_SPLITTERS_CUH_
#define SPARSESEL_KERNELS_SAMPLED_SPLITTERS_CUH_

#include <cstdint>

#include "kernels/ptx.cuh"
#include "kernels/sampled_shared.cuh"

namespace sparsesel::kernels {
namespace {

// Threads t with equal t >> group_log2 serve one sample; `sample` is that sample in all of them.
template <class TeamT>
__device__ __forceinline__ void PublishSample(const TeamT& team, const SampledPlan& plan,
                                              const BlockShared& shared, uint64_t sample) {
  const uint32_t group = 1u << plan.group_log2;
  const uint32_t index = threadIdx.x >> plan.group_log2;
  uint64_t* slot = shared.samples + team.Rank() * plan.samples_per_block + index;
  for (uint32_t block = threadIdx.x & (group - 1); block < team.Size(); block += group) {
    team.Store(slot, block, sample);
  }
}

// After the samples have arrived: shared.splitters[r] of every block becomes the r-th greatest of the
// first `published`. Equal samples are told apart by their index, so that every rank is taken once.
// Absent samples (key 0) are never published: the array was cleared to 0.
template <class TeamT>
__device__ __forceinline__ void RankSamples(const TeamT& team, const SampledPlan& plan,
                                            const BlockShared& shared) {
  const uint32_t group = 1u << plan.group_log2;
  const uint32_t member = threadIdx.x & (group - 1);
  const uint32_t index =
      team.Rank() * plan.samples_per_block + (threadIdx.x >> plan.group_log2);
  const uint64_t mine = shared.samples[index];
  const ulonglong2* pairs = reinterpret_cast<const ulonglong2*>(shared.samples);

  // Samples before mine precede it when they are equal: o >= mine, written o > mine - 1.
  const uint64_t below = mine - 1;
  const uint32_t my_pair = index >> 1;
  uint32_t rank = 0;
  uint32_t p = member;
#pragma unroll 4
  for (; p < my_pair; p += group) {
    const ulonglong2 pair = pairs[p];
    rank += pair.x > below;
    rank += pair.y > below;
  }
#pragma unroll 4
  for (; p < plan.samples / 2; p += group) {
    const ulonglong2 pair = pairs[p];
    rank += pair.x > mine;
    rank += pair.y > mine;
  }
  for (uint32_t step = 1; step < group; step <<= 1) {
    rank += __shfl_xor_sync(kFullWarp, rank, step);
  }
  if ((index & 1) != 0 && shared.samples[index - 1] == mine) ++rank;

  if (mine != kAbsentKey && rank < plan.published) {
    for (uint32_t block = member; block < team.Size(); block += group) {
      team.Store(shared.splitters + rank, block, mine);
    }
  }
}

}  // namespace
}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_SAMPLED_SPLITTERS_CUH_
