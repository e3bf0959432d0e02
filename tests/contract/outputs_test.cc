// What a caller can ask of inputs and outputs, in every composition and variant.
#include <catch2/catch.hpp>
#include <climits>
#include <optional>

#include "contract/batch.h"
#include "contract/combinations.h"
#include "contract/rows.h"

namespace contract {
namespace {

constexpr uint32_t kEverything = SPARSESEL_OUTPUT_SCORES | SPARSESEL_OUTPUT_COUNTS;

template <typename Change>
Job Changed(Job job, Change change) {
  for (size_t rank = 0; rank < job.problems.size(); ++rank) {
    change(static_cast<int32_t>(rank), &job.problems[rank]);
  }
  return job;
}

// Runs one batch through a few combinations in which every variant appears.
void CheckEverywhere(const Job& job, const Batch& batch, const OutputLayout& layout = {}) {
  const std::vector<oracle::Answer> expected = ExpectRows(job, batch);
  const Group group(job.world());
  const std::vector<Combination> combinations = CoveringCombinations(job);
  REQUIRE(combinations.size() >= kLeastCombinations);
  for (const Combination& combination : combinations) {
    INFO(combination.text());
    const Job run = With(job, combination);
    const Bound bound(group, run);
    if (!bound.ok()) UNSCOPED_INFO(Describe(bound.outcomes()));
    REQUIRE(bound.ok());
    CHECK(Compare(run, expected, Execute(bound, run, batch, layout)) == "");
  }
}

TEST_CASE("outputs: scores come back bit for bit, unused ones as -inf, and counts") {
  for (uint32_t outputs :
       {uint32_t{SPARSESEL_OUTPUT_SCORES}, uint32_t{SPARSESEL_OUTPUT_COUNTS}, kEverything}) {
    const Job job = Changed(MakeJob(3, 300, 150, {24}),
                            [&](int32_t, sparsesel_problem* p) { p->outputs = outputs; });
    CheckEverywhere(job, BatchOfKinds(job, 24, 1));
  }
}

TEST_CASE("outputs: by id, with and without scores") {
  for (uint32_t outputs : {uint32_t{0}, kEverything}) {
    const Job job = Changed(MakeJob(3, 200, 150, {24}), [&](int32_t, sparsesel_problem* p) {
      p->outputs = outputs;
      p->output_order = SPARSESEL_OUTPUT_BY_ID;
    });
    CheckEverywhere(job, BatchOfKinds(job, 24, 2));
  }
}

// Candidates of one key that only their bits and their sources tell apart.
TEST_CASE("outputs: scores of equal candidates go by rank, then by position") {
  for (int32_t order : {SPARSESEL_OUTPUT_BY_SCORE, SPARSESEL_OUTPUT_BY_ID}) {
    const Job job = Changed(MakeJob(4, 60, 100, {40}), [&](int32_t, sparsesel_problem* p) {
      p->outputs = kEverything;
      p->output_order = order;
    });
    Batch batch = MakeBatch(job, 40);
    Random random(3);
    for (int32_t row = 0; row < 40; ++row) {
      Row lists = DealRow(ShapeOf(job), random, [&](int32_t) {
        constexpr uint32_t kAlike[] = {0, kMinusZero, kNan, kMinusNan, 0x7f800001u, 0xff800001u};
        return kAlike[row % 2 == 0 ? random() % 2 : random() % 6];
      });
      const uint64_t ids = 1 + random() % 30;
      for (oracle::List& list : lists) {
        for (int32_t& id : list.ids) id = static_cast<int32_t>(random() % ids);
      }
      SetRow(job, row, lists, &batch);
    }
    CheckEverywhere(job, batch);
  }
}

TEST_CASE("outputs: in place, the ids replace the ids") {
  for (int32_t scope : {SPARSESEL_SCOPE_ALL_ROWS, SPARSESEL_SCOPE_OWNED_ROWS}) {
    for (int64_t stride : {200, 333}) {
      const Job job = Changed(MakeJob(3, 150, 200, {25}), [&](int32_t, sparsesel_problem* p) {
        p->id_stride = stride;
        p->output_scope = scope;
        p->outputs = kEverything;
      });
      CheckEverywhere(job, BatchOfKinds(job, 25, 4), {.in_place = true});
    }
  }
}

TEST_CASE("outputs: in place with more ids than candidates") {
  const Job job = Changed(MakeJob(3, 150, 70, {25}),
                          [&](int32_t, sparsesel_problem* p) { p->id_stride = 150; });
  CheckEverywhere(job, BatchOfKinds(job, 25, 5), {.in_place = true});
}

TEST_CASE("outputs: each rank its own rows") {
  for (int32_t rows : {0, 1, 2, 3, 7, 24}) {
    const Job job = Changed(MakeJob(5, 300, 150, {24}), [&](int32_t, sparsesel_problem* p) {
      p->output_scope = SPARSESEL_SCOPE_OWNED_ROWS;
      p->outputs = kEverything;
    });
    CheckEverywhere(job, BatchOfKinds(job, rows, 6));
  }
}

TEST_CASE("outputs: rows at or beyond active_rows are empty") {
  for (int32_t scope : {SPARSESEL_SCOPE_ALL_ROWS, SPARSESEL_SCOPE_OWNED_ROWS}) {
    const Job job = Changed(MakeJob(4, 100, 120, {13}), [&](int32_t, sparsesel_problem* p) {
      p->output_scope = scope;
      p->outputs = kEverything;
    });
    Batch batch = BatchOfKinds(job, 13, 7);
    for (int32_t active : {INT_MIN, -1, 0, 1, 3, 4, 12, 13, 14, INT_MAX - 1}) {
      INFO("active rows " << active);
      batch.active_rows = active;
      CheckEverywhere(job, batch);
    }
  }
}

TEST_CASE("outputs: counts outside the list are clamped, and no counts is all") {
  const Job job = Changed(MakeJob(3, 300, 150, {24}),
                          [&](int32_t, sparsesel_problem* p) { p->outputs = kEverything; });
  Batch batch = BatchOfKinds(job, 24, 8);
  constexpr int32_t kCounts[] = {-1, -4, INT_MIN, 0, 1, 149, 150, 151, INT_MAX};
  size_t next = 0;
  for (RankInput& input : batch.ranks) {
    for (int32_t& count : input.counts) count = kCounts[next++ % std::size(kCounts)];
  }
  CheckEverywhere(job, batch);
  for (size_t rank = 0; rank < 3; ++rank) {
    batch.ranks[rank].counts.clear();  // on some ranks, then on all
    CheckEverywhere(job, batch);
  }
}

TEST_CASE("outputs: strides of the problem, and greater ones of the call") {
  const Job job = Changed(MakeJob(3, 130, 100, {9}), [&](int32_t rank, sparsesel_problem* p) {
    p->outputs = kEverything;
    p->score_stride = 101 + rank;
    p->id_stride = 128;
    p->output_stride = 131;
  });
  Batch batch = BatchOfKinds(job, 9, 9);
  CheckEverywhere(job, batch, {.id_stride = 131, .score_stride = 131});
  CheckEverywhere(job, batch, {.id_stride = 400, .score_stride = 139});

  Batch wider = batch;
  for (size_t rank = 0; rank < 3; ++rank) {
    RankInput& input = wider.ranks[rank];
    const RankInput& old = batch.ranks[rank];
    input.score_stride = 250;
    input.id_stride = 301;
    input.score_bits.assign(9 * 250, kInfinity);
    input.ids.assign(9 * 301, 0);
    for (int64_t row = 0; row < 9; ++row) {
      std::copy_n(old.score_bits.begin() + row * old.score_stride, 100,
                  input.score_bits.begin() + row * 250);
      std::copy_n(old.ids.begin() + row * old.id_stride, 100, input.ids.begin() + row * 301);
    }
  }
  CheckEverywhere(job, wider, {.id_stride = 131, .score_stride = 131});
}

TEST_CASE("outputs: ids are mapped on their way, by offset") {
  const Job job = Changed(MakeJob(3, 200, 150, {24}), [&](int32_t rank, sparsesel_problem* p) {
    p->outputs = kEverything;
    p->id_map = rank == 1 ? SPARSESEL_ID_IDENTITY : SPARSESEL_ID_OFFSET;
    p->id_offset = rank == 1 ? 0 : rank * 1000;
  });
  Batch batch = BatchOfKinds(job, 24, 10);
  // The greatest id that the offset leaves room for.
  for (RankInput& input : batch.ranks) {
    for (int32_t& id : input.ids) id = std::min(id, INT32_MAX - 2000);
  }
  CheckEverywhere(job, batch);
}

TEST_CASE("outputs: ids are mapped on their way, interleaved in blocks") {
  for (int32_t block : {1, 3, 64}) {
    const Job job = Changed(MakeJob(3, 200, 150, {24}), [&](int32_t rank, sparsesel_problem* p) {
      p->outputs = kEverything;
      p->id_map = SPARSESEL_ID_INTERLEAVE;
      p->id_block = block;
      p->id_shard = 2 - rank;
      p->id_shards = 3;
    });
    Batch batch = BatchOfKinds(job, 24, 11);
    for (RankInput& input : batch.ranks) {
      for (int32_t& id : input.ids) id = std::min(id, INT32_MAX / 3 - 3 * block);
    }
    CheckEverywhere(job, batch);
  }
}

TEST_CASE("outputs: positions into rows of scores") {
  const int64_t row_length = 900;
  for (bool with_starts : {false, true}) {
    const Job job = Changed(MakeJob(3, 200, 150, {24}), [&](int32_t rank, sparsesel_problem* p) {
      p->outputs = kEverything;
      p->input_kind = SPARSESEL_INPUT_POSITIONS;
      p->score_row_length = row_length;
      p->score_stride = row_length + rank;
      p->id_map = SPARSESEL_ID_OFFSET;
      p->id_offset = rank * 600;
    });
    Batch batch = MakeBatch(job, 24);
    Random random(12);
    for (size_t rank = 0; rank < 3; ++rank) {
      RankInput& input = batch.ranks[rank];
      for (uint32_t& score : input.score_bits) {
        score = static_cast<uint32_t>(random() % 3 == 0 ? random() : kOne + random() % 8);
      }
      if (with_starts) input.row_starts.assign(24, 0);
      for (size_t row = 0; row < 24; ++row) {
        const int32_t start = with_starts ? static_cast<int32_t>(random() % 300) : 0;
        if (with_starts) input.row_starts[row] = start;
        input.counts[row] = static_cast<int32_t>(random() % 160);
        for (int64_t i = 0; i < 150; ++i) {
          const auto position =
              static_cast<int32_t>(random() % static_cast<uint64_t>(row_length - start));
          // Beyond the count a position may be anything.
          const bool counted = i < input.counts[row];
          input.ids[row * static_cast<size_t>(input.id_stride) + static_cast<size_t>(i)] =
              !counted            ? INT32_MAX
              : random() % 9 == 0 ? -1
                                  : position;
        }
      }
    }
    CheckEverywhere(job, batch);
  }
}

// Ranks may differ in what they have and promise, not in what they want.
TEST_CASE("outputs: pairs on one rank, positions on another") {
  const Job job = Changed(MakeJob(2, 100, 80, {6}), [&](int32_t rank, sparsesel_problem* p) {
    if (rank == 0) return;
    p->candidates = 50;
    p->input_kind = SPARSESEL_INPUT_POSITIONS;
    p->score_row_length = 64;
  });
  Batch batch = MakeBatch(job, 6);
  Random random(13);
  for (size_t rank = 0; rank < 2; ++rank) {
    const size_t length = rank == 0 ? 80 : 50;
    for (uint32_t& score : batch.ranks[rank].score_bits) {
      score = static_cast<uint32_t>(kOne + random() % 50);
    }
    for (int32_t& id : batch.ranks[rank].ids) id = static_cast<int32_t>(random() % 64);
    for (int32_t& count : batch.ranks[rank].counts) count = static_cast<int32_t>(length);
  }
  CheckEverywhere(job, batch);
}

TEST_CASE("outputs: an order that is promised, kept or broken, changes nothing") {
  for (int32_t order : {SPARSESEL_ORDER_BY_SCORE, SPARSESEL_ORDER_FULL}) {
    for (bool on_all : {false, true}) {
      const Job job = Changed(MakeJob(3, 500, 1100, {24}), [&](int32_t rank, sparsesel_problem* p) {
        p->outputs = kEverything;
        p->input_order = on_all || rank == 1 ? order : SPARSESEL_ORDER_NONE;
      });
      // Of all kinds, of which "sorted" keeps the promise; the others break it in their ways.
      CheckEverywhere(job, BatchOfKinds(job, kSanitized ? 6 : 24, 14, 18));
    }
  }
}

TEST_CASE("outputs: lists in order of scores with ids in any order among equals") {
  const Job job = Changed(MakeJob(3, 700, 1100, {8}), [&](int32_t, sparsesel_problem* p) {
    p->input_order = SPARSESEL_ORDER_BY_SCORE;
  });
  Batch batch = MakeBatch(job, 8);
  Random random(15);
  for (int32_t row = 0; row < 8; ++row) {
    Row lists = DealRow(ShapeOf(job), random, [](int32_t) { return kOne; });
    for (oracle::List& list : lists) {
      uint32_t score = 0x41000000u;
      for (size_t i = 0; i < list.ids.size(); ++i) {
        score -= random() % static_cast<uint64_t>(row + 2) == 0
                     ? 1 + static_cast<uint32_t>(random() % 1000)
                     : 0;
        list.score_bits[i] = i + 40 > list.ids.size() ? kNan : score;
        if (random() % 20 == 0) list.ids[i] = -1;  // absent ones may stand anywhere
      }
    }
    SetRow(job, row, lists, &batch);
  }
  CheckEverywhere(job, batch);
}

TEST_CASE("outputs: tiles under a memory limit give what no tiles give") {
  const Group group(3);
  for (int32_t scope : {SPARSESEL_SCOPE_ALL_ROWS, SPARSESEL_SCOPE_OWNED_ROWS}) {
    const Job whole = Changed(MakeJob(3, 250, 300, {50}), [&](int32_t, sparsesel_problem* p) {
      p->outputs = kEverything;
      p->output_scope = scope;
    });
    const Batch batch = BatchOfKinds(whole, 50, 16);
    Batch part = batch;
    part.active_rows = 17;
    const std::vector<oracle::Answer> expected = ExpectRows(whole, batch);
    const std::vector<oracle::Answer> expected_part = ExpectRows(whole, part);
    const auto memory_of = [](const Bound& bound) {
      sparsesel_memory memory = SPARSESEL_MEMORY_INIT;
      REQUIRE(sparsesel_plan_memory(bound.plan(0), &memory, nullptr) == SPARSESEL_OK);
      return memory;
    };
    for (const Combination& combination : CoveringCombinations(whole)) {
      INFO(combination.text());
      Job tiled = With(whole, combination);
      // The smallest limit of all ranks holds. What is not pinned is tuned anew for each limit, and
      // may take less: the limit is lowered until what was bound is cut into tiles.
      tiled.problems[1].memory_limit = memory_of(Bound(group, tiled)).persistent;
      std::optional<Bound> made;
      do {
        tiled.problems[1].memory_limit /= 2;
        made.emplace(group, tiled);
        if (!made->ok()) UNSCOPED_INFO(Describe(made->outcomes()));
        REQUIRE(made->ok());
      } while (memory_of(*made).tile_rows == 50);
      const Bound& bound = *made;
      CHECK(memory_of(bound).tile_rows < 50);
      CHECK(memory_of(bound).persistent <= tiled.problems[1].memory_limit);
      CHECK(Compare(tiled, expected, Execute(bound, tiled, batch)) == "");
      CHECK(Compare(tiled, expected, Execute(bound, tiled, batch, {.in_place = true})) == "");
      CHECK(Compare(tiled, expected_part, Execute(bound, tiled, part)) == "");
    }
  }
}

TEST_CASE("outputs: a memory limit too small for one row is refused") {
  const Job job = Changed(MakeJob(2, 2048, 2048, {4}),
                          [](int32_t, sparsesel_problem* p) { p->memory_limit = 1000; });
  const Group group(2);
  const Bound bound(group, job);
  CHECK(AllAre(bound.outcomes(), SPARSESEL_UNSUPPORTED));
  INFO(Describe(bound.outcomes()));
  CHECK(bound.outcomes()[0].text().find("1000") != std::string::npos);
}

TEST_CASE("outputs: one binding serves every capacity and every number of rows") {
  Job job = MakeJob(3, 64, 80, {1, 2, 5, 8, 13});
  const Group group(3);
  for (const Combination& combination : CoveringCombinations(job)) {
    INFO(combination.text());
    const Job run = With(job, combination);
    const Bound bound(group, run);
    REQUIRE(bound.ok());
    for (int32_t rows : {13, 0, 1, 2, 3, 4, 5, 6, 8, 9, 12, 13, 1}) {
      CHECK(Check(bound, run, BatchOfKinds(run, rows, static_cast<uint64_t>(rows))) == "");
    }
  }
}

}  // namespace
}  // namespace contract
