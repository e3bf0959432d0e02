// Rows of the size that the library is made for, of every kind, in every composition and variant.
#include <catch2/catch.hpp>
#include <optional>

#include "contract/batch.h"
#include "contract/combinations.h"
#include "contract/rows.h"

namespace contract {
namespace {

constexpr int32_t kK = 2048;

// Lists of 2048 candidates, but for some ranks.
Job UnevenJob(int32_t world, std::vector<int32_t> capacities) {
  Job job = MakeJob(world, kK, 2048, std::move(capacities));
  constexpr int32_t kLengths[] = {2048, 1500, 2048, 1, 2047, 2048, 300};
  for (size_t rank = 0; rank < job.problems.size(); ++rank) {
    job.problems[rank].candidates = world == 1 ? 2500 : kLengths[rank % std::size(kLengths)];
  }
  return job;
}

void Ask(uint32_t outputs, Job* job) {
  for (sparsesel_problem& problem : job->problems) problem.outputs = outputs;
}

void CheckWorld(int32_t world) {
  // Large groups have half of the kinds with one set of outputs, half with the other.
  const auto kinds = static_cast<int32_t>(RowKinds().size());
  const int32_t rows = kSanitized ? 5 : world < 16 ? kinds : kinds / 2 + 1;
  Job job = UnevenJob(world, {1, 3, rows});
  std::string reason;
  const std::optional<Group> made = GroupIfAvailable(world, &reason);
  // Most numbers must find room on one device; these may not.
  if (!made && (world == 12 || world == 64)) {
    WARN("not run: " << reason);
    return;
  }
  INFO(reason);
  REQUIRE(made.has_value());
  const Group& group = *made;
  size_t first = kSanitized ? static_cast<size_t>(world) : 0;
  for (uint32_t outputs : {0, SPARSESEL_OUTPUT_SCORES | SPARSESEL_OUTPUT_COUNTS}) {
    Ask(outputs, &job);
    const Batch batch = BatchOfKinds(job, rows, static_cast<uint64_t>(world), first);
    const std::vector<oracle::Answer> expected = ExpectRows(job, batch);
    first += static_cast<size_t>(rows);
    for (const Combination& combination : CoveringCombinations(job)) {
      INFO(world << " ranks, outputs " << outputs << ", " << combination.text());
      const Job run = With(job, combination);
      const Bound bound(group, run);
      if (!bound.ok()) UNSCOPED_INFO(Describe(bound.outcomes()));
      REQUIRE(bound.ok());
      CHECK(Compare(run, expected, Execute(bound, run, batch)) == "");
      // Fewer rows than ranks, and none.
      for (int32_t few : {2, 0}) {
        Batch part = batch;
        part.rows = few;
        CHECK(Compare(run, expected, Execute(bound, run, part)) == "");
      }
    }
  }
}

TEST_CASE("full size: 1 rank") { CheckWorld(1); }
TEST_CASE("full size: 2 ranks") { CheckWorld(2); }
TEST_CASE("full size: 3 ranks") { CheckWorld(3); }
TEST_CASE("full size: 4 ranks") { CheckWorld(4); }
TEST_CASE("full size: 5 ranks") { CheckWorld(5); }
TEST_CASE("full size: 8 ranks") { CheckWorld(8); }
TEST_CASE("full size: 12 ranks") { CheckWorld(12); }
TEST_CASE("full size: 16 ranks") { CheckWorld(16); }
TEST_CASE("full size: 64 ranks") { CheckWorld(64); }

TEST_CASE("full size: every combination of variants that there is") {
  Job job = MakeJob(3, 600, 1100, {5});
  const Group group(3);
  size_t first = 0;
  // One kernel for everything gives no scores.
  for (uint32_t outputs : {SPARSESEL_OUTPUT_SCORES | SPARSESEL_OUTPUT_COUNTS, 0}) {
    if (outputs == 0 && !kOnDevice) continue;
    Ask(outputs, &job);
    const std::vector<Combination> combinations = AllCombinations(job);
    REQUIRE(combinations.size() > (kOnDevice ? 1 : 8));
    for (const Combination& combination : combinations) {
      INFO(combination.text());
      const Job run = With(job, combination);
      const Bound bound(group, run);
      REQUIRE(bound.ok());
      const Batch batch = BatchOfKinds(run, 5, first, first);
      CHECK(Check(bound, run, batch) == "");
      first += 5;
    }
  }
}

// A variant that runs in no test is not tested.
TEST_CASE("full size: every variant runs") {
  Job job = UnevenJob(4, {kOnDevice ? 1 : 4});
  std::vector<Combination> combinations = CoveringCombinations(job);
  if (kOnDevice) {
    // Prefixes are taken there of lists that are said to be in order.
    Job ordered = MakeJob(4, 200, 1100, {1});
    for (sparsesel_problem& problem : ordered.problems) problem.input_order = SPARSESEL_ORDER_FULL;
    for (const Combination& combination : CoveringCombinations(ordered)) {
      combinations.push_back(combination);
    }
  }
  for (int32_t composition : {SPARSESEL_COMPOSITION_REPLICATED, SPARSESEL_COMPOSITION_OWNER}) {
    for (const std::string& name : VariantNames(composition)) {
      size_t uses = 0;
      for (const Combination& combination : combinations) {
        if (combination.composition != composition) continue;
        for (const std::string& variant : combination.variants) uses += variant == name;
      }
      INFO(name << " in composition " << composition);
      CHECK(uses > 0);
    }
  }
}

TEST_CASE("full size: lists and k up to the limits") {
  for (const auto& [k, candidates] :
       {std::pair{65536, 65536}, {1, 65536}, {65536, 1}, {5000, 3000}}) {
    Job job = MakeJob(3, k, candidates, {1});
    const Batch batch = BatchOfKinds(job, 1, 8, static_cast<size_t>(k % 7));
    const std::vector<oracle::Answer> expected = ExpectRows(job, batch);
    const Group group(3);
    for (const Combination& combination : CoveringCombinations(job)) {
      INFO("k " << k << ", candidates " << candidates << ", " << combination.text());
      const Job run = With(job, combination);
      const Bound bound(group, run);
      REQUIRE(bound.ok());
      CHECK(Compare(run, expected, Execute(bound, run, batch)) == "");
    }
  }
}

}  // namespace
}  // namespace contract
