// Compositions over the peer transport.
#include <algorithm>
#include <string_view>
#include <utility>

#include "compositions/device/device_executors.h"
#include "compositions/device/device_io.h"
#include "compositions/device/device_select.h"
#include "compositions/device/device_slot.h"
#include "contract/ownership.h"
#include "contract/trace.h"
#include "kernels/peer.h"
#include "kernels/peer_fused.h"

namespace sparsesel {
namespace {

struct PeerExecutorPlan {
  DeviceSelect select;
  bool owner = false;
  bool fused = false;   // pack, exchange and select in one kernel
  bool shared = false;  // another rank has the same device
  int32_t blocks = 1;   // of a kernel that could use any number
};

// What the kernels of one tile of an execute are given.
struct PeerTile {
  const sparsesel_io* io = nullptr;
  std::byte* memory = nullptr;
  kernels::PeerEnd end;
  kernels::PeerHeader header;
  kernels::PeerRows rows;
  kernels::CandidateArrays input;
  cudaStream_t stream = nullptr;
  Stages stages;
};

class PeerExecutor final : public Executor {
 public:
  PeerExecutor(const PeerExecutorPlan& plan, std::shared_ptr<void> group)
      : plan_(plan), group_(std::move(group)) {}

  size_t workspace_bytes() const override { return layout().total; }
  size_t peer_visible_bytes() const override { return layout().peer_visible; }
  int32_t tile_rows() const override { return layout().step; }
  Status ProveLossless(const Slot&, int64_t) const override { return {}; }

  Status Execute(const Call& call, const Slot& slot, StageClock* clock,
                 ExecuteCounters* counters) const override;

 private:
  Status RunFused(const PeerTile& tile) const;
  Status Exchange(const PeerTile& tile) const;
  // Selects into the outputs: all rows of the tile, or those that this rank owns.
  Status SelectInPlace(const PeerTile& tile) const;
  // Selects the owned rows and sends them to all ranks.
  Status SelectAndReplicate(const PeerTile& tile) const;
  Status Await(const PeerTile& tile, kernels::PeerPhase phase) const;
  kernels::AnswerOutput OutputFrom(const PeerTile& tile, int64_t row) const;

  const Job& job() const { return plan_.select.job; }
  const DeviceLayout& layout() const { return plan_.select.layout; }

  const PeerExecutorPlan plan_;
  const std::shared_ptr<void> group_;  // the PeerRank
};

kernels::AnswerOutput PeerExecutor::OutputFrom(const PeerTile& tile, int64_t row) const {
  return OutputOf(job().problem, *tile.io, row);
}

Status PeerExecutor::Await(const PeerTile& tile, kernels::PeerPhase phase) const {
  if (!plan_.shared) return {};
  return CudaStatus(kernels::LaunchAwait(tile.end, phase, tile.io->status_word, tile.stream),
                    "await");
}

Status PeerExecutor::RunFused(const PeerTile& tile) const {
  const TraceRange range("pack, exchange, select", tile.rows.rows);
  const kernels::AnswerOutput output = OutputFrom(tile, tile.rows.begin);
  kernels::FusedArgs args;
  args.end = tile.end;
  args.header = tile.header;
  args.rows = tile.rows;
  args.input = tile.input;
  args.candidates = job().candidates.data();
  args.status_word = tile.io->status_word;
  args.output.ids = output.ids;
  args.output.id_stride = output.id_stride;
  args.output.selected = output.counts;
  args.k = output.k;
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(
      kernels::LaunchFused(plan_.select.device, plan_.select.config, args, tile.stream), "fused"));
  return tile.stages.End(Stage::kSelect);
}

Status PeerExecutor::Exchange(const PeerTile& tile) const {
  const TraceRange range("pack, exchange", tile.rows.rows);
  uint32_t* const status_word = tile.io->status_word;
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(
      kernels::LaunchPushRecords(tile.end, tile.header, tile.rows, tile.input, plan_.owner,
                                 plan_.shared, status_word, plan_.blocks, tile.stream),
      "push"));
  SPARSESEL_RETURN_IF_ERROR(tile.stages.End(Stage::kPack));
  SPARSESEL_RETURN_IF_ERROR(Await(tile, kernels::PeerPhase::kRecords));
  auto* const lists = reinterpret_cast<Record*>(tile.memory + layout().lists);
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(
      kernels::LaunchCollectRecords(tile.end, tile.header, tile.rows, job().candidates.data(),
                                    plan_.owner, lists, status_word, plan_.blocks, tile.stream),
      "collect"));
  return tile.stages.End(Stage::kExchange);
}

