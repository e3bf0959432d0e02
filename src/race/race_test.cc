#include "race/race.h"

#include <catch2/catch.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "transport/rank_threads.h"

namespace sparsesel {
namespace {

// What the ranks' clocks show: nothing passes but what executors say.
thread_local int64_t t_now = 0;

enum class Fault { kNone, kWhenWatched };

// Runs as the executor it wraps, and takes a millisecond; may fail when its spans are measured.
class Scripted final : public Executor {
 public:
  Scripted(std::unique_ptr<Executor> inner, Fault fault)
      : inner_(std::move(inner)), fault_(fault) {}
  size_t workspace_bytes() const override { return inner_->workspace_bytes(); }
  size_t peer_visible_bytes() const override { return inner_->peer_visible_bytes(); }
  int32_t tile_rows() const override { return inner_->tile_rows(); }
  Status ProveLossless(const Slot& slot, int64_t deadline) const override {
    return inner_->ProveLossless(slot, deadline);
  }
  Status Execute(const Call& call, const Slot& slot, StageClock* clock,
                 ExecuteCounters* counters) const override {
    const Status run = inner_->Execute(call, slot, nullptr, counters);
    t_now += kMillisecond;
    return run.ok() && clock != nullptr && fault_ == Fault::kWhenWatched
               ? Status::Error(SPARSESEL_INTERNAL, "watched")
               : run;
  }

 private:
  const std::unique_ptr<Executor> inner_;
  const Fault fault_;
};

constexpr int32_t kWorld = 3;
constexpr int32_t kCapacity = 4;

Problem SmallProblem() {
  Problem problem;
  problem.k = problem.candidates = 16;
  problem.capacities = {kCapacity};
  problem.score_stride = problem.id_stride = problem.output_stride = 16;
  return problem;
}

struct Script {
  bool takes_part[2] = {true, true};
  int32_t fails = -1;  // which composition, on rank 1, when its spans are measured
  int64_t time_budget = 1000 * kMillisecond;
};

struct SmallRace {
  std::vector<CapacityReport> reports{kWorld};
  std::vector<Status> results;

  explicit SmallRace(const Script& script) {
    CommOptions options;
    options.environment.clock = {nullptr, [](void*) { return t_now; }};
    const Comms comms = LocalGroup(kWorld, options);
    results = OnEachRank(kWorld, [&](int32_t rank) {
      return Race(script, comms[static_cast<size_t>(rank)], &reports[static_cast<size_t>(rank)]);
    });
  }

 private:
  static Status Race(const Script& script, const std::shared_ptr<Comm>& comm,
                     CapacityReport* report) {
    const Backend& backend = BackendFor(*comm);
    const Job job = LonelyJob(SmallProblem(), comm->rank(), kWorld);
    std::unique_ptr<Executor> executors[2];
    Contest contest;
    contest.capacity = kCapacity;
    contest.report = report;
    size_t workspace = 0;
    for (const int32_t which : {0, 1}) {
      const std::vector<Composition> compositions = EnumerateCompositions(
          which == 0 ? SPARSESEL_COMPOSITION_REPLICATED : SPARSESEL_COMPOSITION_OWNER, job,
          backend.topology(*comm), {});
      std::unique_ptr<Executor> inner;
      SPARSESEL_RETURN_IF_ERROR(
          backend.make_executor(*comm, job, kCapacity, compositions.front(), &inner));
      workspace = std::max(workspace, inner->workspace_bytes());
      const bool fails = which == script.fails && comm->rank() == 1;
      executors[which] =
          std::make_unique<Scripted>(std::move(inner), fails ? Fault::kWhenWatched : Fault::kNone);
      if (script.takes_part[which]) contest.executors[which] = executors[which].get();
    }
    std::unique_ptr<Trials> trials;
    SPARSESEL_RETURN_IF_ERROR(Trials::Create(comm, backend, job, kCapacity, workspace, 0, &trials));
    SPARSESEL_RETURN_IF_ERROR(trials->Connect());
    RaceSettings settings;
    settings.time_budget = script.time_budget;
    settings.sample_duration = 1;
    settings.max_pairs = 16;
    std::vector<Contest> contests{contest};
    uint64_t digest = 0;
    return RunRace(*comm, job, settings, *trials, contests, &digest);
  }
};

TEST_CASE("race: a composition that fails while its spans are measured is out, on all ranks") {
  for (const int32_t fails : {0, 1}) {
    const SmallRace race({.takes_part = {fails == 0, fails == 1}, .fails = fails});
    for (const Status& status : race.results) {
      INFO(status.text());
      CHECK(status.code() == SPARSESEL_WRONG_RESULT);
    }
    for (const CapacityReport& report : race.reports) {
      const Entrant& entrant = fails == 0 ? report.replicated : report.owner;
      CHECK(entrant.disqualified.find("failed on rank 1") != std::string::npos);
    }
  }
}

TEST_CASE("race: what fails while its spans are measured cannot win") {
  for (const int32_t fails : {0, 1}) {
    const SmallRace race({.fails = fails});
    RequireOk(race.results);
    for (const CapacityReport& report : race.reports) {
      CHECK(report.outcome.winner ==
            (fails == 0 ? SPARSESEL_COMPOSITION_OWNER : SPARSESEL_COMPOSITION_REPLICATED));
    }
  }
}

TEST_CASE("race: where not all pairs fit the time budget, fewer are taken if they can decide") {
  // A pair takes 2 ms. At the level of 5% five that agree decide.
  const auto outcome = [](int64_t milliseconds) {
    const SmallRace race({.time_budget = milliseconds * kMillisecond});
    RequireOk(race.results);
    return race.reports[1].outcome;
  };
  CHECK(outcome(32).pairs == 16);
  CHECK(outcome(31).pairs == 15);
  CHECK(outcome(10).pairs == 5);
  CHECK(outcome(10).rule == SPARSESEL_RULE_NOT_FASTER);
  CHECK(outcome(9).pairs == 0);
  CHECK(outcome(9).rule == SPARSESEL_RULE_INCONCLUSIVE);
}

}  // namespace
}  // namespace sparsesel
