// The race through the C API: one decision on all ranks, whatever the clocks say.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "contract/batch.h"
#include "contract/custom_group.h"
#include "contract/rows.h"

namespace contract {
namespace {

sparsesel_race_options QuickRace() {
  sparsesel_race_options options = SPARSESEL_RACE_OPTIONS_INIT;
  options.time_budget = 100 * kMillisecond;
  options.sample_duration = 20'000;
  options.max_pairs = 16;
  return options;
}

struct Raced {
  std::vector<sparsesel_plan*> plans;
  std::vector<sparsesel_report*> reports;
  Outcomes outcomes;

  Raced(const Group& group, const Job& job, sparsesel_race_options options = QuickRace()) {
    outcomes = CreatePlans(group, job, &plans);
    if (AllOk(outcomes)) outcomes = Prepare(plans, job.child_plans);
    if (AllOk(outcomes)) outcomes = Race(plans, &reports, &options);
  }
  Raced(const Raced&) = delete;
  Raced& operator=(const Raced&) = delete;
  ~Raced() {
    Release(&reports);
    Release(&plans);
  }

  sparsesel_outcome At(int32_t rank, int32_t index) const {
    sparsesel_outcome outcome = SPARSESEL_OUTCOME_INIT;
    sparsesel_report_outcome(reports[static_cast<size_t>(rank)], index, &outcome, nullptr);
    return outcome;
  }
  nlohmann::json Json(int32_t rank) const {
    return nlohmann::json::parse(TextOf(sparsesel_report_json, reports[static_cast<size_t>(rank)]));
  }
};

// Every rank has the same outcomes and digest, and every capacity replays exactly.
void CheckAgreement(const Raced& raced, const Job& job) {
  INFO(Describe(raced.outcomes));
  REQUIRE(AllOk(raced.outcomes));
  const std::string digest = raced.Json(0)["digest"].dump();
  for (int32_t rank = 0; rank < job.world(); ++rank) {
    CHECK(sparsesel_report_size(raced.reports[static_cast<size_t>(rank)]) ==
          static_cast<int32_t>(job.capacities.size()));
    CHECK(raced.Json(rank)["digest"].dump() == digest);
    for (size_t i = 0; i < job.capacities.size(); ++i) {
      const sparsesel_outcome mine = raced.At(rank, static_cast<int32_t>(i));
      const sparsesel_outcome first = raced.At(0, static_cast<int32_t>(i));
      CHECK(mine.capacity == job.capacities[i]);
      CHECK(mine.winner == first.winner);
      CHECK(mine.rule == first.rule);
      CHECK(mine.pairs == first.pairs);
      CHECK(mine.ratio == first.ratio);
    }
  }
  std::vector<sparsesel_binding*> bindings;
  const Outcomes bound = Bind(raced.plans, SPARSESEL_COMPOSITION_AUTO, &bindings);
  INFO(Describe(bound));
  CHECK(AllOk(bound));
  Release(&bindings);
}

TEST_CASE("race: ends with one decision, and every capacity replays exactly after it") {
  const Group group(3);
  const Job job = MakeJob(3, 200, 300, {1, 2, 4, 8});
  sparsesel_race_options options = QuickRace();
  options.time_budget = 60 * kSecond;  // all pairs, however slow the machine is
  const Raced raced(group, job, options);
  CheckAgreement(raced, job);
  std::vector<sparsesel_binding*> bindings;
  for (size_t i = 0; i < 4; ++i) {
    const sparsesel_outcome outcome = raced.At(1, static_cast<int32_t>(i));
    CHECK(outcome.replicated_exact == 1);
    CHECK(outcome.owner_exact == 1);
    CHECK(outcome.pairs >= 0);
    CHECK(outcome.replicated_median > 0);
    CHECK(outcome.owner_median > 0);
    CHECK(outcome.ratio_low <= outcome.ratio_high);
  }
  sparsesel_outcome outcome = SPARSESEL_OUTCOME_INIT;
  CHECK(sparsesel_report_outcome(raced.reports[0], 4, &outcome, nullptr) ==
        SPARSESEL_INVALID_ARGUMENT);
  CHECK(sparsesel_report_outcome(raced.reports[0], -1, &outcome, nullptr) ==
        SPARSESEL_INVALID_ARGUMENT);
  const nlohmann::json json = raced.Json(2);
  CHECK(json["capacities"].size() == 4);
  CHECK(json["holdouts"].size() >= 15);
  CHECK(json["raced"] == true);

  for (int32_t composition : {SPARSESEL_COMPOSITION_AUTO, SPARSESEL_COMPOSITION_REPLICATED,
                              SPARSESEL_COMPOSITION_OWNER}) {
    REQUIRE(AllOk(Bind(raced.plans, composition, &bindings)));
    for (int32_t rows : {1, 2, 3, 4, 8}) {
      const Batch batch = BatchOfKinds(job, rows, 5);
      const std::vector<oracle::Answer> expected = ExpectRows(job, batch);
      // Back to back, without waiting for other ranks in between.
      std::vector<std::vector<RankArrays>> calls;
      for (int i = 0; i < 5; ++i) calls.push_back(MakeArrays(job, batch));
      const Outcomes outcomes = OnEveryRank(3, [&](int32_t rank, sparsesel_error* error) {
        const auto r = static_cast<size_t>(rank);
        sparsesel_status status = SPARSESEL_OK;
        for (size_t i = 0; i < calls.size() && status == SPARSESEL_OK; ++i) {
          status = sparsesel_execute(bindings[r], &calls[i][r].io, group.stream(rank), error);
        }
        Synchronize(group.stream(rank));
        return status;
      });
      for (const std::vector<RankArrays>& arrays : calls) {
        CHECK(Compare(job, expected, ReadResults(arrays, outcomes)) == "");
      }
    }
    Release(&bindings);
  }
}

TEST_CASE("race: at most ten control-plane calls, whatever the number of capacities") {
  for (int32_t capacities : {1, 8, 60}) {
    const Group group(2);
    Job job = MakeJob(2, 16, 16, {});
    for (int32_t i = 1; i <= capacities; ++i) job.capacities.push_back(i);
    std::vector<sparsesel_plan*> plans;
    std::vector<sparsesel_report*> reports;
    REQUIRE(AllOk(CreatePlans(group, job, &plans)));
    REQUIRE(AllOk(Prepare(plans)));
    sparsesel_comm_info before = SPARSESEL_COMM_INFO_INIT;
    sparsesel_comm_info after = SPARSESEL_COMM_INFO_INIT;
    REQUIRE(sparsesel_comm_status(group.comm(0), &before, nullptr) == SPARSESEL_OK);
    sparsesel_race_options options = QuickRace();
    options.max_pairs = capacities == 1 ? 128 : 16;
    REQUIRE(AllOk(Race(plans, &reports, &options)));
    REQUIRE(sparsesel_comm_status(group.comm(0), &after, nullptr) == SPARSESEL_OK);
    CHECK(after.control_calls - before.control_calls <= 10);
    CHECK(after.control_calls > before.control_calls);

    // Capacities in between are decided by their neighbours.
    int32_t neighbours = 0;
    for (int32_t i = 0; i < capacities; ++i) {
      sparsesel_outcome outcome = SPARSESEL_OUTCOME_INIT;
      REQUIRE(sparsesel_report_outcome(reports[1], i, &outcome, nullptr) == SPARSESEL_OK);
      CHECK(outcome.capacity == i + 1);
      neighbours += outcome.rule == SPARSESEL_RULE_NEIGHBOUR;
    }
    CHECK((neighbours > 0) == (capacities == 60));
    Release(&reports);
    Release(&plans);
  }
}

// Clocks that the test scripts, per thread: each rank has its own.
struct ScriptedClock {
  int64_t (*next)(int64_t last, Random& random);

