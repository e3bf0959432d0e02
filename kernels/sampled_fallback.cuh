// The exact way out of sampled selection, for rows whose samples misled it: a radix search for the
// k-th key over all 64 bits, then the greater keys ranked by comparison with each other. Its cost
// depends on nothing but sizes; keys equal to the k-th are only counted, so masses of duplicates
// are ordinary input. The same blocks, the same launch, nothing but the row's own memory.
#ifndef SPARSESEL_KERNELS_SAMPLED_FALLBACK_CUH_
#define SPARSESEL_KERNELS_SAMPLED_FALLBACK_CUH_

#include <cstdint>

#include "kernels/ptx.cuh"
#include "kernels/sampled_order.cuh"
#include "kernels/sampled_shared.cuh"

namespace sparsesel::kernels {
namespace {

// Calls visit(key) for every slot of this block's share, whole warps at a time, absent slots too.
template <int kThreads, class TeamT, class View, class Visit>
__device__ __forceinline__ void ForEachKey(const TeamT& team, const View& view, const LineMap& map,
                                           int32_t limit, Visit visit) {
  const uint32_t lane8 = threadIdx.x & 7;
  for (uint32_t first = 0; first << team.Log2() < map.lines; first += kThreads / 8) {
    const uint32_t line = BlockLine(first + threadIdx.x / 8, team.Rank(), team.Log2());
    const Place place = PlaceOf(map, line, lane8);
    uint64_t a, b;
    FetchKeys(view, place.list, place.at, limit, a, b);
    __syncwarp();
    visit(a);
    visit(b);
  }
}

struct RadixCut {
  uint64_t key;      // the k-th greatest key; 0 if fewer than k are present
  uint32_t greater;  // keys above it; all present ones if key is 0
};

// bins[0..255] are this block's counts, bins[256..511] the row's.
template <int kThreads, class TeamT, class View>
__device__ __forceinline__ RadixCut FindCut(const TeamT& team, const View& view, const LineMap& map,
                                            int32_t limit, uint32_t k, const BlockShared& shared) {
  const uint32_t lane = threadIdx.x & (kWarp - 1);
  uint32_t* own = shared.bins;
  uint32_t* row = shared.bins + 256;
  RadixCut cut = {0, 0};
  uint32_t wanted = k;
#pragma unroll 1
  for (int shift = 56; shift >= 0; shift -= 8) {
    for (uint32_t i = threadIdx.x; i < 512; i += kThreads) shared.bins[i] = 0;
    team.Sync();
    ForEachKey<kThreads>(team, view, map, limit, [&](uint64_t key) {
      const bool counts =
          key != kAbsentKey && (shift == 56 || key >> (shift + 8) == cut.key >> (shift + 8));
      const uint32_t digit = counts ? static_cast<uint32_t>(key >> shift) & 255u : 256u;
      const uint32_t peers = __match_any_sync(kFullWarp, digit);
      if (counts && lane == static_cast<uint32_t>(__ffs(peers) - 1)) {
        atomicAdd(own + digit, static_cast<uint32_t>(__popc(peers)));
      }
    });
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < 256; i += kThreads) {
      if (own[i] == 0) continue;
      for (uint32_t block = 0; block < team.Size(); ++block) team.Add(row + i, block, own[i]);
    }
    team.Sync();

    // Every warp finds the digit: lane i adds up digits 255 - 8i .. 248 - 8i.
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 8; ++i) sum += row[255 - 8 * lane - i];
    const uint32_t inclusive = WarpScan(sum, lane);
    const uint32_t total = __shfl_sync(kFullWarp, inclusive, kWarp - 1);
    if (shift == 56 && total < k) {
      cut.greater = total;
      __syncthreads();
      return cut;
    }
    const uint32_t at = __ffs(__ballot_sync(kFullWarp, inclusive >= wanted)) - 1;
    uint32_t above = __shfl_sync(kFullWarp, inclusive - sum, at);
    uint32_t digit = 255 - 8 * at;
    while (above + row[digit] < wanted) above += row[digit--];
    cut.key |= static_cast<uint64_t>(digit) << shift;
    wanted -= above;
    __syncthreads();
  }
  cut.greater = k - wanted;
  return cut;
}

// Returns the cut, from which the caller can judge a prefix. Ends with all remote reads done.
template <int kThreads, class TeamT, class View>
__device__ __forceinline__ RadixCut SelectByRadix(const TeamT& team, const View& view,
                                                  const LineMap& map, int32_t limit, uint32_t k,
                                                  const SampledPlan& plan,
                                                  const BlockShared& shared, const OutputRow& out) {
  const uint32_t lane = threadIdx.x & (kWarp - 1);
  const uint32_t cluster = team.Size();
  // 2 * cluster * region keys in each block; MakeSampledPlan sees to it that k fit in all.
  uint64_t* keys = reinterpret_cast<uint64_t*>(shared.entries);
  __syncthreads();
  const RadixCut cut = FindCut<kThreads>(team, view, map, limit, k, shared);

  // Deal the greater keys round the blocks, in any order.
  if (threadIdx.x == 0) shared.state->cursor = 0;
  team.Sync();
  ForEachKey<kThreads>(team, view, map, limit, [&](uint64_t key) {
    const uint32_t taking = __ballot_sync(kFullWarp, key > cut.key);
    if (taking == 0) return;
    uint32_t base = 0;
    if (lane == 0) base = team.FetchAdd(&shared.state->cursor, 0, __popc(taking));
    base = __shfl_sync(kFullWarp, base, 0);
    if (key > cut.key) {
      const uint32_t at = base + __popc(taking & ((1u << lane) - 1));
      team.Store(keys + (at >> team.Log2()), at & (cluster - 1), key);
    }
    __syncwarp();
  });
  team.Sync();

  const auto held = [&](uint32_t block) {
    return (cut.greater + cluster - 1 - block) >> team.Log2();
  };
  const uint32_t own = held(team.Rank());
  for (uint32_t first = 0; first < own; first += kThreads) {
    const uint32_t e = first + threadIdx.x;
    const uint64_t mine = e < own ? keys[e] : 0;
    uint32_t slot = 0;
    for (uint32_t block = 0; block < cluster; ++block) {
      const uint32_t count = held(block);
      for (uint32_t begin = 0; begin < count; begin += plan.staged) {
        const uint32_t size = min(plan.staged, count - begin);
        for (uint32_t i = threadIdx.x; i < size; i += kThreads) {
          shared.staged[i] = team.Load(keys + begin + i, block);
        }
        __syncthreads();
        for (uint32_t i = 0; i < size; ++i) {
          const uint64_t other = shared.staged[i];
          const bool earlier = begin + i < e || (begin + i == e && block < team.Rank());
          slot += other > mine || (other == mine && earlier);
        }
        __syncthreads();
      }
    }
    if (e < own) out.Write(slot, mine);
  }

  const uint32_t member = team.Rank() * kThreads + threadIdx.x;
  for (uint32_t i = cut.greater + member; i < k; i += cluster * kThreads) out.Write(i, cut.key);
  team.Sync();
  return cut;
}

}  // namespace
}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_SAMPLED_FALLBACK_CUH_
