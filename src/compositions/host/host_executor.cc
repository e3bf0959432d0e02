#include "compositions/host/host_executor.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "compositions/host/host_run.h"
#include "contract/guard.h"

namespace sparsesel {

void HostRun::EnterTile(int32_t tile) {
  for (int32_t owner = 0; owner < job.world; ++owner) {
    const auto o = static_cast<size_t>(owner);
    rows[o] = tiling.rows(tile, owner);
    first[o + 1] = first[o] + rows[o].size();
  }
}

namespace {

// Adds the time since the execute's begin, or the last end of a stage, to a stage.
class HostClock final : public StageClock {
 public:
  HostClock(const Environment& environment, SpanTimes* spans)
      : environment_(environment), spans_(spans) {}
  Status Begin(void*) override {
    last_ = environment_.Now();
    return {};
  }
  Status End(Stage stage, void*) override {
    const int64_t now = environment_.Now();
    spans_->stage[static_cast<size_t>(stage)] += now - last_;
    last_ = now;
    return {};
  }

 private:
  const Environment& environment_;
  SpanTimes* const spans_;
  int64_t last_ = 0;
};

class HostExecutor final : public Executor {
 public:
  HostExecutor(const Environment& environment, const Job& job, const HostChoices& choices,
               const HostLayout& layout)
      : environment_(environment), job_(job), choices_(choices), layout_(layout) {}

  size_t workspace_bytes() const override { return layout_.total; }
  size_t peer_visible_bytes() const override { return layout_.peer_visible; }
  int32_t tile_rows() const override { return layout_.slots; }

  Status Execute(const Call& call, const Slot& slot, StageClock* clock,
                 ExecuteCounters* counters) const override {
    const Status status = ExecuteRows(call, slot, clock, counters);
    // Whatever happened, this rank reads its peers' buffers no more.
    slot.channel.table->consumed(slot.channel.self.get());
    return status;
  }

  Status ProveLossless(const Slot& slot, int64_t deadline) const override {
    if (choices_.replicate != HostChoices::Replicate::kBf16) return {};
    return ProveLosslessBf16(layout_, job_, slot, deadline);
  }

 private:
  // Enters the first exchange without data: for calls without rows, and for ranks that have failed.
  static Status Compare(const HostRun& run, const Status& local) {
    CallMessage message = run.call.message;
    SetStatus(local, run.job.rank, &message);
    run.channel().begin(run.channel_self(), message, run.call.deadline);
    return run.channel().barrier(run.channel_self());
  }

  static Status ExecuteTile(HostRun& run, const Stages& stages);
  Status ExecuteRows(const Call& call, const Slot& slot, StageClock* clock,
                     ExecuteCounters* counters) const;