Status PeerExecutor::SelectInPlace(const PeerTile& tile) const {
  const TraceRange range("select", tile.rows.rows);
  const kernels::PeerRows& rows = tile.rows;
  const RowRange selected =
      job().everywhere() ? RowRange{0, rows.rows} : RowsOfOwner(job(), rows, job().rank);
  const kernels::AnswerOutput output = OutputFrom(tile, OutputRow(job(), rows, selected));
  SPARSESEL_RETURN_IF_ERROR(plan_.select.Launch(tile.memory, rows, selected, output, tile.stream));
  SPARSESEL_RETURN_IF_ERROR(
      CudaStatus(kernels::LaunchEmptyOnFailure(tile.end, selected.size(), output,
                                               tile.io->status_word, plan_.blocks, tile.stream),
                 "select"));
  return tile.stages.End(Stage::kSelect);
}

Status PeerExecutor::SelectAndReplicate(const PeerTile& tile) const {
  const TraceRange range("select, replicate", tile.rows.rows);
  const kernels::PeerRows& rows = tile.rows;
  const int32_t words = layout().answer_words;
  auto* const answers = reinterpret_cast<int32_t*>(tile.memory + layout().answers);
  const RowRange own = OwnedRows(rows.deal_rows, job().world, job().rank);
  kernels::AnswerOutput answer;
  answer.ids = answers + int64_t{own.begin} * words;
  answer.id_stride = words;
  answer.k = job().problem.k;
  if (job().problem.wants_scores()) {
    answer.score_bits = reinterpret_cast<uint32_t*>(answer.ids) + answer.k;
    answer.score_stride = words;
  }
  SPARSESEL_RETURN_IF_ERROR(plan_.select.Launch(tile.memory, rows, own, answer, tile.stream));
  SPARSESEL_RETURN_IF_ERROR(tile.stages.End(Stage::kSelect));
  uint32_t* const status_word = tile.io->status_word;
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(
      kernels::LaunchPushAnswers(tile.end, rows, answers, plan_.shared, plan_.blocks, tile.stream),
      "push answers"));
  SPARSESEL_RETURN_IF_ERROR(Await(tile, kernels::PeerPhase::kAnswers));
  SPARSESEL_RETURN_IF_ERROR(
      CudaStatus(kernels::LaunchCollectAnswers(tile.end, rows, OutputFrom(tile, rows.begin),
                                               status_word, plan_.blocks, tile.stream),
                 "collect answers"));
  SPARSESEL_RETURN_IF_ERROR(
      CudaStatus(kernels::LaunchEmptyOnFailure(tile.end, rows.rows, OutputFrom(tile, rows.begin),
                                               status_word, plan_.blocks, tile.stream),
                 "collect answers"));
  return tile.stages.End(Stage::kReplicate);
}

