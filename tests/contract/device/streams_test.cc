// The kinds of streams that a caller may have.
#include <catch2/catch.hpp>

#include "contract/combinations.h"
#include "contract/device/cuda_check.h"
#include "contract/device/graphs.h"
#include "contract/rows.h"

namespace contract {
namespace {

void CheckStreams(unsigned flags) {
  const Job job = MakeJob(3, 300, 200, {5});
  const Group group(3);
  const Streams streams(3, flags);
  const Batch batch = BatchOfKinds(job, 5, 1);
  const std::vector<oracle::Answer> expected = ExpectRows(job, batch);
  for (const Combination& combination : CoveringCombinations(job)) {
    INFO(combination.text());
    const Job run = With(job, combination);
    const Bound bound(group, run);
    REQUIRE(bound.ok());
    std::vector<RankArrays> arrays = MakeArrays(run, batch);
    const GroupGraph graph(bound, arrays, streams.all());
    for (int i = 0; i < 5; ++i) {
      Reset(&arrays);
      EnqueueAll(BindingsOf(bound), arrays, streams.all());
      CHECK(Compare(run, expected, Finish(arrays, streams.all())) == "");
      CHECK(ReplayAndCompare(graph, run, expected, &arrays, streams.all()) == "");
    }
  }
}

TEST_CASE("streams: non-blocking ones", "[device]") { CheckStreams(cudaStreamNonBlocking); }
TEST_CASE("streams: blocking ones, beside which nobody uses the legacy stream", "[device]") {
  CheckStreams(cudaStreamDefault);
}

TEST_CASE("streams: each thread's own", "[device]") {
  const Job job = MakeJob(3, 300, 200, {5});
  const Group group(3);
  const Batch batch = BatchOfKinds(job, 5, 2);
  const std::vector<oracle::Answer> expected = ExpectRows(job, batch);
  for (const Combination& combination : CoveringCombinations(job)) {
    INFO(combination.text());
    const Job run = With(job, combination);
    const Bound bound(group, run);
    REQUIRE(bound.ok());
    const std::vector<RankArrays> eager = MakeArrays(run, batch);
    const std::vector<RankArrays> replayed = MakeArrays(run, batch);
    std::vector<Graph> graphs(3);
    const Outcomes outcomes = OnEveryRank(3, [&](int32_t rank, sparsesel_error* error) {
      const auto r = static_cast<size_t>(rank);
      sparsesel_status status =
          sparsesel_execute(bound.binding(rank), &eager[r].io, cudaStreamPerThread, error);
      if (status != SPARSESEL_OK) return status;
      Synchronize(cudaStreamPerThread);  // making a graph takes memory
      cudaGraph_t captured = nullptr;
      status = Capture(
          cudaStreamPerThread, cudaStreamCaptureModeThreadLocal,
          [&] {
            return sparsesel_execute(bound.binding(rank), &replayed[r].io, cudaStreamPerThread,
                                     error);
          },
          &captured);
      if (status != SPARSESEL_OK) return status;
      graphs[r] = Graph(captured);
      return status;
    });
    CHECK(Compare(run, expected, ReadResults(eager, outcomes)) == "");
    // Other threads, and so other streams.
    const Outcomes replays = OnEveryRank(3, [&](int32_t rank, sparsesel_error*) {
      const Graph& graph = graphs[static_cast<size_t>(rank)];
      for (int i = 0; i < 3; ++i) graph.Launch(cudaStreamPerThread);
      Synchronize(cudaStreamPerThread);
      return sparsesel_status{SPARSESEL_OK};
    });
    CHECK(Compare(run, expected, ReadResults(replayed, replays)) == "");
  }
}

TEST_CASE("streams: the legacy stream is refused, on this rank alone", "[device]") {
  const Job job = MakeJob(2, 30, 20, {5});
  const Group group(2);
  const Bound bound(group, job);
  REQUIRE(bound.ok());
  const Batch batch = BatchOfKinds(job, 5, 3);
  const std::vector<RankArrays> arrays = MakeArrays(job, batch);
  for (void* stream : {static_cast<void*>(nullptr), static_cast<void*>(cudaStreamLegacy)}) {
    sparsesel_error error = SPARSESEL_ERROR_INIT;
    CHECK(sparsesel_execute(bound.binding(0), &arrays[0].io, stream, &error) ==
          SPARSESEL_INVALID_ARGUMENT);
    CHECK(std::string(error.text).find("legacy") != std::string::npos);
    CHECK(sparsesel_comm_status(group.comm(0), nullptr, nullptr) == SPARSESEL_OK);
    CHECK(Check(bound, job, batch) == "");
  }
}

TEST_CASE("streams: an execute changes neither the device nor the stream's order", "[device]") {
  const Job job = MakeJob(2, 30, 20, {5});
  const Group group(2);
  const Bound bound(group, job);
  REQUIRE(bound.ok());
  const Batch batch = BatchOfKinds(job, 5, 4);
  const Batch later = BatchOfKinds(job, 5, 5, 7);
  std::vector<RankArrays> arrays = MakeArrays(job, batch);
  std::vector<RankArrays> copies = MakeArrays(job, later);
  int before = -1;
  int after = -1;
  CHECK_CUDA(cudaGetDevice(&before));
  // What is written to the inputs in stream order, before and after, is seen, and not seen.
  const auto copy_scores = [&](bool forth) {
    for (size_t rank = 0; rank < 2; ++rank) {
      const sparsesel_io& to = arrays[rank].io;
      const sparsesel_io& from = copies[rank].io;
      const auto stream = AsStream(group.streams()[rank]);
      const size_t bytes = 5 * 20 * sizeof(float);
      if (forth) {
        CHECK_CUDA(cudaMemcpyAsync(const_cast<float*>(to.scores), from.scores, bytes,
                                   cudaMemcpyDeviceToDevice, stream));
        CHECK_CUDA(cudaMemcpyAsync(const_cast<int32_t*>(to.ids), from.ids, bytes,
                                   cudaMemcpyDeviceToDevice, stream));
        CHECK_CUDA(cudaMemcpyAsync(const_cast<int32_t*>(to.counts), from.counts,
                                   5 * sizeof(int32_t), cudaMemcpyDeviceToDevice, stream));
      } else {
        CHECK_CUDA(cudaMemsetAsync(const_cast<float*>(to.scores), 0, bytes, stream));
        CHECK_CUDA(cudaMemsetAsync(const_cast<int32_t*>(to.ids), 0, bytes, stream));
      }
    }
  };
  copy_scores(true);
  EnqueueAll(BindingsOf(bound), arrays, group.streams());
  copy_scores(false);
  const Results results = Finish(arrays, group.streams());
  CHECK_CUDA(cudaGetDevice(&after));
  CHECK(before == after);
  const std::vector<oracle::Answer> expected = ExpectRows(job, later);
  for (const RankOutput& output : results.ranks) {
    for (size_t row = 0; row < 5; ++row) {
      CHECK(std::equal(expected[row].ids.begin(), expected[row].ids.end(),
                       output.ids.begin() + static_cast<ptrdiff_t>(row * 30)));
    }
  }
}

}  // namespace
}  // namespace contract