  static int64_t Now(void* context) {
    thread_local int64_t last = 1'000'000;
    thread_local Random random(std::hash<std::thread::id>()(std::this_thread::get_id()));
    last = static_cast<const ScriptedClock*>(context)->next(last, random);
    return last;
  }
};

sparsesel_comm_options WithClock(ScriptedClock* clock) {
  sparsesel_comm_options options = ShortLimits(uint64_t{1} << 60, uint64_t{1} << 60);
  options.clock = {clock, ScriptedClock::Now};
  return options;
}

TEST_CASE("race: ranks whose clocks disagree decide alike (E01)", "[host]") {
  ScriptedClock clock{[](int64_t last, Random& random) {
    return last + 1 + static_cast<int64_t>(random() % 300'000);
  }};
  for (int round = 0; round < 10; ++round) {
    const Group group(4, WithClock(&clock));
    const Job job = MakeJob(4, 16, 16, {1, 4});
    sparsesel_race_options options = QuickRace();
    options.time_budget = 3600 * kSecond;
    options.seed = static_cast<uint64_t>(round);
    const Raced raced(group, job, options);
    CheckAgreement(raced, job);
  }
}

TEST_CASE("race: clocks that stand still, go back or jump decide nothing (E17)", "[host]") {
  constexpr int64_t kDay = 86'400'000'000'000;
  ScriptedClock clocks[] = {
      {[](int64_t last, Random&) { return last; }},
      {[](int64_t, Random&) { return int64_t{0}; }},
      {[](int64_t last, Random&) { return last - 1000; }},
      {[](int64_t last, Random&) { return -last; }},
      // Until there is no later time.
      {[](int64_t last, Random&) {
        return last > INT64_MAX - 1000 * kDay ? last : last + 1000 * kDay;
      }},
  };
  for (ScriptedClock& clock : clocks) {
    INFO("clock " << &clock - clocks);
    sparsesel_comm_options options = WithClock(&clock);
    // Limits beyond what this clock shows in a race.
    options.startup_timeout = options.steady_timeout = uint64_t{1} << 62;
    const Group group(3, options);
    const Job job = MakeJob(3, 16, 16, {1, 4});
    sparsesel_race_options race = QuickRace();
    race.time_budget = uint64_t{1} << 62;
    const Raced raced(group, job, race);
    INFO(Describe(raced.outcomes));
    REQUIRE(AllOk(raced.outcomes));
    CheckAgreement(raced, job);
    for (int32_t i : {0, 1}) {
      // Where one execute seems to take years, no sample may fit the budget.
      const bool leaps = &clock == &clocks[4] && raced.At(0, i).pairs == 0;
      CHECK(raced.At(0, i).rule ==
            (leaps ? SPARSESEL_RULE_INCONCLUSIVE : SPARSESEL_RULE_INVALID_TIMING));
      CHECK(raced.At(0, i).winner == SPARSESEL_COMPOSITION_REPLICATED);
    }
  }
}

TEST_CASE("race: one rank's broken clock is enough", "[host]") {
  ScriptedClock clock{[](int64_t last, Random& random) {
    static std::atomic<int> threads{0};
    thread_local const int number = threads++;
    return number % 3 == 1 ? last : last + 1000 + static_cast<int64_t>(random() % 1000);
  }};
  const Group group(3, WithClock(&clock));
  const Job job = MakeJob(3, 16, 16, {2});
  const Raced raced(group, job);
  CheckAgreement(raced, job);
}

TEST_CASE("race: policies keep workloads out") {
  struct Policy {
    const char* name;
    std::function<void(sparsesel_problem*)> set;
    bool raced;
  };
  using P = sparsesel_problem*;
  const std::vector<Policy> policies = {
      {"default", [](P) {}, true},
      {"prefill", [](P p) { p->phase = SPARSESEL_PHASE_PREFILL; }, false},
      {"batched", [](P p) { p->requests = 2; }, false},
      {"dynamic", [](P p) { p->workload = SPARSESEL_WORKLOAD_DYNAMIC_SHAPE; }, false},
      {"no tuning", [](P p) { p->workload = SPARSESEL_WORKLOAD_NO_TUNING; }, false},
      {"collectives", [](P p) { p->workload = SPARSESEL_WORKLOAD_DYNAMIC_COLLECTIVES; }, false},
      {"off", [](P p) { p->race_policy = SPARSESEL_RACE_OFF; }, false},
      {"any static prefill",
       [](P p) { p->race_policy = SPARSESEL_RACE_ANY_STATIC, p->phase = SPARSESEL_PHASE_PREFILL; },
       true},
      {"any static batched",
       [](P p) { p->race_policy = SPARSESEL_RACE_ANY_STATIC, p->requests = 7; }, true},
      {"any static dynamic",
       [](P p) { p->race_policy = SPARSESEL_RACE_ANY_STATIC, p->workload = 1; }, false},
  };
  for (const Policy& policy : policies) {
    INFO(policy.name);
    const Group group(2);
    Job job = MakeJob(2, 16, 16, {2});
    for (sparsesel_problem& problem : job.problems) policy.set(&problem);
    const Raced raced(group, job);
    CheckAgreement(raced, job);
    const sparsesel_outcome outcome = raced.At(0, 0);
    CHECK((outcome.rule == SPARSESEL_RULE_POLICY) == !policy.raced);
    if (policy.raced) continue;
    CHECK(outcome.winner == SPARSESEL_COMPOSITION_REPLICATED);
    CHECK(outcome.replicated_median == 0);
    CHECK(raced.Json(1)["note"] != "");
  }
}

TEST_CASE("race: times on the caller's own input, of all ranks or of none") {
  Job job = MakeJob(2, 8, 16, {1, 4});
  const Batch batch = BatchOfKinds(job, 2, 3);
  const auto race = [&](int32_t with, int32_t without, int64_t bad_stride) {
    const Group group(2);
    std::vector<sparsesel_plan*> plans;
    REQUIRE(AllOk(CreatePlans(group, job, &plans)));
    REQUIRE(AllOk(Prepare(plans)));
    const std::vector<RankArrays> arrays = MakeArrays(job, batch);
    Outcomes outcomes = OnEveryRank(2, [&](int32_t rank, sparsesel_error* error) {
      sparsesel_io io = arrays[static_cast<size_t>(rank)].io;
      io.out_ids = nullptr;
      io.status_word = nullptr;
      if (rank == 1) io.id_stride = bad_stride;
      sparsesel_race_options options = QuickRace();
      if (rank == with || rank != without) options.trial_io = &io;
      sparsesel_report* report = nullptr;
      const sparsesel_status status =
          sparsesel_plan_race(plans[static_cast<size_t>(rank)], &options, &report, error);
      sparsesel_report_release(report, nullptr);
      return status;
    });
    Release(&plans);
    return outcomes;
  };
  CHECK(AllOk(race(0, -1, 0)));
  const Outcomes one_only = race(0, 1, 0);
  INFO(Describe(one_only));
  CHECK(AllAre(one_only, SPARSESEL_MISMATCH));
  const Outcomes bad = race(0, -1, 3);
  INFO(Describe(bad));
  CHECK(AllAre(bad, SPARSESEL_INVALID_ARGUMENT));
  CHECK(bad[0].error.rank == 1);
}

TEST_CASE("race: a composition that is wrong is out on every rank (E15)", "[host]") {
  CustomGroup custom(3);
  REQUIRE(custom.ok());
  const Job job = MakeJob(3, 16, 16, {1, 6});
  std::vector<sparsesel_plan*> plans;
  std::vector<sparsesel_report*> reports;
  REQUIRE(AllOk(CreatePlans(custom.group(), job, &plans)));
  REQUIRE(AllOk(Prepare(plans)));
  custom.faults().wrong_all_to_all = true;
  const sparsesel_race_options options = QuickRace();
  const Outcomes outcomes = Race(plans, &reports, &options);
  INFO(Describe(outcomes));
  REQUIRE(AllOk(outcomes));
  for (sparsesel_report* report : reports) {
    // Capacity 6: every rank owns rows, so the fault is met.
    sparsesel_outcome outcome = SPARSESEL_OUTCOME_INIT;
    REQUIRE(sparsesel_report_outcome(report, 1, &outcome, nullptr) == SPARSESEL_OK);
    CHECK(outcome.owner_exact == 0);
    CHECK(outcome.replicated_exact == 1);
    CHECK(outcome.rule == SPARSESEL_RULE_ONLY_EXACT);
    CHECK(outcome.winner == SPARSESEL_COMPOSITION_REPLICATED);
  }
  Release(&reports);
  Release(&plans);
}

TEST_CASE("race: progress goes from 0 to 1 on the calling thread") {
  struct Progress {
    std::thread::id thread;
    double last = -1;
    int steps = 0;
    int wrong = 0;
  };
  const auto step = [](void* context, double fraction, const char* text) {
    auto* const progress = static_cast<Progress*>(context);
    ++progress->steps;
    progress->wrong += std::this_thread::get_id() != progress->thread || fraction < 0 ||
                       fraction > 1 || fraction < progress->last || text == nullptr;
    progress->last = fraction;
  };
  const Group group(2);
  const Job job = MakeJob(2, 16, 16, {1, 2});
  std::vector<sparsesel_plan*> plans;
  REQUIRE(AllOk(CreatePlans(group, job, &plans)));
  for (bool race : {false, true}) {
    std::vector<Progress> progress(2);
    const Outcomes outcomes = OnEveryRank(2, [&](int32_t rank, sparsesel_error* error) {
      const auto r = static_cast<size_t>(rank);
      progress[r].thread = std::this_thread::get_id();
      sparsesel_prepare_options prepare = SPARSESEL_PREPARE_OPTIONS_INIT;
      prepare.progress = {&progress[r], step};
      prepare.time_budget = 10 * kMillisecond;
      sparsesel_race_options options = QuickRace();
      options.progress = {&progress[r], step};
      sparsesel_report* report = nullptr;
      const sparsesel_status status = race ? sparsesel_plan_race(plans[r], &options, &report, error)
                                           : sparsesel_plan_prepare(plans[r], &prepare, error);
      sparsesel_report_release(report, nullptr);
      return status;
    });
    CHECK(AllOk(outcomes));
    for (const Progress& p : progress) {
      CHECK(p.steps > 0);
      CHECK(p.wrong == 0);
    }
  }
  Release(&plans);
}

TEST_CASE("race: its time budget caps it") {
  const Group group(2);
  const Job job = MakeJob(2, 512, 2048, {1, 2, 4, 8, 16, 32, 64});
  sparsesel_race_options options = QuickRace();
  options.time_budget = 300 * kMillisecond;
  options.max_pairs = 128;
  std::vector<sparsesel_plan*> plans;
  std::vector<sparsesel_report*> reports;
  REQUIRE(AllOk(CreatePlans(group, job, &plans)));
  REQUIRE(AllOk(Prepare(plans)));
  const auto begin = std::chrono::steady_clock::now();
  REQUIRE(AllOk(Race(plans, &reports, &options)));
  // The measuring; correctness and holdouts come on top, on a machine that does other things, too.
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(kSanitized ? 60 : 20));
  Release(&reports);
  Release(&plans);
}

}  // namespace
}  // namespace contract
