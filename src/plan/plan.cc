#include "plan/plan.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "plan/negotiation.h"
#include "plan/plan_state.h"

namespace sparsesel {

Plan::Plan(std::unique_ptr<State> state) : state_(std::move(state)) {}
Plan::~Plan() = default;

Status Plan::Create(std::shared_ptr<Comm> comm, const Problem& problem,
                    std::shared_ptr<Plan>* plan) {
  auto state = std::make_unique<State>();
  state->backend = &BackendFor(*comm);
  state->job = LonelyJob(problem, comm->rank(), comm->world());
  state->comm = std::move(comm);
  const std::vector<Composition> compositions = state->AllCompositions({});
  if (compositions.empty()) {
    return Status::Error(SPARSESEL_UNSUPPORTED,
                         "no composition on this memory has the outputs and order asked for");
  }
  size_t bytes = 0;
  size_t peer_visible = 0;
  SPARSESEL_RETURN_IF_ERROR(LargestWorkspace(*state->comm, *state->backend, state->job,
                                             compositions, &bytes, &peer_visible));
  if (bytes == 0) {
    // Every composition refused: the first one says why.
    std::unique_ptr<Executor> executor;
    SPARSESEL_RETURN_IF_ERROR(state->backend->make_executor(
        *state->comm, state->job, problem.capacities.back(), compositions.front(), &executor));
  }
  plan->reset(new Plan(std::move(state)));
  return {};
}

Status Plan::Memory(sparsesel_memory* memory) const {
  const State& state = *state_;
  // Before prepare any composition may be chosen, afterwards only the chosen ones count.
  std::vector<std::pair<int32_t, Composition>> in_question;
  if (state.phase == State::Phase::kCreated) {
    for (const Composition& composition : state.AllCompositions({})) {
      for (const int32_t capacity : state.job.problem.capacities) {
        in_question.emplace_back(capacity, composition);
      }
    }
  }
  for (const CapacityChoice& choice : state.choices) {
    for (const Choice& chosen : choice.choices) {
      if (chosen.available) in_question.emplace_back(choice.capacity, chosen.composition);
    }
  }
  const int32_t largest = state.job.problem.capacities.back();
  const bool apart = state.backend->memory == SPARSESEL_MEMORY_DEVICE;
  memory->tile_rows = largest;
  for (const auto& [capacity, composition] : in_question) {
    std::unique_ptr<Executor> executor;
    const Status made =
        state.backend->make_executor(*state.comm, state.job, capacity, composition, &executor);
    if (made.code() == SPARSESEL_UNSUPPORTED) continue;  // does not fit, and cannot be chosen
    SPARSESEL_RETURN_IF_ERROR(made);
    const uint64_t peer_visible = executor->peer_visible_bytes();
    const uint64_t bytes = executor->workspace_bytes() + (apart ? peer_visible : 0);
    memory->persistent = std::max(memory->persistent, bytes);
    memory->peer_visible = std::max(memory->peer_visible, peer_visible);
    if (capacity == largest) {
      memory->tile_rows = std::min(memory->tile_rows, executor->tile_rows());
    }
  }
  memory->scratch = memory->persistent;
  memory->trial_peak = std::max<uint64_t>(memory->persistent, state.trial_workspace) +
                       Trials::InputOutputBytes(state.job, largest);
  return {};
}

// ------------------------------------------------------------------------------------- prepare

Status Plan::Prepare(const PrepareOptions& options) {
  return state_->Collective([&] { return state_->Prepare(options); });
}

Status Plan::State::Prepare(const PrepareOptions& options) {
  Status local = options.invalid;
  if (local.ok() && phase != Phase::kCreated) {
    local = Status::Error(SPARSESEL_INVALID_STATE, "the plan has been prepared before");
  }
  SPARSESEL_RETURN_IF_ERROR(comm->Enter(CallKind::kPrepare, 0, local));
  Job negotiated;
  SPARSESEL_RETURN_IF_ERROR(Negotiate(*comm, job.problem, options, &negotiated));

  std::vector<Composition> compositions;
  size_t workspace = 0;
  size_t peer_visible = 0;
  local = Guarded([&]() -> Status {
    job = negotiated;
    ChildPlanFilter filter;
    SPARSESEL_RETURN_IF_ERROR(ParseChildPlans(options.child_plans, backend->memory, &filter));
    compositions = AllCompositions(filter);
    SPARSESEL_RETURN_IF_ERROR(
        LargestWorkspace(*comm, *backend, job, compositions, &workspace, &peer_visible));
    if (workspace != 0) return {};
    if (compositions.empty()) {
      return Status::Error(SPARSESEL_UNSUPPORTED,
                           "no composition can run this problem with child plans \"%s\"",
                           options.child_plans);
    }
    std::unique_ptr<Executor> executor;
    return backend->make_executor(*comm, job, job.problem.capacities.back(), compositions.front(),
                                  &executor);
  });
  if (local.ok()) {
    local = Guarded([&] {
      return Trials::Create(comm, *backend, job, job.problem.capacities.back(), workspace,
                            peer_visible, &trials);
    });
  }
  Status tuned = comm->AllGatherOrFail(local, nullptr, nullptr, 0);
  if (tuned.ok()) tuned = trials->Connect();
  if (tuned.ok()) {
    tuned = TuneChildPlans(*comm, *backend, job, compositions, options, *trials, &choices);
  }
  if (!tuned.ok()) {
    trials.reset();
    choices.clear();
    return tuned;
  }
  trial_workspace = workspace;
  phase = Phase::kPrepared;
  return {};
}

}  // namespace sparsesel
