// Very many executes, eager and replayed by turns, of several row counts.
#include <catch2/catch.hpp>

#include "contract/combinations.h"
#include "contract/device/graphs.h"
#include "contract/rows.h"

namespace contract {
namespace {

// One row count: its arrays, their graph, and the digest that its outputs must have.
struct Lane {
  Batch batch;
  std::vector<oracle::Answer> expected;
  std::vector<RankArrays> arrays;
  std::vector<GroupGraph> graph;  // one
  uint64_t digest = 0;
  bool ran = false;
};

// FNV-1a over words.
void Mix(uint64_t word, uint64_t* digest) { *digest = (*digest ^ word) * 0x100000001b3u; }

uint64_t Digest(const Results& results) {
  uint64_t digest = 0xcbf29ce484222325u;
  for (const RankOutput& output : results.ranks) {
    for (int32_t id : output.ids) Mix(static_cast<uint32_t>(id), &digest);
    for (uint32_t bits : output.score_bits) Mix(bits, &digest);
    for (int32_t count : output.counts) Mix(static_cast<uint32_t>(count), &digest);
  }
  return digest;
}

void CheckMixed(int64_t replays) {
  constexpr int32_t kWorld = 4;
  constexpr int64_t kBetweenLooks = 100;
  Job job = MakeJob(kWorld, 512, 600, {1, 4, 8});
  // A promise that not all rows keep; without it there are no prefixes.
  for (sparsesel_problem& problem : job.problems) problem.input_order = SPARSESEL_ORDER_FULL;
  const Group group(kWorld);
  for (const Combination& combination : CoveringCombinations(job)) {
    INFO(combination.text());
    const Job run = With(job, combination);
    const Bound bound(group, run);
    REQUIRE(bound.ok());
    const std::vector<sparsesel_binding*> bindings = BindingsOf(bound);
    std::vector<Lane> lanes(6);
    constexpr int32_t kRows[] = {1, 2, 4, 5, 8, 0};
    for (size_t i = 0; i < lanes.size(); ++i) {
      Lane& lane = lanes[i];
      lane.batch = BatchOfKinds(run, kRows[i], i, 4 * i);
      lane.expected = ExpectRows(run, lane.batch);
      lane.arrays = MakeArrays(run, lane.batch);
      lane.graph.emplace_back(bound, lane.arrays, group.streams());
      Reset(&lane.arrays);
      lane.graph[0].Launch(group.streams());
      const Results results = Finish(lane.arrays, group.streams());
      REQUIRE(Compare(run, lane.expected, results) == "");
      lane.digest = Digest(results);
    }
    Random random(7);
    for (int64_t done = 0; done < replays;) {
      for (Lane& lane : lanes) {
        Reset(&lane.arrays);
        lane.ran = false;
      }
      for (const int64_t until = done + kBetweenLooks; done < until; ++done) {
        Lane& lane = lanes[random() % lanes.size()];
        lane.ran = true;
        if (random() % 3 == 0) {
          EnqueueAll(bindings, lane.arrays, group.streams());
        } else {
          lane.graph[0].Launch(group.streams());
        }
      }
      for (const Lane& lane : lanes) {
        if (!lane.ran) continue;
        const Results results = Finish(lane.arrays, group.streams());
        if (Digest(results) == lane.digest && AllOk(results.outcomes)) continue;
        INFO("after " << done << " executes, " << lane.batch.rows << " rows");
        REQUIRE(Compare(run, lane.expected, results) == "");
        FAIL("the digest differs");
      }
    }
    CHECK(sparsesel_comm_status(group.comm(0), nullptr, nullptr) == SPARSESEL_OK);
  }
}

TEST_CASE("replays: 10000 mixed", "[device]") { CheckMixed(10'000); }
TEST_CASE("replays: 100000 mixed", "[device][.][long]") { CheckMixed(100'000); }

}  // namespace
}  // namespace contract
