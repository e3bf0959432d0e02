// From keys to buckets: each warp gathers its keys that reach the pivot, so that the work on them
// is dense, and sends each into the region that its bucket's owner reserves for this block. No
// remote atomics, no exchange of offsets.
#ifndef SPARSESEL_KERNELS_SAMPLED_SCATTER_CUH_
#define SPARSESEL_KERNELS_SAMPLED_SCATTER_CUH_

#include <cstdint>

#include "kernels/ptx.cuh"
#include "kernels/sampled_shared.cuh"

namespace sparsesel::kernels {
namespace {

// Appends the keys that reach `pivot` (at least 1, so absent ones never do) to the warp's part of
// the staged keys and returns its new count. Beyond the part's size keys are counted, not stored.
template <int kKeys>
__device__ __forceinline__ uint32_t StageKeys(uint64_t* part, uint32_t size, uint32_t count,
                                              const uint64_t (&key)[kKeys], uint64_t pivot) {
  const uint32_t before = (1u << (threadIdx.x & (kWarp - 1))) - 1;
#pragma unroll
  for (int i = 0; i < kKeys; ++i) {
    const bool keep = key[i] >= pivot;
    const uint32_t kept = __ballot_sync(kFullWarp, keep);
    const uint32_t at = count + __popc(kept & before);
    if (keep && at < size) part[at] = key[i];
    count += __popc(kept);
  }
  return count;
}

// Number of splitters greater than the key, found in base 4: few steps, three loads in flight in
// each. Entries beyond the published ones are 0.
__device__ __forceinline__ uint32_t SubOf(const SampledPlan& plan, const uint64_t* splitters,
                                          uint64_t key) {
  uint32_t sub = 0;
  for (uint32_t step = plan.search_step; step != 0; step >>= 2) {
    const uint64_t* at = splitters + sub + step - 1;
    const uint64_t a = at[0], b = at[step], c = at[2 * step];
    uint32_t steps = a > key;
    steps += b > key;
    steps += c > key;
    sub += steps * step;
  }
  return sub;
}

// The bin of a key inside its interval [low, high) of neighbouring splitters, greater keys first.
// Only monotone, never exact: keys of one bin are compared in full later. Where the interval lies
// in one score, bins follow the ids. Else a quarter of them follows the ids of either end's score,
// where heavy ties stand, and the half in between follows the scores, as numbers (their integer
// order is logarithmic: around zero nearly all keys would share a bin). Keys beyond `high` (of the
// top interval, whose upper end is a guess) share the first bin. `floor`: about the lowest id word.
__device__ __forceinline__ uint32_t BinInSub(uint64_t key, uint64_t low, uint64_t high,
                                             uint32_t floor, uint32_t bins) {
  if (key >= high || bins < 4) return 0;
  const uint32_t score = KeyScoreOrder(key);
  const uint32_t low_score = KeyScoreOrder(low);
  const uint32_t high_score = KeyScoreOrder(high);
  const uint32_t id = static_cast<uint32_t>(key);
  const uint32_t low_id = static_cast<uint32_t>(low);
  const uint32_t high_id = static_cast<uint32_t>(high);
  const uint32_t quarter = bins / 4;
  uint32_t base = 0;
  uint32_t width = bins;
  float distance = static_cast<float>(high_id - id);
  float span = static_cast<float>(high_id - low_id);
  if (low_score != high_score) {
    width = quarter;
    if (score == high_score) {
      span = static_cast<float>(high_id > floor ? high_id - floor : 1);
    } else if (score == low_score) {
      base = bins - quarter;
      distance = static_cast<float>(kSignBit - id);
      span = static_cast<float>(kSignBit - low_id);
    } else {
      base = quarter;
      width = bins - 2 * quarter;
      const float top = __uint_as_float(ScoreFromOrder(high_score));
      span = __fsub_rn(top, __uint_as_float(ScoreFromOrder(low_score)));
      distance = __fsub_rn(top, __uint_as_float(ScoreFromOrder(score)));
      // An end is infinite or no number, or the division would overflow.
      if (!(span < __uint_as_float(kInfinityBits)) || span < 1e-30f) {
        span = static_cast<float>(high_score - low_score);
        distance = static_cast<float>(high_score - score);
      }
    }
  }
  // The scale is the same for the whole piece, so the product is monotone in the key.
  const float scale = __fdividef(static_cast<float>(width), span);
  const uint32_t bin = static_cast<uint32_t>(__fmul_rn(distance, scale));
  return base + min(width - 1, bin);
}

// The lowest id word among the first splitters: what ids the row has, roughly. One warp.
__device__ __forceinline__ uint32_t IdFloor(const uint64_t* splitters, uint32_t published) {
  uint32_t floor = ~uint32_t{0};
  for (uint32_t i = threadIdx.x & (kWarp - 1); i < min(published, 2 * kWarp); i += kWarp) {
    if (splitters[i] != 0) floor = min(floor, static_cast<uint32_t>(splitters[i]));
  }
  __syncwarp();
  return __reduce_min_sync(kFullWarp, floor);
}

// Twice the span of the next seven intervals above the greatest splitter: what a tail that thins
// out exponentially hardly leaves.
__device__ __forceinline__ uint64_t TopGuess(const SampledPlan& plan, const uint64_t* splitters) {
  const uint64_t top = splitters[0];
  const uint64_t span = 2 * (top - splitters[min(7u, plan.subs - 1)]) + 1;
  return top + span < top ? ~uint64_t{0} : top + span;
}

// Sends the warp's staged keys to their buckets and counts those that reach the prefix bound.
template <class TeamT>
__device__ __forceinline__ void SendStaged(const TeamT& team, const SampledPlan& plan,
                                           const BlockShared& shared, const uint64_t* part,
                                           uint32_t count, bool has_prefix, bool need_source) {
  const uint32_t lane = threadIdx.x & (kWarp - 1);
  const uint64_t bound = has_prefix ? shared.state->bound : 0;
  const uint64_t top = TopGuess(plan, shared.splitters);
  const uint32_t floor = IdFloor(shared.splitters, plan.published);
  uint32_t at_least = 0;
  for (uint32_t e = lane; e < count; e += kWarp) {
    const uint64_t key = part[e];
    at_least += need_source ? key > bound : key >= bound;
    const uint32_t sub = SubOf(plan, shared.splitters, key);
    const uint32_t owner = plan.subs_per_block == 1 ? sub : __umulhi(sub, plan.subs_magic);
    // Adding for all lanes of one owner at once (match) was measured: half a microsecond slower.
    const uint32_t at = atomicAdd(&shared.state->sent[owner], 1u);
    const uint64_t high = sub == 0 ? top : shared.splitters[sub - 1];
    const uint32_t bin = (sub - owner * plan.subs_per_block) * plan.bins_per_sub +
                         BinInSub(key, shared.splitters[sub], high, floor, plan.bins_per_sub);
    if (at < plan.region) {
      team.Send(shared.entries + team.Rank() * plan.region + at, owner,
                make_uint4(static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32), bin, 0),
                shared.state->mailbox + kEntryMail);
    }
  }
  __syncwarp();
  if (has_prefix) {
    at_least = __reduce_add_sync(kFullWarp, at_least);
    if (lane == 0) atomicAdd(&shared.state->at_least, at_least);
  }
}

// Tells every owner what it was sent. After a barrier that ends the sending of all warps; one lane
// for each block of the team.
template <class TeamT>
__device__ __forceinline__ void SendMessage(const TeamT& team, const SampledPlan& plan,
                                            const BlockShared& shared, uint32_t block) {
  const uint4* sent = reinterpret_cast<const uint4*>(shared.state->sent);
  uint32_t before = 0;
  uint32_t total = 0;
  uint32_t most = 0;
#pragma unroll
  for (uint32_t i = 0; i < kMaxCluster / 4; ++i) {
    const uint4 four = sent[i];
    const uint32_t value[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (uint32_t j = 0; j < 4; ++j) {
      before += 4 * i + j < block ? value[j] : 0;
      total += value[j];
      most = max(most, value[j]);
    }
  }
  const bool spilled = most > plan.region || shared.state->spilled != 0;
  const uint32_t length = min(shared.state->sent[block], plan.region);
  team.Send(shared.messages + team.Rank(), block,
            make_uint4(length, before + (shared.state->failed != 0 ? kFailed : 0),
                       total + (spilled ? kSpilled : 0), shared.state->at_least),
            shared.state->mailbox + kMessageMail);
}

}  // namespace
}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_SAMPLED_SCATTER_CUH_
