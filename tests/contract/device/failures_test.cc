// Ranks that are missing, late or different while kernels wait for them; eager and replayed. A wait
// on a device ends by its limit, with empty output and a status word, and the group is over.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <thread>

#include "contract/device/cuda_check.h"
#include "contract/device/graphs.h"
#include "contract/rows.h"

namespace contract {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kLimit = 300 * kMillisecond;
constexpr std::chrono::seconds kPatience(8);

struct Way {
  const char* child_plans;
  int32_t composition;
  int32_t input_order = SPARSESEL_ORDER_NONE;
};
constexpr Way kWays[] = {
    {"peer.push,select.sampled", SPARSESEL_COMPOSITION_REPLICATED},
    {"peer.fused", SPARSESEL_COMPOSITION_REPLICATED},
    {"peer.fused_prefix:64", SPARSESEL_COMPOSITION_REPLICATED, SPARSESEL_ORDER_FULL},
    {"peer.push,select.sampled,peer.answers", SPARSESEL_COMPOSITION_OWNER},
};

Job JobOf(const Way& way, int32_t world = 3) {
  Job job = MakeJob(world, 100, 150, {2, 6});
  for (sparsesel_problem& problem : job.problems) {
    problem.outputs = SPARSESEL_OUTPUT_COUNTS;
    problem.input_order = way.input_order;  // a promise that not all rows keep
  }
  job.child_plans = way.child_plans;
  job.composition = way.composition;
  return job;
}

bool IsEmpty(const RankOutput& output) {
  const auto all = [](const std::vector<int32_t>& values, int32_t value) {
    return std::all_of(values.begin(), values.end(), [=](int32_t v) { return v == value; });
  };
  return output.stray.empty() && all(output.ids, -1) && all(output.counts, 0);
}

// A group, a binding, its arrays and their graph.
struct Setup {
  explicit Setup(const Way& way, uint64_t limit = kLimit)
      : job(JobOf(way)),
        group(3, ShortLimits(20 * kSecond, limit)),
        bound(group, job),
        batch(BatchOfKinds(job, 6, 1)) {
    INFO(way.child_plans << "\n" << Describe(bound.outcomes()));
    REQUIRE(bound.ok());
    arrays = MakeArrays(job, batch);
    graph.emplace_back(bound, arrays, group.streams());
  }

  // Enqueues one execute of a rank.
  void Enqueue(int32_t rank, bool replayed) {
    const auto r = static_cast<size_t>(rank);
    if (replayed) return graph[0].rank(rank).Launch(group.stream(rank));
    sparsesel_error error = SPARSESEL_ERROR_INIT;
    CHECK(sparsesel_execute(bound.binding(rank), &arrays[r].io, group.stream(rank), &error) ==
          SPARSESEL_OK);
  }
  // The group may be over before the last rank comes.
  void EnqueueIfGoing(int32_t rank) {
    const auto r = static_cast<size_t>(rank);
    sparsesel_error error = SPARSESEL_ERROR_INIT;
    const sparsesel_status status =
        sparsesel_execute(bound.binding(rank), &arrays[r].io, group.stream(rank), &error);
    INFO(error.text);
    CHECK((status == SPARSESEL_OK || status == CommStatus(rank)));
  }
  sparsesel_status CommStatus(int32_t rank, int32_t* failed_rank = nullptr) const {
    sparsesel_comm_info info = SPARSESEL_COMM_INFO_INIT;
    const sparsesel_status status = sparsesel_comm_status(group.comm(rank), &info, nullptr);
    if (failed_rank != nullptr) *failed_rank = info.failed_rank;
    CHECK(info.status == status);
    return status;
  }
  std::string Compared() const {
    return Compare(job, ExpectRows(job, batch), Finish(arrays, group.streams()));
  }

