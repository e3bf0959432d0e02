// The shared memory of one block of sampled selection, and where its records are.
#ifndef SPARSESEL_KERNELS_SAMPLED_SHARED_CUH_
#define SPARSESEL_KERNELS_SAMPLED_SHARED_CUH_

#include <cstdint>

#include "kernels/ptx.cuh"
#include "kernels/sampled_plan.h"

namespace sparsesel::kernels {
namespace {

inline constexpr uint32_t kWarp = 32;
inline constexpr uint32_t kFullWarp = 0xffffffffu;

// What block c tells block b after scattering: see SendMessage. Sums over 16 blocks stay in 32
// bits.
struct Message {
  uint32_t length;    // entries it sent to b
  uint32_t before;    // entries it sent to blocks before b; kFailed more if a wait failed
  uint32_t total;     // entries it sent to anyone; kSpilled more if some did not fit
  uint32_t at_least;  // of those, keys that reach the prefix bound
};
static_assert(sizeof(Message) == sizeof(uint4));
inline constexpr uint32_t kSpilled = 1u << 26;
inline constexpr uint32_t kFailed = 1u << 26;  // more in `before` if a wait of the sender failed

enum MailboxOf { kSampleMail, kSplitterMail, kMessageMail, kEntryMail };

struct BlockState {
  Mailbox mailbox[4];  // by MailboxOf
  uint64_t bound;      // greatest key that an unseen record may have; 0 without a prefix
  uint32_t spilled;
  uint32_t at_least;
  uint32_t failed;  // a wait
  uint32_t cursor;
  alignas(16) uint32_t sent[kMaxCluster];
  uint32_t warp_total[kWarp];
};

struct BlockShared {
  uint4* entries;       // [cluster][region]: key low, key high, bin, place in bin
  uint4* messages;      // [cluster]
  uint64_t* samples;    // [samples]
  uint64_t* splitters;  // [SplitterSlots], descending; 0 beyond the published ones
  uint64_t* staged;     // [staged + slack]: this block's kept keys, later its bucket in bin order
  uint32_t* bins;       // [bins + 1]
  BlockState* state;

  __device__ __forceinline__ BlockShared(const SampledPlan& plan, unsigned char* memory,
                                         BlockState* block_state) {
    const uint32_t cluster = 1u << plan.cluster_log2;
    entries = reinterpret_cast<uint4*>(memory);
    messages = entries + cluster * plan.region;
    samples = reinterpret_cast<uint64_t*>(messages + cluster);
    splitters = samples + plan.samples;
    staged = splitters + SplitterSlots(plan);
    bins = reinterpret_cast<uint32_t*>(staged + plan.staged + kStagedSlack);
    state = block_state;
  }
};

__device__ __forceinline__ uint64_t EntryKey(uint4 entry) {
  return static_cast<uint64_t>(entry.y) << 32 | entry.x;
}

struct Place {
  uint32_t list;
  int32_t at;
};

// Line u of block `rank`. Each run of `cluster` neighbouring lines gives one line to every block,
// and the deal is turned by a hash of the run's number, so that the heads of sorted lists (equal
// positions modulo a power of two) do not all fall to one block.
__device__ __forceinline__ uint32_t BlockLine(uint32_t u, uint32_t rank, uint32_t cluster_log2) {
  const uint32_t turn = (u * 0x9e3779b1u) >> 26;
  return (u << cluster_log2) + ((rank - turn) & ((1u << cluster_log2) - 1));
}

// The place of the pair that `lane8` (0..7) reads in line g; beyond every list when g is past the
// end.
__device__ __forceinline__ Place PlaceOf(const LineMap& map, uint32_t g, uint32_t lane8) {
  if (g >= map.lines) return {0, INT32_MAX - 1};
  const uint32_t list = map.per_list == 1 ? g : __umulhi(g, map.magic);
  const uint32_t line = g - list * map.per_list;
  return {list, static_cast<int32_t>(line * kLineRecords + lane8 * 2)};
}

// Any fixed, well mixed function: sample positions must not follow a pattern that lists share.
__device__ __forceinline__ uint32_t Mix(uint32_t a, uint32_t b) {
  uint32_t h = a * 0x9e3779b1u + b * 0x85ebca77u;
  h ^= h >> 15;
  h *= 0x2c1b3c6du;
  return h ^ (h >> 13);
}

// Inclusive sum over the lanes of a warp.
__device__ __forceinline__ uint32_t WarpScan(uint32_t value, uint32_t lane) {
#pragma unroll
  for (uint32_t step = 1; step < kWarp; step <<= 1) {
    const uint32_t other = __shfl_up_sync(kFullWarp, value, step);
    if (lane >= step) value += other;
  }
  return value;
}

}  // namespace
}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_SAMPLED_SHARED_CUH_
