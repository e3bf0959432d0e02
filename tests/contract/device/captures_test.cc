// Captures inside of others: child graphs, forked streams, conditional bodies. Each works, or is
// refused with a sentence by whoever refuses it; none ends in a wrong answer or a hang.
#include <catch2/catch.hpp>

#include "contract/combinations.h"
#include "contract/device/cuda_check.h"
#include "contract/device/graphs.h"
#include "contract/rows.h"

namespace contract {
namespace {

struct Call {
  explicit Call(const Job& which, uint64_t seed)
      : job(which),
        batch(BatchOfKinds(job, 4, seed)),
        expected(ExpectRows(job, batch)),
        arrays(MakeArrays(job, batch)) {}

  const Job job;
  const Batch batch;
  const std::vector<oracle::Answer> expected;
  std::vector<RankArrays> arrays;
};

Job SmallJob(const char* child_plans, int32_t composition) {
  Job job = MakeJob(2, 100, 150, {4});
  // A promise that not all rows keep; without it there are no prefixes.
  for (sparsesel_problem& problem : job.problems) problem.input_order = SPARSESEL_ORDER_FULL;
  job.child_plans = child_plans;
  job.composition = composition;
  return job;
}

std::vector<Job> Jobs() {
  return {SmallJob("peer.push,select.sampled", SPARSESEL_COMPOSITION_REPLICATED),
          SmallJob("peer.fused", SPARSESEL_COMPOSITION_REPLICATED),
          SmallJob("peer.fused_prefix:64", SPARSESEL_COMPOSITION_REPLICATED),
          SmallJob("peer.push,select.sampled,peer.answers", SPARSESEL_COMPOSITION_OWNER)};
}

void LaunchAndCompare(const std::vector<Graph>& graphs, const Group& group, Call* call) {
  for (int i = 0; i < 3; ++i) {
    Reset(&call->arrays);
    for (size_t rank = 0; rank < graphs.size(); ++rank) graphs[rank].Launch(group.streams()[rank]);
    CHECK(Compare(call->job, call->expected, Finish(call->arrays, group.streams())) == "");
  }
}

TEST_CASE("bug_F15_captured_graphs_as_children_of_another", "[device]") {
  const Group group(2);
  for (const Job& job : Jobs()) {
    DYNAMIC_SECTION(job.child_plans) {
      const Bound bound(group, job);
      REQUIRE(bound.ok());
      Call call(job, 15);
      std::vector<Graph> graphs;
      for (int32_t rank = 0; rank < 2; ++rank) {
        const auto r = static_cast<size_t>(rank);
        cudaGraph_t child = nullptr;
        sparsesel_error error = SPARSESEL_ERROR_INIT;
        const sparsesel_status status = Capture(
            group.stream(rank), cudaStreamCaptureModeThreadLocal,
            [&] {
              return sparsesel_execute(bound.binding(rank), &call.arrays[r].io, group.stream(rank),
                                       &error);
            },
            &child);
        INFO(error.text);
        REQUIRE(status == SPARSESEL_OK);
        cudaGraph_t parent = nullptr;
        CHECK_CUDA(cudaGraphCreate(&parent, 0));
        cudaGraphNode_t last = nullptr;
        for (int i = 0; i < 3; ++i) {
          cudaGraphNode_t node = nullptr;
          CHECK_CUDA(cudaGraphAddChildGraphNode(&node, parent, i == 0 ? nullptr : &last,
                                                i == 0 ? 0 : 1, child));
          last = node;
        }
        CHECK_CUDA(cudaGraphDestroy(child));
        graphs.emplace_back(parent);
      }
      LaunchAndCompare(graphs, group, &call);
    }
  }
}

TEST_CASE("bug_F15_captured_on_a_stream_that_was_forked_into_the_capture", "[device]") {
  const Group group(2);
  const std::vector<void*> forks = TakeStreams(2);
  for (const Job& job : Jobs()) {
    DYNAMIC_SECTION(job.child_plans) {
      const Bound bound(group, job);
      REQUIRE(bound.ok());
      Call call(job, 16);
      std::vector<Graph> graphs;
      for (int32_t rank = 0; rank < 2; ++rank) {
        const auto r = static_cast<size_t>(rank);
        cudaGraph_t graph = nullptr;
        cudaEvent_t forked = nullptr;
        cudaEvent_t joined = nullptr;
        CHECK_CUDA(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
        CHECK_CUDA(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
        sparsesel_error error = SPARSESEL_ERROR_INIT;
        const sparsesel_status status = Capture(
            group.stream(rank), cudaStreamCaptureModeThreadLocal,
            [&] {
              CHECK_CUDA(cudaEventRecord(forked, AsStream(group.stream(rank))));
              CHECK_CUDA(cudaStreamWaitEvent(AsStream(forks[r]), forked, 0));
              const sparsesel_status executed =
                  sparsesel_execute(bound.binding(rank), &call.arrays[r].io, forks[r], &error);
              CHECK_CUDA(cudaEventRecord(joined, AsStream(forks[r])));
              CHECK_CUDA(cudaStreamWaitEvent(AsStream(group.stream(rank)), joined, 0));
              return executed;
            },
            &graph);
        CHECK_CUDA(cudaEventDestroy(forked));
        CHECK_CUDA(cudaEventDestroy(joined));
        INFO(error.text);
        REQUIRE(status == SPARSESEL_OK);
        graphs.emplace_back(graph);
      }
      LaunchAndCompare(graphs, group, &call);
    }
  }
  GiveBackStreams(forks);
}

// Why CUDA or the library refuses an execute in the body of a conditional node; empty if neither
// does.
std::string CaptureConditional(const Bound& bound, const RankArrays& arrays, int32_t rank,
                               void* stream, Graph* made) {
  cudaGraph_t graph = nullptr;
  CHECK_CUDA(cudaGraphCreate(&graph, 0));
  cudaGraphConditionalHandle handle;
  CHECK_CUDA(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
  cudaGraphNodeParams parameters = {};
  parameters.type = cudaGraphNodeTypeConditional;
  parameters.conditional.handle = handle;
  parameters.conditional.type = cudaGraphCondTypeIf;
  parameters.conditional.size = 1;
  cudaGraphNode_t node = nullptr;
  CHECK_CUDA(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters));
  const cudaGraph_t body = parameters.conditional.phGraph_out[0];
  CHECK_CUDA(cudaStreamBeginCaptureToGraph(AsStream(stream), body, nullptr, nullptr, 0,
                                           cudaStreamCaptureModeThreadLocal));
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  const sparsesel_status status =
      sparsesel_execute(bound.binding(rank), &arrays.io, stream, &error);
  cudaGraph_t captured = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(AsStream(stream), &captured);
  std::string refusal;
  if (status != SPARSESEL_OK) {
    refusal = std::string("by the library: ") + error.text;
  } else if (ended != cudaSuccess) {
    refusal = std::string("by the capture: ") + cudaGetErrorString(ended);
  }
  (void)cudaGetLastError();
  if (!refusal.empty()) {
    (void)cudaGraphDestroy(graph);
    return refusal;
  }
  try {
    *made = Graph(graph);
  } catch (const std::exception& exception) {
    return std::string("by the instantiation: ") + exception.what();
  }
  return "";
}

TEST_CASE("bug_F15_captured_into_a_conditional_body_it_is_refused_or_works", "[device]") {
  for (const Job& job : Jobs()) {
    DYNAMIC_SECTION(job.child_plans) {
      const Group group(2);
      const Bound bound(group, job);
      REQUIRE(bound.ok());
      Call call(job, 17);
      std::vector<Graph> graphs(2);
      std::vector<std::string> refusals;
      for (int32_t rank = 0; rank < 2; ++rank) {
        const auto r = static_cast<size_t>(rank);
        refusals.push_back(
            CaptureConditional(bound, call.arrays[r], rank, group.stream(rank), &graphs[r]));
      }
      CHECK(refusals[0].empty() == refusals[1].empty());
      if (refusals[0].empty() && refusals[1].empty()) {
        LaunchAndCompare(graphs, group, &call);
      } else {
        WARN(job.child_plans << ": refused " << refusals[0]);
      }
      CHECK(Check(bound, job, call.batch) == "");
    }
  }
}

TEST_CASE("captures: one that was invalidated is answered, and the group goes on", "[device]") {
  const Group group(2);
  for (const Job& job : Jobs()) {
    DYNAMIC_SECTION(job.child_plans) {
      const Bound bound(group, job);
      REQUIRE(bound.ok());
      const Call call(job, 18);
      const cudaStream_t stream = AsStream(group.stream(0));
      CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
      CHECK(cudaStreamSynchronize(stream) != cudaSuccess);  // which no capture may do
      (void)cudaGetLastError();
      sparsesel_error error = SPARSESEL_ERROR_INIT;
      CHECK(sparsesel_execute(bound.binding(0), &call.arrays[0].io, stream, &error) ==
            SPARSESEL_INVALID_STATE);
      CHECK(std::string(error.text) != "");
      cudaGraph_t graph = nullptr;
      CHECK(cudaStreamEndCapture(stream, &graph) != cudaSuccess);
      CHECK(graph == nullptr);
      (void)cudaGetLastError();
      CHECK(sparsesel_comm_status(group.comm(0), nullptr, nullptr) == SPARSESEL_OK);
      CHECK(Check(bound, job, call.batch) == "");
    }
  }
}

// A capture of one rank alone sends nothing: it may be thrown away.
TEST_CASE("captures: one that is never replayed changes nothing", "[device]") {
  const Group group(2);
  for (const Job& job : Jobs()) {
    DYNAMIC_SECTION(job.child_plans) {
      const Bound bound(group, job);
      REQUIRE(bound.ok());
      const Call call(job, 19);
      sparsesel_error error = SPARSESEL_ERROR_INIT;
      for (int i = 0; i < 3; ++i) {
        cudaGraph_t graph = nullptr;
        CHECK(Capture(
                  group.stream(1), cudaStreamCaptureModeThreadLocal,
                  [&] {
                    return sparsesel_execute(bound.binding(1), &call.arrays[1].io, group.stream(1),
                                             &error);
                  },
                  &graph) == SPARSESEL_OK);
        CHECK_CUDA(cudaGraphDestroy(graph));
        CHECK(Check(bound, job, call.batch) == "");
      }
    }
  }
}

}  // namespace
}  // namespace contract
