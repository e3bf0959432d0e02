// Exchange, merge and transport; race and agreement; lifetime and the C interface.
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "contract/custom_group.h"
#include "contract/known_bugs.h"

namespace contract {
namespace {

TEST_CASE("bug_D01_a_rank_without_candidates_erases_nobody_elses") {
  const Job job = MakeJob(3, 50, 40, {6});
  for (size_t empty : {0, 1, 2}) {
    Batch batch = BatchOfKinds(job, 6, 1);
    std::fill(batch.ranks[empty].counts.begin(), batch.ranks[empty].counts.end(), 0);
    CHECK(RunEverywhere(job, batch) == "");
  }
}

TEST_CASE("bug_D03_foreign_ids_come_back_as_they_are") {
  Job job = MakeJob(3, 100, 60, {6});
  for (size_t rank = 0; rank < 3; ++rank) {
    sparsesel_problem& problem = job.problems[rank];
    problem.id_map = SPARSESEL_ID_INTERLEAVE;
    problem.id_block = 16;
    problem.id_shard = static_cast<int32_t>(rank);
    problem.id_shards = 3;
  }
  Batch batch = BatchOfKinds(job, 6, 3);
  for (RankInput& input : batch.ranks) {
    for (int32_t& id : input.ids) id = id < 0 ? id : id % 100'000;
  }
  CHECK(RunEverywhere(job, batch) == "");
}

TEST_CASE("bug_D05_hundreds_of_calls_go_through_the_slots_in_turn") {
  const Group group(3);
  const Job job = MakeJob(3, 8, 10, {1});
  const Bound bound(group, job);
  REQUIRE(bound.ok());
  const Batch batch = BatchOfKinds(job, 1, 5);
  const std::vector<oracle::Answer> expected = ExpectRows(job, batch);
  for (int i = 0; i < 600; ++i) {
    REQUIRE(Compare(job, expected, Execute(bound, job, batch)) == "");
  }
}

TEST_CASE("bug_D07_a_lossy_sum_is_found_before_it_carries_ids", "[host]") {
  CustomGroup custom(3);
  REQUIRE(custom.ok());
  custom.faults().lossy_bf16 = true;
  Job job = MakeJob(3, 64, 80, {1, 30});
  job.composition = SPARSESEL_COMPOSITION_OWNER;
  {
    Job pinned = job;
    pinned.child_plans = "replicate.bf16";
    const Bound bound(custom.group(), pinned);
    INFO(Describe(bound.outcomes()));
    CHECK(AllAre(bound.outcomes(), SPARSESEL_UNSUPPORTED));
  }
  const Bound bound(custom.group(), job);
  INFO(Describe(bound.outcomes()));
  REQUIRE(bound.ok());
  CHECK(TextOf(sparsesel_binding_json, bound.binding(0)).find("replicate.bf16") ==
        std::string::npos);
  // One row and many have the same bits.
  CHECK(Check(bound, job, BatchOfKinds(job, 30, 7)) == "");
  CHECK(Check(bound, job, BatchOfKinds(job, 1, 7)) == "");
}

TEST_CASE("bug_D09_every_byte_value_survives_every_way_of_replicating") {
  // Ids and scores of which every byte takes every value.
  Job job = WithOutputs(MakeJob(2, 512, 256, {2}), SPARSESEL_OUTPUT_SCORES);
  Random random(9);
  std::vector<Row> rows;
  for (int shift : {0, 8}) {
    Row row(2);
    for (int32_t i = 0; i < 512; ++i) {
      oracle::List& list = row[static_cast<size_t>(i % 2)];
      const auto byte = static_cast<uint32_t>(i / 2);
      list.ids.push_back(
          static_cast<int32_t>((byte << shift | byte << (shift + 16)) & 0x7fffffffu));
      list.score_bits.push_back(byte | byte << 8 | byte << 16 | byte << 24);
      ++list.count;
    }
    rows.push_back(row);
  }
  CHECK(RunEverywhere(job, rows) == "");
}

TEST_CASE("bug_D11_two_threads_on_one_binding_do_not_cross") {
  const Group group(1);
  const Job job = MakeJob(1, 64, 2000, {16});
  const Bound bound(group, job);
  REQUIRE(bound.ok());
  const Batch batch = BatchOfKinds(job, 16, 11);
  const std::vector<oracle::Answer> expected = ExpectRows(job, batch);
  std::vector<std::string> differences(2);
  const auto work = [&](size_t thread) {
    for (int i = 0; i < 40; ++i) {
      const Results results = Execute(bound, job, batch);
      if (results.outcomes[0].status == SPARSESEL_INVALID_STATE) continue;  // busy
      const std::string difference = Compare(job, expected, results);
      if (!difference.empty()) differences[thread] = difference;
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  CHECK(differences == std::vector<std::string>{"", ""});
}

TEST_CASE("bug_D13_groups_side_by_side_do_not_hear_each_other") {
  const Group first(2);
  const Group second(2);
  Job small = MakeJob(2, 16, 20, {4});
  Job large = MakeJob(2, 100, 200, {4});
  large.composition = SPARSESEL_COMPOSITION_OWNER;
  const Bound one(first, small);
  const Bound two(second, large);
  REQUIRE(one.ok());
  REQUIRE(two.ok());
  std::string difference;
  std::thread other([&] {
    for (uint64_t i = 0; i < 30 && difference.empty(); ++i) {
      difference = Check(two, large, BatchOfKinds(large, 4, i));
    }
  });
  std::string mine;
  for (uint64_t i = 0; i < 30 && mine.empty(); ++i)
    mine = Check(one, small, BatchOfKinds(small, 4, i));
  other.join();
  CHECK(mine == "");
  CHECK(difference == "");
}

// Each rank late in turn, at every step of a group's life.
TEST_CASE("bug_D15_a_rank_that_is_late_at_any_step_loses_no_signal") {
  const auto late = [](int32_t rank, int32_t who) {
    if (rank == who) std::this_thread::sleep_for(std::chrono::milliseconds(15));
  };
  for (int32_t who = 0; who < 3; ++who) {
    const Group group(3);
    const Job job = MakeJob(3, 8, 16, {2});
    const Batch batch = BatchOfKinds(job, 1, 15);
    const std::vector<RankArrays> arrays = MakeArrays(job, batch);
    std::vector<sparsesel_plan*> plans;
    std::vector<sparsesel_binding*> bindings(3, nullptr);
    REQUIRE(AllOk(CreatePlans(group, job, &plans)));
    const Outcomes outcomes = OnEveryRank(3, [&](int32_t rank, sparsesel_error* error) {
      const auto r = static_cast<size_t>(rank);
      sparsesel_prepare_options prepare = SPARSESEL_PREPARE_OPTIONS_INIT;
      prepare.time_budget = kMillisecond;
      late(rank, who);
      sparsesel_status status = sparsesel_plan_prepare(plans[r], &prepare, error);
      late(rank, (who + 1) % 3);
      if (status == SPARSESEL_OK) {
        status = sparsesel_plan_bind(plans[r], nullptr, SPARSESEL_COMPOSITION_OWNER, &bindings[r],
                                     error);
      }
      for (int i = 0; i < 5 && status == SPARSESEL_OK; ++i) {
        late(rank, (who + i) % 3);
        status = ExecuteAndWait(bindings[r], arrays[r], group.stream(rank), error);
      }
      return status;
    });
    CHECK(Compare(job, ExpectRows(job, batch), ReadResults(arrays, outcomes)) == "");
    Release(&bindings);
    Release(&plans);
  }
}

TEST_CASE("bug_D17_executes_over_two_groups_interleave") {
  const Group first(3);
  const Group second(3);
  const Job job = MakeJob(3, 16, 20, {2});
  const Bound one(first, job);
  const Bound two(second, job);
  REQUIRE(one.ok());
  REQUIRE(two.ok());
  const Batch batch_one = BatchOfKinds(job, 2, 17);
  const Batch batch_two = BatchOfKinds(job, 2, 18);
  const std::vector<RankArrays> arrays_one = MakeArrays(job, batch_one);
  const std::vector<RankArrays> arrays_two = MakeArrays(job, batch_two);
  const Outcomes outcomes = OnEveryRank(3, [&](int32_t rank, sparsesel_error* error) {
    const auto r = static_cast<size_t>(rank);
    sparsesel_status status = SPARSESEL_OK;
    for (int i = 0; i < 128 && status == SPARSESEL_OK; ++i) {
      const bool in_one = i % 3 == 0;
      status = sparsesel_execute((in_one ? one : two).binding(rank),
                                 &(in_one ? arrays_one : arrays_two)[r].io,
                                 (in_one ? first : second).stream(rank), error);
    }
    Synchronize(first.stream(rank));
    Synchronize(second.stream(rank));
    return status;
  });
  CHECK(Compare(job, ExpectRows(job, batch_one), ReadResults(arrays_one, outcomes)) == "");
  CHECK(Compare(job, ExpectRows(job, batch_two), ReadResults(arrays_two, outcomes)) == "");
}

TEST_CASE("bug_D19_ranks_that_disagree_on_a_size_are_told_which", "[host]") {
  const Group group(3);
  const Job job = MakeJob(3, 16, 20, {8});
  const Bound bound(group, job);
  REQUIRE(bound.ok());
  const Batch three = BatchOfKinds(job, 3, 19);
  const Outcomes outcomes = OnEveryRank(3, [&](int32_t rank, sparsesel_error* error) {
    const RankInput& input = three.ranks[static_cast<size_t>(rank)];
    std::vector<int32_t> out(16 * 8);
    sparsesel_io io = SPARSESEL_IO_INIT;
    io.rows = rank == 2 ? 2 : 3;
    io.scores = reinterpret_cast<const float*>(input.score_bits.data());
    io.ids = input.ids.data();
    io.out_ids = out.data();
    return sparsesel_execute(bound.binding(rank), &io, nullptr, error);
  });
  INFO(Describe(outcomes));
  CHECK(AllAre(outcomes, SPARSESEL_MISMATCH));
  for (const Outcome& outcome : outcomes) {
    CHECK(outcome.error.rank == 2);
    CHECK(outcome.text().find("rows") != std::string::npos);
  }
}

TEST_CASE("bug_D21_tiny_and_large_calls_in_turn") {
  const Group group(4);
  Job job = MakeJob(4, 256, 300, {1, 64});
  for (int32_t composition : {SPARSESEL_COMPOSITION_REPLICATED, SPARSESEL_COMPOSITION_OWNER}) {
    job.composition = composition;
    const Bound bound(group, job);
    REQUIRE(bound.ok());
    const Batch large = BatchOfKinds(job, 64, 21);
    const Batch tiny = BatchOfKinds(job, 1, 22);
    const std::vector<oracle::Answer> expected_large = ExpectRows(job, large);
    const std::vector<oracle::Answer> expected_tiny = ExpectRows(job, tiny);
    for (int i = 0; i < 60; ++i) {
      REQUIRE(Compare(job, expected_tiny, Execute(bound, job, tiny)) == "");
      REQUIRE(Compare(job, expected_large, Execute(bound, job, large)) == "");
    }
  }
}

TEST_CASE("bug_E03_ranks_delayed_in_prepare_leave_it_together") {
  const Group group(3);
  std::vector<sparsesel_plan*> plans;
  REQUIRE(AllOk(CreatePlans(group, MakeJob(3, 8, 16, {2}), &plans)));
  std::vector<std::chrono::steady_clock::time_point> left(3);
  std::chrono::steady_clock::time_point last_entered;
  const Outcomes outcomes = OnEveryRank(3, [&](int32_t rank, sparsesel_error* error) {
    std::this_thread::sleep_for(std::chrono::milliseconds(40 * rank));
    if (rank == 2) last_entered = std::chrono::steady_clock::now();
    const sparsesel_status status =
        sparsesel_plan_prepare(plans[static_cast<size_t>(rank)], nullptr, error);
    left[static_cast<size_t>(rank)] = std::chrono::steady_clock::now();
    return status;
  });
  CHECK(AllOk(outcomes));
  for (const auto& time : left) CHECK(time >= last_entered);
  Release(&plans);
}

TEST_CASE("bug_E19_a_rank_that_fails_in_prepare_fails_all_ranks") {
  // Rank 1 cannot map its trial's memory: its limit is too small for one row.
  Job job = MakeJob(3, 2048, 2048, {2});
  const Group group(3);
  job.problems[1].memory_limit = 1;
  std::vector<sparsesel_plan*> plans;
  const Outcomes created = CreatePlans(group, job, &plans);
  CHECK(created[0].status == SPARSESEL_OK);
  CHECK(created[1].status == SPARSESEL_UNSUPPORTED);
  Release(&plans);
  // Only before the limits are compared does one rank know; of two that differ the smaller holds.
  job.problems[1].memory_limit = 600'000;
  const Bound bound(group, job);
  INFO(Describe(bound.outcomes()));
  CHECK((AllOk(bound.outcomes()) || AllAre(bound.outcomes(), SPARSESEL_UNSUPPORTED)));
}

TEST_CASE("bug_E21_a_skipped_execute_is_noticed", "[host]") {
  const Group group(2, ShortLimits(30 * kSecond, 300 * kMillisecond));
  const Job job = MakeJob(2, 8, 16, {2});
  const Bound bound(group, job);
  REQUIRE(bound.ok());
  // Rank 1 leaves one out of five.
  const Outcomes outcomes = OnEveryRank(2, [&](int32_t rank, sparsesel_error* error) {
    std::vector<float> scores(32);
    std::vector<int32_t> ids(32);
    std::vector<int32_t> out(16);
    sparsesel_io io = SPARSESEL_IO_INIT;
    io.rows = 2;
    io.scores = scores.data();
    io.ids = ids.data();
    io.out_ids = out.data();
    for (uint64_t layer = 0; layer < 5; ++layer) {
      if (rank == 1 && layer == 2) continue;
      io.tag = layer;
      const sparsesel_status status = sparsesel_execute(bound.binding(rank), &io, nullptr, error);
      if (status != SPARSESEL_OK) return status;
    }
    return sparsesel_status{SPARSESEL_OK};
  });
  INFO(Describe(outcomes));
  CHECK(AllAre(outcomes, SPARSESEL_MISMATCH));
}

TEST_CASE("bug_F05_a_larger_binding_takes_no_memory_from_a_smaller_one") {
  const Group group(2);
  std::vector<sparsesel_workspace*> workspaces(2, nullptr);
  REQUIRE(AllOk(OnEveryRank(2, [&](int32_t rank, sparsesel_error* error) {
    return sparsesel_workspace_create(group.comm(rank), nullptr,
                                      &workspaces[static_cast<size_t>(rank)], error);
  })));
  const Job small = MakeJob(2, 64, 100, {2});
  const Bound first(group, small, workspaces.data());
  REQUIRE(first.ok());
  for (int32_t rows : {8, 64, 256}) {
    const Job large = MakeJob(2, 512, 800, {rows});
    const Bound larger(group, large, workspaces.data());
    REQUIRE(larger.ok());
    CHECK(Check(first, small, BatchOfKinds(small, 2, 5)) == "");
    CHECK(Check(larger, large, BatchOfKinds(large, 4, 5)) == "");
  }
  CHECK(Check(first, small, BatchOfKinds(small, 2, 6)) == "");
  for (sparsesel_workspace* workspace : workspaces) sparsesel_workspace_release(workspace, nullptr);
}

TEST_CASE("bug_G01_releasing_twice_from_several_threads_is_an_error_not_a_crash") {
  for (int round = 0; round < 50; ++round) {
    Group group(1);
    std::vector<sparsesel_plan*> plans;
    REQUIRE(AllOk(CreatePlans(group, MakeJob(1, 4, 4, {1}), &plans)));
    const Outcomes outcomes = OnEveryRank(4, [&](int32_t, sparsesel_error* error) {
      return sparsesel_plan_release(plans[0], error);
    });
    int released = 0;
    for (const Outcome& outcome : outcomes) {
      released += outcome.status == SPARSESEL_OK;
      CHECK((outcome.status == SPARSESEL_OK || outcome.status == SPARSESEL_INVALID_ARGUMENT));
    }
    CHECK(released == 1);
  }
}

TEST_CASE("bug_G03_abort_and_release_end_in_any_order") {
  for (int order = 0; order < 6; ++order) {
    Group group(3, ShortLimits(60 * kSecond, 60 * kSecond));
    const Job job = MakeJob(3, 8, 16, {2});
    Bound bound(group, job);
    REQUIRE(bound.ok());
    CHECK(Check(bound, job, BatchOfKinds(job, 2, 3)) == "");
    const auto begin = std::chrono::steady_clock::now();
    if (order % 2 == 0) sparsesel_comm_abort(group.comm(order % 3), nullptr);
    if (order % 3 == 0) group.Release();
    if (order % 3 == 1) {
      for (int32_t rank = 2; rank >= 0; --rank) {
        CHECK(sparsesel_binding_release(bound.binding(rank), nullptr) == SPARSESEL_OK);
      }
    }
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
  }
}

TEST_CASE("bug_G11_a_rank_almost_as_late_as_the_limit_is_in_time") {
  const Group group(2, ShortLimits(3 * kSecond, 3 * kSecond));
  std::vector<sparsesel_plan*> plans;
  REQUIRE(AllOk(CreatePlans(group, MakeJob(2, 8, 16, {2}), &plans)));
  const Outcomes outcomes = OnEveryRank(2, [&](int32_t rank, sparsesel_error* error) {
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1000));
    sparsesel_prepare_options options = SPARSESEL_PREPARE_OPTIONS_INIT;
    options.time_budget = kMillisecond;
    return sparsesel_plan_prepare(plans[static_cast<size_t>(rank)], &options, error);
  });
  INFO(Describe(outcomes));
  CHECK(AllOk(outcomes));
  Release(&plans);
}

TEST_CASE("bug_G13_bindings_are_let_go_in_any_order_by_any_thread") {
  for (int round = 0; round < 6; ++round) {
    const Group group(3);
    const Job job = MakeJob(3, 8, 16, {2});
    const Bound bound(group, job);
    REQUIRE(bound.ok());
    CHECK(Check(bound, job, BatchOfKinds(job, 2, 13)) == "");
    for (int32_t i = 0; i < 3; ++i) {
      const int32_t rank = (i * (round % 2 + 1) + round) % 3;
      CHECK(sparsesel_binding_release(bound.binding(rank), nullptr) == SPARSESEL_OK);
      CHECK(sparsesel_binding_release(bound.binding(rank), nullptr) == SPARSESEL_INVALID_ARGUMENT);
    }
  }
}

// Callbacks must not throw; one that does is answered by a code, not by the end of the process.
TEST_CASE("bug_H01_what_a_callback_throws_stays_inside") {
  sparsesel_comm_options options = ShortLimits();
  options.logger.log = [](void*, int32_t, int32_t, const char*) { throw 1; };
  options.allocator.allocate = [](void*, int32_t, size_t, size_t, const char*) -> void* {
    throw 42;
  };
  options.allocator.deallocate = [](void*, int32_t, void*, size_t, size_t, const char*) {};
  std::vector<sparsesel_comm*> comms(2, nullptr);
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  const sparsesel_status made = sparsesel_comm_create_local(2, &options, comms.data(), &error);
  const Group group(comms);
  const auto is_told = [](sparsesel_status status) {
    return status == SPARSESEL_INTERNAL || status == SPARSESEL_OUT_OF_MEMORY;
  };
  if (made != SPARSESEL_OK) {
    CHECK(is_told(made));
    return;
  }
  std::vector<sparsesel_plan*> plans;
  REQUIRE(AllOk(CreatePlans(group, MakeJob(2, 8, 16, {2}), &plans)));
  const Outcomes outcomes = Prepare(plans);
  INFO(Describe(outcomes));
  for (const Outcome& outcome : outcomes) CHECK(is_told(outcome.status));
  Release(&plans);
}

}  // namespace
}  // namespace contract
