// What a workspace holds; seen by plan/ only.
#ifndef SPARSESEL_PLAN_WORKSPACE_STATE_H_
#define SPARSESEL_PLAN_WORKSPACE_STATE_H_

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "compositions/executor.h"
#include "plan/workspace.h"

namespace sparsesel {

inline constexpr int32_t kMaxSlots = 16;

struct Workspace::State {
  std::shared_ptr<Comm> comm;
  const Backend* backend = nullptr;
  // The slots as the next binding finds them. A binding that needs more memory gets slots with
  // fresh memory; older bindings keep theirs, so that nothing a graph addresses ever moves. What
  // has been outgrown is kept to the end, since peers may still read it.
  std::vector<Slot> slots;
  std::vector<Slot> outgrown;
  size_t bytes = 0;         // of each slot
  size_t peer_visible = 0;  // likewise
  bool connected = true;    // whether the ranks' slots reach each other
  std::array<std::atomic<bool>, kMaxSlots> busy{};
  // Executes so far: the i-th runs in slot i % slots, on every rank.
  std::atomic<uint64_t> executes{0};
  std::array<uint64_t, kMaxSlots> sequence{};  // executes per slot; guarded by busy
};

// Makes the slots hold what a binding needs. Local; the caller tells the others of a failure.
Status GrowWorkspace(Workspace::State& workspace, size_t bytes, size_t peer_visible);
// Lets slots that have grown reach each other. Collective.
Status ConnectWorkspace(Workspace& workspace);

}  // namespace sparsesel

#endif  // SPARSESEL_PLAN_WORKSPACE_STATE_H_