  const Job job;
  const Group group;
  const Bound bound;
  const Batch batch;
  std::vector<RankArrays> arrays;
  std::vector<GroupGraph> graph;  // one
};

// Every rank says at once that the group is over, to executes and to replays.
void CheckOver(Setup* setup) {
  const auto begin = Clock::now();
  for (int32_t rank = 0; rank < 3; ++rank) {
    const auto r = static_cast<size_t>(rank);
    INFO("rank " << rank);
    CHECK(setup->CommStatus(rank) != SPARSESEL_OK);
    sparsesel_error error = SPARSESEL_ERROR_INIT;
    CHECK(sparsesel_execute(setup->bound.binding(rank), &setup->arrays[r].io,
                            setup->group.stream(rank), &error) != SPARSESEL_OK);
    CHECK(std::string(error.text) != "");
  }
  for (int i = 0; i < 3; ++i) {
    Reset(&setup->arrays);
    setup->graph[0].Launch(setup->group.streams());
    const Results results = Finish(setup->arrays, setup->group.streams());
    for (size_t rank = 0; rank < 3; ++rank) {
      INFO("replay " << i << " on rank " << rank << "\n" << Describe(results.outcomes));
      CHECK(results.outcomes[rank].status != SPARSESEL_OK);
      CHECK(IsEmpty(results.ranks[rank]));
    }
  }
  CHECK(Clock::now() - begin < kPatience);
}

TEST_CASE("device failures: a missing rank ends by the limit, eager and replayed", "[device]") {
  for (const Way& way : kWays) {
    DYNAMIC_SECTION(way.child_plans) {
      for (bool replayed : {false, true}) {
        for (int32_t missing : {0, 2}) {
          INFO((replayed ? "replayed" : "eager") << ", without rank " << missing);
          Setup setup(way);
          for (int i = 0; i < 2; ++i) {
            for (int32_t rank = 0; rank < 3; ++rank) setup.Enqueue(rank, replayed);
          }
          CHECK(setup.Compared() == "");
          Reset(&setup.arrays);
          const auto begin = Clock::now();
          for (int32_t rank = 0; rank < 3; ++rank) {
            if (rank != missing) setup.Enqueue(rank, replayed);
          }
          const Results results = Finish(setup.arrays, setup.group.streams());
          CHECK(Clock::now() - begin >= std::chrono::nanoseconds(kLimit) / 2);
          CHECK(Clock::now() - begin < kPatience);
          for (int32_t rank = 0; rank < 3; ++rank) {
            const auto r = static_cast<size_t>(rank);
            int32_t failed_rank = -2;
            const sparsesel_status status = setup.CommStatus(rank, &failed_rank);
            INFO("rank " << rank << ": " << sparsesel_status_name(status) << ", at fault "
                         << failed_rank);
            CHECK((status == SPARSESEL_TIMEOUT || status == SPARSESEL_PEER_FAILED));
            CHECK(failed_rank == missing);
            if (rank == missing) continue;
            CHECK((results.outcomes[r].status == SPARSESEL_TIMEOUT ||
                   results.outcomes[r].status == SPARSESEL_PEER_FAILED));
            CHECK(IsEmpty(results.ranks[r]));
          }
          CheckOver(&setup);
        }
      }
    }
  }
}

TEST_CASE("device failures: a late rank within the limit is waited for", "[device]") {
  for (const Way& way : kWays) {
    DYNAMIC_SECTION(way.child_plans) {
      for (bool replayed : {false, true}) {
        Setup setup(way, 10 * kSecond);
        for (int32_t late = 0; late < 3; ++late) {
          INFO((replayed ? "replayed" : "eager") << ", rank " << late);
          Reset(&setup.arrays);
          for (int32_t rank = 0; rank < 3; ++rank) {
            if (rank != late) setup.Enqueue(rank, replayed);
          }
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
          setup.Enqueue(late, replayed);
          CHECK(setup.Compared() == "");
        }
      }
    }
  }
}

TEST_CASE("device failures: a captured graph follows the limits of today", "[device]") {
  for (const Way& way : kWays) {
    DYNAMIC_SECTION(way.child_plans) {
      {
        // Shorter than when it was captured.
        Setup setup(way, 20 * kSecond);
        for (int32_t rank = 0; rank < 3; ++rank) {
          CHECK(sparsesel_comm_set_timeouts(setup.group.comm(rank), 0, kLimit, nullptr) ==
                SPARSESEL_OK);
        }
        const auto begin = Clock::now();
        setup.Enqueue(0, true);
        setup.Enqueue(1, true);
        const Results results = Finish(setup.arrays, setup.group.streams());
        CHECK(Clock::now() - begin < kPatience);
        CHECK(results.outcomes[0].status != SPARSESEL_OK);
        CHECK(results.outcomes[1].status != SPARSESEL_OK);
        CheckOver(&setup);
      }
      {
        // Longer, and so enough for a rank that is late.
        Setup setup(way, kLimit);
        for (int32_t rank = 0; rank < 3; ++rank) {
          CHECK(sparsesel_comm_set_timeouts(setup.group.comm(rank), 0, 10 * kSecond, nullptr) ==
                SPARSESEL_OK);
        }
        setup.Enqueue(0, true);
        setup.Enqueue(2, true);
        std::this_thread::sleep_for(3 * std::chrono::nanoseconds(kLimit));
        setup.Enqueue(1, true);
        CHECK(setup.Compared() == "");
      }
    }
  }
}

// Header: every rank's waiting and later calls return ABORTED.
TEST_CASE("bug_F17_a_replay_that_is_aborted_midway_ends_and_so_do_all_later_ones", "[device]") {
  for (const Way& way : kWays) {
    DYNAMIC_SECTION(way.child_plans) {
      for (bool replayed : {true, false}) {
        for (int32_t by : {0, 2}) {
          INFO((replayed ? "replayed" : "eager") << ", by rank " << by);
          Setup setup(way, 20 * kSecond);
          for (int32_t rank = 0; rank < 3; ++rank) setup.Enqueue(rank, replayed);
          CHECK(setup.Compared() == "");
          Reset(&setup.arrays);
          // Rank 2 does not come.
          setup.Enqueue(0, replayed);
          setup.Enqueue(1, replayed);
          const auto begin = Clock::now();
          std::thread aborter([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            sparsesel_comm_abort(setup.group.comm(by), nullptr);
          });
          const Results results = Finish(setup.arrays, setup.group.streams());
          aborter.join();
          CHECK(Clock::now() - begin < kPatience);
          for (int32_t rank : {0, 1}) {
            const auto r = static_cast<size_t>(rank);
            INFO("rank " << rank);
            CHECK(std::string(sparsesel_status_name(results.outcomes[r].status)) ==
                  "SPARSESEL_ABORTED");
            CHECK(IsEmpty(results.ranks[r]));
          }
          for (int32_t rank = 0; rank < 3; ++rank) {
            INFO("rank " << rank);
            CHECK(std::string(sparsesel_status_name(setup.CommStatus(rank))) ==
                  "SPARSESEL_ABORTED");
          }
          CheckOver(&setup);
        }
      }
    }
  }
}

// Ranks that differ are told so, on one of them at least by name, and the group is over.
void CheckMismatch(const Way& way, const std::function<void(Setup*)>& enqueue_all) {
  Setup setup(way, 2 * kSecond);
  const auto begin = Clock::now();
  enqueue_all(&setup);
  SynchronizeAll(setup.group.streams());
  CHECK(Clock::now() - begin < kPatience);
  int mismatches = 0;
  for (int32_t rank = 0; rank < 3; ++rank) {
    const sparsesel_status status = setup.CommStatus(rank);
    INFO("rank " << rank << ": " << sparsesel_status_name(status));
    CHECK((status == SPARSESEL_MISMATCH || status == SPARSESEL_PEER_FAILED));
    mismatches += status == SPARSESEL_MISMATCH;
  }
  CHECK(mismatches > 0);
  CheckOver(&setup);
}

TEST_CASE("device failures: ranks with other rows or tags are a mismatch", "[device]") {
  for (const Way& way : kWays) {
    DYNAMIC_SECTION(way.child_plans) {
      for (int32_t rows : {2, 5}) {  // of the smaller capacity, and of the same
        INFO("rows " << rows);
        CheckMismatch(way, [&](Setup* setup) {
          setup->arrays[2].io.rows = rows;
          for (int32_t rank = 0; rank < 3; ++rank) setup->EnqueueIfGoing(rank);
          setup->arrays[2].io.rows = 6;
        });
      }
      INFO("tag");
      CheckMismatch(way, [&](Setup* setup) {
        setup->arrays[1].io.tag = 77;
        for (int32_t rank = 0; rank < 3; ++rank) setup->EnqueueIfGoing(rank);
        setup->arrays[1].io.tag = 0;
      });
    }
  }
}

TEST_CASE("device failures: a skipped execute is noticed", "[device]") {
  for (const Way& way : kWays) {
    DYNAMIC_SECTION(way.child_plans) {
      CheckMismatch(way, [&](Setup* setup) {
        for (uint64_t layer = 0; layer < 5; ++layer) {
          for (int32_t rank = 0; rank < 3; ++rank) {
            if (rank == 1 && layer == 2) continue;
            setup->arrays[static_cast<size_t>(rank)].io.tag = layer;
            setup->EnqueueIfGoing(rank);
          }
        }
      });
    }
  }
}

// Or they miss each other, where the second took larger memory, and end by the limit.
TEST_CASE("device failures: two bindings in one workspace that meet end the group", "[device]") {
  const Group group(2, ShortLimits(20 * kSecond, 2 * kSecond));
  std::vector<sparsesel_workspace*> workspaces(2, nullptr);
  REQUIRE(AllOk(OnEveryRank(2, [&](int32_t rank, sparsesel_error* error) {
    return sparsesel_workspace_create(group.comm(rank), nullptr,
                                      &workspaces[static_cast<size_t>(rank)], error);
  })));
  {
    const Job replicated = JobOf(kWays[0], 2);
    const Job owner = JobOf(kWays[3], 2);
    const Bound first(group, replicated, workspaces.data());
    const Bound second(group, owner, workspaces.data());
    REQUIRE(first.ok());
    REQUIRE(second.ok());
    const std::vector<RankArrays> arrays = MakeArrays(owner, BatchOfKinds(owner, 6, 1));
    EnqueueAll({first.binding(0), second.binding(1)}, arrays, group.streams());
    const Results results = Finish(arrays, group.streams());
    INFO(Describe(results.outcomes));
    for (const Outcome& outcome : results.outcomes) {
      CHECK((outcome.status == SPARSESEL_MISMATCH || outcome.status == SPARSESEL_TIMEOUT ||
             outcome.status == SPARSESEL_PEER_FAILED));
    }
    for (const RankOutput& output : results.ranks) CHECK(IsEmpty(output));
  }
  for (sparsesel_workspace* workspace : workspaces) sparsesel_workspace_release(workspace, nullptr);
}

// The memory of a group that failed is given back like any other's.
TEST_CASE("device failures: groups that failed leave room for others", "[device]") {
  for (int i = 0; i < 5; ++i) {
    {
      Setup setup(kWays[static_cast<size_t>(i) % std::size(kWays)], 50 * kMillisecond);
      setup.Enqueue(i % 3, i % 2 == 0);
      SynchronizeAll(setup.group.streams());
      CHECK(setup.CommStatus(i % 3) == SPARSESEL_TIMEOUT);
    }
    Setup fresh(kWays[static_cast<size_t>(i) % std::size(kWays)], 5 * kSecond);
    for (int32_t rank = 0; rank < 3; ++rank) fresh.Enqueue(rank, true);
    CHECK(fresh.Compared() == "");
  }
}

}  // namespace
}  // namespace contract
