// Prefixes of lists that are said to be in order: where they are enough, where they just are not,
// and where the promise is broken.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "contract/combinations.h"
#include "contract/device/graphs.h"
#include "contract/rows.h"

namespace contract {
namespace {

constexpr int32_t kPrefixes[] = {64, 128, 256, 512, 1024};

Job OrderedJob(int32_t world, int32_t k, int32_t candidates, int32_t rows) {
  Job job = MakeJob(world, k, candidates, {rows});
  for (sparsesel_problem& problem : job.problems) {
    problem.input_order = SPARSESEL_ORDER_FULL;
    problem.outputs = SPARSESEL_OUTPUT_COUNTS;
  }
  return job;
}

Job WithPrefix(Job job, int32_t prefix) {
  job.composition = SPARSESEL_COMPOSITION_REPLICATED;
  job.child_plans = "peer.fused_prefix:" + std::to_string(prefix);
  return job;
}

// Batches of `rows` rows each, in which all kinds are.
std::vector<Batch> Batches(const Job& job, int32_t rows, bool in_order) {
  std::vector<Batch> batches;
  Random random(3);
  for (size_t first = 0; first < RowKinds().size(); first += static_cast<size_t>(rows)) {
    Batch batch = MakeBatch(job, rows);
    for (int32_t row = 0; row < rows; ++row) {
      const RowKind& kind = RowKinds()[(first + static_cast<size_t>(row)) % RowKinds().size()];
      Row lists = InFullOrder(kind.make(ShapeOf(job), random));
      if (!in_order) {
        // One candidate, of one list, is where it should not be: at the end, in the middle, or next
        // to where it should.
        oracle::List& list = lists[random() % lists.size()];
        const size_t n = list.ids.size();
        const size_t from = random() % n;
        const size_t to = random() % 3 == 0 ? n - 1 : random() % 2 == 0 ? (from + 1) % n : n / 2;
        std::swap(list.ids[from], list.ids[to]);
        std::swap(list.score_bits[from], list.score_bits[to]);
      }
      SetRow(job, row, lists, &batch);
    }
    batches.push_back(batch);
  }
  return batches;
}

// Eager and replayed, with every prefix that can run.
void CheckPrefixes(int32_t world, int32_t k, int32_t candidates, int32_t rows) {
  const Job job = OrderedJob(world, k, candidates, rows);
  const Group group(world);
  const std::vector<Combination> combinations = CoveringCombinations(job);
  size_t prefixes = 0;
  for (bool in_order : {true, false}) {
    const std::vector<Batch> batches = Batches(job, rows, in_order);
    std::vector<std::vector<oracle::Answer>> expected;
    for (const Batch& batch : batches) expected.push_back(ExpectRows(job, batch));
    for (const Combination& combination : combinations) {
      INFO(world << " ranks, k " << k << ", " << candidates << " candidates, " << rows << " rows, "
                 << (in_order ? "in order, " : "out of order, ") << combination.text());
      prefixes += combination.child_plans.find("prefix") != std::string::npos;
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
  }
  if (prefixes == 0) WARN(world << " ranks, " << rows << " rows: no room for a prefix");
  if (rows == 1 && world <= 8) CHECK(prefixes > 0);
}

TEST_CASE("prefixes: of short lists", "[device]") {
  for (int32_t world : {2, 3, 5}) {
    for (int32_t rows : {1, 4}) CheckPrefixes(world, 100, 150, rows);
  }
}
TEST_CASE("prefixes: of full size", "[device]") {
  for (int32_t world : {3, 4, 8, 16}) {
    for (int32_t rows : {1, 4}) CheckPrefixes(world, 2048, 2048, rows);
  }
}
TEST_CASE("prefixes: of long lists of which little is wanted", "[device]") {
  for (int32_t world : {2, 8}) CheckPrefixes(world, 60, 5000, 2);
}

// A prefix is enough if its last record does not come before the last that is selected.
TEST_CASE("prefixes: exactly enough, one more and one less", "[device]") {
  for (int32_t prefix : kPrefixes) {
    const int32_t k = prefix + 30;
    const int32_t candidates = prefix + 100;
    const Job job = WithPrefix(OrderedJob(3, k, candidates, 1), prefix);
    const Group group(3);
    const Bound bound(group, job);
    INFO("prefix " << prefix << "\n" << Describe(bound.outcomes()));
    if (prefix > 256 && AllAre(bound.outcomes(), SPARSESEL_UNSUPPORTED)) {
      WARN("not run: " << bound.outcomes()[0].text());  // too little room for so much at once
      continue;
    }
    REQUIRE(bound.ok());
    for (uint32_t step : {0u, 1u}) {  // all equal, and all different
      for (int32_t winners : {prefix - 2, prefix - 1, prefix, prefix + 1, prefix + 2, k}) {
        for (int32_t rank : {0, 2}) {
          INFO(winners << " winners on rank " << rank << ", step " << step);
          Row lists(3);
          for (int32_t r = 0; r < 3; ++r) {
            oracle::List& list = lists[static_cast<size_t>(r)];
            for (int32_t i = 0; i < candidates; ++i) {
              const bool wins = r == rank && i < winners;
              // Winners have the smallest ids, too, and so win where all are equal.
              list.ids.push_back(wins ? i : 10'000 * (r + 1) + i);
              const auto height = static_cast<uint32_t>((wins ? 20'000 : 10'000) - i);
              list.score_bits.push_back(kOne + step * height);
            }
            list.count = candidates;
          }
          Batch batch = MakeBatch(job, 1);
          SetRow(job, 0, InFullOrder(lists), &batch);
          CHECK(Check(bound, job, batch) == "");
        }
      }
    }
  }
}

TEST_CASE("prefixes: the same list on every rank, and absences from within the prefix on",
          "[device]") {
  for (int32_t prefix : kPrefixes) {
    const int32_t k = 2 * prefix;
    const Job job = WithPrefix(OrderedJob(4, k, 2 * prefix + 50, 2), prefix);
    const Group group(4);
    const Bound bound(group, job);
    INFO("prefix " << prefix << "\n" << Describe(bound.outcomes()));
    if (prefix > 256 && AllAre(bound.outcomes(), SPARSESEL_UNSUPPORTED)) {
      WARN("not run: " << bound.outcomes()[0].text());  // too little room for so much at once
      continue;
    }
    REQUIRE(bound.ok());
    for (int32_t present : {0, 1, prefix - 1, prefix, prefix + 1, 2 * prefix + 50}) {
      for (uint32_t scores : {1u, 7u, 100'000u}) {
        INFO(present << " present, " << scores << " scores");
        Random random(scores);
        oracle::List list;
        for (int32_t i = 0; i < 2 * prefix + 50; ++i) {
          list.ids.push_back(i < present ? i / 2 : -1);
          list.score_bits.push_back(kOne + static_cast<uint32_t>(random() % scores));
        }
        list.count = static_cast<int64_t>(list.ids.size());
        Batch batch = MakeBatch(job, 2);
        SetRow(job, 0, InFullOrder(Row(4, list)), &batch);
        // And by count.
        oracle::List counted = InFullOrder(Row(1, list))[0];
        counted.count = present / 2;
        SetRow(job, 1, {counted, list, counted, list}, &batch);
        CHECK(Check(bound, job, batch) == "");
      }
    }
  }
}

// Rows that need the rest of the lists and rows that do not, in turn and back to back: what a rank
// keeps for its peers is not written again before they have fetched it.
TEST_CASE("prefixes: enough and not enough by turns, with a rank that lags", "[device]") {
  const Job job = WithPrefix(OrderedJob(4, 200, 1000, 2), 64);
  const Group group(4);
  const Bound bound(group, job);
  INFO(Describe(bound.outcomes()));
  REQUIRE(bound.ok());
  std::vector<Batch> batches;
  std::vector<std::vector<RankArrays>> arrays;
  std::vector<GroupGraph> graphs;
  for (bool in_order : {true, false}) {
    for (Batch& batch : Batches(job, 2, in_order)) batches.push_back(std::move(batch));
  }
  for (const Batch& batch : batches) arrays.push_back(MakeArrays(job, batch));
  for (const std::vector<RankArrays>& call : arrays) {
    graphs.emplace_back(bound, call, group.streams());
  }
  for (int round = 0; round < 12; ++round) {
    for (std::vector<RankArrays>& call : arrays) Reset(&call);
    // All that a rank does is enqueued before the next one's: each in turn is the first, or last.
    for (int32_t turn = 0; turn < 4; ++turn) {
      const int32_t rank = (turn + round) % 4;
      for (const GroupGraph& graph : graphs) graph.rank(rank).Launch(group.stream(rank));
    }
    for (size_t i = 0; i < batches.size(); ++i) {
      CHECK(Compare(job, ExpectRows(job, batches[i]), Finish(arrays[i], group.streams())) == "");
    }
  }
}

TEST_CASE("prefixes: few candidates of every kind before many absences", "[device]") {
  constexpr uint32_t kScores[] = {kNan, kMinusNan,  kInfinity, kMinusInfinity,
                                  0,    kMinusZero, 1,         kOne};
  const Group group(3);
  for (int32_t k : {1, 2, 3}) {
    const Job job = OrderedJob(3, k, 1100, 8);
    const std::vector<Combination> combinations = CoveringCombinations(job);
    for (const Combination& combination : combinations) {
      INFO("k " << k << ", " << combination.text());
      const Job run = With(job, combination);
      const Bound bound(group, run);
      REQUIRE(bound.ok());
      Random random(static_cast<uint64_t>(k));
      for (int i = 0; i < 40; ++i) {
        Batch batch = MakeBatch(run, 8);
        for (int32_t row = 0; row < 8; ++row) {
          Row lists(3,
                    {std::vector<uint32_t>(1100, kInfinity), std::vector<int32_t>(1100, -1), 1100});
          for (oracle::List& list : lists) {
            const size_t present = random() % 5;
            for (size_t n = 0; n < present; ++n) {
              list.score_bits[n] = kScores[random() % std::size(kScores)];
              list.ids[n] = static_cast<int32_t>(random() % 2);
            }
          }
          SetRow(run, row, random() % 4 == 0 ? lists : InFullOrder(lists), &batch);
        }
        CHECK(Check(bound, run, batch) == "");
      }
    }
  }
}

}  // namespace
}  // namespace contract
