// Sampled selection: the greatest k keys of a row, in order, by the blocks of one cluster.
//
//   load      each block reads its lines into registers and publishes samples
//   split     the samples are ranked; the best become splitters, the last of them the pivot
//   scatter   keys that reach the pivot go to the block that owns their interval
//   order     each block puts its bucket in order; earlier buckets' sizes give the output slot
//
// Three one-way exchanges, no global scratch. The splitters only steer: a key's bucket is the
// number of splitters above it, which is monotone whatever the splitters are, so the output is
// exact as soon as enough keys reached the pivot and all of them fitted. If not (misled samples, a
// mass of equal keys), all blocks of the row see it in the messages and take SelectByRadix
// together.
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
  uint32_t k;
  SampledPlan plan;
  const int32_t* active_rows;
  int32_t first_row;
  bool has_prefix;
  bool complete;
  bool need_source;
  int32_t* proof;
  SelectOutput output;
  Input input;
};

// Reads one key at record `at`, odd or even.
template <class View>
__device__ __forceinline__ uint64_t ReadKey(const View& view, uint32_t list, int32_t at,
                                            int32_t limit) {
  uint64_t first, second;
  FetchKeys(view, list, at & ~1, limit, first, second);
  return (at & 1) != 0 ? second : first;
}

// The greatest key that may hide behind a prefix: the last record looked at of every cut list. One
// warp; the same in all lanes.
template <class View>
__device__ __forceinline__ uint64_t PrefixBound(const View& view, const LineMap& map,
                                                int32_t limit) {
  uint64_t bound = kAbsentKey;
  for (uint32_t list = threadIdx.x & (kWarp - 1); list * map.per_list < map.lines; list += kWarp) {
    if (view.Length(list) > limit) bound = max(bound, ReadKey(view, list, limit - 1, limit));
  }
  __syncwarp();
  const uint32_t score = __reduce_max_sync(kFullWarp, KeyScoreOrder(bound));
  const uint32_t id = KeyScoreOrder(bound) == score ? static_cast<uint32_t>(bound) : 0;
  return static_cast<uint64_t>(score) << 32 | __reduce_max_sync(kFullWarp, id);
}

__device__ __forceinline__ void WriteRest(const OutputRow& out, uint32_t from, uint32_t k,
                                          uint32_t member, uint32_t members) {
  for (uint32_t i = from + member; i < k; i += members) out.Write(i, kAbsentKey);
}

// Blocks of a processor that registers must suffice for. Waiting takes some more, and the compiler
// finds them within 64 for 9.0 only.
constexpr int ResidentBlocks(int threads, [[maybe_unused]] bool waits) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
  if (waits) return 768 / threads;
#endif
  return 1024 / threads;
}

template <class Input, int kThreads, int kKeys, bool kCluster>
__global__ void __launch_bounds__(kThreads, ResidentBlocks(kThreads, Input::kWaits))
    SampledKernel(const __grid_constant__ SampledParams<Input> params) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  constexpr bool kBuilt = true;
#else
  constexpr bool kBuilt = !kCluster;
