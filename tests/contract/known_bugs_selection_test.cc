// Ties, order, duplicates, missing items.
#include <catch2/catch.hpp>

#include "contract/known_bugs.h"

namespace contract {
namespace {

constexpr int32_t kK = 2048;

Row Dealt(const Job& job, uint64_t seed, const std::function<uint32_t(int32_t)>& score) {
  Random random(seed);
  return DealRow(ShapeOf(job), random, score);
}

// `winners` above, the rest equal: the cutoff lies among equals.
Row WinnersAndTies(const Job& job, uint64_t seed, int32_t winners) {
  return Dealt(job, seed, [=](int32_t id) {
    return id % 7 == 3 && id / 7 < winners ? kOne + 1 + static_cast<uint32_t>(id) : kOne;
  });
}

TEST_CASE("bug_A01_ties_at_the_cutoff_settle_alike_every_time") {
  const Job job = MakeJob(3, kK, 2048, {1});
  CHECK(RunEverywhere(job, {WinnersAndTies(job, 1, 500)}, 100) == "");
}

TEST_CASE("bug_A03_order_is_part_of_the_result") {
  const Job job = WithOutputs(MakeJob(4, kK, 2048, {3}), SPARSESEL_OUTPUT_SCORES);
  Random random(3);
  std::vector<Row> rows;
  for (int i = 0; i < 3; ++i) rows.push_back(RowKinds()[0].make(ShapeOf(job), random));
  CHECK(RunEverywhere(job, rows, 20) == "");
}

TEST_CASE("bug_A05_a_row_does_not_see_how_many_others_there_are") {
  const Job job = MakeJob(3, 256, 200, {128, 1024});
  const Group group(3);
  Batch many = MakeBatch(job, 1024);
  for (int32_t row = 0; row < 1024; ++row) {
    SetRow(job, row, WinnersAndTies(job, static_cast<uint64_t>(row), 50), &many);
  }
  Batch few = many;
  few.rows = 128;
  for (int32_t rank = 0; rank < 3; ++rank) {
    for (int32_t row = 0; row < 128; ++row) {
      SetList(job, rank, row, ListOf(job, many, rank, 384 + row), &few);
    }
  }
  const std::vector<oracle::Answer> expected = ExpectRows(job, many);
  const std::vector<oracle::Answer> slice(expected.begin() + 384, expected.begin() + 512);
  for (const Combination& combination : CoveringCombinations(job)) {
    INFO(combination.text());
    const Job run = With(job, combination);
    const Bound bound(group, run);
    REQUIRE(bound.ok());
    CHECK(Compare(run, expected, Execute(bound, run, many)) == "");
    CHECK(Compare(run, slice, Execute(bound, run, few)) == "");
  }
}

TEST_CASE("bug_A07_groups_of_four_equal_scores_across_the_cutoff") {
  const Job job = MakeJob(3, kK, 2048, {4});
  std::vector<Row> rows;
  for (int32_t shift = 0; shift < 4; ++shift) {
    rows.push_back(
        Dealt(job, 7, [=](int32_t id) { return kOne + static_cast<uint32_t>((id + shift) / 4); }));
  }
  CHECK(RunEverywhere(job, rows, 5) == "");
}

TEST_CASE("bug_A09_the_best_three_begin_the_best_five") {
  const uint32_t scores[] = {0x3f800000u, 0x40000000u, 0x40a00000u, 0x40800000u, 0x40a00000u};
  for (int32_t k = 1; k <= 5; ++k) {
    const Job job = MakeJob(2, k, 5, {1});
    Row row(2);
    for (int32_t i = 0; i < 5; ++i) {
      row[static_cast<size_t>(i % 2)].ids.push_back(i);
      row[static_cast<size_t>(i % 2)].score_bits.push_back(scores[i]);
      ++row[static_cast<size_t>(i % 2)].count;
    }
    const std::vector<int32_t> order = {2, 4, 3, 1, 0};
    CHECK(oracle::Expect(row, k).ids == std::vector<int32_t>(order.begin(), order.begin() + k));
    CHECK(RunEverywhere(job, {row}) == "");
  }
}

TEST_CASE("bug_A11_more_candidates_in_one_bin_than_any_buffer") {
  for (int32_t world : {3, 16}) {
    const Job job = MakeJob(world, kK, 2048, {2});
    Random random(11);
    // One coarse bin, told apart by the lowest bits or by nothing.
    const Row narrow = DealRow(ShapeOf(job), random, [&](int32_t) {
      return kOne + static_cast<uint32_t>(random() % 256);
    });
    const Row band = DealRow(ShapeOf(job), random, [&](int32_t) {
      return kOne + static_cast<uint32_t>(random() % 65536);
    });
    CHECK(RunEverywhere(job, {narrow, band}) == "");
  }
}

TEST_CASE("bug_A13_thousands_of_ties_leave_no_empty_slot") {
  // 8320 candidates: 100 winners, 8220 zeros.
  const Job job = MakeJob(5, kK, 1664, {1});
  const Row row = Dealt(job, 13, [](int32_t id) { return id % 83 == 0 ? kOne : 0u; });
  const oracle::Answer answer = oracle::Expect(row, kK);
  CHECK(answer.count == kK);
  CHECK(RunEverywhere(job, {row}) == "");
}

TEST_CASE("bug_A15_rows_of_one_and_of_two_scores") {
  const Job job = MakeJob(4, kK, 2048, {4});
  const std::vector<Row> rows = {
      Dealt(job, 15, [](int32_t) { return 0u; }),
      Dealt(job, 16, [](int32_t) { return 0x7f7fffffu; }),
      Dealt(job, 17, [](int32_t id) { return id % 2 == 0 ? kOne : 0u; }),
      Dealt(job, 18, [](int32_t id) { return id < 2047 ? kOne : kMinusZero; }),
  };
  const oracle::Answer answer = oracle::Expect(rows[0], kK);
  for (int32_t i = 0; i < kK; ++i) REQUIRE(answer.ids[static_cast<size_t>(i)] == i);
  CHECK(RunEverywhere(job, rows) == "");
}

TEST_CASE("bug_A17_a_real_minus_infinity_beats_padding") {
  const Job job = WithOutputs(MakeJob(4, 1000, 400, {2}), SPARSESEL_OUTPUT_SCORES);
  std::vector<Row> rows;
  for (int every : {3, 100}) {
    Row row = Dealt(job, 17, [=](int32_t id) {
      return id % every == 0 ? kOne + static_cast<uint32_t>(id) : kMinusInfinity;
    });
    for (oracle::List& list : row) {
      for (size_t i = 0; i < list.ids.size(); i += 4) list.ids[i] = -1;  // padding in between
    }
    rows.push_back(row);
    CHECK(oracle::Expect(row, 1000).count == 1000);
  }
  CHECK(RunEverywhere(job, rows) == "");
}

TEST_CASE("bug_A19_an_all_nan_row_among_many_keeps_its_ids") {
  const Job job = MakeJob(2, 20, 15, {520});
  std::vector<Row> rows;
  Random random(19);
  for (int32_t row = 0; row < 520; ++row) {
    const uint32_t score = row == 300 ? kNan : kMinusInfinity;
    rows.push_back(row == 300 || row == 519
                       ? Dealt(job, 19, [=](int32_t) { return score; })
                       : RowKinds()[static_cast<size_t>(row) % 3].make(ShapeOf(job), random));
  }
  CHECK(RunEverywhere(job, rows) == "");
}

TEST_CASE("bug_A21_lengths_around_every_block_width") {
  for (int32_t width : {8, 64, 256, 1024}) {
    for (int32_t n : {width - 1, width + 1, 2 * width - 1}) {
      const Job job = MakeJob(2, n, n, {1});
      Random random(static_cast<uint64_t>(n));
      INFO("length " << n);
      CHECK(RunEverywhere(job, {RowKinds()[n % 2 == 0 ? 0 : 4].make(ShapeOf(job), random)}) == "");
    }
  }
}

TEST_CASE("bug_A23_no_size_is_silently_left_undone") {
  for (int32_t k : {1023, 1024, 1025, 2047, 2048, 2049, 4096, 10000}) {
    const Job job = MakeJob(4, k, 2048, {1});
    Random random(23);
    INFO("k " << k);
    CHECK(RunEverywhere(job, {RowKinds()[0].make(ShapeOf(job), random)}) == "");
  }
}

TEST_CASE("bug_A25_every_rank_is_checked_not_the_first") {
  // Compare looks at the outputs of all ranks: so it must see a fault of the last one.
  const Job job = WithOutputs(MakeJob(5, 30, 20, {7}), SPARSESEL_OUTPUT_COUNTS);
  const Group group(5);
  const Bound bound(group, job);
  REQUIRE(bound.ok());
  const Batch batch = BatchOfKinds(job, 7, 25);
  const std::vector<oracle::Answer> expected = ExpectRows(job, batch);
  Results results = Execute(bound, job, batch);
  CHECK(Compare(job, expected, results) == "");
  results.ranks[4].ids[6 * 30] ^= 1;
  CHECK(Compare(job, expected, results) != "");
  CHECK(RunEverywhere(job, batch) == "");
}

}  // namespace
}  // namespace contract
