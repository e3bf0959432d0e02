// Shapes, sizes, alignment, overflow.
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <climits>
#include <cstdlib>

#include "contract/known_bugs.h"

namespace contract {
namespace {

// Fresh pages, zero until written; the page after them cannot be touched.
class Pages {
 public:
  explicit Pages(size_t bytes) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    bytes_ = (bytes + page - 1) / page * page;
    memory_ = mmap(nullptr, bytes_ + page, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED) std::abort();  // Catch's assertions are not for ranks' threads
    mprotect(static_cast<char*>(memory_) + bytes_, page, PROT_NONE);
    page_ = page;
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { munmap(memory_, bytes_ + page_); }

  // An array whose end is the end of the pages.
  template <typename T>
  T* EndingArray(size_t count) const {
    return reinterpret_cast<T*>(static_cast<char*>(memory_) + bytes_ - count * sizeof(T));
  }

 private:
  void* memory_;
  size_t bytes_;
  size_t page_;
};

TEST_CASE("bug_C01_negative_and_oversized_counts_are_clamped") {
  const Job job = WithOutputs(MakeJob(3, 2048, 2048, {8}), SPARSESEL_OUTPUT_COUNTS);
  Batch batch = BatchOfKinds(job, 8, 1);
  const int32_t counts[] = {-1, -4, INT_MIN, 0, 2048, 2049, INT_MAX, 1};
  for (size_t rank = 0; rank < 3; ++rank) {
    for (size_t row = 0; row < 8; ++row) batch.ranks[rank].counts[row] = counts[(row + rank) % 8];
  }
  CHECK(RunEverywhere(job, batch) == "");
}

TEST_CASE("bug_C03_no_rows_and_one_rank_are_calls_like_others") {
  for (int32_t world : {1, 4}) {
    const Job job = MakeJob(world, 16, 16, {4});
    for (int32_t rows : {0, 1, 4}) CHECK(RunEverywhere(job, BatchOfKinds(job, rows, 3)) == "");
  }
}

// Rows 4 MiB apart: offsets in bytes beyond 2^32, of pages that are never written.
void CheckFarRows(bool outputs_far) {
  constexpr int64_t kStride = 1 << 20;
  constexpr int32_t kRows = 1100;
  const size_t words = static_cast<size_t>(kStride) * (kRows - 1) + 64;
  for (int32_t composition : {SPARSESEL_COMPOSITION_REPLICATED, SPARSESEL_COMPOSITION_OWNER}) {
    Job job = MakeJob(2, 8, 16, {kRows});
    job.composition = composition;
    const Group group(2);
    const Bound bound(group, job);
    REQUIRE(bound.ok());
    std::vector<int> wrong(2, 0);
    const Outcomes outcomes = OnEveryRank(2, [&](int32_t rank, sparsesel_error* error) {
      const Pages score_pages(words * 4);
      const Pages id_pages(words * 4);
      const Pages out_pages(words * 4);
      auto* const scores = score_pages.EndingArray<float>(words);
      auto* const ids = id_pages.EndingArray<int32_t>(words);
      auto* const out = out_pages.EndingArray<int32_t>(words);
      const int64_t stride = outputs_far ? 16 : kStride;
      const int64_t out_stride = outputs_far ? kStride : 8;
      for (int64_t row = 0; row < kRows; ++row) {
        for (int64_t i = 0; i < 16; ++i) {
          ids[row * stride + i] = static_cast<int32_t>(row * 32 + 2 * i + rank);
        }
      }
      sparsesel_io io = SPARSESEL_IO_INIT;
      io.rows = kRows;
      io.scores = scores;
      io.ids = ids;
      io.out_ids = out;
      io.score_stride = io.id_stride = stride;
      io.out_id_stride = out_stride;
      const sparsesel_status status = sparsesel_execute(bound.binding(rank), &io, nullptr, error);
      for (int64_t row = 0; row < kRows; ++row) {
        for (int64_t i = 0; i < 8; ++i) {
          wrong[static_cast<size_t>(rank)] += out[row * out_stride + i] != row * 32 + i;
        }
      }
      return status;
    });
    INFO(Describe(outcomes));
    CHECK(AllOk(outcomes));
    CHECK(wrong == std::vector<int>{0, 0});
  }
}

TEST_CASE("bug_C05_offsets_beyond_31_bits", "[host]") { CheckFarRows(false); }
TEST_CASE("bug_C05_output_offsets_beyond_31_bits", "[host]") { CheckFarRows(true); }

TEST_CASE("bug_C07_only_the_bytes_of_the_described_rows_are_touched") {
  // Inputs and outputs end where their pages end; gaps between rows are poisoned by the fixture.
  for (int32_t candidates : {1, 3, 7, 33, 70}) {
    Job job = WithOutputs(MakeJob(3, 50, candidates, {5}),
                          SPARSESEL_OUTPUT_SCORES | SPARSESEL_OUTPUT_COUNTS);
    CHECK(RunEverywhere(job, BatchOfKinds(job, 5, 7), 1, {.id_stride = 53, .score_stride = 51}) ==
          "");
    if (kOnDevice) continue;  // where there are no pages to protect
    const Batch batch = BatchOfKinds(job, 5, 7);
    const std::vector<oracle::Answer> expected = ExpectRows(job, batch);
    const Group group(3);
    for (const Combination& combination : CoveringCombinations(job)) {
      const Job run = With(job, combination);
      const Bound bound(group, run);
      REQUIRE(bound.ok());
      std::vector<int> wrong(3, 0);
      const Outcomes outcomes = OnEveryRank(3, [&](int32_t rank, sparsesel_error* error) {
        const RankInput& input = batch.ranks[static_cast<size_t>(rank)];
        const auto n = static_cast<size_t>(5 * candidates);
        const Pages pages[] = {Pages(n * 4), Pages(n * 4), Pages(20),
                               Pages(1000),  Pages(1000),  Pages(20)};
        auto* const scores = pages[0].EndingArray<uint32_t>(n);
        auto* const ids = pages[1].EndingArray<int32_t>(n);
        auto* const counts = pages[2].EndingArray<int32_t>(5);
        std::copy_n(input.score_bits.begin(), n, scores);
        std::copy_n(input.ids.begin(), n, ids);
        std::copy_n(input.counts.begin(), 5, counts);
        sparsesel_io io = SPARSESEL_IO_INIT;
        io.rows = 5;
        io.scores = reinterpret_cast<const float*>(scores);
        io.ids = ids;
        io.counts = counts;
        io.out_ids = pages[3].EndingArray<int32_t>(250);
        io.out_scores = pages[4].EndingArray<float>(250);
        io.out_counts = pages[5].EndingArray<int32_t>(5);
        const sparsesel_status status = sparsesel_execute(bound.binding(rank), &io, nullptr, error);
        for (size_t row = 0; row < 5; ++row) {
          wrong[static_cast<size_t>(rank)] += !std::equal(
              expected[row].ids.begin(), expected[row].ids.end(), io.out_ids + row * 50);
        }
        return status;
      });
      INFO(combination.text() << "\n" << Describe(outcomes));
      CHECK(AllOk(outcomes));
      CHECK(wrong == std::vector<int>{0, 0, 0});
    }
  }
}

TEST_CASE("bug_C09_strides_are_honoured_on_every_path") {
  for (int64_t stride : {2048 + 1, 4096, 3 * 2048}) {
    Job job = MakeJob(2, 2048, 2048, {3});
    for (sparsesel_problem& problem : job.problems) {
      problem.score_stride = stride;
      problem.id_stride = stride + 2;
    }
    CHECK(RunEverywhere(job, BatchOfKinds(job, 3, 9), 1, {.id_stride = stride}) == "");
  }
}

TEST_CASE("bug_C11_row_counts_around_every_launch_limit") {
  for (int32_t rows : {65535, 65536, kSanitized ? 131073 : 1'000'000}) {
    Job job = MakeJob(2, 1, 1, {rows});
    Batch batch = MakeBatch(job, rows);
    for (int32_t rank = 0; rank < 2; ++rank) {
      RankInput& input = batch.ranks[static_cast<size_t>(rank)];
      for (int32_t row = 0; row < rows; ++row) {
        const auto r = static_cast<size_t>(row);
        input.counts[r] = 1;
        input.ids[r] = row ^ (rank << 20);
        input.score_bits[r] = row % 3 == 0 ? kOne : row % 3 == 1 ? kOne + (rank == 1) : kNan;
      }
    }
    const std::vector<oracle::Answer> expected = ExpectRows(job, batch);
    const Group group(2);
    // Not tuned: every trial would run a million rows.
    job.child_plans = kOnDevice ? "peer.push,select.sampled,peer.answers"
                                : "pack.plain,exchange.full,select.threshold,replicate.all_gather";
    for (int32_t composition : {SPARSESEL_COMPOSITION_REPLICATED, SPARSESEL_COMPOSITION_OWNER}) {
      job.composition = composition;
      const Bound bound(group, job);
      INFO(rows << " rows\n" << Describe(bound.outcomes()));
      REQUIRE(bound.ok());
      CHECK(Compare(job, expected, Execute(bound, job, batch)) == "");
    }
  }
}

TEST_CASE("bug_C13_lengths_that_are_odd_or_one_past_a_tile") {
  for (int32_t candidates : {2047, 2049, 4097, 16385, 65535}) {
    const Job job = MakeJob(2, 2048, candidates, {1});
    Random random(13);
    INFO("candidates " << candidates);
    CHECK(RunEverywhere(job, {RowKinds()[4].make(ShapeOf(job), random)}) == "");
  }
}

TEST_CASE("bug_C15_byte_counts_beyond_32_bits_are_figures_like_others") {
  const Group group(kOnDevice ? 16 : 64);
  for (int32_t capacity : {131072, 262144, 1048576}) {
    sparsesel_problem problem = SPARSESEL_PROBLEM_INIT;
    problem.capacities = &capacity;
    problem.capacity_count = 1;
    problem.candidates = 65536;
    problem.k = 65536;
    sparsesel_plan* plan = nullptr;
    sparsesel_error error = SPARSESEL_ERROR_INIT;
    const sparsesel_status status = sparsesel_plan_create(group.comm(0), &problem, &plan, &error);
    INFO(error.text);
    REQUIRE(status == SPARSESEL_OK);
    sparsesel_memory memory = SPARSESEL_MEMORY_INIT;
    REQUIRE(sparsesel_plan_memory(plan, &memory, &error) == SPARSESEL_OK);
    // One rank's packed rows alone, at 8 bytes a candidate.
    CHECK(memory.persistent >= uint64_t{65536} * 8 * static_cast<uint64_t>(memory.tile_rows));
    CHECK(memory.persistent < uint64_t{1} << 52);
    sparsesel_plan_release(plan, nullptr);
  }
}

TEST_CASE("bug_C17_longer_side_arrays_do_not_add_rows") {
  const Job job =
      WithOutputs(MakeJob(3, 20, 30, {64}), SPARSESEL_OUTPUT_SCORES | SPARSESEL_OUTPUT_COUNTS);
  const Group group(3);
  const Bound bound(group, job);
  REQUIRE(bound.ok());
  const Batch all = BatchOfKinds(job, 64, 17);
  const std::vector<oracle::Answer> expected = ExpectRows(job, all);
  for (int32_t rows = 1; rows <= 64; rows += 3) {
    Batch some = all;  // whose arrays stay as long as they are
    some.rows = rows;
    CHECK(Compare(job, expected, Execute(bound, job, some)) == "");
  }
}

TEST_CASE("bug_C19_ranks_that_own_no_row_or_have_no_candidate") {
  for (int32_t world : {5, 16}) {
    for (int32_t rows : {1, 3}) {
      const Job job = MakeJob(world, 40, 30, {4});
      Batch batch = BatchOfKinds(job, rows, 19);
      std::fill(batch.ranks[1].counts.begin(), batch.ranks[1].counts.end(), 0);
      CHECK(RunEverywhere(job, batch, 3) == "");
    }
  }
}

TEST_CASE("bug_C21_no_result_is_minus_one_at_the_tail") {
  const Job job = WithOutputs(MakeJob(3, 100, 20, {24}), SPARSESEL_OUTPUT_COUNTS);
  const Batch batch = BatchOfKinds(job, 24, 21);
  const Group group(3);
  const Bound bound(group, job);
  REQUIRE(bound.ok());
  const Results results = Execute(bound, job, batch);
  REQUIRE(AllOk(results.outcomes));
  for (size_t row = 0; row < 24; ++row) {
    for (size_t i = 0; i < 100; ++i) {
      const bool selected = static_cast<int32_t>(i) < results.ranks[2].counts[row];
      const int32_t id = results.ranks[2].ids[row * 100 + i];
      CHECK((selected ? id >= 0 : id == -1));
    }
  }
  CHECK(RunEverywhere(job, batch) == "");
}

}  // namespace
}  // namespace contract