#endif
  if constexpr (kBuilt) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ __align__(16) BlockState state;
    const SampledPlan& plan = params.plan;
    const BlockShared shared(plan, memory, &state);
    const Team<kCluster> team(plan.cluster_log2);
    const int64_t row = blockIdx.x >> plan.cluster_log2;
    const uint32_t rank = team.Rank();
    const uint32_t t = threadIdx.x;
    const uint32_t lane = t & (kWarp - 1);
    const uint32_t member = rank * kThreads + t;
    const uint32_t members = team.Size() * kThreads;
    AdmitNextKernel();
    AwaitPreviousKernel();
    const bool active =
        params.active_rows == nullptr || params.first_row + row < *params.active_rows;
    const OutputRow out(params.output, row);
    const auto view = params.input.Row(row, &state.failed);
    if constexpr (Input::kWaits) params.input.Begin(row, active, member, members);

    constexpr int kPairs = kKeys > 0 ? kKeys / 2 : 4;
    typename Input::Raw raw[kPairs];
    Place place[kPairs];
    uint64_t key[2 * kPairs];
    const auto fetch = [&](uint32_t first_line) {
      // Pair i of thread t, in an order that differs from line to line: a sample is always pair 0,
      // and lists that are alike must not be sampled alike.
      const uint32_t turn = Mix(t / 8, rank);
#pragma unroll
      for (int i = 0; i < kPairs; ++i) {
        const uint32_t u = first_line + (t / 8) * kPairs + ((i + turn) & (kPairs - 1));
        place[i] = PlaceOf(plan.lines, BlockLine(u, rank, plan.cluster_log2), t & 7);
        raw[i] = params.input.None();
        if (plan.whole_lines) {
          if (place[i].at < plan.limit) raw[i] = view.FetchWhole(place[i].list, place[i].at);
        } else {
          raw[i] = view.Fetch(place[i].list, place[i].at, plan.limit);
        }
      }
    };
    const auto resolve = [&] {
      if constexpr (Input::kWaits) {
        constexpr uint32_t kNobody = kMaxLists;
        uint64_t begin = 0;
        for (uint32_t poll = 1;; ++poll) {
          uint32_t late = kNobody;
#pragma unroll
          for (int i = 0; i < kPairs; ++i) {
            if (view.IsLate(place[i].list, place[i].at, plan.limit, raw[i])) late = place[i].list;
          }
          if (late == kNobody || view.GivesUp(poll, late, &begin)) break;
          fetch(0);
        }
      }
#pragma unroll
      for (int i = 0; i < kPairs; ++i) {
        view.Resolve(place[i].list, place[i].at, plan.limit, raw[i], key[2 * i], key[2 * i + 1]);
      }
      __syncwarp();
    };
    if constexpr (kKeys > 0) fetch(0);
    team.OpenMailboxes(state.mailbox, 4);

    constexpr uint32_t kBins = SampledBins(kThreads);
