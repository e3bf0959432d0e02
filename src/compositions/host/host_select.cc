#include <algorithm>
#include <array>

#include "compositions/host/host_run.h"
#include "stages/host/prefix_proof.h"
#include "stages/host/restore.h"

namespace sparsesel {
namespace {

// A row's lists in rank order; a completed row has prefix and rest of each rank apart.
struct RowLists {
  std::array<RecordList, size_t{2} * kMaxWorldSize> list{};
  size_t count = 0;
  std::span<const RecordList> span() const { return {list.data(), count}; }
};

RowLists PrefixLists(const HostRun& run, int64_t index) {
  RowLists lists;
  for (size_t r = 0; r < static_cast<size_t>(run.job.world); ++r) {
    lists.list[lists.count++] = {
        reinterpret_cast<const Record*>(run.lists.from[r]) + index * run.choices.prefix,
        std::min(run.job.candidates[r], run.choices.prefix)};
  }
  return lists;
}

RowLists CompletedLists(const HostRun& run, int64_t index, int64_t completed) {
  RowLists lists;
  const RowLists prefixes = PrefixLists(run, index);
  for (size_t r = 0; r < static_cast<size_t>(run.job.world); ++r) {
    lists.list[lists.count++] = prefixes.list[r];
    lists.list[lists.count++] = {
        reinterpret_cast<const Record*>(run.rests.from[r]) + completed * run.choices.rest,
        std::max(0, run.job.candidates[r] - run.choices.prefix)};
  }
  return lists;
}

// Writes k ids and, if wanted, k score words: the selected ones in the order of the output.
void WriteSelected(const HostRun& run, std::span<const RecordList> lists,
                   std::span<const uint64_t> keys, int32_t* ids, uint32_t* score_bits) {
  const auto k = static_cast<size_t>(run.job.problem.k);
  const size_t count = keys.size();
  const bool by_id = run.job.problem.output_order == SPARSESEL_OUTPUT_BY_ID;
  if (score_bits == nullptr) {
    for (size_t i = 0; i < count; ++i) ids[i] = KeyId(keys[i]);
    if (by_id) std::sort(ids, ids + count);
  } else {
    auto* const records = run.At<Record>(run.layout.restore_scratch);
    auto* const sources = reinterpret_cast<uint64_t*>(records + k);
    auto* const end = reinterpret_cast<std::byte*>(sources + k);
    const auto scratch =
        run.Bytes(run.layout.restore_scratch)
            .subspan(
                (static_cast<size_t>(end - run.At<std::byte>(run.layout.restore_scratch)) + 63) /
                64 * 64);
    RestoreRecords(lists, keys, scratch, records, sources);
    if (by_id) OrderById({records, count}, {sources, count}, scratch);
    for (size_t i = 0; i < count; ++i) {
      ids[i] = records[i].id;
      score_bits[i] = records[i].score_bits;
    }
    std::fill(score_bits + count, score_bits + k, kMinusInfinityBits);
  }
  std::fill(ids + count, ids + k, -1);
}

// Where the row of selected slot `index` goes: the outputs, or an answer for replicate.
void Deliver(HostRun& run, int32_t index, std::span<const RecordList> lists,
             std::span<const uint64_t> keys) {
  if (run.choices.replicate != HostChoices::Replicate::kNone) {
    int32_t* const answer =
        run.At<int32_t>(run.layout.answers) + int64_t{index} * run.layout.answer_words;
    auto* const score_bits = run.job.problem.wants_scores()
                                 ? reinterpret_cast<uint32_t*>(answer + run.job.problem.k)
                                 : nullptr;
    WriteSelected(run, lists, keys, answer, score_bits);
    return;
  }
  int32_t row = run.own().begin + index;
  if (!run.choices.owner) {
    const auto owner = static_cast<size_t>(
        std::upper_bound(run.first.begin(), run.first.begin() + run.job.world, index) -
        run.first.begin() - 1);
    row = run.rows[owner].begin + (index - run.first[owner]);
  }
  if (!Receives(run, row)) return;
  const OutputRow output = OutputOf(run, row);
  WriteSelected(run, lists, keys, output.ids, output.score_bits);
  if (output.count != nullptr) *output.count = static_cast<int32_t>(keys.size());
}

}  // namespace

Status SelectTile(HostRun& run) {
  const HostChoices& choices = run.choices;
  const int32_t k = run.job.problem.k;
  auto* const keys = run.At<uint64_t>(run.layout.keys);
  const auto scratch = run.Bytes(run.layout.select_scratch);
  const bool needs_source = run.job.problem.needs_source();
  std::array<bool, kMaxWorldSize> cut{};
  for (size_t r = 0; r < static_cast<size_t>(run.job.world); ++r) {
    cut[r] = run.job.candidates[r] > choices.prefix;
  }
  // In the replicated composition a rank whose output has only its own rows still judges all
  // prefixes, so that all ranks agree on which rows to complete; without prefixes it skips the
  // rest.
  const bool skips = !choices.owner && choices.rest == 0 && !run.job.everywhere();
  const int32_t begin = skips ? run.own_first() : 0;
  const int32_t end = skips ? begin + run.own().size() : run.selected_slots();
  auto* const flagged = run.At<int32_t>(run.layout.flagged);
  size_t incomplete = 0;
  for (int32_t index = begin; index < end; ++index) {
    const RowLists lists = PrefixLists(run, index);
    const int32_t count = choices.select->run(lists.span(), k, scratch, keys);
    const std::span<const uint64_t> selected(keys, static_cast<size_t>(count));
    if (choices.rest > 0 && !PrefixIsEnough(lists.span(), cut, selected, k, needs_source)) {
      flagged[incomplete++] = index;
      continue;
    }
    Deliver(run, index, lists.span(), selected);
  }
  if (choices.rest == 0) return {};

  SPARSESEL_RETURN_IF_ERROR(ExchangeRests(run, {flagged, incomplete}));
  run.counters.prefix_refetches.fetch_add(incomplete, std::memory_order_relaxed);
  for (size_t i = 0; i < incomplete; ++i) {
    const RowLists lists = CompletedLists(run, flagged[i], static_cast<int64_t>(i));
    const int32_t count = choices.refetch_select->run(lists.span(), k, scratch, keys);
    Deliver(run, flagged[i], lists.span(), {keys, static_cast<size_t>(count)});
  }
  return {};
}

}  // namespace sparsesel
