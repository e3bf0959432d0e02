// The phases of a plan, handles after their end, and what outlives what.
#include <catch2/catch.hpp>
#include <thread>

#include "contract/batch.h"
#include "contract/rows.h"

namespace contract {
namespace {

#define CHECK_ALL(outcomes, expected)     \
  do {                                    \
    const Outcomes checked_ = (outcomes); \
    INFO(Describe(checked_));             \
    CHECK(AllAre(checked_, expected));    \
  } while (false)

TEST_CASE("lifecycle: each phase only in its turn, and misuse leaves the plan as it was") {
  const Group group(2);
  const Job job = MakeJob(2, 8, 16, {2});
  std::vector<sparsesel_plan*> plans;
  std::vector<sparsesel_report*> reports;
  std::vector<sparsesel_binding*> bindings;
  CHECK_ALL(CreatePlans(group, job, &plans), SPARSESEL_OK);

  CHECK_ALL(Race(plans, &reports), SPARSESEL_INVALID_STATE);
  CHECK(reports[0] == nullptr);
  CHECK_ALL(Bind(plans, SPARSESEL_COMPOSITION_AUTO, &bindings), SPARSESEL_INVALID_STATE);
  CHECK(bindings[0] == nullptr);
  CHECK_ALL(Prepare(plans), SPARSESEL_OK);
  CHECK_ALL(Prepare(plans), SPARSESEL_INVALID_STATE);
  CHECK_ALL(Race(plans, &reports), SPARSESEL_OK);
  std::vector<sparsesel_report*> second;
  CHECK_ALL(Race(plans, &second), SPARSESEL_INVALID_STATE);
  CHECK_ALL(Prepare(plans), SPARSESEL_INVALID_STATE);
  for (int32_t composition : {SPARSESEL_COMPOSITION_AUTO, SPARSESEL_COMPOSITION_REPLICATED,
                              SPARSESEL_COMPOSITION_OWNER}) {
    CHECK_ALL(Bind(plans, composition, &bindings), SPARSESEL_OK);
    Release(&bindings);
  }
  Release(&reports);
  Release(&plans);
}

TEST_CASE("lifecycle: a plan that was bound is not raced any more") {
  const Group group(2);
  const Job job = MakeJob(2, 8, 16, {2});
  const Bound bound(group, job);
  REQUIRE(bound.ok());
  std::vector<sparsesel_report*> reports;
  CHECK_ALL(Race({bound.plan(0), bound.plan(1)}, &reports), SPARSESEL_INVALID_STATE);
  CHECK(Check(bound, job, BatchOfKinds(job, 2, 1)) == "");
}

TEST_CASE("lifecycle: a binding outlives plan, comm and workspace, and a report all") {
  const Job job = MakeJob(3, 8, 16, {4});
  Group group(3);
  std::vector<sparsesel_workspace*> workspaces(3, nullptr);
  CHECK_ALL(OnEveryRank(3,
                        [&](int32_t rank, sparsesel_error* error) {
                          return sparsesel_workspace_create(group.comm(rank), nullptr,
                                                            &workspaces[static_cast<size_t>(rank)],
                                                            error);
                        }),
            SPARSESEL_OK);
  std::vector<sparsesel_plan*> plans;
  std::vector<sparsesel_report*> reports;
  std::vector<sparsesel_binding*> bindings;
  REQUIRE(AllOk(CreatePlans(group, job, &plans)));
  REQUIRE(AllOk(Prepare(plans)));
  REQUIRE(AllOk(Race(plans, &reports)));
  REQUIRE(AllOk(Bind(plans, SPARSESEL_COMPOSITION_OWNER, &bindings, workspaces.data())));
  Release(&plans);
  group.Release();
  for (sparsesel_workspace* workspace : workspaces) {
    CHECK(sparsesel_workspace_release(workspace, nullptr) == SPARSESEL_OK);
  }

  const Batch batch = BatchOfKinds(job, 2, 1);
  for (int round = 0; round < 3; ++round) {
    const std::vector<RankArrays> arrays = MakeArrays(job, batch);
    const Outcomes outcomes = OnEveryRank(3, [&](int32_t rank, sparsesel_error* error) {
      const auto r = static_cast<size_t>(rank);
      return ExecuteAndWait(bindings[r], arrays[r], group.stream(rank), error);
    });
    CHECK(Compare(job, ExpectRows(job, batch), ReadResults(arrays, outcomes)) == "");
  }
  CHECK(sparsesel_report_size(reports[0]) == 1);
  Release(&bindings);
  CHECK(TextOf(sparsesel_report_json, reports[1]).find("\"capacity\"") != std::string::npos);
  Release(&reports);
}

TEST_CASE("lifecycle: released, copied and forged handles are refused") {
  Group group(1);
  const Job job = MakeJob(1, 4, 4, {1});
  std::vector<sparsesel_plan*> plans;
  std::vector<sparsesel_report*> reports;
  std::vector<sparsesel_binding*> bindings;
  REQUIRE(AllOk(CreatePlans(group, job, &plans)));
  REQUIRE(AllOk(Prepare(plans)));
  REQUIRE(AllOk(Race(plans, &reports)));
  REQUIRE(AllOk(Bind(plans, SPARSESEL_COMPOSITION_AUTO, &bindings)));
  sparsesel_comm* const comm = group.comm(0);
  sparsesel_plan* const plan = plans[0];
  sparsesel_report* const report = reports[0];
  sparsesel_binding* const binding = bindings[0];

  // Of another type: its number is no plan's.
  CHECK(sparsesel_plan_release(reinterpret_cast<sparsesel_plan*>(binding), nullptr) ==
        SPARSESEL_INVALID_ARGUMENT);
  Release(&bindings);
  Release(&reports);
  Release(&plans);
  group.Release();

  sparsesel_error error = SPARSESEL_ERROR_INIT;
  sparsesel_io io = SPARSESEL_IO_INIT;
  sparsesel_stats stats = SPARSESEL_STATS_INIT;
  sparsesel_memory memory = SPARSESEL_MEMORY_INIT;
  sparsesel_outcome outcome = SPARSESEL_OUTCOME_INIT;
  sparsesel_binding* new_binding = nullptr;
  sparsesel_plan* new_plan = nullptr;
  sparsesel_problem problem = SPARSESEL_PROBLEM_INIT;
  size_t needed = 0;
  CHECK(sparsesel_execute(binding, &io, nullptr, &error) == SPARSESEL_INVALID_ARGUMENT);
  CHECK(error.status == SPARSESEL_INVALID_ARGUMENT);
  CHECK(error.text[0] != '\0');
  CHECK(sparsesel_binding_stats(binding, &stats, nullptr) == SPARSESEL_INVALID_ARGUMENT);
  CHECK(sparsesel_binding_json(binding, nullptr, 0, &needed, nullptr) ==
        SPARSESEL_INVALID_ARGUMENT);
  CHECK(sparsesel_binding_release(binding, nullptr) == SPARSESEL_INVALID_ARGUMENT);
  CHECK(sparsesel_plan_memory(plan, &memory, nullptr) == SPARSESEL_INVALID_ARGUMENT);
  CHECK(sparsesel_plan_prepare(plan, nullptr, nullptr) == SPARSESEL_INVALID_ARGUMENT);
  CHECK(sparsesel_plan_bind(plan, nullptr, 0, &new_binding, nullptr) == SPARSESEL_INVALID_ARGUMENT);
  CHECK(sparsesel_plan_release(plan, nullptr) == SPARSESEL_INVALID_ARGUMENT);
  CHECK(sparsesel_report_size(report) == 0);
  CHECK(sparsesel_report_outcome(report, 0, &outcome, nullptr) == SPARSESEL_INVALID_ARGUMENT);
  CHECK(sparsesel_report_json(report, nullptr, 0, &needed, nullptr) == SPARSESEL_INVALID_ARGUMENT);
  CHECK(sparsesel_report_release(report, nullptr) == SPARSESEL_INVALID_ARGUMENT);
  CHECK(sparsesel_comm_status(comm, nullptr, nullptr) == SPARSESEL_INVALID_ARGUMENT);
  CHECK(sparsesel_comm_abort(comm, nullptr) == SPARSESEL_INVALID_ARGUMENT);
  CHECK(sparsesel_plan_create(comm, &problem, &new_plan, nullptr) == SPARSESEL_INVALID_ARGUMENT);
  CHECK(sparsesel_comm_release(comm, nullptr) == SPARSESEL_INVALID_ARGUMENT);

  for (uint64_t forged :
       {uint64_t{1}, uint64_t{4096}, ~uint64_t{0}, uint64_t{0x5e10000000000000}}) {
    auto* const handle = reinterpret_cast<sparsesel_binding*>(forged);
    CHECK(sparsesel_execute(handle, &io, nullptr, nullptr) == SPARSESEL_INVALID_ARGUMENT);
    CHECK(sparsesel_binding_release(handle, nullptr) == SPARSESEL_INVALID_ARGUMENT);
  }
  // And NULL does nothing where it is released.
  CHECK(sparsesel_binding_release(nullptr, nullptr) == SPARSESEL_OK);
  CHECK(sparsesel_plan_release(nullptr, nullptr) == SPARSESEL_OK);
  CHECK(sparsesel_report_release(nullptr, nullptr) == SPARSESEL_OK);
  CHECK(sparsesel_workspace_release(nullptr, nullptr) == SPARSESEL_OK);
  CHECK(sparsesel_comm_release(nullptr, nullptr) == SPARSESEL_OK);
  CHECK(sparsesel_execute(nullptr, &io, nullptr, nullptr) == SPARSESEL_INVALID_ARGUMENT);
}

TEST_CASE("lifecycle: bindings may share a workspace, and take turns in it") {
  const Group group(3);
  std::vector<sparsesel_workspace*> workspaces(3, nullptr);
  sparsesel_workspace_options options = SPARSESEL_WORKSPACE_OPTIONS_INIT;
  options.slots = 2;
  REQUIRE(AllOk(OnEveryRank(3, [&](int32_t rank, sparsesel_error* error) {
    return sparsesel_workspace_create(group.comm(rank), &options,
                                      &workspaces[static_cast<size_t>(rank)], error);
  })));
  Job small = MakeJob(3, 8, 16, {2});
  Job large = MakeJob(3, 500, 300, {9});
  large.composition = SPARSESEL_COMPOSITION_OWNER;
  const Bound first(group, small, workspaces.data());
  REQUIRE(first.ok());
  CHECK(Check(first, small, BatchOfKinds(small, 2, 1)) == "");
  const Bound second(group, large, workspaces.data());  // needs more memory than there was
  REQUIRE(second.ok());
  for (uint64_t round = 0; round < 5; ++round) {
    CHECK(Check(second, large, BatchOfKinds(large, 9, round)) == "");
    CHECK(Check(first, small, BatchOfKinds(small, 2, round)) == "");
  }
  for (sparsesel_workspace* workspace : workspaces) sparsesel_workspace_release(workspace, nullptr);
}

TEST_CASE("lifecycle: a workspace of another group is refused on all ranks") {
  const Group group(2);
  const Group other(2);
  std::vector<sparsesel_workspace*> workspaces(2, nullptr);
  REQUIRE(AllOk(OnEveryRank(2, [&](int32_t rank, sparsesel_error* error) {
    return sparsesel_workspace_create(other.comm(rank), nullptr,
                                      &workspaces[static_cast<size_t>(rank)], error);
  })));
  const Bound bound(group, MakeJob(2, 4, 4, {1}), workspaces.data());
  CHECK_ALL(bound.outcomes(), SPARSESEL_INVALID_ARGUMENT);
  for (sparsesel_workspace* workspace : workspaces) sparsesel_workspace_release(workspace, nullptr);
}

TEST_CASE("lifecycle: execute counts, and says what is bound") {
  const Group group(2);
  const Job job = MakeJob(2, 8, 16, {1, 4});
  const Bound bound(group, job);
  REQUIRE(bound.ok());
  for (int i = 0; i < 3; ++i) CHECK(Check(bound, job, BatchOfKinds(job, 4, 1)) == "");
  Batch too_many = BatchOfKinds(job, 5, 1);
  CHECK_ALL(Execute(bound, job, too_many).outcomes, SPARSESEL_INVALID_ARGUMENT);
  sparsesel_stats stats = SPARSESEL_STATS_INIT;
  REQUIRE(sparsesel_binding_stats(bound.binding(1), &stats, nullptr) == SPARSESEL_OK);
  CHECK(stats.world_size == 2);
  CHECK(stats.executes == 4);
  CHECK(stats.failures == 1);
  CHECK(stats.timeouts == 0);
  const std::string text = TextOf(sparsesel_binding_json, bound.binding(0));
  CHECK(text.find("replicated") != std::string::npos);
  CHECK(text.find(kOnDevice ? "peer." : "select.") != std::string::npos);
}

TEST_CASE("lifecycle: a group of every size comes and goes, many times") {
  for (int32_t world : {1, 2, kOnDevice ? 16 : 64}) {
    for (int i = 0; i < 20; ++i) {
      const Group group(world);
      sparsesel_comm_info info = SPARSESEL_COMM_INFO_INIT;
      REQUIRE(sparsesel_comm_status(group.comm(world - 1), &info, nullptr) == SPARSESEL_OK);
      CHECK(info.rank == world - 1);
      CHECK(info.world_size == world);
      CHECK(info.failed_rank == -1);
    }
  }
  for (int32_t world : {-1, 0, 65}) {
    std::vector<sparsesel_comm*> comms(65, reinterpret_cast<sparsesel_comm*>(1));
    sparsesel_error error = SPARSESEL_ERROR_INIT;
    CHECK(sparsesel_comm_create_local(world, nullptr, comms.data(), &error) ==
          SPARSESEL_INVALID_ARGUMENT);
    CHECK(std::string(error.text).find(std::to_string(world)) != std::string::npos);
  }
}

// What a release meets while another thread is inside a call.
TEST_CASE("lifecycle: a binding may be released while it executes") {
  for (int round = 0; round < 10; ++round) {
    // Whose handle is still there waits for a rank whose handle is gone, to the limit.
    const Group group(2, ShortLimits(30 * kSecond, 300 * kMillisecond));
    const Job job = MakeJob(2, 64, 200, {8});
    const Bound bound(group, job);
    REQUIRE(bound.ok());
    const Batch batch = BatchOfKinds(job, 8, static_cast<uint64_t>(round));
    std::thread releaser([&] {
      std::this_thread::sleep_for(std::chrono::microseconds(100 * round));
      sparsesel_binding_release(bound.binding(0), nullptr);
      sparsesel_binding_release(bound.binding(1), nullptr);
    });
    for (int i = 0; i < 5; ++i) {
      const Results results = Execute(bound, job, batch);
      for (const Outcome& outcome : results.outcomes) {
        // A rank may find its handle gone while its peer has come: that one waits for its limit or
        // is told; none of this may crash.
        CHECK((outcome.status == SPARSESEL_OK || outcome.status == SPARSESEL_INVALID_ARGUMENT ||
               outcome.status == SPARSESEL_PEER_FAILED || outcome.status == SPARSESEL_TIMEOUT));
      }
      if (!AllOk(results.outcomes)) break;
    }
    releaser.join();
  }
}

TEST_CASE("lifecycle: larger structs are taken if what is new in them is zero") {
  const Group group(1);
  struct Larger {
    sparsesel_problem problem = SPARSESEL_PROBLEM_INIT;
    uint64_t from_the_future = 0;
  } larger;
  larger.problem.struct_size = sizeof(Larger);
  larger.problem.k = 4;
  sparsesel_plan* plan = nullptr;
  CHECK(sparsesel_plan_create(group.comm(0), &larger.problem, &plan, nullptr) == SPARSESEL_OK);
  sparsesel_plan_release(plan, nullptr);
  larger.from_the_future = 1;
  CHECK(sparsesel_plan_create(group.comm(0), &larger.problem, &plan, nullptr) ==
        SPARSESEL_UNSUPPORTED);
  CHECK(plan == nullptr);
  for (uint32_t size : {0u, 3u}) {
    larger.problem.struct_size = size;
    CHECK(sparsesel_plan_create(group.comm(0), &larger.problem, &plan, nullptr) ==
          SPARSESEL_INVALID_ARGUMENT);
  }
}

}  // namespace
}  // namespace contract
