// Everything about one launch of sampled selection that the host can work out from the shape and
// the configuration, so that the kernel starts without divisions. See sampled_kernel.cuh for the
// method.
#ifndef SPARSESEL_KERNELS_SAMPLED_PLAN_H_
#define SPARSESEL_KERNELS_SAMPLED_PLAN_H_

#include <cstddef>
#include <cstdint>

#include "kernels/select.h"

namespace sparsesel::kernels {

// Records are dealt to blocks in lines of 16 (128 bytes of wire records), the unit of one memory
// transaction.
inline constexpr uint32_t kLineRecords = 16;
inline constexpr uint32_t kMaxCluster = 16;
// Keys past the end of the staged ones that may be read, never used.
inline constexpr uint32_t kStagedSlack = 4;

// Line g of a row is line (g mod per_list) of list (g div per_list).
struct LineMap {
  uint32_t lines = 0;
  uint32_t per_list = 0;
  uint32_t magic = 0;  // g div per_list == mulhi(g, magic); unused when per_list is 1
};

struct SampledPlan {
  uint32_t cluster_log2 = 0;
  uint32_t samples = 0;            // per row
  uint32_t samples_per_block = 0;  // samples / cluster
  uint32_t group_log2 = 0;         // log2(threads / samples_per_block), at most 5
  uint32_t strata = 0;             // lines of one block, for samples that are read on their own
  uint32_t subs = 0;               // intervals between kept samples; multiple of the cluster
  uint32_t published = 0;          // samples kept as splitters
  uint32_t search_step = 0;        // a quarter of the power of four that is at least subs
  uint32_t subs_per_block = 0;
  uint32_t subs_magic = 0;  // sub div subs_per_block; unused when that is 1
  uint32_t bins_per_sub = 0;
  uint32_t region = 0;  // entries that one block may send to one bucket
  uint32_t staged = 0;  // keys that one block may keep, the same number in every warp
  LineMap lines;        // what is looked at first
  LineMap all;          // what the way out looks at
  int32_t limit = 0;    // records per list that are looked at first
  int32_t all_limit = 0;
  bool whole_lines = false;  // no line is cut short; every pair can be fetched at once
};

// Bins of the final ordering, a power of two.
SPARSESEL_HOST_DEVICE constexpr uint32_t SampledBins(uint32_t threads) {
  return threads < 256 ? 512 : 2 * threads;
}

// Where the splitters' array ends: 4 * search_step, at least samples.
SPARSESEL_HOST_DEVICE constexpr uint32_t SplitterSlots(const SampledPlan& plan) {
  return plan.samples > 4 * plan.search_step ? plan.samples : 4 * plan.search_step;
}

// False if the configuration cannot do the shape. `full_length` is the longest list, uncut.
bool MakeSampledPlan(const SelectShape& shape, int32_t full_length, const SelectConfig& config,
                     SampledPlan* plan);
size_t SampledSharedBytes(const SampledPlan& plan, uint32_t threads);

}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_SAMPLED_PLAN_H_