#pragma unroll
    for (uint32_t i = 0; i < kBins / kThreads; ++i) shared.bins[t + i * kThreads] = 0;
    for (uint32_t i = plan.published + t; i < SplitterSlots(plan); i += kThreads) {
      shared.splitters[i] = 0;
    }
    if (t < kMaxCluster) state.sent[t] = 0;
    if (t == 0) {
      state.spilled = 0;
      state.at_least = 0;
      state.failed = 0;
      if constexpr (Input::kWaits) state.failed = params.input.Over() ? 1 : 0;
    }
    __syncthreads();
    if (t == kThreads - 1) {
      team.Expect(state.mailbox + kSampleMail, plan.samples * sizeof(uint64_t));
      team.Expect(state.mailbox + kSplitterMail, plan.published * sizeof(uint64_t));
      team.Expect(state.mailbox + kMessageMail, team.Size() * sizeof(Message));
    }
    __syncwarp();
    if (!active) {
      team.AwaitStart();
      WriteRest(out, 0, params.k, member, members);
      if (member == 0 && params.output.selected != nullptr) params.output.selected[row] = 0;
      if (member == 0 && params.proof != nullptr) params.proof[row] = 1;
      if constexpr (Input::kWaits) params.input.End();
      return;
    }

    // Sample i comes from the i-th group of threads, at a mixed position.
    const uint32_t index = t >> plan.group_log2;
    const uint32_t mixed = Mix(index, rank);
    uint64_t sample = 0;
    if constexpr (kKeys > 0) {
      const uint32_t group = 1u << plan.group_log2;
      resolve();
      sample = (mixed & 1) != 0 ? key[1] : key[0];
      sample = __shfl_sync(kFullWarp, sample, (lane & ~(group - 1)) + ((mixed >> 8) & (group - 1)));
    } else {
      const uint32_t begin = index * plan.strata / plan.samples_per_block;
      const uint32_t end = (index + 1) * plan.strata / plan.samples_per_block;
      const uint32_t u = begin + (mixed >> 8) % max(1u, end - begin);
      const Place at = PlaceOf(plan.lines, BlockLine(u, rank, plan.cluster_log2), mixed & 7);
      sample = ReadKey(view, at.list, at.at + ((mixed >> 3) & 1), plan.limit);
      __syncwarp();
    }
    team.AwaitStart();
    SendSample(team, plan, shared, sample);
    __syncwarp();
    if (params.has_prefix && t < kWarp) {
      const uint64_t bound = PrefixBound(view, plan.lines, plan.limit);
      if (t == 0) state.bound = bound;
    }
    __syncwarp();

    team.Await(state.mailbox + kSampleMail);
    RankSamples(team, plan, shared);
    __syncwarp();
    team.Await(state.mailbox + kSplitterMail);

    const uint64_t last = shared.splitters[plan.subs - 1];
    const uint64_t pivot = last > 1 ? last : 1;
    const uint32_t part_size = plan.staged / (kThreads / kWarp);
    uint64_t* part = shared.staged + (t / kWarp) * part_size;
    uint32_t staged = 0;
    if constexpr (kKeys > 0) {
      staged = StageKeys(part, part_size, 0, key, pivot);
    } else {
      for (uint32_t first = 0; first < plan.strata; first += kPairs * (kThreads / 8)) {
        fetch(first);
        resolve();
        staged = StageKeys(part, part_size, staged, key, pivot);
      }
    }
    if (staged > part_size) {
      staged = part_size;
      if (lane == 0) state.spilled = 1;
    }
    __syncwarp();
    if (params.has_prefix) __syncthreads();  // the bound has been written
    if constexpr (Input::kWaits) {
      if (params.has_prefix && params.input.OutOfOrder(row, member)) state.spilled = 1;
    }
    SendStaged(team, plan, shared, part, staged, params.has_prefix, params.need_source);
    __syncthreads();
    if (t < team.Size()) SendMessage(team, plan, shared, t);
    __syncwarp();
    team.Await(state.mailbox + kMessageMail);

    const uint4 none = make_uint4(0, 0, 0, 0);
    const uint4 message = lane < team.Size() ? shared.messages[lane] : none;
    const uint32_t length = __reduce_add_sync(kFullWarp, message.x);
    if (t == 0) team.Expect(state.mailbox + kEntryMail, length * sizeof(uint4));
    const uint32_t ahead = __reduce_add_sync(kFullWarp, message.y);
    const uint32_t before = ahead & (kFailed - 1);
    const uint32_t sum = __reduce_add_sync(kFullWarp, message.z);
    const uint32_t total = sum & (kSpilled - 1);
    uint64_t bound = kAbsentKey;
    bool proven = true;
    if (params.has_prefix) {
      bound = state.bound;
      proven = bound == kAbsentKey || __reduce_add_sync(kFullWarp, message.w) >= params.k;
    }
    // An input that waits tells all blocks of the row when a wait of one has failed: what is here
    // is then no answer.
    bool failed = false;
    if constexpr (Input::kWaits) failed = ahead >= kFailed;
    const bool short_of_keys = total < params.k && last > 1 && !failed;
    const bool misled =
        (sum >= kSpilled && !failed) || short_of_keys || (params.complete && !proven);
    __syncwarp();
    team.Await(state.mailbox + kEntryMail);

    uint32_t selected = min(total, params.k);
    bool proof = proven;
    if (__builtin_expect(failed, 0)) {
      selected = 0;
      WriteRest(out, 0, params.k, member, members);
    } else if (__builtin_expect(misled, 0)) {
      const bool all = params.complete;
      const RadixCut cut =
          SelectByRadix<kThreads>(team, view, all ? plan.all : plan.lines,
                                  all ? plan.all_limit : plan.limit, params.k, plan, shared, out);
      selected = cut.key == kAbsentKey ? cut.greater : params.k;
      proof =
          all || bound == kAbsentKey || (params.need_source ? cut.key > bound : cut.key >= bound);
      if constexpr (Input::kWaits) {
        if (member == 0) params.input.CountRefetch();
        // It may have waited for what peers keep.
        __syncthreads();
        if (t < team.Size() && state.failed != 0) team.Add(&state.failed, t, 1);
        team.Sync();
        if (state.failed != 0) {
          selected = 0;
          WriteRest(out, 0, params.k, member, members);
        }
      }
    } else {
      if (before < params.k) OrderBucket<kThreads>(plan, shared, before, params.k, out);
      if (total < params.k) WriteRest(out, total, params.k, member, members);
    }
    if (member == 0) {
      if (params.output.selected != nullptr) params.output.selected[row] = selected;
      if (params.proof != nullptr) params.proof[row] = proof;
    }
    if constexpr (Input::kWaits) params.input.End();
  }
}

}  // namespace
}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_SAMPLED_KERNEL_CUH_
