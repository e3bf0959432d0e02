// Sampled selection: the greatest k keys of a row, in order, by the blocks of one cluster.
//
//   load      each block reads its lines into registers and publishes samples
//   split     the samples are ranked; the best become splitters, the last of them the pivot
//   scatter   keys that reach the pivot go to the block that owns their interval
//   order     each block puts its bucket in order; earlier buckets' sizes give the output slot
//
// Three cluster barriers, no global scratch. The splitters only steer: a key's bucket is the number
// of splitters above it, which is monotone whatever the splitters are, so the output is exact as soon
// as enough keys reached the pivot and all of them fitted. If not (misled samples, a mass of equal
// keys), all blocks of the row see it in the messages and take SelectByRadix together.
#ifndef SPARSESEL_KERNELS_SAMPLED_KERNEL_CUH_
#define SPARSESEL_KERNELS_SAMPLED_KERNEL_CUH_

#include <cstdint>

#include "kernels/input.cuh"
#include "kernels/ptx.cuh"
#include "kernels/sampled_fallback.cuh"
#include "kernels/sampled_order.cuh"
#include "kernels/sampled_scatter.cuh"
#include "kernels/sampled_shared.cuh"
#include "kernels/sampled_splitters.cuh"

namespace sparsesel::kernels {
namespace {

template <class Input>
struct SampledParams {
  Input input;
  SampledPlan plan;
  uint32_t k;
  const int32_t* active_rows;
  bool has_prefix;
  bool complete;
  bool need_source;
  int32_t* proof;
  SelectOutput output;
};

// Reads one key at record `at`, odd or even.
template <class View>
__device__ __forceinline__ uint64_t ReadKey(const View& view, uint32_t list, int32_t at,
                                            int32_t limit) {
  uint64_t first, second;
  auto raw = view.Fetch(list, at & ~1, limit);
  view.Resolve(list, at & ~1, limit, raw, first, second);
  return (at & 1) != 0 ? second : first;
}

// The greatest key that may hide behind a prefix: the last record looked at of every cut list.
template <class View>
__device__ __forceinline__ uint64_t PrefixBound(const View& view, const LineMap& map,
                                                int32_t limit) {
  const uint32_t list = threadIdx.x;
  if (list * map.per_list >= map.lines || view.Length(list) <= limit) return kAbsentKey;
  return ReadKey(view, list, limit - 1, limit);
}

__device__ __forceinline__ void WriteRest(const OutputRow& out, uint32_t from, uint32_t k,
                                          uint32_t member, uint32_t members) {
  for (uint32_t i = from + member; i < k; i += members) out.Write(i, kAbsentKey);
}

template <class Input, int kThreads, int kKeys, bool kCluster>
__global__ void __launch_bounds__(kThreads, 1024 / kThreads)
    SampledKernel(const __grid_constant__ SampledParams<Input> params) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  constexpr bool kBuilt = true;
#else
  constexpr bool kBuilt = !kCluster;
#endif
  if constexpr (kBuilt) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ BlockState state;
    const SampledPlan& plan = params.plan;
    const BlockShared shared(plan, memory, &state);
    const Team<kCluster> team(plan.cluster_log2);
    const int64_t row = blockIdx.x >> plan.cluster_log2;
    const uint32_t rank = team.Rank();
    const uint32_t t = threadIdx.x;
    const uint32_t member = rank * kThreads + t;
    const uint32_t members = team.Size() * kThreads;
    const bool active = params.active_rows == nullptr || row < *params.active_rows;
    const OutputRow out(params.output, row);
    const auto view = params.input.Row(row);

    // A block may be written to only once it has started: everyone arrives here first.
    team.Arrive();
    constexpr int kPairs = kKeys > 0 ? kKeys / 2 : 4;
    typename Input::Raw raw[kPairs];
    Place place[kPairs];
    uint64_t key[2 * kPairs];
    if constexpr (kKeys > 0) {
#pragma unroll
      for (int i = 0; i < kPairs; ++i) {
        const uint32_t line = BlockLine(i * (kThreads / 8) + t / 8, rank, plan.cluster_log2);
        place[i] = PlaceOf(plan.lines, line, t & 7);
        raw[i] = view.Fetch(place[i].list, place[i].at, plan.limit);
      }
    }
    for (uint32_t i = t; i <= SampledBins(kThreads); i += kThreads) shared.bins[i] = 0;
    for (uint32_t i = t; i < plan.samples; i += kThreads) shared.splitters[i] = 0;
    if (t < kMaxCluster) state.sent[t] = 0;
    if (t == 0) {
      state.bound = 0;
      state.staged_count = 0;
      state.at_least = 0;
    }
    if (!active) {
      team.Wait();
      WriteRest(out, 0, params.k, member, members);
      if (member == 0 && params.output.selected != nullptr) params.output.selected[row] = 0;
      if (member == 0 && params.proof != nullptr) params.proof[row] = 1;
      return;
    }

