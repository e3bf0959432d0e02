// What a binding holds; seen by plan/ only.
#ifndef SPARSESEL_PLAN_BINDING_STATE_H_
#define SPARSESEL_PLAN_BINDING_STATE_H_

#include <memory>
#include <vector>

#include "compositions/executor.h"
#include "plan/binding.h"
#include "plan/workspace_state.h"

namespace sparsesel {

struct BoundCapacity {
  int32_t capacity = 1;
  Composition composition;
  std::unique_ptr<Executor> executor;
};

struct Binding::State {
  std::shared_ptr<Comm> comm;
  const Backend* backend = nullptr;
  Job job;
  std::shared_ptr<Workspace> workspace;
  std::vector<Slot> slots;  // the workspace's channels, with the memory this binding uses
  std::vector<BoundCapacity> capacities;  // ascending
  uint64_t digest = 0;
  ExecuteCounters counters;
};

}  // namespace sparsesel

#endif  // SPARSESEL_PLAN_BINDING_STATE_H_
