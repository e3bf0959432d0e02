// Special floats.
#include <catch2/catch.hpp>

#include "contract/known_bugs.h"

namespace contract {
namespace {

Job ScoreJob(int32_t world, int32_t k, int32_t candidates, int32_t rows) {
  return WithOutputs(MakeJob(world, k, candidates, {rows}), SPARSESEL_OUTPUT_SCORES);
}

// The scores, in order of ids, dealt to the ranks in turn.
Row InTurn(int32_t world, const std::vector<uint32_t>& scores) {
  Row row(static_cast<size_t>(world));
  for (size_t i = 0; i < scores.size(); ++i) {
    oracle::List& list = row[i % row.size()];
    list.score_bits.push_back(scores[i]);
    list.ids.push_back(static_cast<int32_t>(i));
    ++list.count;
  }
  return row;
}

TEST_CASE("bug_B01_infinities_and_nans_have_ids_of_their_own") {
  const uint32_t half = 0x3f000000u;
  const std::vector<uint32_t> infinities = {half, kMinusInfinity, kMinusInfinity, kMinusInfinity,
                                            kMinusInfinity};
  const std::vector<uint32_t> nans = {half, kNan, 0x7f800123u, kMinusNan, kNan};
  for (int32_t world : {1, 2, 3}) {
    const Job job = ScoreJob(world, 3, 5, 2);
    CHECK(RunEverywhere(job, {InTurn(world, infinities), InTurn(world, nans)}) == "");
  }
  CHECK(oracle::Expect(InTurn(2, nans), 3).score_bits ==
        std::vector<uint32_t>{half, kNan, 0x7f800123u});
}

TEST_CASE("bug_B03_infinities_only_at_the_end") {
  const Job job = ScoreJob(3, 200, 400, 1);
  Random random(3);
  Row row = RowKinds()[0].make(ShapeOf(job), random);
  for (size_t i = 200; i < 400; ++i) row[2].score_bits[i] = kInfinity;
  CHECK(RunEverywhere(job, {row}) == "");
}

TEST_CASE("bug_B05_a_row_of_nans_has_real_ids") {
  for (int32_t candidates : {100, 1100}) {
    const Job job = ScoreJob(3, 2048, candidates, 2);
    Random random(5);
    const Row quiet = DealRow(ShapeOf(job), random, [](int32_t) { return kNan; });
    const Row any = DealRow(ShapeOf(job), random,
                            [&](int32_t) { return static_cast<uint32_t>(random()) | 0x7f800001u; });
    CHECK(RunEverywhere(job, {quiet, any}) == "");
  }
}

TEST_CASE("bug_B07_one_rule_for_nans_of_every_sign_and_payload") {
  const uint32_t scores[] = {0x7fc00000u, 0xffc00000u, 0x7f800001u,   0xffffffffu,
                             0xff800001u, kInfinity,   kMinusInfinity};
  const Job job = ScoreJob(3, 500, 300, 3);
  std::vector<Row> rows;
  Random random(7);
  for (int i = 0; i < 3; ++i) {
    rows.push_back(DealRow(ShapeOf(job), random, [&](int32_t) { return scores[random() % 7]; }));
  }
  CHECK(RunEverywhere(job, rows) == "");
}

TEST_CASE("bug_B09_the_zeros_are_equal_and_keep_their_signs") {
  for (bool negative_first : {true, false}) {
    const Job job = ScoreJob(3, 300, 200, 1);
    Random random(9);
    const Row row = DealRow(ShapeOf(job), random, [&](int32_t id) {
      return (id < 300) == negative_first ? kMinusZero : 0u;
    });
    const oracle::Answer answer = oracle::Expect(row, 300);
    for (size_t i = 0; i < 300; ++i) {
      REQUIRE(answer.ids[i] == static_cast<int32_t>(i));
      REQUIRE(answer.score_bits[i] == (negative_first ? kMinusZero : 0u));
    }
    CHECK(RunEverywhere(job, {row}) == "");
  }
}

TEST_CASE("bug_B11_every_kind_of_bit_pattern_comes_back") {
  // All exponents with the mantissas at their ends; all patterns are an exhaustive target's.
  std::vector<uint32_t> patterns;
  for (uint32_t high = 0; high < 512; ++high) {
    for (uint32_t low : {0u, 1u, 0x400000u, 0x7fffffu}) patterns.push_back(high << 23 | low);
  }
  for (int32_t world : {1, 2}) {
    const Job job = ScoreJob(world, 2048, 2048, 1);
    CHECK(RunEverywhere(job, {InTurn(world, patterns)}) == "");
  }
}

TEST_CASE("bug_B13_padding_is_not_a_value") {
  // NaNs of the greatest payloads beside lists that are padded by count and by id.
  const Job job = ScoreJob(3, 2000, 700, 1);
  Random random(13);
  Row row = DealRow(ShapeOf(job), random,
                    [](int32_t id) { return id % 2 == 0 ? 0xffffffffu : 0x7fffffffu; });
  row[0].count = 33;
  for (size_t i = 0; i < 600; ++i) row[1].ids[i] = -1;
  CHECK(oracle::Expect(row, 2000).count == 33 + 100 + 700);
  CHECK(RunEverywhere(job, {row}) == "");
}

TEST_CASE("bug_B15_nans_anywhere_lead_to_no_wild_id") {
  const Job job = ScoreJob(4, 400, 300, 40);
  Random random(15);
  std::vector<Row> rows;
  for (int i = 0; i < 40; ++i) {
    Row row = RowKinds()[static_cast<size_t>(i) % RowKinds().size()].make(ShapeOf(job), random);
    for (oracle::List& list : row) {
      for (uint32_t& score : list.score_bits) {
        if (random() % 10 == 0) score = static_cast<uint32_t>(random()) | 0x7f800001u;
      }
    }
    rows.push_back(row);
  }
  CHECK(RunEverywhere(job, rows) == "");
}

}  // namespace
}  // namespace contract
