// Compositions over NCCL. Everything is enqueued in the stream's order, and nothing is read on the
// host, so that all of it may be captured. What is sent depends on the call's rows alone, which
// must therefore be equal on all ranks; rows beyond the active ones travel as absent candidates.
#include <algorithm>
#include <string_view>
#include <utility>

#include "compositions/device/device_executors.h"
#include "compositions/device/device_io.h"
#include "compositions/device/device_select.h"
#include "compositions/device/nccl_slot.h"
#include "contract/trace.h"
#include "kernels/answers.h"
#include "kernels/byte_floats.h"
#include "kernels/pack.h"

namespace sparsesel {
namespace {

enum class Replicate { kNone, kAllGather, kBf16, kInt32Sum };

struct NcclExecutorPlan {
  DeviceSelect select;
  bool owner = false;
  Replicate replicate = Replicate::kNone;
};

// What the steps of one tile of an execute are given.
struct NcclTile {
  const sparsesel_io* io = nullptr;
  const NcclSlot* slot = nullptr;
  std::byte* memory = nullptr;
  kernels::PeerRows rows;
  kernels::CandidateArrays input;
  cudaStream_t stream = nullptr;
  Stages stages;
};

using NcclCall = absl::FunctionRef<NcclResult(const NcclLibrary& library, NcclHandle handle)>;

class NcclExecutor final : public Executor {
 public:
  explicit NcclExecutor(const NcclExecutorPlan& plan) : plan_(plan) {}

  size_t workspace_bytes() const override { return layout().total; }
  size_t peer_visible_bytes() const override { return 0; }  // NCCL has buffers of its own
  int32_t tile_rows() const override { return layout().step; }

  Status Execute(const Call& call, const Slot& slot, StageClock* clock,
                 ExecuteCounters* counters) const override;
  Status ProveLossless(const Slot& slot, int64_t deadline) const override;

 private:
  Status Pack(const NcclTile& tile) const;
  Status Exchange(const NcclTile& tile) const;
  // Selects into the outputs: all rows of the tile, or those that this rank owns.
  Status SelectInPlace(const NcclTile& tile) const;
  // Selects the owned rows, as answers of which the first stands at `answers`.
  Status SelectAnswers(const NcclTile& tile, RowRange own, int32_t* answers) const;
  // Selects the owned rows and moves them to all ranks.
  Status SelectAndReplicate(const NcclTile& tile) const;
  Status GatherAnswers(const NcclTile& tile) const;
  Status SumAnswers(const NcclTile& tile) const;
  Status Write(const NcclTile& tile, const kernels::Answers& answers) const;

  static Status Enqueue(const NcclTile& tile, const char* what, NcclCall call) {
    return UseNccl(*tile.slot->rank, *tile.slot->communicator, what, call);
  }

  const Job& job() const { return plan_.select.job; }
  const DeviceLayout& layout() const { return plan_.select.layout; }
  Record* ListsOf(const NcclTile& tile, int32_t rank) const {
    return reinterpret_cast<Record*>(tile.memory + layout().lists) +
           int64_t{rank} * tile.rows.rows * job().longest;
  }
  int32_t* AnswersOf(std::byte* memory) const {
    return reinterpret_cast<int32_t*>(memory + layout().answers);
  }
  uint16_t* FloatsOf(std::byte* memory) const {
    return reinterpret_cast<uint16_t*>(memory + layout().floats);
  }
  // Reductions move all that a tile can hold, whatever it holds, since that size is proven.
  int64_t SummedWords() const { return int64_t{layout().step} * layout().answer_words; }

