// A rank that is missing, does something else, or gives up: every other one is told, within its
// limit, and the group can be made anew.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "contract/batch.h"
#include "contract/custom_group.h"
#include "contract/rows.h"

namespace contract {
namespace {

constexpr uint64_t kLimit = 200 * kMillisecond;
// What a loaded machine may add to a limit.
constexpr std::chrono::seconds kPatience(15);

using Clock = std::chrono::steady_clock;

// One execute of one rank, with arrays of its own.
sparsesel_status ExecuteSmall(sparsesel_binding* binding, int32_t rows, sparsesel_error* error,
                              uint64_t tag = 0, const int32_t* active_rows = nullptr) {
  std::vector<float> scores(16 * 16);
  std::vector<int32_t> ids(16 * 16);
  std::vector<int32_t> out(16 * 8);
  sparsesel_io io = SPARSESEL_IO_INIT;
  io.rows = rows;
  io.scores = scores.data();
  io.ids = ids.data();
  io.out_ids = out.data();
  io.tag = tag;
  io.active_rows = active_rows;
  return sparsesel_execute(binding, &io, nullptr, error);
}

Job SmallJob(int32_t world, int32_t composition) {
  Job job = MakeJob(world, 8, 16, {2, 16});
  job.composition = composition;
  return job;
}

bool HasFailed(const Group& group) {
  for (int32_t rank = 0; rank < group.world(); ++rank) {
    if (sparsesel_comm_status(group.comm(rank), nullptr, nullptr) == SPARSESEL_OK) return false;
  }
  return true;
}

// One execute of each rank, with arrays that are there before any rank executes.
class Calls {
 public:
  Calls(const Group& group, const Bound& bound, const Job& job, int32_t rows = 3)
      : group_(group), bound_(bound), arrays_(MakeArrays(job, BatchOfKinds(job, rows, 1))) {}

  sparsesel_status Make(int32_t rank, sparsesel_error* error) const {
    const sparsesel_status status =
        ExecuteAndWait(bound_.binding(rank), At(rank), bound_.stream(rank), error);
    if (kOnDevice && status != SPARSESEL_OK) {
      // The status word says no more than this.
      sparsesel_comm_info info = SPARSESEL_COMM_INFO_INIT;
      sparsesel_comm_status(group_.comm(rank), &info, nullptr);
      error->rank = info.failed_rank;
    }
    return status;
  }
  // After a device's wait has failed.
  bool IsEmpty(int32_t rank) const {
    const RankOutput output = At(rank).Read();
    return output.stray.empty() &&
           std::all_of(output.ids.begin(), output.ids.end(), [](int32_t id) { return id == -1; });
  }

 private:
  const RankArrays& At(int32_t rank) const { return arrays_[static_cast<size_t>(rank)]; }

