#include "compositions/device/device_layout.h"
#include "contract/ownership.h"

namespace sparsesel {
namespace {

// Rows of one step are bounded so that inboxes and lists stay small whatever the capacity; more
// rows are tiled.
constexpr int64_t kLargestInbox = int64_t{256} << 20;

size_t Aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

DeviceLayout LayOut(const Job& job, int32_t step, const DeviceParts& parts) {
  DeviceLayout layout;
  layout.step = step;
  const auto rows = static_cast<size_t>(step);
  const auto world = static_cast<size_t>(job.world);
  layout.inbox.rows = step;
  layout.inbox.length = parts.prefix > 0 ? parts.prefix : job.longest;
  layout.inbox.kept = parts.prefix > 0 ? job.longest : 0;
  layout.inbox.world = job.world;
  const auto k = static_cast<size_t>(job.problem.k);
  const bool scores = job.problem.wants_scores();
  layout.answer_words = scores ? 2 * job.problem.k : job.problem.k;
  layout.inbox.words = parts.answers ? layout.answer_words : 0;
  if (parts.inbox) {
    layout.peer_visible = 2 * static_cast<size_t>(layout.inbox.packets()) * sizeof(uint4);
  }
  const size_t words = static_cast<size_t>(layout.inbox.words);
  const size_t answers = parts.answer_blocks
                             ? world * static_cast<size_t>(OwnedRows(step, job.world, 0).size())
                             : rows;
  layout.answers = Aligned(world * rows * static_cast<size_t>(job.longest) * sizeof(Record));
  layout.floats = layout.answers + Aligned(answers * words * sizeof(int32_t));
  layout.keys =
      layout.floats + Aligned(parts.byte_floats ? rows * words * 4 * sizeof(uint16_t) : 0);
  const bool by_id = job.problem.output_order == SPARSESEL_OUTPUT_BY_ID;
  layout.sources = layout.keys + Aligned(scores ? rows * k * sizeof(uint64_t) : 0);
  layout.selected = layout.sources + Aligned(scores && by_id ? rows * k * sizeof(uint32_t) : 0);
  layout.scratch = layout.selected + Aligned(rows * sizeof(int32_t));
  layout.scratch_bytes = parts.scratch_bytes;
  layout.total = layout.scratch + Aligned(parts.scratch_bytes);
  return layout;
}

}  // namespace

Status FitDeviceLayout(const Job& job, int32_t capacity, const DeviceParts& parts,
                       DeviceLayout* layout) {
  const uint64_t limit = job.memory_limit;
  int32_t step = capacity;
  for (;; step = (step + 1) / 2) {
    *layout = LayOut(job, step, parts);
    const size_t large = parts.inbox ? layout->peer_visible : layout->answers;
    const bool small = static_cast<int64_t>(large) <= kLargestInbox;
    const bool fits = limit == 0 || layout->total + layout->peer_visible <= limit;
    if ((small || step == 1) && fits) return {};
    if (step == 1) break;
  }
  return Status::Error(SPARSESEL_UNSUPPORTED,
                       "memory_limit %d is less than the %d bytes that one row takes", limit,
                       layout->total + layout->peer_visible);
}

}  // namespace sparsesel
