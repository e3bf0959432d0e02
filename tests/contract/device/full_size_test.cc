// Rows of the size that the library is made for, few at a time as in decoding: where the kernel
// that does everything at once finds room beside those of the other ranks.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "contract/combinations.h"
#include "contract/device/graphs.h"
#include "contract/rows.h"

namespace contract {
namespace {

void CheckFewRows(int32_t world) {
  const Group group(world);
  for (int32_t rows : {1, 2, 4, 8}) {
    const Job job = MakeJob(world, 2048, 2048, {rows});
    std::vector<Batch> batches;
    std::vector<std::vector<oracle::Answer>> expected;
    for (size_t first = 0; first < RowKinds().size(); first += static_cast<size_t>(rows)) {
      batches.push_back(BatchOfKinds(job, rows, first + 1, first));
      expected.push_back(ExpectRows(job, batches.back()));
    }
    bool fused = false;
    for (const Combination& combination : CoveringCombinations(job)) {
      INFO(rows << " rows, " << combination.text());
      fused |= combination.child_plans.find("peer.fused") != std::string::npos;
      const Job run = With(job, combination);
      const Bound bound(group, run);
      if (!bound.ok()) UNSCOPED_INFO(Describe(bound.outcomes()));
      REQUIRE(bound.ok());
      std::vector<RankArrays> arrays = MakeArrays(run, batches[0]);
      const GroupGraph graph(bound, arrays, group.streams());
      for (size_t i = 0; i < batches.size(); ++i) {
        CHECK(Compare(run, expected[i], Execute(bound, run, batches[i])) == "");
        for (int32_t rank = 0; rank < world; ++rank) {
          arrays[static_cast<size_t>(rank)].Replace(batches[i], rank);
        }
        CHECK(ReplayAndCompare(graph, run, expected[i], &arrays, group.streams()) == "");
      }
    }
    if (!fused) WARN(world << " ranks, " << rows << " rows: no room for peer.fused");
    if (world <= 8 && rows == 1) CHECK(fused);
  }
}

TEST_CASE("full size, few rows: 1 rank", "[device]") { CheckFewRows(1); }
TEST_CASE("full size, few rows: 2 ranks", "[device]") { CheckFewRows(2); }
TEST_CASE("full size, few rows: 3 ranks", "[device]") { CheckFewRows(3); }
TEST_CASE("full size, few rows: 4 ranks", "[device]") { CheckFewRows(4); }
TEST_CASE("full size, few rows: 5 ranks", "[device]") { CheckFewRows(5); }
TEST_CASE("full size, few rows: 8 ranks", "[device]") { CheckFewRows(8); }
TEST_CASE("full size, few rows: 16 ranks", "[device]") { CheckFewRows(16); }

}  // namespace
}  // namespace contract
