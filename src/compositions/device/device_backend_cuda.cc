#include <algorithm>
#include <array>
#include <mutex>
#include <string_view>
#include <vector>

#include "compositions/device/device_backend.h"
#include "compositions/device/device_slot.h"
#include "contract/ownership.h"
#include "kernels/peer.h"
#include "kernels/peer_fused.h"
#include "kernels/restore.h"
#include "kernels/select.h"

namespace sparsesel {
namespace {

// Rows of one step are bounded so that inboxes stay small whatever the capacity; more rows are
// tiled.
constexpr int64_t kLargestInbox = int64_t{256} << 20;

// Where ranks share a device, the kernels that wait must leave room for the rank they wait for: all
// of its kernels, the largest of which want half of a processor's registers for each block. So
// waiting blocks, of all ranks together, take no more than half of the processors, selects no more
// than 512 threads a block, and the fused kernels of all ranks no more than half of the device.
constexpr int32_t kSharedSelectThreads = 512;

struct DeviceLayout {
  int32_t step = 1;          // rows of one tile
  int32_t answer_words = 0;  // of a row: k ids, then k scores if wanted
  // Offsets in the workspace.
  size_t lists = 0;     // [world, step, longest] records
  size_t answers = 0;   // [step, answer_words], what owners send
  size_t keys = 0;      // [step, k], for restoring scores
  size_t selected = 0;  // [step]
  size_t scratch = 0;   // of select's general variant, or of ordering by id
  size_t scratch_bytes = 0;
  size_t total = 0;
  size_t peer_visible = 0;
  kernels::PeerInboxShape inbox;
};

size_t Aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

DeviceLayout LayOut(const Job& job, int32_t step, bool answers, size_t scratch_bytes) {
  DeviceLayout layout;
  layout.step = step;
  const auto rows = static_cast<size_t>(step);
  const auto world = static_cast<size_t>(job.world);
  layout.inbox.rows = step;
  layout.inbox.length = job.longest;
  layout.inbox.world = job.world;
  const auto k = static_cast<size_t>(job.problem.k);
  const bool scores = job.problem.wants_scores();
  layout.answer_words = scores ? 2 * job.problem.k : job.problem.k;
  layout.inbox.words = answers ? layout.answer_words : 0;
  layout.peer_visible = 2 * static_cast<size_t>(layout.inbox.packets()) * sizeof(uint4);
  layout.answers = Aligned(world * rows * static_cast<size_t>(job.longest) * sizeof(Record));
  layout.keys = layout.answers + Aligned(rows * static_cast<size_t>(layout.inbox.words) * 4);
  layout.selected = layout.keys + Aligned(scores ? rows * k * sizeof(uint64_t) : 0);
  layout.scratch = layout.selected + Aligned(rows * sizeof(int32_t));
  layout.scratch_bytes = scratch_bytes;
  layout.total = layout.scratch + Aligned(scratch_bytes);
  return layout;
}

Status Fit(const Job& job, int32_t capacity, bool answers, size_t scratch, DeviceLayout* layout) {
  const uint64_t limit = job.memory_limit;
  int32_t step = capacity;
  for (;; step = (step + 1) / 2) {
    *layout = LayOut(job, step, answers, scratch);
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
  DeviceExecutor(const Job& job, bool owner, bool fused, const DeviceLayout& layout,
                 const kernels::SelectDevice& device, const kernels::SelectConfig& config,
                 const std::shared_ptr<void>& group, int32_t push_blocks, int32_t wait_blocks)
      : job_(job),
        owner_(owner),
        fused_(fused),
        layout_(layout),
        device_(device),
        config_(config),
        group_(group),
        push_blocks_(push_blocks),
        wait_blocks_(wait_blocks) {}

  size_t workspace_bytes() const override { return layout_.total; }
  size_t peer_visible_bytes() const override { return layout_.peer_visible; }
  int32_t tile_rows() const override { return layout_.step; }
  Status ProveLossless(const Slot&, int64_t) const override { return {}; }

  Status Execute(const Call& call, const Slot& slot, SpanTimes* spans,
                 ExecuteCounters* counters) const override;

 private:
  Status ExecuteTile(const Call& call, const Slot& slot, const kernels::PeerEnd& end,
                     const kernels::PeerRows& rows, DeviceSpans& spans) const;
  // Selects rows [selected.begin, selected.end) of the step, whose lists have been collected, into
  // `output`, whose row 0 is the first of them.
  Status Select(const Slot& slot, const kernels::PeerRows& rows, RowRange selected,
                const kernels::AnswerOutput& output, cudaStream_t stream) const;

  const Job job_;
  const bool owner_;
  const bool fused_;  // pack, exchange and select in one kernel
  const DeviceLayout layout_;
  const kernels::SelectDevice device_;
  const kernels::SelectConfig config_;
  const std::shared_ptr<void> group_;  // the PeerRank
  const int32_t push_blocks_;
  const int32_t wait_blocks_;
};

Status DeviceExecutor::Select(const Slot& slot, const kernels::PeerRows& rows, RowRange selected,
                              const kernels::AnswerOutput& output, cudaStream_t stream) const {
  if (selected.size() == 0) return {};
  std::byte* const memory = slot.memory->data();
  const int64_t k = job_.problem.k;
  const int64_t length = job_.longest;
  kernels::SelectArgs<kernels::RecordLists> args;
  args.input.base =
      reinterpret_cast<const Record*>(memory + layout_.lists) + selected.begin * length;
  args.input.list_stride = rows.rows * length;
  args.input.row_stride = length;
  args.input.lists = job_.world;
  std::copy_n(job_.candidates.begin(), job_.world, args.input.length);
  args.rows = selected.size();
  args.k = job_.problem.k;
  args.active_rows = rows.active_rows;
  args.first_row = rows.begin + selected.begin;
  args.output.ids = output.ids;
  args.output.id_stride = output.id_stride;
  args.output.selected = output.counts != nullptr
                             ? output.counts
                             : reinterpret_cast<int32_t*>(memory + layout_.selected);
  if (output.score_bits != nullptr) {
    args.output.keys = reinterpret_cast<uint64_t*>(memory + layout_.keys);
    args.output.key_stride = k;
  }
  std::byte* const scratch = memory + layout_.scratch;
  SPARSESEL_RETURN_IF_ERROR(
      CudaStatus(config_.cluster == 0
                     ? kernels::LaunchRadix(device_, args, scratch, layout_.scratch_bytes, stream)
                     : kernels::LaunchSampled(device_, config_, args, stream),
                 "select"));
  if (output.score_bits != nullptr) {
    kernels::RestoreArgs restore;
    restore.input = args.input;
    restore.keys = args.output.keys;
    restore.key_stride = k;
    restore.selected = args.output.selected;
    restore.rows = args.rows;
    restore.k = args.k;
    restore.scores = output.score_bits;
    restore.score_stride = output.score_stride;
    SPARSESEL_RETURN_IF_ERROR(CudaStatus(kernels::LaunchRestore(restore, stream), "restore"));
  }
  if (job_.problem.output_order == SPARSESEL_OUTPUT_BY_ID) {
    kernels::IdOrderArgs order;
    order.ids = output.ids;
    order.id_stride = output.id_stride;
    order.selected = args.output.selected;
    order.rows = args.rows;
    order.k = args.k;
    SPARSESEL_RETURN_IF_ERROR(CudaStatus(
        kernels::LaunchIdOrder(order, scratch, layout_.scratch_bytes, stream), "order by id"));
  }
  return {};
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
  // Epochs count the executes, so what is left to compare is what is executed.
  const uint64_t what = call.message.digest ^ (call.message.tag * 0x9e3779b97f4a7c15u);
  const kernels::PeerHeader header{static_cast<uint32_t>(what ^ (what >> 32)),
                                   static_cast<uint32_t>(call.message.rows)};
  if (fused_) {
    kernels::FusedArgs args;
    args.end = end;
    args.header = header;
    args.rows = rows;
    args.input = input;
    args.candidates = job_.candidates.data();
    args.status_word = io.status_word;
    args.output.ids = io.out_ids + rows.begin * io.out_id_stride;
    args.output.id_stride = io.out_id_stride;
    args.output.selected = io.out_counts == nullptr ? nullptr : io.out_counts + rows.begin;
    args.k = problem.k;
    SPARSESEL_RETURN_IF_ERROR(
        CudaStatus(kernels::LaunchFused(device_, config_, args, stream), "fused"));
    return spans.End(Stage::kSelect);
  }
  SPARSESEL_RETURN_IF_ERROR(
      CudaStatus(kernels::LaunchPushRecords(end, header, rows, input, owner_, io.status_word,
                                            push_blocks_, stream),
                 "push"));
  SPARSESEL_RETURN_IF_ERROR(spans.End(Stage::kPack));
  auto* const lists = reinterpret_cast<Record*>(slot.memory->data() + layout_.lists);
  SPARSESEL_RETURN_IF_ERROR(
      CudaStatus(kernels::LaunchCollectRecords(end, header, rows, job_.candidates.data(), owner_,
                                               lists, io.status_word, wait_blocks_, stream),
                 "collect"));
  SPARSESEL_RETURN_IF_ERROR(spans.End(Stage::kExchange));

  kernels::AnswerOutput output;
  output.ids = io.out_ids;
  output.id_stride = io.out_id_stride;
  output.score_bits = reinterpret_cast<uint32_t*>(io.out_scores);
  output.score_stride = io.out_score_stride;
  output.counts = io.out_counts;
  output.k = problem.k;
  if (owner_ && job_.everywhere()) {
    auto* const answers = reinterpret_cast<int32_t*>(slot.memory->data() + layout_.answers);
    const RowRange own = OwnedRows(rows.deal_rows, job_.world, job_.rank);
    kernels::AnswerOutput answer;
    answer.ids = answers + int64_t{own.begin} * layout_.answer_words;
    answer.id_stride = layout_.answer_words;
    if (problem.wants_scores()) {
      answer.score_bits = reinterpret_cast<uint32_t*>(answer.ids) + problem.k;
      answer.score_stride = layout_.answer_words;
    }
    answer.k = problem.k;
    SPARSESEL_RETURN_IF_ERROR(Select(slot, rows, own, answer, stream));
    SPARSESEL_RETURN_IF_ERROR(spans.End(Stage::kSelect));
    SPARSESEL_RETURN_IF_ERROR(CudaStatus(
        kernels::LaunchPushAnswers(end, rows, answers, push_blocks_, stream), "push answers"));
    SPARSESEL_RETURN_IF_ERROR(CudaStatus(
        kernels::LaunchCollectAnswers(end, rows, output, io.status_word, wait_blocks_, stream),
        "collect answers"));
    output.ids += rows.begin * output.id_stride;
    if (output.score_bits != nullptr) output.score_bits += rows.begin * output.score_stride;
    if (output.counts != nullptr) output.counts += rows.begin;
    SPARSESEL_RETURN_IF_ERROR(CudaStatus(
        kernels::LaunchEmptyOnFailure(end, rows.rows, output, io.status_word, push_blocks_, stream),
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
  output.ids += place * output.id_stride;
  if (output.score_bits != nullptr) output.score_bits += place * output.score_stride;
  if (output.counts != nullptr) output.counts += place;
  SPARSESEL_RETURN_IF_ERROR(Select(slot, rows, selected, output, stream));
  SPARSESEL_RETURN_IF_ERROR(
      CudaStatus(kernels::LaunchEmptyOnFailure(end, selected.size(), output, io.status_word,
                                               push_blocks_, stream),
                 "select"));
  return spans.End(Stage::kSelect);
}

Status DeviceExecutor::Execute(const Call& call, const Slot& slot, SpanTimes* spans,
                               ExecuteCounters*) const {
  SPARSESEL_RETURN_IF_ERROR(call.local);
  const OnDevice on(DeviceOf(slot).device);
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(on.error(), "cudaSetDevice"));
  SPARSESEL_RETURN_IF_ERROR(PeerGroupTable()->state(group_.get()));
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

// Loads and sets up every kernel, once per device: the driver may wait for the device to be idle,
// and a peer's kernel there for this rank.
Status PrepareKernels(int32_t ordinal, const kernels::SelectDevice& device) {
  static std::mutex mutex;
  static std::vector<int32_t> prepared;
  const std::lock_guard lock(mutex);
  if (std::find(prepared.begin(), prepared.end(), ordinal) != prepared.end()) return {};
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(kernels::PrepareSampled(device), "PrepareSampled"));
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(kernels::PrepareFused(device), "PrepareFused"));
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(kernels::PrepareIdOrder(), "PrepareIdOrder"));
  prepared.push_back(ordinal);
  return {};
}

// A configuration of the fused kernel with which all ranks of a device, waiting for each other, fit
// on it; cluster 0 if there is none.
Status ChooseFused(const kernels::SelectDevice& device, const kernels::SelectShape& shape,
                   int32_t ranks_on_device, kernels::SelectConfig* chosen) {
  std::array<kernels::SelectConfig, 64> configs;
  const int32_t found =
      kernels::SampledConfigs(device, shape, configs.data(), static_cast<int32_t>(configs.size()));
  *chosen = {};
  for (int32_t i = 0; i < std::min<int32_t>(found, configs.size()); ++i) {
    int32_t rows = 0;
    SPARSESEL_RETURN_IF_ERROR(CudaStatus(
        kernels::FusedRows(device, configs[static_cast<size_t>(i)], shape, ranks_on_device, &rows),
        "FusedRows"));
    // A rank with a device of its own makes progress row by row, however many there are.
    if (rows < (ranks_on_device == 1 ? 1 : 2 * shape.rows)) continue;
    *chosen = configs[static_cast<size_t>(i)];
    break;
  }
  return {};
}

// The default configuration, or the first that leaves room beside waiting kernels of other ranks;
// cluster 0 if there is none.
kernels::SelectConfig ChooseSampled(const kernels::SelectDevice& device,
                                    const kernels::SelectShape& shape, bool shared) {
  const kernels::SelectConfig usual = kernels::SampledDefault(device, shape);
  if (!shared || usual.threads <= kSharedSelectThreads) return usual;
  std::array<kernels::SelectConfig, 64> configs;
  const int32_t found =
      kernels::SampledConfigs(device, shape, configs.data(), static_cast<int32_t>(configs.size()));
  for (int32_t i = 0; i < std::min<int32_t>(found, configs.size()); ++i) {
    const kernels::SelectConfig& config = configs[static_cast<size_t>(i)];
    if (config.threads <= kSharedSelectThreads && config.cluster <= 8) return config;
  }
  return {};
}

Status MakeExecutor(const Comm& comm, const Job& job, int32_t capacity,
                    const Composition& composition, std::unique_ptr<Executor>* executor) {
  const bool owner = composition.kind == SPARSESEL_COMPOSITION_OWNER;
  kernels::SelectDevice device;
  SPARSESEL_RETURN_IF_ERROR(
      CudaStatus(kernels::QuerySelectDevice(comm.device(), &device), "QuerySelectDevice"));
  const kernels::SelectShape shape{owner ? OwnedRows(capacity, job.world, 0).size() : capacity,
                                   job.world, job.longest, job.problem.k};
  const bool fused =
      std::string_view(composition.At(Stage::kSelect)->variant->name) == "peer.fused";
  const auto& rank = *static_cast<const PeerRank*>(comm.self().get());
  const OnDevice on(comm.device());
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(on.error(), "cudaSetDevice"));
  SPARSESEL_RETURN_IF_ERROR(PrepareKernels(comm.device(), device));
  kernels::SelectConfig config = ChooseSampled(device, shape, rank.ranks_on_device > 1);
  if (fused) {
    SPARSESEL_RETURN_IF_ERROR(ChooseFused(device, shape, rank.ranks_on_device, &config));
    if (config.cluster == 0) {
      return Status::Error(SPARSESEL_UNSUPPORTED,
                           "the fused kernel cannot have %d rows of %d ranks on one device at once",
                           capacity, rank.ranks_on_device);
    }
  }
  // Shapes that the sampled variant does not take go to the general one, which wants scratch.
  size_t scratch = config.cluster == 0 ? kernels::RadixWorkspaceBytes(device, shape) : 0;
  if (job.problem.output_order == SPARSESEL_OUTPUT_BY_ID) {
    kernels::IdOrderArgs order;
    order.rows = shape.rows;
    order.k = shape.k;
    scratch = std::max(scratch, kernels::IdOrderWorkspaceBytes(order));
  }
  DeviceLayout layout;
  SPARSESEL_RETURN_IF_ERROR(Fit(job, capacity, owner && job.everywhere(), scratch, &layout));
  int32_t resident = 0;
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(kernels::PeerResidentBlocks(&resident), "occupancy"));
  const int32_t ranks = rank.ranks_on_device;
  const int32_t push_blocks = std::max(1, resident / ranks);
  const int32_t wait_blocks = ranks == 1 ? resident : std::max(1, device.processors / 2 / ranks);
  *executor = std::make_unique<DeviceExecutor>(job, owner, fused, layout, device, config,
                                               comm.self(), push_blocks, wait_blocks);
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
      SPARSESEL_MEMORY_DEVICE,
      DeviceTopology,
      MakeDeviceSlot,
      ReserveDeviceSlot,
      ConnectDeviceSlot,
      TrialStream,
      Finish,
      MakeExecutor,
      CopyIn,
      CopyOut,
      TimeDeviceTrain,
      Drain,
  };
  return backend;
}

}  // namespace sparsesel