Status PeerExecutor::Execute(const Call& call, const Slot& slot, StageClock* clock,
                             ExecuteCounters* counters) const {
  SPARSESEL_RETURN_IF_ERROR(call.local);
  const OnDevice on(DeviceOf(slot).device);
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(on.error(), "cudaSetDevice"));
  SPARSESEL_RETURN_IF_ERROR(PeerGroupTable()->state(group_.get()));
  const auto stream = static_cast<cudaStream_t>(call.stream);
  SPARSESEL_RETURN_IF_ERROR(RefuseLegacyStream(stream));
  SPARSESEL_RETURN_IF_ERROR(KeepForCapture(slot, *counters, stream));
  PeerTile tile;
  tile.io = &call.io;
  tile.memory = slot.memory->data();
  tile.end = DeviceOf(slot).end;
  tile.end.shape = layout().inbox;
  if (counters->on_device != nullptr) {
    tile.end.counters = reinterpret_cast<kernels::PeerCounters*>(counters->on_device->data());
  }
  // Epochs count the executes, so what is left to compare is what is executed.
  // And how many blocks share a row, where peers wait for a word of each.
  const uint64_t what = call.message.digest ^ (call.message.tag * 0x9e3779b97f4a7c15u) ^
                        static_cast<uint64_t>(plan_.select.config.cluster);
  tile.header = {static_cast<uint32_t>(what ^ (what >> 32)),
                 static_cast<uint32_t>(call.message.rows)};
  tile.input = InputOf(job().problem, call.io);
  tile.stream = stream;
  tile.stages = {clock, stream};
  SPARSESEL_RETURN_IF_ERROR(tile.stages.Begin());
  for (int32_t begin = 0; begin < call.io.rows; begin += layout().step) {
    tile.rows = TileRows(job(), call.io, begin, layout().step);
    if (plan_.fused) {
      SPARSESEL_RETURN_IF_ERROR(RunFused(tile));
      continue;
    }
    SPARSESEL_RETURN_IF_ERROR(Exchange(tile));
    SPARSESEL_RETURN_IF_ERROR(plan_.owner && job().everywhere() ? SelectAndReplicate(tile)
                                                                : SelectInPlace(tile));
  }
  return {};
}

}  // namespace

Status MakePeerExecutor(const Comm& comm, const Job& job, int32_t capacity,
                        const Composition& composition, std::unique_ptr<Executor>* executor) {
  PeerExecutorPlan plan;
  plan.select.job = job;
  plan.owner = composition.kind == SPARSESEL_COMPOSITION_OWNER;
  const ChildPlan& selects = *composition.At(Stage::kSelect);
  const std::string_view name = selects.variant->name;
  // Its configuration is the prefix.
  const int32_t prefix = name == "peer.fused_prefix" ? selects.configuration : 0;
  plan.fused = name == "peer.fused" || prefix > 0;
  const int32_t ranks = static_cast<const PeerRank*>(comm.self().get())->ranks_on_device;
  plan.shared = ranks > 1;
  kernels::SelectDevice& device = plan.select.device;
  SPARSESEL_RETURN_IF_ERROR(
      CudaStatus(kernels::QuerySelectDevice(comm.device(), &device), "QuerySelectDevice"));
  const OnDevice on(comm.device());
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(on.error(), "cudaSetDevice"));
  SPARSESEL_RETURN_IF_ERROR(PrepareSelectKernels(comm.device(), device));
  const kernels::SelectShape shape{plan.owner ? OwnedRows(capacity, job.world, 0).size() : capacity,
                                   job.world, prefix > 0 ? prefix : job.longest, job.problem.k};
  kernels::SelectConfig& config = plan.select.config;
  if (plan.fused) {
    SPARSESEL_RETURN_IF_ERROR(ChooseFused(device, shape, ranks, &config));
    if (config.cluster == 0) {
      return Status::Error(SPARSESEL_UNSUPPORTED,
                           "the fused kernel cannot have %d rows of %d ranks on one device at once",
                           capacity, ranks);
    }
  } else {
    config = ChooseSelect(device, shape, plan.shared);
  }
  DeviceParts parts;
  parts.inbox = true;
  parts.prefix = prefix;
  parts.answers = plan.owner && job.everywhere();
  parts.scratch_bytes = SelectScratchBytes(job, device, shape, config);
  SPARSESEL_RETURN_IF_ERROR(FitDeviceLayout(job, capacity, parts, &plan.select.layout));
  int32_t resident = 0;
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(kernels::PeerResidentBlocks(&resident), "occupancy"));
  plan.blocks = std::max(1, resident / ranks);
  *executor = std::make_unique<PeerExecutor>(plan, comm.self());
  return {};
}

}  // namespace sparsesel
