#include "plan/binding.h"

#include <algorithm>
#include <array>
#include <utility>

#include "contract/json_writer.h"
#include "plan/binding_state.h"
#include "plan/io_check.h"

namespace sparsesel {
namespace {

// The slot of the next execute, taken; -1 if it is still busy.
int32_t TakeSlot(Workspace::State& workspace) {
  for (;;) {
    uint64_t count = workspace.executes.load();
    const auto slot = static_cast<int32_t>(count % workspace.slots.size());
    std::atomic<bool>& busy = workspace.busy[static_cast<size_t>(slot)];
    if (busy.exchange(true, std::memory_order_acquire)) {
      // Another thread may have taken this turn in between; then look at the next one.
      if (workspace.executes.load() != count) continue;
      return -1;
    }
    if (workspace.executes.compare_exchange_strong(count, count + 1)) return slot;
    busy.store(false, std::memory_order_release);
  }
}

const BoundCapacity& CapacityFor(const Binding::State& state, int32_t rows) {
  const auto it = std::lower_bound(
      state.capacities.begin(), state.capacities.end(), rows,
      [](const BoundCapacity& bound, int32_t wanted) { return bound.capacity < wanted; });
  return it == state.capacities.end() ? state.capacities.back() : *it;
}

}  // namespace

Binding::Binding(std::unique_ptr<State> state) : state_(std::move(state)) {}

Workspace& Binding::workspace() { return *state_->workspace; }

Binding::~Binding() = default;

Status Binding::Execute(const sparsesel_io& io, void* stream, const Status& invalid) {
  State& state = *state_;
  Workspace::State& workspace = state.workspace->state();
  Call call;
  call.io = io;
  call.stream = stream;
  call.local = invalid;
  if (call.local.ok()) {
    call.local = CheckIo(state.job, state.capacities.back().capacity, false, &call.io);
  }
  if (call.local.ok() && state.backend->memory == SPARSESEL_MEMORY_HOST && stream != nullptr) {
    call.local = Status::Error(SPARSESEL_INVALID_ARGUMENT,
                               "stream is not NULL, but the group's memory is the host's");
  }
  const int32_t rows = call.local.ok() ? io.rows : 0;
  call.message.kind = CallKind::kExecute;
  call.message.digest = state.digest;
  call.message.tag = io.tag;
  call.message.rows = rows;
  call.message.active_rows = rows;
  if (call.local.ok() && io.active_rows != nullptr &&
      state.backend->memory == SPARSESEL_MEMORY_HOST) {
    call.message.active_rows = std::clamp(*io.active_rows, 0, rows);
  }

  const int32_t index = TakeSlot(workspace);
  if (index < 0) {
    return Status::Error(SPARSESEL_INVALID_STATE,
                         "another execute still runs in this slot of the workspace");
  }
  const auto slot = static_cast<size_t>(index);
  call.message.sequence = ++workspace.sequence[slot];
  call.deadline = state.comm->SteadyDeadline();
  state.counters.executes.fetch_add(1, std::memory_order_relaxed);
  const Status status =
      CapacityFor(state, rows).executor->Execute(call, state.slots[slot], nullptr, &state.counters);
  workspace.busy[slot].store(false, std::memory_order_release);
  if (!status.ok()) {
    state.counters.failures.fetch_add(1, std::memory_order_relaxed);
    if (status.code() == SPARSESEL_TIMEOUT) {
      state.counters.timeouts.fetch_add(1, std::memory_order_relaxed);
    }
  }
  return status;
}

Status Binding::Stats(sparsesel_stats* stats) const {
  const ExecuteCounters& counters = state_->counters;
  stats->world_size = state_->comm->world();
  stats->executes = counters.executes.load(std::memory_order_relaxed);
  stats->failures = counters.failures.load(std::memory_order_relaxed);
  stats->prefix_refetches = counters.prefix_refetches.load(std::memory_order_relaxed);
  stats->timeouts = counters.timeouts.load(std::memory_order_relaxed);
  for (const Slot& slot : state_->slots) {
    if (slot.channel.table == nullptr) continue;
    std::array<uint64_t, kMaxWorld> waits{};
    slot.channel.table->waits(slot.channel.self.get(), waits.data());
    for (size_t r = 0; r < waits.size(); ++r) stats->wait[r] += waits[r];
  }
  return state_->backend->read_counters(*state_->comm, counters, stats);
}

Status Binding::ToJson(std::string* json) const {
  json->clear();
  JsonWriter writer(json);
  writer.BeginObject();
  writer.Member("digest", state_->digest);
  writer.Member("slots", state_->slots.size());
  writer.Key("capacities");
  writer.BeginArray();
  for (const BoundCapacity& bound : state_->capacities) {
    writer.BeginObject();
    writer.Member("capacity", bound.capacity);
    writer.Member("composition", CompositionName(bound.composition.kind));
    writer.ArrayMember("child_plans", ChildPlanNames(bound.composition));
    writer.Member("tile_rows", bound.executor->tile_rows());
    writer.Member("workspace_bytes", bound.executor->workspace_bytes());
    writer.EndObject();
  }
  writer.EndArray();
  writer.EndObject();
  return {};
}

}  // namespace sparsesel