    // Sample i comes from the i-th group of threads, at a mixed position.
    const uint32_t index = t >> plan.group_log2;
    const uint32_t mixed = Mix(index, rank);
    uint64_t sample = 0;
    if constexpr (kKeys > 0) {
#pragma unroll
      for (int i = 0; i < kPairs; ++i) {
        view.Resolve(place[i].list, place[i].at, plan.limit, raw[i], key[2 * i], key[2 * i + 1]);
      }
      const uint32_t choice = (index % kPairs) * 2 + (mixed & 1);
#pragma unroll
      for (int i = 0; i < kKeys; ++i) {
        if (choice == static_cast<uint32_t>(i)) sample = key[i];
      }
      const uint32_t group = 1u << plan.group_log2;
      const uint32_t lane = t & (kWarp - 1);
      sample = __shfl_sync(kFullWarp, sample, (lane & ~(group - 1)) + ((mixed >> 8) & (group - 1)));
    } else {
      const uint32_t begin = index * plan.strata / plan.samples_per_block;
      const uint32_t end = (index + 1) * plan.strata / plan.samples_per_block;
      const uint32_t u = begin + (mixed >> 8) % max(1u, end - begin);
      const Place at = PlaceOf(plan.lines, BlockLine(u, rank, plan.cluster_log2), mixed & 7);
      sample = ReadKey(view, at.list, at.at + ((mixed >> 3) & 1), plan.limit);
      __syncwarp();
    }
    team.Wait();
    PublishSample(team, plan, shared, sample);
    if (params.has_prefix && t < kMaxLists) {
      const uint64_t bound = PrefixBound(view, plan.lines, plan.limit);
      if (bound != kAbsentKey) {
        atomicMax(reinterpret_cast<unsigned long long*>(&state.bound), bound);
      }
    }
    __syncwarp();
    team.Sync();

    RankSamples(team, plan, shared);
    __syncwarp();
    team.Sync();

    const uint64_t last = shared.splitters[plan.subs - 1];
    const uint64_t pivot = last > 1 ? last : 1;
    if constexpr (kKeys > 0) {
      StageKeys(plan, shared, key, pivot);
    } else {
      for (uint32_t first = 0; first < plan.strata; first += kPairs * (kThreads / 8)) {
#pragma unroll
        for (int i = 0; i < kPairs; ++i) {
          const uint32_t line =
              BlockLine(first + i * (kThreads / 8) + t / 8, rank, plan.cluster_log2);
          place[i] = PlaceOf(plan.lines, line, t & 7);
          raw[i] = view.Fetch(place[i].list, place[i].at, plan.limit);
        }
#pragma unroll
        for (int i = 0; i < kPairs; ++i) {
          view.Resolve(place[i].list, place[i].at, plan.limit, raw[i], key[2 * i], key[2 * i + 1]);
        }
        __syncwarp();
        StageKeys(plan, shared, key, pivot);
      }
    }
    __syncthreads();
    ScatterStaged<kThreads>(team, plan, shared, params.need_source);
    team.Sync();

    const uint32_t lane = t & (kWarp - 1);
    const uint4 none = make_uint4(0, 0, 0, 0);
    const uint4 message = lane < team.Size() ? shared.messages[lane] : none;
    const uint32_t before = __reduce_add_sync(kFullWarp, message.y);
    const uint32_t total = __reduce_add_sync(kFullWarp, message.z);
    const uint32_t at_least = __reduce_add_sync(kFullWarp, message.w & ~kSpilled);
    const bool spilled = __any_sync(kFullWarp, (message.w & kSpilled) != 0);
    const uint64_t bound = state.bound;
    const bool proven = bound == kAbsentKey || at_least >= params.k;
    const bool short_of_keys = total < params.k && last > 1;

    uint32_t selected = min(total, params.k);
    bool proof = proven;
    if (spilled || short_of_keys || (params.complete && !proven)) {
      const bool all = params.complete;
      const RadixCut cut = SelectByRadix<kThreads>(team, view, all ? plan.all : plan.lines,
                                                   all ? plan.all_limit : plan.limit, params.k,
                                                   plan, shared, out);
      selected = cut.key == kAbsentKey ? cut.greater : params.k;
      proof = all || bound == kAbsentKey ||
              (params.need_source ? cut.key > bound : cut.key >= bound);
    } else {
      if (before < params.k) OrderBucket<kThreads>(plan, shared, before, params.k, out);
      if (total < params.k) WriteRest(out, total, params.k, member, members);
    }
    if (member == 0) {
      if (params.output.selected != nullptr) params.output.selected[row] = selected;
      if (params.proof != nullptr) params.proof[row] = proof;
    }
  }
}

}  // namespace
}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_SAMPLED_KERNEL_CUH_