  const NcclExecutorPlan plan_;
};

// This rank's rows to where they stand among all ranks' lists, so that they need not be copied.
Status NcclExecutor::Pack(const NcclTile& tile) const {
  const TraceRange range("pack", tile.rows.rows);
  kernels::PackArgs args;
  args.input = tile.input;
  args.active_rows = tile.rows.active_rows;
  args.first_row = tile.rows.begin;
  args.rows = tile.rows.rows;
  args.out = ListsOf(tile, job().rank);
  args.out_stride = job().longest;
  args.status_word = tile.io->status_word;
  return CudaStatus(kernels::LaunchPack(args, nullptr, 0, tile.stream), "pack");
}

Status NcclExecutor::Exchange(const NcclTile& tile) const {
  static_assert(sizeof(Record) == sizeof(uint64_t));
  const TraceRange range("exchange", tile.rows.rows);
  const int32_t world = job().world;
  const int32_t rank = job().rank;
  const auto longest = static_cast<size_t>(job().longest);
  if (!plan_.owner) {
    const size_t count = static_cast<size_t>(tile.rows.rows) * longest;
    return Enqueue(tile, "ncclAllGather", [&](const NcclLibrary& nccl, NcclHandle handle) {
      return nccl.all_gather(ListsOf(tile, rank), ListsOf(tile, 0), count, kNcclUint64, handle,
                             tile.stream);
    });
  }
  const RowRange own = RowsOfOwner(job(), tile.rows, rank);
  return Enqueue(tile, "ncclSend and ncclRecv", [&](const NcclLibrary& nccl, NcclHandle handle) {
    NcclResult result = nccl.group_start();
    for (int32_t peer = 0; peer < world && result == kNcclSuccess; ++peer) {
      if (peer == rank) continue;
      const RowRange theirs = RowsOfOwner(job(), tile.rows, peer);
      if (theirs.size() > 0) {
        result = nccl.send(ListsOf(tile, rank) + int64_t{theirs.begin} * job().longest,
                           static_cast<size_t>(theirs.size()) * longest, kNcclUint64, peer, handle,
                           tile.stream);
      }
      if (own.size() > 0 && result == kNcclSuccess) {
        result = nccl.receive(ListsOf(tile, peer) + int64_t{own.begin} * job().longest,
                              static_cast<size_t>(own.size()) * longest, kNcclUint64, peer, handle,
                              tile.stream);
      }
    }
    const NcclResult ended = nccl.group_end();
    return result == kNcclSuccess ? ended : result;
  });
}

Status NcclExecutor::SelectInPlace(const NcclTile& tile) const {
  const TraceRange range("select", tile.rows.rows);
  const RowRange selected =
      job().everywhere() ? RowRange{0, tile.rows.rows} : RowsOfOwner(job(), tile.rows, job().rank);
  return plan_.select.Launch(
      tile.memory, tile.rows, selected,
      OutputOf(job().problem, *tile.io, OutputRow(job(), tile.rows, selected)), tile.stream);
}

Status NcclExecutor::SelectAnswers(const NcclTile& tile, RowRange own, int32_t* answers) const {
  kernels::AnswerOutput answer;
  answer.ids = answers;
  answer.id_stride = layout().answer_words;
  answer.k = job().problem.k;
  if (job().problem.wants_scores()) {
    answer.score_bits = reinterpret_cast<uint32_t*>(answers) + answer.k;
    answer.score_stride = layout().answer_words;
  }
  return plan_.select.Launch(tile.memory, tile.rows, own, answer, tile.stream);
}

Status NcclExecutor::Write(const NcclTile& tile, const kernels::Answers& answers) const {
  return CudaStatus(
      kernels::LaunchWriteAnswers(answers, OutputOf(job().problem, *tile.io, tile.rows.begin),
                                  tile.io->status_word, tile.stream),
      "write answers");
}

// Every rank sends as much as the longest block of rows takes; what shorter ones send beyond theirs
// is not looked at.
Status NcclExecutor::GatherAnswers(const NcclTile& tile) const {
  const int32_t rank = job().rank;
  const RowRange own = RowsOfOwner(job(), tile.rows, rank);
  kernels::Answers answers;
  answers.words = layout().answer_words;
  answers.rows = tile.rows.rows;
  answers.world = job().world;
  answers.block = OwnedRows(tile.rows.rows, job().world, 0).size();
  int32_t* const all = AnswersOf(tile.memory);
  answers.data = all;
  const size_t words = static_cast<size_t>(answers.block) * static_cast<size_t>(answers.words);
  int32_t* const block = all + static_cast<size_t>(rank) * words;
  SPARSESEL_RETURN_IF_ERROR(SelectAnswers(tile, own, block));
  SPARSESEL_RETURN_IF_ERROR(tile.stages.End(Stage::kSelect));
  SPARSESEL_RETURN_IF_ERROR(
      Enqueue(tile, "ncclAllGather", [&](const NcclLibrary& nccl, NcclHandle handle) {
        return nccl.all_gather(block, all, words, kNcclInt32, handle, tile.stream);
      }));
  return Write(tile, answers);
}

// Every rank contributes its own rows and 0 for all others.
Status NcclExecutor::SumAnswers(const NcclTile& tile) const {
  const RowRange own = RowsOfOwner(job(), tile.rows, job().rank);
  const int64_t begin = int64_t{own.begin} * layout().answer_words;
  const int64_t end = int64_t{own.end} * layout().answer_words;
  int32_t* const words = AnswersOf(tile.memory);
  kernels::Answers answers;
  answers.words = layout().answer_words;
  answers.rows = tile.rows.rows;
  answers.world = job().world;
  answers.floats = plan_.replicate == Replicate::kBf16;
  SPARSESEL_RETURN_IF_ERROR(SelectAnswers(tile, own, words + begin));
  SPARSESEL_RETURN_IF_ERROR(tile.stages.End(Stage::kSelect));
  if (answers.floats) {
    uint16_t* const floats = FloatsOf(tile.memory);
    answers.data = floats;
    SPARSESEL_RETURN_IF_ERROR(CudaStatus(
        kernels::LaunchEncodeBytes(words, begin, end, SummedWords(), floats, tile.stream),
        "encode answers"));
    SPARSESEL_RETURN_IF_ERROR(
        Enqueue(tile, "ncclAllReduce", [&](const NcclLibrary& nccl, NcclHandle handle) {
          return nccl.all_reduce(floats, floats, 4 * static_cast<size_t>(SummedWords()),
                                 kNcclBfloat16, kNcclSum, handle, tile.stream);
        }));
    return Write(tile, answers);
  }
  answers.data = words;
  const auto clear = [&](int64_t from, int64_t to) {
    if (from == to) return Status();
    return CudaStatus(
        cudaMemsetAsync(words + from, 0, static_cast<size_t>(to - from) * sizeof(int32_t),
                        tile.stream),
        "cudaMemsetAsync");
  };
  SPARSESEL_RETURN_IF_ERROR(clear(0, begin));
  SPARSESEL_RETURN_IF_ERROR(clear(end, SummedWords()));
  SPARSESEL_RETURN_IF_ERROR(
      Enqueue(tile, "ncclAllReduce", [&](const NcclLibrary& nccl, NcclHandle handle) {
        return nccl.all_reduce(words, words, static_cast<size_t>(SummedWords()), kNcclInt32,
                               kNcclSum, handle, tile.stream);
      }));
  return Write(tile, answers);
}

Status NcclExecutor::SelectAndReplicate(const NcclTile& tile) const {
  const TraceRange range("select, replicate", tile.rows.rows);
  SPARSESEL_RETURN_IF_ERROR(plan_.replicate == Replicate::kAllGather ? GatherAnswers(tile)
                                                                     : SumAnswers(tile));
  return tile.stages.End(Stage::kReplicate);
}

Status NcclExecutor::Execute(const Call& call, const Slot& slot, StageClock* clock,
                             ExecuteCounters* counters) const {
  SPARSESEL_RETURN_IF_ERROR(call.local);
  const NcclSlot& nccl = NcclOf(slot);
  const OnDevice on(nccl.device);
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(on.error(), "cudaSetDevice"));
  SPARSESEL_RETURN_IF_ERROR(NcclGroupTable()->state(nccl.rank.get()));
  const auto stream = static_cast<cudaStream_t>(call.stream);
  SPARSESEL_RETURN_IF_ERROR(RefuseLegacyStream(stream));
  SPARSESEL_RETURN_IF_ERROR(KeepForCapture(slot, *counters, stream));
  NcclTile tile;
  tile.io = &call.io;
  tile.slot = &nccl;
  tile.memory = slot.memory->data();
  tile.input = InputOf(job().problem, call.io);
  tile.stream = stream;
  tile.stages = {clock, stream};
  SPARSESEL_RETURN_IF_ERROR(tile.stages.Begin());
  for (int32_t begin = 0; begin < call.io.rows; begin += layout().step) {
    tile.rows = TileRows(job(), call.io, begin, layout().step);
    SPARSESEL_RETURN_IF_ERROR(Pack(tile));
    SPARSESEL_RETURN_IF_ERROR(tile.stages.End(Stage::kPack));
    SPARSESEL_RETURN_IF_ERROR(Exchange(tile));
    SPARSESEL_RETURN_IF_ERROR(tile.stages.End(Stage::kExchange));
    if (plan_.replicate != Replicate::kNone) {
      SPARSESEL_RETURN_IF_ERROR(SelectAndReplicate(tile));
      continue;
    }
    SPARSESEL_RETURN_IF_ERROR(SelectInPlace(tile));
    SPARSESEL_RETURN_IF_ERROR(tile.stages.End(Stage::kSelect));
  }
  return {};
}

Status NcclExecutor::ProveLossless(const Slot& slot, int64_t deadline) const {
  const bool floats = plan_.replicate == Replicate::kBf16;
  if (!floats && plan_.replicate != Replicate::kInt32Sum) return {};
  const NcclSlot& nccl = NcclOf(slot);
  const OnDevice on(nccl.device);
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(on.error(), "cudaSetDevice"));
  std::byte* const memory = slot.memory->data();
  void* const elements = floats ? static_cast<void*>(FloatsOf(memory)) : AnswersOf(memory);
  auto* const wrong = reinterpret_cast<int32_t*>(memory + layout().selected);
  SPARSESEL_RETURN_IF_ERROR(
      CudaStatus(cudaMemsetAsync(wrong, 0, sizeof(*wrong), nccl.stream), "cudaMemsetAsync"));
  kernels::ProbeMessage message;
  message.rank = job().rank;
  message.world = job().world;
  message.floats = floats;
  message.count = (floats ? 4 : 1) * SummedWords();
  for (; message.first < int64_t{256} * message.world; message.first += message.count) {
    SPARSESEL_RETURN_IF_ERROR(
        CudaStatus(kernels::LaunchFillProbe(message, elements, nccl.stream), "probe"));
    SPARSESEL_RETURN_IF_ERROR(UseNccl(*nccl.rank, *nccl.communicator, "ncclAllReduce",
                                      [&](const NcclLibrary& library, NcclHandle handle) {
                                        return library.all_reduce(
                                            elements, elements, static_cast<size_t>(message.count),
                                            floats ? kNcclBfloat16 : kNcclInt32, kNcclSum, handle,
                                            nccl.stream);
                                      }));
    SPARSESEL_RETURN_IF_ERROR(
        CudaStatus(kernels::LaunchCheckProbe(message, elements, wrong, nccl.stream), "probe"));
  }
  SPARSESEL_RETURN_IF_ERROR(
      AwaitNccl(*nccl.rank, deadline, [&nccl] { return cudaStreamQuery(nccl.stream); }));
  int32_t any = 0;
  SPARSESEL_RETURN_IF_ERROR(
      CudaStatus(cudaMemcpy(&any, wrong, sizeof(any), cudaMemcpyDeviceToHost), "cudaMemcpy"));
  if (any == 0) return {};
  return Status::Error(SPARSESEL_WRONG_RESULT,
                       "NCCL's %s sum changes bytes in messages of %d elements",
                       floats ? "bf16" : "int32", message.count)
      .WithRank(job().rank);
}

