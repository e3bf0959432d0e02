// What binding_stats tells of executes on a device, which kernels count.
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "contract/device/cuda_check.h"
#include "contract/device/graphs.h"
#include "contract/rows.h"

namespace contract {
namespace {

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

Job JobOf(const Way& way) {
  Job job = MakeJob(2, 100, 150, {4});
  for (sparsesel_problem& problem : job.problems) problem.input_order = way.input_order;
  job.child_plans = way.child_plans;
  job.composition = way.composition;
  return job;
}

sparsesel_stats StatsOf(const Bound& bound, int32_t rank) {
  sparsesel_stats stats = SPARSESEL_STATS_INIT;
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  INFO(error.text);
  REQUIRE(sparsesel_binding_stats(bound.binding(rank), &stats, &error) == SPARSESEL_OK);
  return stats;
}

TEST_CASE("stats: executes are counted when they run, in graphs too", "[device]") {
  for (const Way& way : kWays) {
    INFO(way.child_plans);
    const Job job = JobOf(way);
    const Group group(2);
    const Bound bound(group, job);
    REQUIRE(bound.ok());
    const Batch batch = BatchOfKinds(job, 4, 1);
    const std::vector<RankArrays> arrays = MakeArrays(job, batch);
    CHECK(StatsOf(bound, 0).executes == 0);
    const GroupGraph graph(BindingsOf(bound), {&arrays, &arrays, &arrays}, group.streams());
    CHECK(StatsOf(bound, 0).executes == 0);  // recorded, not run
    for (int replay = 0; replay < 4; ++replay) graph.Launch(group.streams());
    EnqueueAll(BindingsOf(bound), arrays, group.streams());
    SynchronizeAll(group.streams());
    for (int32_t rank : {0, 1}) {
      const sparsesel_stats stats = StatsOf(bound, rank);
      CHECK(stats.world_size == 2);
      CHECK(stats.executes == 13);
      CHECK(stats.failures == 0);
      CHECK(stats.timeouts == 0);
    }
  }
}

TEST_CASE("stats: may be asked for while a stream is captured", "[device]") {
  const Job job = JobOf(kWays[0]);
  const Group group(2);
  const Bound bound(group, job);
  REQUIRE(bound.ok());
  const std::vector<RankArrays> arrays = MakeArrays(job, BatchOfKinds(job, 4, 1));
  for (const cudaStreamCaptureMode mode :
       {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
        cudaStreamCaptureModeRelaxed}) {
    sparsesel_status asked = SPARSESEL_INTERNAL;
    cudaGraph_t graph = nullptr;
    const sparsesel_status captured = Capture(
        group.stream(0), mode,
        [&] {
          sparsesel_stats stats = SPARSESEL_STATS_INIT;
          asked = sparsesel_binding_stats(bound.binding(0), &stats, nullptr);
          return sparsesel_execute(bound.binding(0), &arrays[0].io, group.stream(0), nullptr);
        },
        &graph);
    CHECK(captured == SPARSESEL_OK);
    CHECK(asked == SPARSESEL_OK);
    REQUIRE(graph != nullptr);
    CHECK_CUDA(cudaGraphDestroy(graph));
  }
}

TEST_CASE("stats: whom a rank has waited for", "[device]") {
  for (const Way& way : kWays) {
    INFO(way.child_plans);
    const Job job = JobOf(way);
    const Group group(2);
    const Bound bound(group, job);
    REQUIRE(bound.ok());
    const std::vector<RankArrays> arrays = MakeArrays(job, BatchOfKinds(job, 4, 1));
    const Outcomes outcomes = OnEveryRank(2, [&](int32_t rank, sparsesel_error* error) {
      if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      return ExecuteAndWait(bound.binding(rank), arrays[static_cast<size_t>(rank)],
                            group.stream(rank), error);
    });
    REQUIRE(AllOk(outcomes));
    const sparsesel_stats stats = StatsOf(bound, 0);
    CHECK(stats.wait[1] > 10 * kMillisecond);
    CHECK(stats.wait[1] < 20 * kSecond);
    CHECK(stats.wait[0] < stats.wait[1]);
    for (size_t r = 2; r < 64; ++r) CHECK(stats.wait[r] == 0);
    CHECK(StatsOf(bound, 1).wait[0] < stats.wait[1]);
  }
}

TEST_CASE("stats: a wait that expired", "[device]") {
  for (const Way& way : kWays) {
    INFO(way.child_plans);
    const Job job = JobOf(way);
    const Group group(2, ShortLimits(30 * kSecond, 100 * kMillisecond));
    const Bound bound(group, job);
    REQUIRE(bound.ok());
    const std::vector<RankArrays> arrays = MakeArrays(job, BatchOfKinds(job, 4, 1));
    sparsesel_error error = SPARSESEL_ERROR_INIT;
    REQUIRE(sparsesel_execute(bound.binding(0), &arrays[0].io, group.stream(0), &error) ==
            SPARSESEL_OK);
    Synchronize(group.stream(0));
    const sparsesel_stats stats = StatsOf(bound, 0);
    CHECK(stats.executes == 1);
    CHECK(stats.timeouts == 1);
    CHECK(stats.wait[1] > 50 * kMillisecond);
    CHECK(StatsOf(bound, 1).timeouts == 0);
  }
}

// The greatest of rank 0's candidates are more than its prefix, so nobody can know from prefixes.
TEST_CASE("stats: rows whose prefix was not enough", "[device]") {
  const Job job = JobOf(kWays[2]);
  const Group group(2);
  const Bound bound(group, job);
  REQUIRE(bound.ok());
  for (const bool enough : {true, false}) {
    Batch batch = MakeBatch(job, 4);
    Random random(5);
    for (int32_t row = 0; row < 4; ++row) {
      Row lists(2);
      for (int32_t i = 0; i < 300; ++i) {
        oracle::List& list = lists[static_cast<size_t>(enough ? i % 2 : i / 150)];
        list.ids.push_back(i);
        list.score_bits.push_back(kOne + 300 - static_cast<uint32_t>(i));
        ++list.count;
      }
      SetRow(job, row, lists, &batch);
    }
    const uint64_t before = StatsOf(bound, 1).prefix_refetches;
    CHECK(Compare(job, ExpectRows(job, batch), Execute(bound, job, batch)) == "");
    for (int32_t rank : {0, 1}) {
      CHECK(StatsOf(bound, rank).prefix_refetches - before == (enough ? 0 : 4));
    }
  }
}

}  // namespace
}  // namespace contract
