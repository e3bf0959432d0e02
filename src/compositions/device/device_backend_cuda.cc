#include "compositions/device/device_backend.h"

#include <algorithm>
#include <string_view>

#include "compositions/device/device_slot.h"
#include "contract/ownership.h"
#include "kernels/peer.h"
#include "kernels/select.h"

namespace sparsesel {
namespace {

// Rows of one step are bounded so that inboxes stay small whatever the capacity; more rows are tiled.
constexpr int64_t kLargestInbox = int64_t{256} << 20;

struct DeviceLayout {
  int32_t step = 1;  // rows of one tile
  size_t lists = 0;  // offsets in the workspace: [world, step, longest] records
  size_t answers = 0;
  size_t selected = 0;
  size_t total = 0;
  size_t peer_visible = 0;
  kernels::PeerInboxShape inbox;
};

size_t Aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

DeviceLayout LayOut(const Job& job, int32_t step, bool answers) {
  DeviceLayout layout;
  layout.step = step;
  const auto rows = static_cast<size_t>(step);
  const auto world = static_cast<size_t>(job.world);
  layout.inbox.rows = step;
  layout.inbox.length = job.longest;
  layout.inbox.world = job.world;
  layout.inbox.words = answers ? job.problem.k : 0;
  layout.peer_visible = 2 * static_cast<size_t>(layout.inbox.packets()) * sizeof(uint4);
  layout.answers = Aligned(world * rows * static_cast<size_t>(job.longest) * sizeof(Record));
  layout.selected =
      layout.answers +
      Aligned(answers ? rows * static_cast<size_t>(job.problem.k) * sizeof(int32_t) : 0);
  layout.total = layout.selected + Aligned(rows * sizeof(int32_t));
  return layout;
}

Status Fit(const Job& job, int32_t capacity, bool answers, DeviceLayout* layout) {
  const uint64_t limit = job.memory_limit;
  int32_t step = capacity;
  for (;; step = (step + 1) / 2) {
    *layout = LayOut(job, step, answers);
    const bool small = static_cast<int64_t>(layout->peer_visible) <= kLargestInbox;
    const bool fits = limit == 0 || layout->total + layout->peer_visible <= limit;
    if ((small || step == 1) && fits) return {};
    if (step == 1) break;
  }
  return Status::Error(SPARSESEL_UNSUPPORTED,
                       "memory_limit %d is less than the %d bytes that one row takes", limit,
                       layout->total + layout->peer_visible);
}

// ns between events, for spans; does nothing without spans.
class DeviceSpans {
 public:
  DeviceSpans(SpanTimes* spans, cudaStream_t stream) : spans_(spans), stream_(stream) {
    if (spans_ == nullptr) return;
    (void)cudaEventCreate(&begin_);
    (void)cudaEventCreate(&end_);
    (void)cudaEventRecord(begin_, stream_);
  }
  ~DeviceSpans() {
    if (spans_ == nullptr) return;
    (void)cudaEventDestroy(begin_);
    (void)cudaEventDestroy(end_);
  }
  Status End(Stage stage) {
    if (spans_ == nullptr) return {};
    SPARSESEL_RETURN_IF_ERROR(CudaStatus(cudaEventRecord(end_, stream_), "cudaEventRecord"));
    SPARSESEL_RETURN_IF_ERROR(CudaStatus(cudaEventSynchronize(end_), "cudaEventSynchronize"));
    float milliseconds = 0;
    SPARSESEL_RETURN_IF_ERROR(
        CudaStatus(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime"));
    spans_->stage[static_cast<size_t>(stage)] += static_cast<int64_t>(milliseconds * 1e6f);
    std::swap(begin_, end_);
    return {};
  }

 private:
  SpanTimes* const spans_;
  const cudaStream_t stream_;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

class DeviceExecutor final : public Executor {
 public:
  DeviceExecutor(const Job& job, bool owner, const DeviceLayout& layout,
                 const kernels::SelectDevice& device, const kernels::SelectConfig& config,
                 int32_t blocks)
      : job_(job), owner_(owner), layout_(layout), device_(device), config_(config),
        blocks_(blocks) {}

  size_t workspace_bytes() const override { return layout_.total; }
  size_t peer_visible_bytes() const override { return layout_.peer_visible; }
  int32_t tile_rows() const override { return layout_.step; }
  Status ProveLossless(const Slot&, int64_t) const override { return {}; }

  Status Execute(const Call& call, const Slot& slot, SpanTimes* spans,
                 ExecuteCounters* counters) const override;

 private:
  Status ExecuteTile(const Call& call, const Slot& slot, const kernels::PeerEnd& end,
                     const kernels::PeerRows& rows, DeviceSpans& spans) const;
  Status Select(const Slot& slot, const kernels::PeerRows& rows, RowRange selected, int32_t* ids,
                int64_t id_stride, int32_t* counts, cudaStream_t stream) const;

  const Job job_;
  const bool owner_;
  const DeviceLayout layout_;
  const kernels::SelectDevice device_;
  const kernels::SelectConfig config_;
  const int32_t blocks_;  // of a kernel that waits, beside the other ranks of the device
};

// Selects rows [selected.begin, selected.end) of the step, whose lists have been collected.
Status DeviceExecutor::Select(const Slot& slot, const kernels::PeerRows& rows, RowRange selected,
                              int32_t* ids, int64_t id_stride, int32_t* counts,
                              cudaStream_t stream) const {
  if (selected.size() == 0) return {};
  kernels::SelectArgs<kernels::RecordLists> args;
  const int64_t length = job_.longest;
  args.input.base = reinterpret_cast<const Record*>(slot.memory->data() + layout_.lists) +
                    selected.begin * length;
  args.input.list_stride = rows.rows * length;
  args.input.row_stride = length;
  args.input.lists = job_.world;
  std::copy_n(job_.candidates.begin(), job_.world, args.input.length);
  args.rows = selected.size();
  args.k = job_.problem.k;
  args.output.ids = ids;
  args.output.id_stride = id_stride;
  args.output.selected = counts;
  return CudaStatus(kernels::LaunchSampled(device_, config_, args, stream), "select");
}

Status DeviceExecutor::ExecuteTile(const Call& call, const Slot& slot, const kernels::PeerEnd& end,
                                   const kernels::PeerRows& rows, DeviceSpans& spans) const {
  const auto stream = static_cast<cudaStream_t>(call.stream);
  const sparsesel_io& io = call.io;
  const Problem& problem = job_.problem;
  kernels::CandidateArrays input;
  input.scores = reinterpret_cast<const uint32_t*>(io.scores);
  input.ids = io.ids;
  input.counts = io.counts;
  input.row_starts = io.row_starts;
  input.score_stride = io.score_stride;
  input.id_stride = io.id_stride;
  input.score_row_length = problem.score_row_length;
  input.candidates = problem.candidates;
  input.positions = problem.input_kind == SPARSESEL_INPUT_POSITIONS;
  input.id_map = problem.id_map;
  const kernels::PeerHeader header{static_cast<uint32_t>(call.message.digest),
                                   static_cast<uint32_t>(call.message.rows)};
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(
      kernels::LaunchPushRecords(end, header, rows, input, owner_, io.status_word, blocks_,
                                 stream),
      "push"));
  SPARSESEL_RETURN_IF_ERROR(spans.End(Stage::kPack));
  auto* const lists = reinterpret_cast<Record*>(slot.memory->data() + layout_.lists);
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(
      kernels::LaunchCollectRecords(end, header, rows, job_.candidates.data(), owner_, lists,
                                    io.status_word, blocks_, stream),
      "collect"));
  SPARSESEL_RETURN_IF_ERROR(spans.End(Stage::kExchange));

  kernels::AnswerOutput output;
  output.ids = io.out_ids;
  output.id_stride = io.out_id_stride;
  output.counts = io.out_counts;
  output.k = problem.k;
  if (owner_ && job_.everywhere()) {
    auto* const answers = reinterpret_cast<int32_t*>(slot.memory->data() + layout_.answers);
    const RowRange own = OwnedRows(rows.deal_rows, job_.world, job_.rank);
    SPARSESEL_RETURN_IF_ERROR(Select(slot, rows, own, answers + int64_t{own.begin} * problem.k,
                                     problem.k, nullptr, stream));
    SPARSESEL_RETURN_IF_ERROR(spans.End(Stage::kSelect));
    SPARSESEL_RETURN_IF_ERROR(CudaStatus(
        kernels::LaunchPushAnswers(end, rows, answers, blocks_, stream), "push answers"));
    SPARSESEL_RETURN_IF_ERROR(CudaStatus(
        kernels::LaunchCollectAnswers(end, rows, output, io.status_word, blocks_, stream),
        "collect answers"));
    return spans.End(Stage::kReplicate);
  }
  // Straight into the outputs: all rows of the tile, or those that this rank owns.
  RowRange selected{0, rows.rows};
  int64_t place = rows.begin;
  if (!job_.everywhere()) {
    const RowRange own = OwnedRows(rows.deal_rows, job_.world, job_.rank);
    selected = {std::clamp(own.begin - rows.begin, 0, rows.rows),
                std::clamp(own.end - rows.begin, 0, rows.rows)};
    place = rows.begin + selected.begin - own.begin;
  }
  int32_t* const counts = io.out_counts == nullptr ? nullptr : io.out_counts + place;
  int32_t* const ids = io.out_ids + place * io.out_id_stride;
  SPARSESEL_RETURN_IF_ERROR(
      Select(slot, rows, selected, ids, io.out_id_stride, counts, stream));
  output.ids = ids;
  output.counts = counts;
  SPARSESEL_RETURN_IF_ERROR(
      CudaStatus(kernels::LaunchEmptyOnFailure(end, selected.size(), output, io.status_word,
                                               blocks_, stream),
                 "select"));
  return spans.End(Stage::kSelect);
}

Status DeviceExecutor::Execute(const Call& call, const Slot& slot, SpanTimes* spans,
                               ExecuteCounters*) const {
  SPARSESEL_RETURN_IF_ERROR(call.local);
  const auto stream = static_cast<cudaStream_t>(call.stream);
  if (stream == nullptr || stream == cudaStreamLegacy) {
    return Status::Error(SPARSESEL_INVALID_ARGUMENT,
                         "the legacy stream cannot be used: it would make ranks wait for each "
                         "other's kernels");
  }
  SPARSESEL_RETURN_IF_ERROR(KeepForCapture(slot, stream));
  kernels::PeerEnd end = DeviceOf(slot).end;
  end.shape = layout_.inbox;
  DeviceSpans clock(spans, stream);
  for (int32_t begin = 0; begin < call.io.rows; begin += layout_.step) {
    kernels::PeerRows rows;
    rows.begin = begin;
    rows.rows = std::min(layout_.step, call.io.rows - begin);
    // With rows everywhere, each tile is dealt by itself; else ownership is that of the whole call.
    rows.deal_begin = job_.everywhere() ? begin : 0;
    rows.deal_rows = job_.everywhere() ? rows.rows : call.io.rows;
    rows.active_rows = call.io.active_rows;
    SPARSESEL_RETURN_IF_ERROR(ExecuteTile(call, slot, end, rows, clock));
  }
  return {};
}

Topology DeviceTopology(const Comm&) { return {SPARSESEL_MEMORY_DEVICE, false, false}; }

Status MakeExecutor(const Comm& comm, const Job& job, int32_t capacity,
                    const Composition& composition, std::unique_ptr<Executor>* executor) {
  const bool owner = composition.kind == SPARSESEL_COMPOSITION_OWNER;
  DeviceLayout layout;
  SPARSESEL_RETURN_IF_ERROR(Fit(job, capacity, owner && job.everywhere(), &layout));
  kernels::SelectDevice device;
  SPARSESEL_RETURN_IF_ERROR(
      CudaStatus(kernels::QuerySelectDevice(comm.device(), &device), "QuerySelectDevice"));
  const int32_t rows =
      owner ? OwnedRows(layout.step, job.world, 0).size() : layout.step;
  const kernels::SelectConfig config = kernels::SampledDefault(
      device, {rows, job.world, job.longest, job.problem.k});
  if (config.cluster == 0) {
    return Status::Error(SPARSESEL_UNSUPPORTED,
                         "no device select takes %d lists of %d candidates and k = %d", job.world,
                         job.longest, job.problem.k);
  }
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(kernels::PrepareSampled(device), "PrepareSampled"));
  int32_t blocks = 0;
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(kernels::PeerResidentBlocks(&blocks), "occupancy"));
  // One share of the device for each rank on it, and one for kernels that do not wait.
  const auto& rank = *static_cast<const PeerRank*>(comm.self().get());
  blocks = std::max(1, blocks / (rank.ranks_on_device + 1));
  *executor = std::make_unique<DeviceExecutor>(job, owner, layout, device, config, blocks);
  return {};
}

Status CopyIn(void* to, const void* from, size_t bytes) {
  return CudaStatus(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
}

Status CopyOut(void* to, const void* from, size_t bytes) {
  return CudaStatus(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
}

void* TrialStream(const Slot& slot) { return DeviceOf(slot).stream; }

Status Finish(const Slot& slot) {
  return CudaStatus(cudaStreamSynchronize(DeviceOf(slot).stream), "cudaStreamSynchronize");
}

// Peers hold shares of what they store into: there is nothing to wait for.
Status Drain(const Slot&, int64_t) { return {}; }

}  // namespace

const Backend& DeviceBackend() {
  static constexpr Backend backend = {
      SPARSESEL_MEMORY_DEVICE, DeviceTopology, MakeDeviceSlot, ReserveDeviceSlot,
      ConnectDeviceSlot,       TrialStream,    Finish,         MakeExecutor,
      CopyIn,                  CopyOut,        TimeDeviceTrain, Drain,
  };
  return backend;
}

}  // namespace sparsesel
