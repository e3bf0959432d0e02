// A plan's race.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "plan/io_check.h"
#include "plan/plan_state.h"
#include "race/race.h"
#include "xxhash.h"

namespace sparsesel {
namespace {

// More capacities than this are raced on a geometric grid.
constexpr size_t kRacedCapacities = 16;

}  // namespace

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

}  // namespace sparsesel
