#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

#include "kernels/sampled_config.h"
#include "kernels/sampled_plan.h"

namespace sparsesel::kernels {
namespace {

LineMap MapLines(int32_t lists, int32_t length) {
  LineMap map;
  map.per_list = (static_cast<uint32_t>(length) + kLineRecords - 1) / kLineRecords;
  map.lines = static_cast<uint32_t>(lists) * map.per_list;
  if (map.per_list > 1) {
    // Exact for g * per_list < 2^32; lines is at most 64 * 4096.
    map.magic = static_cast<uint32_t>(((uint64_t{1} << 32) + map.per_list - 1) / map.per_list);
  }
  return map;
}

uint32_t RoundUp(uint32_t value, uint32_t unit) { return (value + unit - 1) / unit * unit; }

bool KnownConfig(const SelectConfig& config) {
  if (config.cluster < 1 || config.cluster > static_cast<int32_t>(kMaxCluster) ||
      !std::has_single_bit(static_cast<uint32_t>(config.cluster)) || config.samples < 2 ||
      !std::has_single_bit(static_cast<uint32_t>(config.samples))) {
    return false;
  }
  const bool cluster = config.cluster > 1;
  return std::any_of(std::begin(kSampledKernels), std::end(kSampledKernels),
                     [&](const auto& built) {
                       return built.threads == config.threads && built.keys == config.keys &&
                              built.cluster == cluster;
                     });
}

}  // namespace

bool MakeSampledPlan(const SelectShape& shape, int32_t full_length, const SelectConfig& config,
                     SampledPlan* plan) {
  if (!KnownConfig(config) || shape.lists < 1 || shape.lists > kMaxLists || shape.length < 0 ||
      full_length < shape.length || full_length > 65536 || shape.k < 1 || shape.k > 65536) {
    return false;
  }
  const auto cluster = static_cast<uint32_t>(config.cluster);
  const auto threads = static_cast<uint32_t>(config.threads);
  const auto samples = static_cast<uint32_t>(config.samples);
  const uint32_t per_block = samples / cluster;
  if (per_block * kSampledGroupMax < threads || per_block > threads) {
    return false;
  }

  *plan = {};
  plan->cluster_log2 = static_cast<uint32_t>(std::countr_zero(cluster));
  plan->samples = samples;
  plan->samples_per_block = per_block;
  plan->group_log2 = static_cast<uint32_t>(std::countr_zero(threads / per_block));
  plan->lines = MapLines(shape.lists, shape.length);
  plan->all = MapLines(shape.lists, full_length);
  plan->limit = shape.length;
  plan->all_limit = full_length;
  plan->strata = (plan->lines.lines + cluster - 1) / cluster;

  // Slots that the samples stand for: some of them may be past the end of a list.
  uint64_t slots = uint64_t{plan->strata} * cluster * kLineRecords;
  if (config.keys > 0) {
    const uint64_t held = uint64_t{cluster} * threads * static_cast<uint32_t>(config.keys);
    if (slots > held) return false;
    slots = held;
  }
  if (slots == 0) return false;

  // The k-th key stands near this sample; so many standard deviations later the pivot is safe.
  const double expected = static_cast<double>(samples) * shape.k / static_cast<double>(slots);
  const double kept = expected + kSampledMargin * std::sqrt(expected) + 4;
  if (kept >= samples) {
    plan->subs = samples;
    plan->published = samples - 1;
  } else {
    plan->subs = std::min(samples, RoundUp(static_cast<uint32_t>(kept), cluster));
    plan->published = std::min(plan->subs, samples - 1);
  }
  plan->search_step = 1;
  while (4 * plan->search_step < plan->subs) plan->search_step *= 4;
  plan->subs_per_block = (plan->subs + cluster - 1) / cluster;
  if (plan->subs_per_block > 1) {
    plan->subs_magic = static_cast<uint32_t>(((uint64_t{1} << 32) + plan->subs_per_block - 1) /
                                             plan->subs_per_block);
  }
  plan->bins_per_sub = SampledBins(threads) / plan->subs_per_block;
  if (plan->bins_per_sub == 0) return false;

  const double gap = static_cast<double>(slots) / samples;
  const double subs = plan->subs_per_block;
  const double bucket = gap * (subs + kSampledBucketSpread * std::sqrt(subs) + 2);
  double region = cluster == 1 ? bucket : bucket / cluster * 1.4 + 40;
  if (config.keys > 0) region = std::min(region, double(threads) * config.keys);
  plan->region = RoundUp(static_cast<uint32_t>(region), 8);
  // Staged keys are split evenly among warps; a warp keeps what a share of its keys is likely to
  // be, all of them if it holds few.
  const uint32_t warps = threads / 32;
  double part = 3.0 * plan->subs * gap / cluster / warps + 48;
  if (config.keys > 0) part = std::min(part, 32.0 * config.keys);
  plan->staged =
      std::max(RoundUp(cluster * plan->region, warps), warps * static_cast<uint32_t>(part));
  // The way out keeps k keys in the entries of all blocks.
  return uint64_t{2} * cluster * cluster * plan->region >= static_cast<uint64_t>(shape.k);
}

size_t SampledSharedBytes(const SampledPlan& plan, uint32_t threads) {
  const size_t cluster = size_t{1} << plan.cluster_log2;
  return cluster * plan.region * 16 + cluster * 16 +
         (size_t{plan.samples} + SplitterSlots(plan) + plan.staged + kStagedSlack) * 8 +
         (SampledBins(threads) + 1) * 4;
}

}  // namespace sparsesel::kernels
