#include "compositions/host/layout.h"

#include <algorithm>
#include <string_view>

#include "contract/ownership.h"
#include "stages/host/pack.h"
#include "stages/host/restore.h"

namespace sparsesel {
namespace {

constexpr size_t kRegionAlignment = 64;

const HostSelectVariant* FindSelect(std::string_view name) {
  for (const HostSelectVariant& variant : HostSelectVariants()) {
    if (name == variant.name) return &variant;
  }
  return nullptr;
}

const HostSelectVariant* AnyUnsortedSelect() {
  for (const HostSelectVariant& variant : HostSelectVariants()) {
    if (!variant.needs_sorted_lists) return &variant;
  }
  return nullptr;
}

class Packer {
 public:
  Region Add(size_t bytes) {
    const Region region{total_, bytes};
    total_ += (bytes + kRegionAlignment - 1) / kRegionAlignment * kRegionAlignment;
    return region;
  }
  size_t total() const { return total_; }

 private:
  size_t total_ = 0;
};

}  // namespace

HostChoices ChooseHost(const Job& job, const Composition& composition) {
  HostChoices choices;
  choices.owner = composition.kind == SPARSESEL_COMPOSITION_OWNER;
  const ChildPlan& pack = *composition.At(Stage::kPack);
  const ChildPlan& exchange = *composition.At(Stage::kExchange);
  const std::string_view pack_name = pack.variant->name;
  choices.sorts = pack_name != "pack.plain";
  choices.pack_top = pack_name == "pack.top" ? pack.configuration : job.longest;
  const bool prefix = std::string_view(exchange.variant->name) == "exchange.prefix";
  choices.prefix = prefix ? exchange.configuration : job.longest;
  choices.rest = job.longest - choices.prefix;
  choices.select = FindSelect(composition.At(Stage::kSelect)->variant->name);
  choices.refetch_select = AnyUnsortedSelect();
  if (const ChildPlan* replicate = composition.At(Stage::kReplicate); replicate != nullptr) {
    const std::string_view name = replicate->variant->name;
    choices.replicate = name == "replicate.bf16"        ? HostChoices::Replicate::kBf16
                        : name == "replicate.int32_sum" ? HostChoices::Replicate::kInt32Sum
                                                        : HostChoices::Replicate::kAllGather;
  }
  return choices;
}

HostLayout LayOutHost(const Job& job, int32_t capacity, int32_t step, const HostChoices& choices,
                      bool reads_peers_directly) {
  HostLayout layout;
  layout.step = step;
  const int32_t longest_block = OwnedRows(capacity, job.world, 0).size();
  layout.slots = std::min(capacity, job.world * std::min(step, longest_block));
  const int32_t k = job.problem.k;
  layout.answer_words = job.problem.wants_scores() ? 2 * k : k;

  const auto world = static_cast<size_t>(job.world);
  const auto slots = static_cast<size_t>(layout.slots);
  const auto owned = static_cast<size_t>(step);
  const size_t prefix = static_cast<size_t>(choices.prefix) * sizeof(Record);
  const size_t rest = static_cast<size_t>(choices.rest) * sizeof(Record);
  const size_t answer = static_cast<size_t>(layout.answer_words) * sizeof(int32_t);
  const size_t received_rows = world * (choices.owner ? owned : slots);
  const bool copies = !reads_peers_directly;
  const bool reduces = choices.replicate == HostChoices::Replicate::kBf16 ||
                       choices.replicate == HostChoices::Replicate::kInt32Sum;
  const size_t reduced =
      slots * answer * (choices.replicate == HostChoices::Replicate::kBf16 ? 2 : 1);
  const bool refetches_by_owner = choices.owner && choices.rest > 0;
  // Every rank's lists, and with a refetch prefix and rest of each apart.
  const int32_t lists = job.world * (choices.rest > 0 ? 2 : 1);
  const int64_t records = int64_t{job.world} * job.longest;

  Packer packer;
  layout.send = packer.Add(slots * prefix);
  layout.send_rest = packer.Add(slots * rest);
  layout.answers = packer.Add(choices.owner && job.everywhere() ? owned * answer : 0);
  layout.replicate_send = packer.Add(reduces ? reduced : 0);
  layout.row_bits = packer.Add(refetches_by_owner ? (owned + 7) / 8 : 0);
  layout.peer_visible = packer.total();
  size_t received = received_rows * prefix;
  if (choices.replicate == HostChoices::Replicate::kAllGather) {
    // The lists have been consumed when the answers arrive: they share the region.
    received = std::max(received, world * owned * answer);
  }
  layout.receive = packer.Add(copies ? received : 0);
  layout.receive_rest = packer.Add(copies ? received_rows * rest : 0);
  layout.row_bits_receive =
      packer.Add(copies && refetches_by_owner ? world * ((owned + 7) / 8) : 0);
  if (copies) layout.peer_visible = packer.total();
  layout.replicate_receive = packer.Add(reduces ? reduced : 0);
  layout.flagged = packer.Add(choices.rest > 0 ? slots * sizeof(int32_t) : 0);
  layout.wanted = packer.Add(refetches_by_owner ? slots * sizeof(int32_t) : 0);
  layout.row = packer.Add(static_cast<size_t>(job.longest) * sizeof(Record));
  layout.sort_scratch = packer.Add(choices.sorts ? SortListScratchBytes(job.longest) : 0);
  layout.keys = packer.Add(static_cast<size_t>(k) * sizeof(uint64_t));
  size_t select = choices.select->scratch_bytes(lists, records, k);
  if (choices.rest > 0) {
    select = std::max(select, choices.refetch_select->scratch_bytes(lists, records, k));
  }
  layout.select_scratch = packer.Add(select);
  // Records and sources of the selected, and what restoring takes.
  layout.restore_scratch = packer.Add(
      job.problem.wants_scores() ? static_cast<size_t>(k) * (sizeof(Record) + sizeof(uint64_t)) +
                                       kRegionAlignment + RestoreScratchBytes(k)
                                 : 0);
  layout.row_answer = packer.Add(answer);
  layout.total = packer.total();
  return layout;
}

Status FitHost(const Job& job, int32_t capacity, const HostChoices& choices,
               bool reads_peers_directly, HostLayout* layout) {
  int32_t step = OwnedRows(capacity, job.world, 0).size();
  *layout = LayOutHost(job, capacity, step, choices, reads_peers_directly);
  if (job.memory_limit == 0 || layout->total <= job.memory_limit) return {};
  // Sizes grow with the step: the greatest that fits, by bisection.
  int32_t fits = 0;
  int32_t too_large = step;
  while (too_large - fits > 1) {
    step = fits + (too_large - fits) / 2;
    const HostLayout tried = LayOutHost(job, capacity, step, choices, reads_peers_directly);
    (tried.total <= job.memory_limit ? fits : too_large) = step;
  }
  if (fits == 0) {
    *layout = LayOutHost(job, capacity, 1, choices, reads_peers_directly);
    return Status::Error(SPARSESEL_UNSUPPORTED,
                         "memory_limit %d is less than the %d bytes that one row per owner takes",
                         job.memory_limit, layout->total);
  }
  *layout = LayOutHost(job, capacity, fits, choices, reads_peers_directly);
  return {};
}

}  // namespace sparsesel
