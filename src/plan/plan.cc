#include "plan/plan.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "compositions/composition.h"
#include "contract/guard.h"
#include "plan/binding_state.h"
#include "plan/io_check.h"
#include "plan/negotiation.h"
#include "plan/tuner.h"
#include "plan/workspace_state.h"
#include "race/race.h"
#include "race/trials.h"
#include "xxhash.h"

namespace sparsesel {
namespace {

// More capacities than this are raced on a geometric grid.
constexpr size_t kRacedCapacities = 16;

constexpr int32_t kKinds[2] = {SPARSESEL_COMPOSITION_REPLICATED, SPARSESEL_COMPOSITION_OWNER};

}  // namespace

struct Plan::State {
  enum class Phase { kCreated, kPrepared, kRaced };

  std::shared_ptr<Comm> comm;
  const Backend* backend = nullptr;
  Job job;  // before prepare: the ranks are taken to be alike
  Phase phase = Phase::kCreated;
  bool bound = false;
  std::vector<CapacityChoice> choices;
  std::unique_ptr<Trials> trials;
  size_t trial_workspace = 0;

  std::vector<Composition> AllCompositions(const ChildPlanFilter& filter) const {
    std::vector<Composition> all;
    for (const int32_t kind : kKinds) {
      const std::vector<Composition> some =
          EnumerateCompositions(kind, job, backend->topology(*comm), filter);
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }

  // Runs a collective call. What its exchanges did not tell the peers ends the group, so that
  // nobody waits for a rank that has left.
  template <typename Body>
  Status Collective(Body&& body) const {
    const Status status = Guarded(body);
    // A device wait that has failed on this rank is known to its own kernels and those of its
    // peers.
    if (!status.ok() && !comm->State().ok()) comm->Fail(status);
    const bool untold = status.rank() < 0 && (status.code() == SPARSESEL_OUT_OF_MEMORY ||
                                              status.code() == SPARSESEL_INTERNAL);
    if (untold) comm->Fail(status);
    return status;
  }

  Status Prepare(const PrepareOptions& options);
  Status Race(const RaceOptions& options, std::shared_ptr<const Report>* report);
  Status RaceCapacities(const RaceOptions& options, TrialIo* trial_io, Report* report);
  Status Bind(std::shared_ptr<Workspace> workspace, int32_t composition, const Status& invalid,
              std::shared_ptr<Binding>* binding);
  Status MakeBinding(const std::shared_ptr<Workspace>& workspace, int32_t composition,
                     std::shared_ptr<Binding>* binding) const;
  uint64_t DecisionDigest(int32_t composition) const;
  const Choice& Chosen(const CapacityChoice& choice, int32_t composition) const {
    return choice.choices[composition == SPARSESEL_COMPOSITION_AUTO
                              ? choice.winner
                              : composition - SPARSESEL_COMPOSITION_REPLICATED];
  }
};

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

// ---------------------------------------------------------------------------------------- race

Status Plan::Race(const RaceOptions& options, std::shared_ptr<const Report>* report) {
  return state_->Collective([&] { return state_->Race(options, report); });
}

Status Plan::State::Race(const RaceOptions& options, std::shared_ptr<const Report>* report) {
  const int64_t begin = comm->environment().Now();
  const uint64_t control_calls = comm->control_calls();
  Status local = options.invalid;
  if (local.ok() && phase != Phase::kPrepared) {
    local = Status::Error(SPARSESEL_INVALID_STATE, "%s",
                          phase == Phase::kRaced ? "the plan has been raced before"
                                                 : "the plan has not been prepared");
  }
  if (local.ok() && bound) {
    local =
        Status::Error(SPARSESEL_INVALID_STATE, "the plan has been bound, which freed the trials");
  }
  sparsesel_io trial_io = options.trial_io;
  TrialIo trial_rows;
  std::shared_ptr<Report> made;
  if (local.ok()) {
    local = Guarded([&]() -> Status {
      made = std::make_shared<Report>();
      return {};
    });
  }
  if (local.ok() && options.has_trial_io) {
    local = CheckIo(job, kMaxCapacity, true, &trial_io);
    if (local.ok() && trial_io.rows == 0) {
      local = Status::Error(SPARSESEL_INVALID_ARGUMENT, "trial_io has no rows");
    }
    if (local.ok()) {
      local = Guarded([&] {
        return CopyTrialIo(*comm, *backend, job, trial_io, job.problem.capacities.back(),
                           &trial_rows);
      });
    }
  }
  // Everything that must be equal for the ranks to take the same steps.
  const std::array<uint64_t, 7> shared = {
      options.seed,
      options.time_budget,
      options.sample_duration,
      static_cast<uint64_t>(options.max_pairs),
      static_cast<uint64_t>(options.margin * 1e9),
      static_cast<uint64_t>(options.error_level * 1e9),
      options.has_trial_io ? 1 + static_cast<uint64_t>(trial_io.rows) : 0};
  SPARSESEL_RETURN_IF_ERROR(
      comm->Enter(CallKind::kRace, XXH64(shared.data(), sizeof(shared), 0), local));

  made->rank = comm->rank();
  made->world = comm->world();
  made->problem = job.problem;
  made->seed = options.seed;
  made->transport = comm->transport() == SPARSESEL_TRANSPORT_NCCL ? "nccl"
                    : backend->memory == SPARSESEL_MEMORY_DEVICE  ? "peer"
                                                                  : comm->host_channel_table().name;
  const Status raced =
      RaceCapacities(options, options.has_trial_io ? &trial_rows : nullptr, made.get());
  if (!raced.ok()) return raced;
  made->trial_bytes_freed = trials->bytes();
  trials.reset();
  made->duration = comm->environment().Now() - begin;
  made->control_calls = comm->control_calls() - control_calls;
  phase = Phase::kRaced;
  *report = std::move(made);
  return {};
}

Status Plan::State::RaceCapacities(const RaceOptions& options, TrialIo* trial_io, Report* report) {
  report->capacities.resize(choices.size());
  for (size_t c = 0; c < choices.size(); ++c) {
    CapacityReport& capacity = report->capacities[c];
    capacity.outcome.capacity = choices[c].capacity;
    capacity.outcome.winner = SPARSESEL_COMPOSITION_REPLICATED;
    capacity.outcome.rule = SPARSESEL_RULE_POLICY;
    Entrant* const entrants[2] = {&capacity.replicated, &capacity.owner};
    for (size_t which = 0; which < 2; ++which) {
      const Choice& choice = choices[c].choices[which];
      if (choice.available) entrants[which]->child_plans = ChildPlanNames(choice.composition);
      entrants[which]->exact = choice.available;
    }
  }
  report->raced = job.problem.is_raced();
  if (!report->raced) {
    report->note = "the race policy keeps this workload out of the race";
    return {};
  }
  for (int32_t kind = 1; kind < kInputKinds; ++kind) {
    report->holdouts.emplace_back(InputKindName(static_cast<InputKind>(kind)));
  }

  // The capacities to measure: all, or a geometric grid with both ends.
  std::vector<size_t> measured;
  for (size_t c = 0; c < choices.size(); ++c) {
    if (choices.size() <= kRacedCapacities || c == 0 || c + 1 == choices.size() ||
        choices[c].capacity >= 2 * choices[measured.back()].capacity) {
      measured.push_back(c);
    }
  }
  std::vector<Contest> contests;
  std::vector<std::unique_ptr<Executor>> executors;
  for (const size_t c : measured) {
    Contest contest;
    contest.capacity = choices[c].capacity;
    contest.report = &report->capacities[c];
    for (size_t which = 0; which < 2; ++which) {
      if (!choices[c].choices[which].available) continue;
      SPARSESEL_RETURN_IF_ERROR(backend->make_executor(*comm, job, contest.capacity,
                                                       choices[c].choices[which].composition,
                                                       &executors.emplace_back()));
      contest.executors[which] = executors.back().get();
    }
    contests.push_back(contest);
  }

  RaceSettings settings;
  settings.rule.margin = options.margin;
  settings.rule.error_level = options.error_level;
  settings.seed = options.seed;
  settings.time_budget = static_cast<int64_t>(options.time_budget);
  settings.sample_duration = static_cast<int64_t>(options.sample_duration);
  settings.max_pairs = options.max_pairs;
  settings.trial_io = trial_io;
  settings.progress = options.progress;
  SPARSESEL_RETURN_IF_ERROR(RunRace(*comm, job, settings, *trials, contests, &report->digest));

  for (const size_t c : measured) {
    choices[c].winner = report->capacities[c].outcome.winner - SPARSESEL_COMPOSITION_REPLICATED;
  }
  // In between, neighbours that agree decide; where they do not, the incumbent stays.
  for (size_t m = 0; m + 1 < measured.size(); ++m) {
    const int32_t low = choices[measured[m]].winner;
    const int32_t high = choices[measured[m + 1]].winner;
    for (size_t c = measured[m] + 1; c < measured[m + 1]; ++c) {
      choices[c].winner = low == high && choices[c].choices[low].available ? low : 0;
      report->capacities[c].outcome.winner = kKinds[choices[c].winner];
      report->capacities[c].outcome.rule = SPARSESEL_RULE_NEIGHBOUR;
    }
  }
  return {};
}

// ---------------------------------------------------------------------------------------- bind

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
