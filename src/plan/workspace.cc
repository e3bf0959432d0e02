#include "plan/workspace.h"

#include <algorithm>
#include <utility>

#include "contract/guard.h"
#include "plan/workspace_state.h"

namespace sparsesel {

Workspace::Workspace(std::unique_ptr<State> state) : state_(std::move(state)) {}
Workspace::~Workspace() {
  // Nobody executes here any more, but peers may still read what was sent last.
  for (Slot& slot : state_->slots) {
    const Status drained = state_->backend->drain(slot, state_->comm->SteadyDeadline());
    if (drained.ok()) continue;
    // Memory that is lost is better than memory that is reused.
    state_->comm->environment().Log(SPARSESEL_LOG_WARNING, drained.text());
    Abandon(std::move(slot.memory));
    for (Slot& outgrown : state_->outgrown) Abandon(std::move(outgrown.memory));
  }
}

const std::shared_ptr<Comm>& Workspace::comm() const { return state_->comm; }

Status Workspace::Make(std::shared_ptr<Comm> comm, int32_t slots,
                       std::shared_ptr<Workspace>* workspace) {
  auto state = std::make_unique<State>();
  state->comm = std::move(comm);
  state->backend = &BackendFor(*state->comm);
  state->slots.resize(static_cast<size_t>(slots));
  for (Slot& slot : state->slots) {
    SPARSESEL_RETURN_IF_ERROR(state->backend->make_slot(*state->comm, slots > 1, &slot));
  }
  workspace->reset(new Workspace(std::move(state)));
  return {};
}

Status Workspace::CreateOwn(std::shared_ptr<Comm> comm, std::shared_ptr<Workspace>* workspace) {
  return Make(std::move(comm), 1, workspace);
}

Status Workspace::Create(std::shared_ptr<Comm> comm, int32_t slots, const Status& invalid,
                         std::shared_ptr<Workspace>* workspace) {
  SPARSESEL_RETURN_IF_ERROR(
      comm->Enter(CallKind::kWorkspaceCreate, static_cast<uint64_t>(slots), invalid));
  std::shared_ptr<Workspace> made;
  const Status local = Guarded([&] { return Make(comm, slots, &made); });
  SPARSESEL_RETURN_IF_ERROR(comm->AllGatherOrFail(local, nullptr, nullptr, 0));
  *workspace = std::move(made);
  return {};
}

Status GrowWorkspace(Workspace::State& workspace, size_t bytes, size_t peer_visible) {
  if (bytes <= workspace.bytes && peer_visible <= workspace.peer_visible) return {};
  if (workspace.bytes != 0) {
    workspace.outgrown.insert(workspace.outgrown.end(), workspace.slots.begin(),
                              workspace.slots.end());
  }
  workspace.bytes = std::max(bytes, workspace.bytes);
  workspace.peer_visible = std::max(peer_visible, workspace.peer_visible);
  workspace.connected = false;
  for (Slot& slot : workspace.slots) {
    SPARSESEL_RETURN_IF_ERROR(workspace.backend->reserve(*workspace.comm, workspace.bytes,
                                                         workspace.peer_visible, &slot));
  }
  return {};
}

Status ConnectWorkspace(Workspace& workspace) {
  Workspace::State& state = workspace.state();
  if (state.connected) return {};
  for (Slot& slot : state.slots) {
    SPARSESEL_RETURN_IF_ERROR(state.backend->connect(*state.comm, &slot));
  }
  state.connected = true;
  return {};
}

}  // namespace sparsesel