Replicate ReplicateOf(const Composition& composition) {
  const ChildPlan* const child = composition.At(Stage::kReplicate);
  if (child == nullptr) return Replicate::kNone;
  const std::string_view name = child->variant->name;
  if (name == "nccl.bf16") return Replicate::kBf16;
  return name == "nccl.int32_sum" ? Replicate::kInt32Sum : Replicate::kAllGather;
}

}  // namespace

Status MakeNcclExecutor(const Comm& comm, const Job& job, int32_t capacity,
                        const Composition& composition, std::unique_ptr<Executor>* executor) {
  NcclExecutorPlan plan;
  plan.select.job = job;
  plan.owner = composition.kind == SPARSESEL_COMPOSITION_OWNER;
  plan.replicate = ReplicateOf(composition);
  kernels::SelectDevice& device = plan.select.device;
  SPARSESEL_RETURN_IF_ERROR(
      CudaStatus(kernels::QuerySelectDevice(comm.device(), &device), "QuerySelectDevice"));
  const OnDevice on(comm.device());
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(on.error(), "cudaSetDevice"));
  SPARSESEL_RETURN_IF_ERROR(PrepareSelectKernels(comm.device(), device));
  const kernels::SelectShape shape{plan.owner ? OwnedRows(capacity, job.world, 0).size() : capacity,
                                   job.world, job.longest, job.problem.k};
  plan.select.config = ChooseSelect(device, shape, false);
  DeviceParts parts;
  parts.answers = plan.replicate != Replicate::kNone;
  parts.answer_blocks = plan.replicate == Replicate::kAllGather;
  parts.byte_floats = plan.replicate == Replicate::kBf16;
  parts.scratch_bytes = SelectScratchBytes(job, device, shape, plan.select.config);
  SPARSESEL_RETURN_IF_ERROR(FitDeviceLayout(job, capacity, parts, &plan.select.layout));
  *executor = std::make_unique<NcclExecutor>(plan);
  return {};
}

}  // namespace sparsesel