  const Environment environment_;
  const Job job_;
  const HostChoices choices_;
  const HostLayout layout_;
};

Status HostExecutor::ExecuteTile(HostRun& run, const Stages& stages) {
  run.channel().begin(run.channel_self(), run.call.message, run.call.deadline);
  // Peers may still read what this rank sent last.
  SPARSESEL_RETURN_IF_ERROR(run.channel().drain(run.channel_self()));
  if (const Status packed = PackTile(run); !packed.ok()) return Compare(run, packed);
  SPARSESEL_RETURN_IF_ERROR(stages.End(Stage::kPack));
  SPARSESEL_RETURN_IF_ERROR(ExchangeLists(run));
  SPARSESEL_RETURN_IF_ERROR(stages.End(Stage::kExchange));
  SPARSESEL_RETURN_IF_ERROR(SelectTile(run));
  SPARSESEL_RETURN_IF_ERROR(stages.End(Stage::kSelect));
  SPARSESEL_RETURN_IF_ERROR(ReplicateTile(run));
  return run.choices.owner ? stages.End(Stage::kReplicate) : Status();
}

Status HostExecutor::ExecuteRows(const Call& call, const Slot& slot, StageClock* clock,
                                 ExecuteCounters* counters) const {
  const int32_t rows = call.message.rows;
  const int32_t active = call.message.active_rows;
  HostRun run{job_, choices_, layout_, call, slot, *counters, slot.memory->data(),
              // Owned-rows output is laid out by the call's rows; else only active rows are dealt.
              Tiling{job_.everywhere() ? active : rows, active, job_.world, layout_.step}};
  if (!call.local.ok()) return Compare(run, call.local);

  const Stages stages{clock};
  SPARSESEL_RETURN_IF_ERROR(stages.Begin());
  const int32_t tiles = active == 0 ? 0 : run.tiling.tiles();
  if (tiles == 0) SPARSESEL_RETURN_IF_ERROR(Compare(run, Status()));
  for (int32_t tile = 0; tile < tiles; ++tile) {
    run.EnterTile(tile);
    SPARSESEL_RETURN_IF_ERROR(ExecuteTile(run, stages));
  }
  for (int32_t row = active; row < rows; ++row) {
    if (Receives(run, row)) WriteEmptyRow(run, row);
  }
  return {};
}

Status MakeSlot(Comm& comm, bool overlaps, Slot* slot) {
  slot->memory = std::make_shared<Buffer>();
  return comm.MakeHostChannel(&slot->channel, overlaps);
}

Status Reserve(Comm& comm, size_t bytes, size_t, Slot* slot) {
  auto memory = std::make_shared<Buffer>();
  SPARSESEL_RETURN_IF_ERROR(
      Buffer::Take(comm.environment(), SPARSESEL_MEMORY_HOST, bytes, "workspace", memory.get()));
  slot->memory = std::move(memory);
  return {};
}

Status Connect(Comm&, Slot*) { return {}; }

void* NoStream(const Slot&) { return nullptr; }
Status Finished(const Slot&) { return {}; }

Status MakeExecutor(const Comm& comm, const Job& job, int32_t capacity,
                    const Composition& composition, std::unique_ptr<Executor>* executor) {
  const HostChoices choices = ChooseHost(job, composition);
  HostLayout layout;
  SPARSESEL_RETURN_IF_ERROR(
      FitHost(job, capacity, choices, comm.host_channel_table().reads_peers_directly, &layout));
  *executor = std::make_unique<HostExecutor>(comm.environment(), job, choices, layout);
  return {};
}

// What there is to count is counted by the executes themselves.
Status NoCounters(const Comm&, ExecuteCounters*) { return {}; }
Status NothingCounted(const Comm&, const ExecuteCounters&, sparsesel_stats*) { return {}; }

Status Copy(const Comm&, void* to, const void* from, size_t bytes) {
  std::memcpy(to, from, bytes);
  return {};
}

Status TimeTrain(const Comm& comm, const Executor& executor, const Slot& slot, int32_t length,
                 Call* call, double* ns) {
  ExecuteCounters counters;
  const HostChannelTable& channel = *slot.channel.table;
  channel.begin(slot.channel.self.get(), call->message, call->deadline);
  SPARSESEL_RETURN_IF_ERROR(channel.barrier(slot.channel.self.get()));
  const int64_t begin = comm.environment().Now();
  for (int32_t i = 0; i < length; ++i) {
    ++call->message.sequence;
    SPARSESEL_RETURN_IF_ERROR(executor.Execute(*call, slot, nullptr, &counters));
  }
  *ns = static_cast<double>(comm.environment().Now() - begin) / length;
  return {};
}

Status TimeSpans(const Comm& comm, const Executor& executor, const Slot& slot, Call* call,
                 std::span<SpanTimes> executes) {
  ExecuteCounters counters;
  Status first;
  // On after a failure too: it may be this rank's alone, and the others go on.
  for (SpanTimes& spans : executes) {
    HostClock clock(comm.environment(), &spans);
    ++call->message.sequence;
    KeepFirst(executor.Execute(*call, slot, &clock, &counters), &first);
  }
  return first;
}

Status Drain(const Slot& slot, int64_t deadline) {
  if (slot.channel.table == nullptr) return {};
  slot.channel.table->begin(slot.channel.self.get(), CallMessage{}, deadline);
  return slot.channel.table->drain(slot.channel.self.get());
}

Topology HostTopology(const Comm& comm) {
  const HostChannelTable& traits = comm.host_channel_table();
  return {SPARSESEL_MEMORY_HOST, traits.has_sum_bf16, traits.has_sum_int32};
}

}  // namespace

const Backend& HostBackend() {
  static constexpr Backend backend = {
      SPARSESEL_MEMORY_HOST,
      HostTopology,
      MakeSlot,
      Reserve,
      Connect,
      NoStream,
      Finished,
      MakeExecutor,
      NoCounters,
      NothingCounted,
      Copy,
      Copy,
      TimeTrain,
      TimeSpans,
      Drain,
  };
  return backend;
}

}  // namespace sparsesel