  const Group& group_;
  const Bound& bound_;
  const std::vector<RankArrays> arrays_;
};

// Whether a group can be made and used after another one failed.
void CheckFreshGroup(int32_t world) {
  const Group group(world);
  const Job job = SmallJob(world, SPARSESEL_COMPOSITION_OWNER);
  const Bound bound(group, job);
  REQUIRE(bound.ok());
  CHECK(Check(bound, job, BatchOfKinds(job, 5, 1)) == "");
}

TEST_CASE("failures: execute without a peer ends by the limit, on all ranks") {
  for (int32_t composition : {SPARSESEL_COMPOSITION_REPLICATED, SPARSESEL_COMPOSITION_OWNER}) {
    for (int32_t missing : {0, 2}) {
      const Group group(3, ShortLimits(30 * kSecond, kLimit));
      const Job job = SmallJob(3, composition);
      const Bound bound(group, job);
      REQUIRE(bound.ok());
      const Calls calls(group, bound, job);
      const auto begin = Clock::now();
      const Outcomes outcomes = OnEveryRank(3, [&](int32_t rank, sparsesel_error* error) {
        if (rank == missing) return sparsesel_status{SPARSESEL_TIMEOUT};
        return calls.Make(rank, error);
      });
      INFO(Describe(outcomes));
      CHECK(Clock::now() - begin >= std::chrono::nanoseconds(kLimit) / 2);
      CHECK(Clock::now() - begin < kPatience);
      for (int32_t rank = 0; rank < 3; ++rank) {
        const Outcome& outcome = outcomes[static_cast<size_t>(rank)];
        if (rank == missing) continue;
        CHECK((outcome.status == SPARSESEL_TIMEOUT || outcome.status == SPARSESEL_PEER_FAILED));
        CHECK(outcome.error.rank == missing);
        if (kOnDevice) CHECK(calls.IsEmpty(rank));
      }
      CHECK(HasFailed(group));
      // Nobody waits a second time; the rank that was late is told, too.
      const auto again = Clock::now();
      const Outcomes later = OnEveryRank(
          3, [&](int32_t rank, sparsesel_error* error) { return calls.Make(rank, error); });
      INFO(Describe(later));
      CHECK(Clock::now() - again < kPatience);
      for (const Outcome& outcome : later) {
        CHECK((outcome.status == SPARSESEL_TIMEOUT || outcome.status == SPARSESEL_PEER_FAILED));
      }
      sparsesel_stats stats = SPARSESEL_STATS_INIT;
      REQUIRE(sparsesel_binding_stats(bound.binding(1), &stats, nullptr) == SPARSESEL_OK);
      // On a device the first was launched, and failed later.
      CHECK(stats.failures == (kOnDevice ? 1 : 2));
    }
    CheckFreshGroup(3);
  }
}

// What every rank but one calls, in turn.
using Step = std::function<sparsesel_status(int32_t rank, sparsesel_error* error)>;

void CheckMissingPeer(const Group& group, const Step& step) {
  const auto begin = Clock::now();
  const Outcomes outcomes = OnEveryRank(group.world(), [&](int32_t rank, sparsesel_error* error) {
    return rank == 1 ? sparsesel_status{SPARSESEL_TIMEOUT} : step(rank, error);
  });
  INFO(Describe(outcomes));
  CHECK(Clock::now() - begin < kPatience);
  for (size_t rank : {0, 2}) {
    CHECK((outcomes[rank].status == SPARSESEL_TIMEOUT ||
           outcomes[rank].status == SPARSESEL_PEER_FAILED));
    CHECK(outcomes[rank].error.rank == 1);
    CHECK(outcomes[rank].text() != "");
  }
  CHECK(HasFailed(group));
}

TEST_CASE("failures: every collective call without a peer ends by the limit") {
  const Job job = SmallJob(3, SPARSESEL_COMPOSITION_AUTO);
  SECTION("workspace_create") {
    const Group group(3, ShortLimits(kLimit));
    std::vector<sparsesel_workspace*> made(3, nullptr);
    CheckMissingPeer(group, [&](int32_t rank, sparsesel_error* error) {
      return sparsesel_workspace_create(group.comm(rank), nullptr, &made[static_cast<size_t>(rank)],
                                        error);
    });
    CHECK(made == std::vector<sparsesel_workspace*>(3, nullptr));
  }
  SECTION("plan_prepare") {
    const Group group(3, ShortLimits(kLimit));
    std::vector<sparsesel_plan*> plans;
    REQUIRE(AllOk(CreatePlans(group, job, &plans)));
    CheckMissingPeer(group, [&](int32_t rank, sparsesel_error* error) {
      return sparsesel_plan_prepare(plans[static_cast<size_t>(rank)], nullptr, error);
    });
    Release(&plans);
  }
  SECTION("plan_race and plan_bind") {
    for (bool race : {false, true}) {
      const Group group(3);
      std::vector<sparsesel_plan*> plans;
      REQUIRE(AllOk(CreatePlans(group, job, &plans)));
      REQUIRE(AllOk(Prepare(plans)));
      for (int32_t rank = 0; rank < 3; ++rank) {
        REQUIRE(sparsesel_comm_set_timeouts(group.comm(rank), kLimit, 0, nullptr) == SPARSESEL_OK);
      }
      CheckMissingPeer(group, [&](int32_t rank, sparsesel_error* error) {
        sparsesel_plan* const plan = plans[static_cast<size_t>(rank)];
        sparsesel_report* report = nullptr;
        sparsesel_binding* binding = nullptr;
        return race ? sparsesel_plan_race(plan, nullptr, &report, error)
                    : sparsesel_plan_bind(plan, nullptr, 0, &binding, error);
      });
      Release(&plans);
    }
  }
  CheckFreshGroup(3);
}

bool Says(const Outcomes& outcomes, const std::string& word) {
  for (const Outcome& outcome : outcomes) {
    if (outcome.text().find(word) == std::string::npos) return false;
  }
  return true;
}

TEST_CASE("failures: problems that must be equal and are not, named with both values") {
  struct Difference {
    const char* name;
    const char* value;
    std::function<void(sparsesel_problem*)> change;
  };
  using P = sparsesel_problem*;
  const std::vector<Difference> differences = {
      {"k", "9", [](P p) { p->k = 9; }},
      {"output_order", "1", [](P p) { p->output_order = 1; }},
      {"outputs", "2", [](P p) { p->outputs = 2; }},
      {"output_scope", "1", [](P p) { p->output_scope = 1; }},
      {"phase", "1", [](P p) { p->phase = 1; }},
      {"requests", "5", [](P p) { p->requests = 5; }},
      {"workload", "2", [](P p) { p->workload = 2; }},
      {"race_policy", "2", [](P p) { p->race_policy = 2; }},
  };
  for (const Difference& difference : differences) {
    const Group group(3);
    Job job = SmallJob(3, SPARSESEL_COMPOSITION_AUTO);
    difference.change(&job.problems[2]);
    const Bound bound(group, job);
    INFO(difference.name << "\n" << Describe(bound.outcomes()));
    CHECK(AllAre(bound.outcomes(), SPARSESEL_MISMATCH));
    CHECK(Says(bound.outcomes(), difference.name));
    CHECK(Says(bound.outcomes(), difference.value));
    CHECK(bound.outcomes()[0].error.rank == 2);
  }
  // Capacities, of which each rank has its own list.
  const Group group(2);
  std::vector<sparsesel_plan*> plans(2, nullptr);
  const int32_t capacities[] = {1, 2, 3};
  for (int32_t rank = 0; rank < 2; ++rank) {
    sparsesel_problem problem = SPARSESEL_PROBLEM_INIT;
    problem.k = 8;
    problem.capacities = capacities + rank;
    problem.capacity_count = 2;
    REQUIRE(sparsesel_plan_create(group.comm(rank), &problem, &plans[static_cast<size_t>(rank)],
                                  nullptr) == SPARSESEL_OK);
  }
  const Outcomes outcomes = Prepare(plans);
  CHECK(AllAre(outcomes, SPARSESEL_MISMATCH));
  CHECK(Says(outcomes, "capacit"));
  Release(&plans);
}

TEST_CASE("failures: different calls at once are a mismatch on all ranks") {
  const Job job = SmallJob(2, SPARSESEL_COMPOSITION_AUTO);
  const Group group(2);
  std::vector<sparsesel_plan*> plans;
  REQUIRE(AllOk(CreatePlans(group, job, &plans)));
  const Outcomes outcomes = OnEveryRank(2, [&](int32_t rank, sparsesel_error* error) {
    sparsesel_workspace* workspace = nullptr;
    return rank == 0 ? sparsesel_plan_prepare(plans[0], nullptr, error)
                     : sparsesel_workspace_create(group.comm(1), nullptr, &workspace, error);
  });
  INFO(Describe(outcomes));
  CHECK(AllAre(outcomes, SPARSESEL_MISMATCH));
  CHECK(Says(outcomes, "prepare"));
  CHECK(Says(outcomes, "workspace"));
  Release(&plans);
  CheckFreshGroup(2);
}

TEST_CASE("failures: options of prepare, race and bind that differ are a mismatch") {
  const Job job = SmallJob(2, SPARSESEL_COMPOSITION_AUTO);
  {
    const Group group(2);
    std::vector<sparsesel_plan*> plans;
    REQUIRE(AllOk(CreatePlans(group, job, &plans)));
    const Outcomes outcomes = OnEveryRank(2, [&](int32_t rank, sparsesel_error* error) {
      sparsesel_prepare_options options = SPARSESEL_PREPARE_OPTIONS_INIT;
      options.child_plans = rank == 0   ? kOnDevice ? "peer.push" : "pack.plain"
                            : kOnDevice ? "peer.fused"
                                        : "pack.sorted";
      return sparsesel_plan_prepare(plans[static_cast<size_t>(rank)], &options, error);
    });
    INFO(Describe(outcomes));
    CHECK(AllAre(outcomes, SPARSESEL_MISMATCH));
    Release(&plans);
  }
  {
    const Group group(2);
    std::vector<sparsesel_plan*> plans;
    REQUIRE(AllOk(CreatePlans(group, job, &plans)));
    REQUIRE(AllOk(Prepare(plans)));
    const Outcomes raced = OnEveryRank(2, [&](int32_t rank, sparsesel_error* error) {
      sparsesel_race_options options = SPARSESEL_RACE_OPTIONS_INIT;
      options.seed = static_cast<uint64_t>(rank);
      sparsesel_report* report = nullptr;
      return sparsesel_plan_race(plans[static_cast<size_t>(rank)], &options, &report, error);
    });
    INFO(Describe(raced));
    CHECK(AllAre(raced, SPARSESEL_MISMATCH));
    const Outcomes bound = OnEveryRank(2, [&](int32_t rank, sparsesel_error* error) {
      sparsesel_binding* binding = nullptr;
      return sparsesel_plan_bind(
          plans[static_cast<size_t>(rank)], nullptr,
          rank == 0 ? SPARSESEL_COMPOSITION_OWNER : SPARSESEL_COMPOSITION_REPLICATED, &binding,
          error);
    });
    INFO(Describe(bound));
    CHECK(AllAre(bound, SPARSESEL_MISMATCH));
    Release(&plans);
  }
}

TEST_CASE("failures: executes that differ are a mismatch, and leave the group as it was",
          "[host]") {
  for (int32_t composition : {SPARSESEL_COMPOSITION_REPLICATED, SPARSESEL_COMPOSITION_OWNER}) {
    const Group group(3);
    const Job job = SmallJob(3, composition);
    const Bound bound(group, job);
    const Bound other(group, job);
    REQUIRE(bound.ok());
    REQUIRE(other.ok());
    const int32_t active[] = {1, 2};
    const std::vector<std::pair<const char*, Step>> differences = {
        {"rows",
         [&](int32_t rank, sparsesel_error* error) {
           return ExecuteSmall(bound.binding(rank), rank == 2 ? 4 : 3, error);
         }},
        {"rows",
         [&](int32_t rank, sparsesel_error* error) {
           return ExecuteSmall(bound.binding(rank), rank == 0 ? 0 : 3, error);
         }},
        {"active",
         [&](int32_t rank, sparsesel_error* error) {
           return ExecuteSmall(bound.binding(rank), 3, error, 0, &active[rank == 1 ? 1 : 0]);
         }},
        {"tag",
         [&](int32_t rank, sparsesel_error* error) {
           return ExecuteSmall(bound.binding(rank), 3, error, rank == 1 ? 77 : 5);
         }},
    };
    for (const auto& [name, step] : differences) {
      const Outcomes outcomes = OnEveryRank(3, step);
      INFO(name << "\n" << Describe(outcomes));
      CHECK(AllAre(outcomes, SPARSESEL_MISMATCH));
      CHECK(Says(outcomes, name));
      CHECK(Check(bound, job, BatchOfKinds(job, 3, 1)) == "");
    }
    CHECK_FALSE(HasFailed(group));
  }
}

TEST_CASE("failures: two bindings in one workspace that meet are a mismatch", "[host]") {
  const Group group(2);
  std::vector<sparsesel_workspace*> workspaces(2, nullptr);
  REQUIRE(AllOk(OnEveryRank(2, [&](int32_t rank, sparsesel_error* error) {
    return sparsesel_workspace_create(group.comm(rank), nullptr,
                                      &workspaces[static_cast<size_t>(rank)], error);
  })));
  const Job replicated = SmallJob(2, SPARSESEL_COMPOSITION_REPLICATED);
  const Job owner = SmallJob(2, SPARSESEL_COMPOSITION_OWNER);
  const Bound first(group, replicated, workspaces.data());
  const Bound second(group, owner, workspaces.data());
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  const Outcomes outcomes = OnEveryRank(2, [&](int32_t rank, sparsesel_error* error) {
    return ExecuteSmall(rank == 0 ? first.binding(0) : second.binding(1), 2, error);
  });
  INFO(Describe(outcomes));
  CHECK(AllAre(outcomes, SPARSESEL_MISMATCH));
  CHECK(Check(first, replicated, BatchOfKinds(replicated, 2, 1)) == "");
  CHECK(Check(second, owner, BatchOfKinds(owner, 2, 1)) == "");
  for (sparsesel_workspace* workspace : workspaces) sparsesel_workspace_release(workspace, nullptr);
}

TEST_CASE("failures: abort frees every waiter, from any thread, in execute and in start-up") {
  for (bool in_execute : {false, true}) {
    const uint64_t beyond = (kOnDevice ? 20 : 60) * kSecond;
    const Group group(3, ShortLimits(beyond, beyond));
    const Job job = SmallJob(3, SPARSESEL_COMPOSITION_OWNER);
    const Bound bound(group, job);
    REQUIRE(bound.ok());
    const Calls calls(group, bound, job);
    std::vector<sparsesel_plan*> plans;
    REQUIRE(AllOk(CreatePlans(group, job, &plans)));
    const auto begin = Clock::now();
    std::thread aborter([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      CHECK_NOTHROW(sparsesel_comm_abort(group.comm(1), nullptr));
    });
    const Outcomes outcomes = OnEveryRank(3, [&](int32_t rank, sparsesel_error* error) {
      if (rank == 2) return sparsesel_status{SPARSESEL_ABORTED};  // never comes
      return in_execute ? calls.Make(rank, error)
                        : sparsesel_plan_prepare(plans[static_cast<size_t>(rank)], nullptr, error);
    });
    aborter.join();
    INFO(Describe(outcomes));
    CHECK(Clock::now() - begin < kPatience);
    CHECK(AllAre(outcomes, SPARSESEL_ABORTED));
    CHECK(sparsesel_comm_abort(group.comm(1), nullptr) == SPARSESEL_OK);
    CHECK(sparsesel_comm_abort(group.comm(0), nullptr) == SPARSESEL_OK);
    sparsesel_comm_info info = SPARSESEL_COMM_INFO_INIT;
    CHECK(sparsesel_comm_status(group.comm(2), &info, nullptr) == SPARSESEL_ABORTED);
    CHECK(info.status == SPARSESEL_ABORTED);
    // Whatever comes later, on any rank.
    CHECK(AllAre(OnEveryRank(3, [&](int32_t rank,
                                    sparsesel_error* error) { return calls.Make(rank, error); }),
                 SPARSESEL_ABORTED));
    CHECK(AllAre(Prepare(plans), SPARSESEL_ABORTED));
    Release(&plans);
  }
  CheckFreshGroup(3);
}

TEST_CASE("failures: an aborted idle group is aborted for all its objects") {
  const Group group(2);
  const Job job = SmallJob(2, SPARSESEL_COMPOSITION_REPLICATED);
  const Bound bound(group, job);
  REQUIRE(bound.ok());
  CHECK(Check(bound, job, BatchOfKinds(job, 2, 1)) == "");
  CHECK(sparsesel_comm_abort(group.comm(0), nullptr) == SPARSESEL_OK);
  const Results results = Execute(bound, job, BatchOfKinds(job, 2, 1));
  CHECK(AllAre(results.outcomes, SPARSESEL_ABORTED));
}

TEST_CASE("failures: a late rank within the limit is waited for") {
  const Group group(2, ShortLimits(30 * kSecond, 20 * kSecond));
  const Job job = SmallJob(2, SPARSESEL_COMPOSITION_OWNER);
  const Bound bound(group, job);
  REQUIRE(bound.ok());
  const Calls calls(group, bound, job);
  const Outcomes outcomes = OnEveryRank(2, [&](int32_t rank, sparsesel_error* error) {
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return calls.Make(rank, error);
  });
  INFO(Describe(outcomes));
  CHECK(AllOk(outcomes));
  if (kOnDevice) return;  // which does not tell for whom it waited
  sparsesel_stats stats = SPARSESEL_STATS_INIT;
  REQUIRE(sparsesel_binding_stats(bound.binding(0), &stats, nullptr) == SPARSESEL_OK);
  CHECK(stats.wait[1] > 30 * kMillisecond);
}

TEST_CASE("failures: a transport that fails on one rank fails the group on all", "[host]") {
  for (int32_t composition : {SPARSESEL_COMPOSITION_REPLICATED, SPARSESEL_COMPOSITION_OWNER}) {
    for (int64_t call = 0; call < 3; ++call) {
      CustomGroup custom(3, {.steady_timeout = kLimit});
      REQUIRE(custom.ok());
      const Job job = SmallJob(3, composition);
      const Bound bound(custom.group(), job);
      INFO(Describe(bound.outcomes()));
      REQUIRE(bound.ok());
      custom.faults().calls_until_failure = call;
      custom.faults().failing_rank = 1;
      const auto begin = Clock::now();
      bool failed = false;
      for (int i = 0; i < 4 && !failed; ++i) {
        const Outcomes outcomes = OnEveryRank(3, [&](int32_t rank, sparsesel_error* error) {
          return ExecuteSmall(bound.binding(rank), 3, error);
        });
        INFO(Describe(outcomes));
        failed = !AllOk(outcomes);
        if (failed) CHECK(outcomes[1].status == SPARSESEL_IO);
      }
      CHECK(failed);
      CHECK(Clock::now() - begin < kPatience);
      // The ranks that had finished hear of it the next time.
      const Outcomes later = OnEveryRank(3, [&](int32_t rank, sparsesel_error* error) {
        return ExecuteSmall(bound.binding(rank), 3, error);
      });
      INFO(Describe(later));
      for (const Outcome& outcome : later) CHECK(outcome.status != SPARSESEL_OK);
    }
  }
}

}  // namespace
}  // namespace contract
