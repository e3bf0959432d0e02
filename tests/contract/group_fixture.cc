#include "contract/group_fixture.h"

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <thread>
#include <utility>

namespace contract {

bool AllAre(const Outcomes& outcomes, sparsesel_status status) {
  for (const Outcome& outcome : outcomes) {
    if (outcome.status != status) return false;
  }
  return true;
}

bool AllOk(const Outcomes& outcomes) { return AllAre(outcomes, SPARSESEL_OK); }

std::string Describe(const Outcomes& outcomes) {
  std::string text;
  for (size_t rank = 0; rank < outcomes.size(); ++rank) {
    text += "rank " + std::to_string(rank) + ": " + sparsesel_status_name(outcomes[rank].status) +
            " (rank at fault " + std::to_string(outcomes[rank].error.rank) + ") " +
            outcomes[rank].text() + "\n";
  }
  return text;
}

Outcomes OnEveryRank(int32_t world, const RankCall& call) {
  Outcomes outcomes(static_cast<size_t>(world));
  const auto run = [&](int32_t rank) {
    const OnRank on(rank);
    Outcome& outcome = outcomes[static_cast<size_t>(rank)];
    try {
      outcome.status = call(rank, &outcome.error);
    } catch (const std::exception& exception) {
      outcome.status = SPARSESEL_INTERNAL;
      std::snprintf(outcome.error.text, sizeof(outcome.error.text), "%s", exception.what());
    }
  };
  std::vector<std::thread> threads;
  for (int32_t rank = 1; rank < world; ++rank) threads.emplace_back(run, rank);
  run(0);
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

sparsesel_comm_options ShortLimits(uint64_t startup, uint64_t steady) {
  sparsesel_comm_options options = SPARSESEL_COMM_OPTIONS_INIT;
  options.memory = kGroupMemory;
  options.startup_timeout = startup;
  options.steady_timeout = steady;
  return options;
}

Group::Group(int32_t world) : Group(world, ShortLimits()) {}

namespace {

sparsesel_status CreateLocal(int32_t world, sparsesel_comm_options options,
                             std::vector<sparsesel_comm*>* comms, sparsesel_error* error) {
  const std::vector<int32_t> devices = DevicesOf(world);
  if (options.device_count == 0) {
    options.devices = devices.data();
    options.device_count = static_cast<int32_t>(devices.size());
  }
  comms->assign(static_cast<size_t>(world), nullptr);
  return sparsesel_comm_create_local(world, &options, comms->data(), error);
}

}  // namespace

Group::Group(int32_t world, const sparsesel_comm_options& options) {
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  if (CreateLocal(world, options, &comms_, &error) != SPARSESEL_OK) {
    throw std::runtime_error(std::string("no group: ") + error.text);
  }
  streams_ = TakeStreams(world);
}

Group::Group(std::vector<sparsesel_comm*> comms)
    : comms_(std::move(comms)), streams_(TakeStreams(world())) {}

Group::~Group() {
  Release();
  GiveBackStreams(streams_);
}

std::optional<Group> GroupIfAvailable(int32_t world, std::string* reason) {
  std::vector<sparsesel_comm*> comms;
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  const sparsesel_status status = CreateLocal(world, ShortLimits(), &comms, &error);
  if (kOnDevice && status == SPARSESEL_UNAVAILABLE && error.text[0] != '\0') {
    *reason = error.text;
    return std::nullopt;
  }
  if (status != SPARSESEL_OK) throw std::runtime_error(std::string("no group: ") + error.text);
  return Group(std::move(comms));
}

void Group::Release() {
  for (sparsesel_comm*& comm : comms_) {
    sparsesel_comm_release(comm, nullptr);
    comm = nullptr;
  }
}

Job MakeJob(int32_t world, int32_t k, int32_t candidates, std::vector<int32_t> capacities) {
  sparsesel_problem problem = SPARSESEL_PROBLEM_INIT;
  problem.k = k;
  problem.candidates = candidates;
  Job job;
  job.problems.assign(static_cast<size_t>(world), problem);
  job.capacities = std::move(capacities);
  return job;
}

Outcomes CreatePlans(const Group& group, const Job& job, std::vector<sparsesel_plan*>* plans) {
  plans->assign(job.problems.size(), nullptr);
  return OnEveryRank(job.world(), [&](int32_t rank, sparsesel_error* error) {
    sparsesel_problem problem = job.problems[static_cast<size_t>(rank)];
    problem.capacities = job.capacities.data();
    problem.capacity_count = static_cast<int32_t>(job.capacities.size());
    return sparsesel_plan_create(group.comm(rank), &problem, &(*plans)[static_cast<size_t>(rank)],
                                 error);
  });
}

Outcomes Prepare(const std::vector<sparsesel_plan*>& plans, const std::string& child_plans) {
  sparsesel_prepare_options options = SPARSESEL_PREPARE_OPTIONS_INIT;
  options.time_budget = 20 * kMillisecond;
  if (!child_plans.empty()) options.child_plans = child_plans.c_str();
  return OnEveryRank(static_cast<int32_t>(plans.size()), [&](int32_t rank, sparsesel_error* error) {
    return sparsesel_plan_prepare(plans[static_cast<size_t>(rank)], &options, error);
  });
}

Outcomes Bind(const std::vector<sparsesel_plan*>& plans, int32_t composition,
              std::vector<sparsesel_binding*>* bindings, sparsesel_workspace* const* workspaces) {
  bindings->assign(plans.size(), nullptr);
  return OnEveryRank(static_cast<int32_t>(plans.size()), [&](int32_t rank, sparsesel_error* error) {
    const auto r = static_cast<size_t>(rank);
    return sparsesel_plan_bind(plans[r], workspaces == nullptr ? nullptr : workspaces[r],
                               composition, &(*bindings)[r], error);
  });
}

Outcomes Race(const std::vector<sparsesel_plan*>& plans, std::vector<sparsesel_report*>* reports,
              const sparsesel_race_options* options) {
  reports->assign(plans.size(), nullptr);
  sparsesel_race_options quick = SPARSESEL_RACE_OPTIONS_INIT;
  quick.time_budget = 50 * kMillisecond;
  quick.sample_duration = 20'000;
  quick.max_pairs = 16;
  if (options == nullptr) options = &quick;
  return OnEveryRank(static_cast<int32_t>(plans.size()), [&](int32_t rank, sparsesel_error* error) {
    const auto r = static_cast<size_t>(rank);
    return sparsesel_plan_race(plans[r], options, &(*reports)[r], error);
  });
}

void Release(std::vector<sparsesel_report*>* reports) {
  for (sparsesel_report*& report : *reports) {
    sparsesel_report_release(report, nullptr);
    report = nullptr;
  }
}

void Release(std::vector<sparsesel_plan*>* plans) {
  for (sparsesel_plan*& plan : *plans) {
    sparsesel_plan_release(plan, nullptr);
    plan = nullptr;
  }
}

void Release(std::vector<sparsesel_binding*>* bindings) {
  // By all ranks at once: a release waits until peers have read what this rank sent.
  OnEveryRank(static_cast<int32_t>(bindings->size()), [&](int32_t rank, sparsesel_error* error) {
    return sparsesel_binding_release((*bindings)[static_cast<size_t>(rank)], error);
  });
  bindings->assign(bindings->size(), nullptr);
}

Bound::Bound(const Group& group, const Job& job, sparsesel_workspace* const* workspaces)
    : streams_(group.streams()), bindings_(job.problems.size(), nullptr) {
  outcomes_ = CreatePlans(group, job, &plans_);
  if (ok()) outcomes_ = Prepare(plans_, job.child_plans);
  if (ok()) outcomes_ = Bind(plans_, job.composition, &bindings_, workspaces);
}

Bound::~Bound() {
  Release(&bindings_);
  Release(&plans_);
}

}  // namespace contract
