// Relations between answers, which hold whatever the right answers are.
#include <algorithm>
#include <catch2/catch.hpp>

#include "contract/batch.h"
#include "contract/combinations.h"
#include "contract/rows.h"

namespace contract {
namespace {

constexpr int32_t kKinds = 24;

std::vector<int32_t> RowIds(const Results& results, int32_t rank, int32_t row, int32_t k) {
  const std::vector<int32_t>& ids = results.ranks[static_cast<size_t>(rank)].ids;
  const auto begin = ids.begin() + int64_t{row} * k;
  return {begin, begin + k};
}

Results Run(const Group& group, const Job& job, const Batch& batch) {
  const Bound bound(group, job);
  REQUIRE(bound.ok());
  Results results = Execute(bound, job, batch);
  INFO(Describe(results.outcomes));
  REQUIRE(AllOk(results.outcomes));
  return results;
}

// Calls `check` with every combination of a covering set.
template <typename Function>
void ForEach(const Job& job, Function check) {
  for (const Combination& combination : CoveringCombinations(job)) {
    INFO(combination.text());
    check(With(job, combination));
  }
}

TEST_CASE("metamorphic: the best a are a prefix of the best b") {
  const Group group(3);
  const Job largest = MakeJob(3, 400, 200, {kKinds});
  const Batch batch = BatchOfKinds(largest, kKinds, 1);
  ForEach(largest, [&](const Job& job) {
    const Results all = Run(group, job, batch);
    for (int32_t k : {1, 2, 64, 255, 399}) {
      Job shorter = job;
      for (sparsesel_problem& problem : shorter.problems) problem.k = k;
      const Results some = Run(group, shorter, batch);
      for (int32_t row = 0; row < kKinds; ++row) {
        std::vector<int32_t> prefix = RowIds(all, row % 3, row, 400);
        prefix.resize(static_cast<size_t>(k));
        CHECK(RowIds(some, row % 3, row, k) == prefix);
      }
    }
  });
}

TEST_CASE("metamorphic: a row's answer depends on no other row, nor on its place") {
  const Group group(3);
  const Job job = MakeJob(3, 200, 300, {1, 6, kKinds});
  const Batch batch = BatchOfKinds(job, kKinds, 2);
  ForEach(job, [&](const Job& run) {
    const Bound bound(group, run);
    REQUIRE(bound.ok());
    const Results all = Execute(bound, run, batch);
    REQUIRE(AllOk(all.outcomes));
    Random random(3);
    for (int round = 0; round < 8; ++round) {
      const int32_t rows = round == 0 ? 1 : static_cast<int32_t>(1 + random() % kKinds);
      Batch other = MakeBatch(run, rows);
      std::vector<int32_t> from;
      for (int32_t row = 0; row < rows; ++row) {
        from.push_back(static_cast<int32_t>(random() % kKinds));
        for (int32_t rank = 0; rank < 3; ++rank) {
          SetList(run, rank, row, ListOf(run, batch, rank, from.back()), &other);
        }
      }
      const Results some = Execute(bound, run, other);
      REQUIRE(AllOk(some.outcomes));
      for (int32_t row = 0; row < rows; ++row) {
        CHECK(RowIds(some, 1, row, 200) == RowIds(all, 1, from[static_cast<size_t>(row)], 200));
      }
    }
  });
}

oracle::List Shuffled(oracle::List list, Random& random) {
  // Present candidates stay within the count.
  const auto count = static_cast<size_t>(
      std::clamp<int64_t>(list.count, 0, static_cast<int64_t>(list.ids.size())));
  for (size_t i = count; i > 1; --i) {
    const size_t j = random() % i;
    std::swap(list.ids[i - 1], list.ids[j]);
    std::swap(list.score_bits[i - 1], list.score_bits[j]);
  }
  return list;
}

TEST_CASE("metamorphic: shuffling lists, or exchanging them between ranks, changes no id") {
  const Group group(4);
  const Job job = MakeJob(4, 250, 150, {kKinds});
  const Batch batch = BatchOfKinds(job, kKinds, 4);
  Batch shuffled = MakeBatch(job, kKinds);
  Batch moved = MakeBatch(job, kKinds);
  Random random(5);
  for (int32_t row = 0; row < kKinds; ++row) {
    for (int32_t rank = 0; rank < 4; ++rank) {
      const oracle::List list = ListOf(job, batch, rank, row);
      SetList(job, rank, row, Shuffled(list, random), &shuffled);
      SetList(job, (rank + row) % 4, row, list, &moved);
    }
  }
  ForEach(job, [&](const Job& run) {
    const Results original = Run(group, run, batch);
    CHECK(SameOutputs(original, Run(group, run, shuffled)));
    CHECK(SameOutputs(original, Run(group, run, moved)));
  });
}

TEST_CASE("metamorphic: dealt to other numbers of ranks, the answers are the same") {
  const Job one = MakeJob(1, 500, 1200, {kKinds});
  const Batch batch = BatchOfKinds(one, kKinds, 6);
  const Results expected = [&] {
    const Group group(1);
    return Run(group, one, batch);
  }();
  for (int32_t world : {2, 7, kOnDevice ? 16 : 20}) {
    const Group group(world);
    const Job job = MakeJob(world, 500, 1200, {kKinds});
    Batch dealt = MakeBatch(job, kKinds);
    Random random(7);
    for (int32_t row = 0; row < kKinds; ++row) {
      const oracle::List list = ListOf(one, batch, 0, row);
      Row lists(static_cast<size_t>(world));
      for (size_t i = 0; i < list.ids.size(); ++i) {
        if (static_cast<int64_t>(i) >= list.count) break;
        oracle::List& to = lists[random() % lists.size()];
        to.ids.push_back(list.ids[i]);
        to.score_bits.push_back(list.score_bits[i]);
        ++to.count;
      }
      SetRow(job, row, lists, &dealt);
    }
    ForEach(job, [&](const Job& run) {
      const Results actual = Run(group, run, dealt);
      for (const RankOutput& output : actual.ranks) CHECK(output.ids == expected.ranks[0].ids);
    });
  }
}

TEST_CASE("metamorphic: tiles of any height give the same answers") {
  const Group group(3);
  const Job job = MakeJob(3, 200, 300, {40});
  const Batch batch = BatchOfKinds(job, 40, 8);
  ForEach(job, [&](const Job& run) {
    const Results whole = Run(group, run, batch);
    for (uint64_t limit : {2'000'000, 700'000, 300'000, 150'000, 100'000}) {
      Job tiled = run;
      for (sparsesel_problem& problem : tiled.problems) problem.memory_limit = limit;
      const Bound bound(group, tiled);
      if (!bound.ok()) {
        // Some variants need more than others for one row.
        CHECK(AllAre(bound.outcomes(), SPARSESEL_UNSUPPORTED));
        continue;
      }
      const Results results = Execute(bound, tiled, batch);
      REQUIRE(AllOk(results.outcomes));
      CHECK(SameOutputs(whole, results));
    }
  });
}

TEST_CASE("metamorphic: run again and again, the answers stay bit for bit") {
  const Group group(4);
  Job job = MakeJob(4, 600, 700, {4});
  for (sparsesel_problem& problem : job.problems) {
    problem.outputs = SPARSESEL_OUTPUT_SCORES | SPARSESEL_OUTPUT_COUNTS;
  }
  const Batch batch = BatchOfKinds(job, 4, 9, 4);
  ForEach(job, [&](const Job& run) {
    const Bound bound(group, run);
    REQUIRE(bound.ok());
    const Results first = Execute(bound, run, batch);
    for (int i = 0; i < 30; ++i) CHECK(SameOutputs(first, Execute(bound, run, batch)));
    for (const RankOutput& output : first.ranks) CHECK(output.ids == first.ranks[0].ids);
  });
}

}  // namespace
}  // namespace contract
