// Captured graphs: what they may be captured in, replayed on, and outlive.
#include "contract/device/graphs.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "contract/combinations.h"
#include "contract/device/cuda_check.h"
#include "contract/rows.h"

namespace contract {
namespace {

Job SmallJob() {
  Job job = MakeJob(3, 300, 200, {1, 5});
  // A promise that not all rows keep; without it there are no prefixes.
  for (sparsesel_problem& problem : job.problems) problem.input_order = SPARSESEL_ORDER_FULL;
  return job;
}

// Calls `check` with a binding of every variant.
template <typename Function>
void ForEach(const Group& group, const Job& job, Function check) {
  for (const Combination& combination : CoveringCombinations(job)) {
    INFO(combination.text());
    const Job run = With(job, combination);
    const Bound bound(group, run);
    if (!bound.ok()) UNSCOPED_INFO(Describe(bound.outcomes()));
    REQUIRE(bound.ok());
    check(run, bound);
  }
}

TEST_CASE("bug_F03_capture_is_the_very_first_execute", "[device]") {
  const Job job = SmallJob();
  const Group group(3);
  const Batch batch = BatchOfKinds(job, 5, 3);
  const std::vector<oracle::Answer> expected = ExpectRows(job, batch);
  ForEach(group, job, [&](const Job& run, const Bound& bound) {
    std::vector<RankArrays> arrays = MakeArrays(run, batch);
    const GroupGraph graph(bound, arrays, group.streams());
    for (int i = 0; i < 5; ++i) {
      CHECK(ReplayAndCompare(graph, run, expected, &arrays, group.streams()) == "");
    }
    CHECK(Check(bound, run, batch) == "");  // and eagerly after it
    CHECK(ReplayAndCompare(graph, run, expected, &arrays, group.streams()) == "");
  });
}

TEST_CASE("bug_F05_a_larger_plan_bound_after_capture_takes_nothing_from_the_graph", "[device]") {
  const Group group(2);
  std::vector<sparsesel_workspace*> workspaces(2, nullptr);
  REQUIRE(AllOk(OnEveryRank(2, [&](int32_t rank, sparsesel_error* error) {
    return sparsesel_workspace_create(group.comm(rank), nullptr,
                                      &workspaces[static_cast<size_t>(rank)], error);
  })));
  for (int32_t composition : {SPARSESEL_COMPOSITION_REPLICATED, SPARSESEL_COMPOSITION_OWNER}) {
    Job small = MakeJob(2, 64, 100, {2});
    small.composition = composition;
    const Bound first(group, small, workspaces.data());
    REQUIRE(first.ok());
    const Batch batch = BatchOfKinds(small, 2, 5);
    const std::vector<oracle::Answer> expected = ExpectRows(small, batch);
    std::vector<RankArrays> arrays = MakeArrays(small, batch);
    const GroupGraph graph(first, arrays, group.streams());
    CHECK(ReplayAndCompare(graph, small, expected, &arrays, group.streams()) == "");
    for (int32_t rows : {8, 64, 256}) {
      const Job large = MakeJob(2, 512, 800, {rows});
      const Bound larger(group, large, workspaces.data());
      REQUIRE(larger.ok());
      CHECK(ReplayAndCompare(graph, small, expected, &arrays, group.streams()) == "");
      CHECK(Check(larger, large, BatchOfKinds(large, 8, 5)) == "");
      CHECK(ReplayAndCompare(graph, small, expected, &arrays, group.streams()) == "");
    }
    CHECK(ReplayAndCompare(graph, small, expected, &arrays, group.streams()) == "");
  }
  for (sparsesel_workspace* workspace : workspaces) sparsesel_workspace_release(workspace, nullptr);
}

// What was captured depends on shapes, never on how much was there to be selected.
TEST_CASE("bug_F07_captured_with_one_candidate_replayed_with_full_rows", "[device]") {
  const Job job = SmallJob();
  const Group group(3);
  Batch one = BatchOfKinds(job, 5, 7);
  for (RankInput& input : one.ranks) std::fill(input.counts.begin(), input.counts.end(), 0);
  one.ranks[1].counts[2] = 1;
  const Batch full = BatchOfKinds(job, 5, 8);
  const std::vector<oracle::Answer> expected_one = ExpectRows(job, one);
  const std::vector<oracle::Answer> expected_full = ExpectRows(job, full);
  ForEach(group, job, [&](const Job& run, const Bound& bound) {
    std::vector<RankArrays> arrays = MakeArrays(run, one);
    const GroupGraph graph(bound, arrays, group.streams());
    CHECK(ReplayAndCompare(graph, run, expected_one, &arrays, group.streams()) == "");
    for (int32_t rank = 0; rank < 3; ++rank) {
      arrays[static_cast<size_t>(rank)].Replace(full, rank);
    }
    for (int i = 0; i < 20; ++i) {
      Reset(&arrays);
      for (int j = 0; j < 50; ++j) graph.Launch(group.streams());
      REQUIRE(Compare(run, expected_full, Finish(arrays, group.streams())) == "");
    }
  });
}

// A graph keeps what it uses, in whatever order all the rest, and it, is let go.
TEST_CASE("bug_F11_a_graph_outlives_what_it_was_captured_from", "[device]") {
  enum { kBinding, kWorkspace, kPlan, kComm };
  std::vector<int> order = {kBinding, kWorkspace, kPlan, kComm};
  Job job = MakeJob(2, 64, 100, {3});
  const Batch batch = BatchOfKinds(job, 3, 11);
  const std::vector<oracle::Answer> expected = ExpectRows(job, batch);
  int number = 0;
  do {
    job.composition =
        number++ % 2 == 0 ? SPARSESEL_COMPOSITION_OWNER : SPARSESEL_COMPOSITION_REPLICATED;
    INFO("order " << order[0] << order[1] << order[2] << order[3]);
    Group group(2);
    std::vector<sparsesel_workspace*> workspaces(2, nullptr);
    REQUIRE(AllOk(OnEveryRank(2, [&](int32_t rank, sparsesel_error* error) {
      return sparsesel_workspace_create(group.comm(rank), nullptr,
                                        &workspaces[static_cast<size_t>(rank)], error);
    })));
    std::vector<sparsesel_plan*> plans;
    std::vector<sparsesel_binding*> bindings;
    REQUIRE(AllOk(CreatePlans(group, job, &plans)));
    REQUIRE(AllOk(Prepare(plans)));
    REQUIRE(AllOk(Bind(plans, job.composition, &bindings, workspaces.data())));
    std::vector<RankArrays> arrays = MakeArrays(job, batch);
    const GroupGraph graph(bindings, {&arrays}, group.streams());
    for (int what : order) {
      if (what == kBinding) Release(&bindings);
      if (what == kPlan) Release(&plans);
      if (what == kComm) group.Release();
      if (what == kWorkspace) {
        for (sparsesel_workspace* workspace : workspaces) {
          CHECK(sparsesel_workspace_release(workspace, nullptr) == SPARSESEL_OK);
        }
      }
      CHECK(ReplayAndCompare(graph, job, expected, &arrays, group.streams()) == "");
    }
    // Who takes memory now gets none that the graph uses.
    {
      std::vector<Array<uint32_t>> others;
      for (size_t words : {1u << 8, 1u << 12, 1u << 16, 1u << 20, 1u << 24}) {
        for (int i = 0; i < 4; ++i) others.emplace_back(words, 0xffffffffu);
      }
      CHECK(ReplayAndCompare(graph, job, expected, &arrays, group.streams()) == "");
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("bug_F11_a_graph_is_let_go_at_any_step_of_the_teardown", "[device]") {
  const Job job = MakeJob(2, 64, 100, {3});
  const Batch batch = BatchOfKinds(job, 3, 11);
  const std::vector<oracle::Answer> expected = ExpectRows(job, batch);
  for (int step = 0; step < 4; ++step) {
    INFO("after step " << step);
    Group group(2);
    std::vector<sparsesel_plan*> plans;
    std::vector<sparsesel_binding*> bindings;
    REQUIRE(AllOk(CreatePlans(group, job, &plans)));
    REQUIRE(AllOk(Prepare(plans)));
    REQUIRE(AllOk(Bind(plans, job.composition, &bindings)));
    std::vector<RankArrays> arrays = MakeArrays(job, batch);
    std::optional<GroupGraph> graph;
    graph.emplace(bindings, std::vector<const std::vector<RankArrays>*>{&arrays}, group.streams());
    CHECK(ReplayAndCompare(*graph, job, expected, &arrays, group.streams()) == "");
    if (step == 0) graph.reset();
    Release(&plans);
    if (step == 1) graph.reset();
    group.Release();
    if (step == 2) graph.reset();
    if (step < 3) {
      Reset(&arrays);
      EnqueueAll(bindings, arrays, group.streams());
      CHECK(Compare(job, expected, Finish(arrays, group.streams())) == "");
    }
    Release(&bindings);
    if (step == 3) {
      CHECK(ReplayAndCompare(*graph, job, expected, &arrays, group.streams()) == "");
    }
  }
}

TEST_CASE("bug_F13_warm_on_one_stream_captured_on_another_replayed_on_a_third", "[device]") {
  const Job job = SmallJob();
  const Group group(3);
  const std::vector<void*> second = TakeStreams(3);
  const std::vector<void*> third = TakeStreams(3);
  const Batch batch = BatchOfKinds(job, 5, 13);
  const std::vector<oracle::Answer> expected = ExpectRows(job, batch);
  ForEach(group, job, [&](const Job& run, const Bound& bound) {
    CHECK(Check(bound, run, batch) == "");
    std::vector<RankArrays> arrays = MakeArrays(run, batch);
    const GroupGraph graph(bound, arrays, second);
    for (int i = 0; i < 3; ++i) {
      CHECK(ReplayAndCompare(graph, run, expected, &arrays, third) == "");
      CHECK(ReplayAndCompare(graph, run, expected, &arrays, second) == "");
      CHECK(Check(bound, run, batch) == "");
    }
  });
  GiveBackStreams(second);
  GiveBackStreams(third);
}

TEST_CASE("graphs: every mode of capture", "[device]") {
  const Job job = SmallJob();
  const Group group(3);
  const Batch batch = BatchOfKinds(job, 5, 1);
  const std::vector<oracle::Answer> expected = ExpectRows(job, batch);
  for (cudaStreamCaptureMode mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
                                     cudaStreamCaptureModeRelaxed}) {
    INFO("mode " << mode);
    ForEach(group, job, [&](const Job& run, const Bound& bound) {
      std::vector<RankArrays> arrays = MakeArrays(run, batch);
      const GroupGraph graph(bound, arrays, group.streams(), mode);
      CHECK(ReplayAndCompare(graph, run, expected, &arrays, group.streams()) == "");
    });
  }
}

TEST_CASE("graphs: one binding in many of them, in any order", "[device]") {
  const Job job = MakeJob(3, 100, 150, {1, 2, 6});
  const Group group(3);
  constexpr int32_t kGraphs = 12;
  ForEach(group, job, [&](const Job& run, const Bound& bound) {
    std::vector<Batch> batches;
    std::vector<std::vector<oracle::Answer>> expected;
    std::vector<std::vector<RankArrays>> arrays;
    std::vector<GroupGraph> graphs;
    for (int32_t i = 0; i < kGraphs; ++i) {
      batches.push_back(
          BatchOfKinds(run, 1 + i % 6, static_cast<uint64_t>(i), static_cast<size_t>(2 * i)));
      expected.push_back(ExpectRows(run, batches.back()));
      arrays.push_back(MakeArrays(run, batches.back()));
    }
    for (const std::vector<RankArrays>& call : arrays) {
      graphs.emplace_back(bound, call, group.streams());
    }
    Random random(2);
    for (int round = 0; round < 20; ++round) {
      for (std::vector<RankArrays>& call : arrays) Reset(&call);
      // Each at least once.
      std::vector<size_t> order(kGraphs);
      std::iota(order.begin(), order.end(), size_t{0});
      for (int i = 0; i < 8; ++i) order.push_back(random() % kGraphs);
      std::shuffle(order.begin(), order.end(), random);
      for (size_t i : order) {
        if (random() % 4 == 0) {
          EnqueueAll(BindingsOf(bound), arrays[i], group.streams());
        } else {
          graphs[i].Launch(group.streams());
        }
      }
      for (size_t i = 0; i < kGraphs; ++i) {
        CHECK(Compare(run, expected[i], Finish(arrays[i], group.streams())) == "");
      }
    }
  });
}

TEST_CASE("graphs: many executes in one, as layers are", "[device]") {
  const Job job = MakeJob(4, 100, 150, {4});
  const Group group(4);
  ForEach(group, job, [&](const Job& run, const Bound& bound) {
    std::vector<Batch> batches;
    std::vector<std::vector<RankArrays>> arrays;
    std::vector<const std::vector<RankArrays>*> calls;
    for (uint64_t i = 0; i < 20; ++i) {
      batches.push_back(BatchOfKinds(run, 4, i, i));
      batches.back().tag = i;
      arrays.push_back(MakeArrays(run, batches.back()));
    }
    for (const std::vector<RankArrays>& call : arrays) calls.push_back(&call);
    const GroupGraph graph(BindingsOf(bound), calls, group.streams());
    for (int i = 0; i < 50; ++i) graph.Launch(group.streams());
    for (size_t i = 0; i < batches.size(); ++i) {
      CHECK(Compare(run, ExpectRows(run, batches[i]), Finish(arrays[i], group.streams())) == "");
    }
  });
}

TEST_CASE("graphs: bindings with workspaces of their own replay independently", "[device]") {
  const Group group(3);
  const std::vector<void*> others = TakeStreams(3);
  Job first_job = MakeJob(3, 200, 300, {4});
  Job second_job = MakeJob(3, 64, 1000, {7});
  second_job.composition = SPARSESEL_COMPOSITION_OWNER;
  const Bound first(group, first_job);
  const Bound second(group, second_job);
  REQUIRE(first.ok());
  REQUIRE(second.ok());
  const Batch first_batch = BatchOfKinds(first_job, 4, 1);
  const Batch second_batch = BatchOfKinds(second_job, 7, 2);
  const std::vector<oracle::Answer> first_expected = ExpectRows(first_job, first_batch);
  const std::vector<oracle::Answer> second_expected = ExpectRows(second_job, second_batch);
  std::vector<RankArrays> first_arrays = MakeArrays(first_job, first_batch);
  std::vector<RankArrays> second_arrays = MakeArrays(second_job, second_batch);
  const GroupGraph first_graph(first, first_arrays, group.streams());
  const GroupGraph second_graph(second, second_arrays, others);
  Random random(3);
  for (int round = 0; round < 30; ++round) {
    Reset(&first_arrays);
    Reset(&second_arrays);
    // At once, and one more often than the other; each rank begins with another one.
    const size_t times[] = {1 + random() % 5, 1 + random() % 5};
    for (int32_t rank = 0; rank < 3; ++rank) {
      const auto r = static_cast<size_t>(rank);
      for (size_t turn = 0; turn < 2; ++turn) {
        const size_t which = (turn + r) % 2;
        for (size_t i = 0; i < times[which]; ++i) {
          if (which == 0) first_graph.rank(rank).Launch(group.streams()[r]);
          if (which == 1) second_graph.rank(rank).Launch(others[r]);
        }
      }
    }
    CHECK(Compare(first_job, first_expected, Finish(first_arrays, group.streams())) == "");
    CHECK(Compare(second_job, second_expected, Finish(second_arrays, others)) == "");
  }
  GiveBackStreams(others);
}

TEST_CASE("graphs: executes overlap in the slots of one workspace", "[device]") {
  const Group group(2);
  const std::vector<void*> others = TakeStreams(2);
  std::vector<sparsesel_workspace*> workspaces(2, nullptr);
  sparsesel_workspace_options options = SPARSESEL_WORKSPACE_OPTIONS_INIT;
  options.slots = 2;
  REQUIRE(AllOk(OnEveryRank(2, [&](int32_t rank, sparsesel_error* error) {
    return sparsesel_workspace_create(group.comm(rank), &options,
                                      &workspaces[static_cast<size_t>(rank)], error);
  })));
  for (int32_t composition : {SPARSESEL_COMPOSITION_REPLICATED, SPARSESEL_COMPOSITION_OWNER}) {
    Job job = MakeJob(2, 200, 300, {4});
    job.composition = composition;
    const Bound bound(group, job, workspaces.data());
    REQUIRE(bound.ok());
    const Batch even_batch = BatchOfKinds(job, 4, 1);
    const Batch odd_batch = BatchOfKinds(job, 3, 2);
    std::vector<RankArrays> even = MakeArrays(job, even_batch);
    std::vector<RankArrays> odd = MakeArrays(job, odd_batch);
    for (int i = 0; i < 20; ++i) {
      EnqueueAll(BindingsOf(bound), even, group.streams());
      EnqueueAll(BindingsOf(bound), odd, others);
    }
    CHECK(Compare(job, ExpectRows(job, even_batch), Finish(even, group.streams())) == "");
    CHECK(Compare(job, ExpectRows(job, odd_batch), Finish(odd, others)) == "");
  }
  for (sparsesel_workspace* workspace : workspaces) sparsesel_workspace_release(workspace, nullptr);
  GiveBackStreams(others);
}

}  // namespace
}  // namespace contract
