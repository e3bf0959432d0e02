#include "contract/small_scope.h"

#include <catch2/catch.hpp>

namespace contract {
namespace {

void Check(int32_t world) {
  const std::vector<SmallCandidate> alphabet = SmallAlphabet(1);
  SmallScope scope(world, 4);
  REQUIRE(scope.combinations() > 0);
  for (int32_t candidates = 0; candidates <= 3; ++candidates) {
    scope.set_all_modes(candidates <= 2);
    scope.AddAll(candidates, alphabet);
  }
  if (!kSanitized && !kOnDevice) {
    scope.AddAll(4, alphabet);
  } else {
    Random random(1);
    scope.AddSampled(4, 40'000, alphabet, random);
  }
  scope.Finish();
  INFO(scope.cases() << " cases, " << scope.combinations() << " combinations");
  INFO(scope.first_difference());
  CHECK(scope.wrong() == 0);
}

TEST_CASE("small scope: every case of up to 4 candidates on 2 ranks") { Check(2); }
TEST_CASE("small scope: every case of up to 4 candidates on 3 ranks") { Check(3); }

TEST_CASE("small scope: cases of 5 to 8 candidates, sampled") {
  const std::vector<SmallCandidate> alphabet = SmallAlphabet(9);
  for (int32_t world : {2, 3}) {
    Random random(static_cast<uint64_t>(world));
    SmallScope scope(world, 8);
    for (int32_t candidates = 5; candidates <= 8; ++candidates) {
      scope.AddSampled(candidates, kSanitized ? 1'000 : 6'000, alphabet, random);
    }
    scope.Finish();
    INFO(scope.first_difference());
    CHECK(scope.wrong() == 0);
  }
}

// Prefixes are taken of long lists only: the few candidates stand far apart among absences.
TEST_CASE("small scope: few candidates in lists longer than every prefix") {
  const std::vector<SmallCandidate> alphabet = SmallAlphabet(1);
  Random random(5);
  const Group group(3);
  Job job = MakeJob(3, 3, 1100, {100});
  Batch batch = MakeBatch(job, 100);
  for (int32_t row = 0; row < batch.rows; ++row) {
    Row lists;
    for (int32_t rank = 0; rank < 3; ++rank) {
      oracle::List list{std::vector<uint32_t>(1100, kInfinity), std::vector<int32_t>(1100, -1),
                        1100};
      for (int i = 0; i < 4; ++i) {
        const SmallCandidate& candidate = alphabet[random() % alphabet.size()];
        const size_t at = random() % 1100;
        list.score_bits[at] = candidate.score_bits;
        list.ids[at] = candidate.id;
      }
      lists.push_back(list);
    }
    SetRow(job, row, lists, &batch);
  }
  for (const OutputMode& mode : kOutputModes) {
    for (sparsesel_problem& problem : job.problems) {
      problem.outputs = mode.outputs;
      problem.output_order = mode.output_order;
    }
    const std::vector<oracle::Answer> expected = ExpectRows(job, batch);
    for (const Combination& combination : CoveringCombinations(job)) {
      const Job run = With(job, combination);
      const Bound bound(group, run);
      INFO(mode.name << ", " << combination.text());
      REQUIRE(bound.ok());
      CHECK(Compare(run, expected, Execute(bound, run, batch)) == "");
    }
  }
}

}  // namespace
}  // namespace contract
