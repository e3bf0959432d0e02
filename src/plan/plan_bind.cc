// A plan's binding, which ends its trials.
#include <algorithm>
#include <utility>

#include "plan/binding_state.h"
#include "plan/plan_state.h"
#include "plan/workspace_state.h"
#include "xxhash.h"

namespace sparsesel {

Status Plan::Bind(std::shared_ptr<Workspace> workspace, int32_t composition, const Status& invalid,
                  std::shared_ptr<Binding>* binding) {
  return state_->Collective(
      [&] { return state_->Bind(std::move(workspace), composition, invalid, binding); });
}

uint64_t Plan::State::DecisionDigest(int32_t composition) const {
  std::vector<uint64_t> parts;
  for (const CapacityChoice& choice : choices) {
    const Choice& chosen = Chosen(choice, composition);
    parts.push_back(static_cast<uint64_t>(choice.capacity));
    parts.push_back(chosen.available ? CompositionDigest(chosen.composition) : 0);
  }
  return XXH64(parts.data(), parts.size() * sizeof(uint64_t), static_cast<uint64_t>(composition));
}

Status Plan::State::Bind(std::shared_ptr<Workspace> workspace, int32_t composition,
                         const Status& invalid, std::shared_ptr<Binding>* binding) {
  Status local = invalid;
  if (local.ok() && phase == Phase::kCreated) {
    local = Status::Error(SPARSESEL_INVALID_STATE, "the plan has not been prepared");
  }
  if (local.ok() && workspace != nullptr && workspace->comm() != comm) {
    local = Status::Error(SPARSESEL_INVALID_ARGUMENT, "the workspace is another comm's");
  }
  uint64_t digest = 0;
  if (local.ok()) {
    local = Guarded([&]() -> Status {
      digest = DecisionDigest(composition);
      for (const CapacityChoice& choice : choices) {
        if (Chosen(choice, composition).available) continue;
        return Status::Error(SPARSESEL_UNSUPPORTED, "no %s composition can run capacity %d",
                             CompositionName(composition), choice.capacity);
      }
      return {};
    });
  }
  // A workspace of one's own is made by all ranks or by none.
  SPARSESEL_RETURN_IF_ERROR(
      comm->Enter(CallKind::kBind, digest ^ (workspace == nullptr ? 1 : 0), local));
  if (phase == Phase::kPrepared) {
    trials.reset();
    bound = true;
  }
  std::shared_ptr<Binding> made;
  local = Guarded([&] { return MakeBinding(workspace, composition, &made); });
  SPARSESEL_RETURN_IF_ERROR(comm->AllGatherOrFail(local, nullptr, nullptr, 0));
  SPARSESEL_RETURN_IF_ERROR(ConnectWorkspace(made->workspace()));
  *binding = std::move(made);
  return {};
}

Status Plan::State::MakeBinding(const std::shared_ptr<Workspace>& workspace, int32_t composition,
                                std::shared_ptr<Binding>* binding) const {
  auto state = std::make_unique<Binding::State>();
  state->comm = comm;
  state->backend = backend;
  state->job = job;
  state->workspace = workspace;
  if (workspace == nullptr) {
    SPARSESEL_RETURN_IF_ERROR(Workspace::CreateOwn(comm, &state->workspace));
  }
  state->digest = DecisionDigest(composition);
  size_t bytes = 0;
  size_t peer_visible = 0;
  for (const CapacityChoice& choice : choices) {
    BoundCapacity& bound_capacity = state->capacities.emplace_back();
    bound_capacity.capacity = choice.capacity;
    bound_capacity.composition = Chosen(choice, composition).composition;
    SPARSESEL_RETURN_IF_ERROR(backend->make_executor(
        *comm, job, choice.capacity, bound_capacity.composition, &bound_capacity.executor));
    bytes = std::max(bytes, bound_capacity.executor->workspace_bytes());
    peer_visible = std::max(peer_visible, bound_capacity.executor->peer_visible_bytes());
  }
  SPARSESEL_RETURN_IF_ERROR(GrowWorkspace(state->workspace->state(), bytes, peer_visible));
  SPARSESEL_RETURN_IF_ERROR(backend->make_counters(*comm, &state->counters));
  state->slots = state->workspace->state().slots;
  *binding = std::make_shared<Binding>(std::move(state));
  return {};
}

}  // namespace sparsesel
