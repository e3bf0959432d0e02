#include "contract/device/graphs.h"

#include <stdexcept>

#include "contract/device/cuda_check.h"

namespace contract {

Streams::Streams(int32_t world, unsigned flags) {
  for (int32_t rank = 0; rank < world; ++rank) {
    const OnRank on(rank);
    cudaStream_t stream = nullptr;
    CHECK_CUDA(cudaStreamCreateWithFlags(&stream, flags));
    streams_.push_back(stream);
  }
}

Streams::~Streams() {
  for (void* stream : streams_) (void)cudaStreamDestroy(AsStream(stream));
}

Graph::Graph(cudaGraph_t graph) {
  const cudaError_t error = cudaGraphInstantiate(&exec_, graph, 0);
  (void)cudaGraphDestroy(graph);
  CHECK_CUDA(error);
}

Graph::~Graph() {
  if (exec_ != nullptr) (void)cudaGraphExecDestroy(exec_);
}

void Graph::Launch(void* stream) const { CHECK_CUDA(cudaGraphLaunch(exec_, AsStream(stream))); }

sparsesel_status Capture(void* stream, cudaStreamCaptureMode mode,
                         const std::function<sparsesel_status()>& enqueue, cudaGraph_t* graph) {
  *graph = nullptr;
  CHECK_CUDA(cudaStreamBeginCapture(AsStream(stream), mode));
  sparsesel_status status = SPARSESEL_OK;
  try {
    status = enqueue();
  } catch (...) {
    (void)cudaStreamEndCapture(AsStream(stream), graph);
    if (*graph != nullptr) (void)cudaGraphDestroy(*graph);
    throw;
  }
  CHECK_CUDA(cudaStreamEndCapture(AsStream(stream), graph));
  return status;
}

void EnqueueAll(const std::vector<sparsesel_binding*>& bindings,
                const std::vector<RankArrays>& arrays, const std::vector<void*>& streams) {
  for (size_t rank = 0; rank < bindings.size(); ++rank) {
    sparsesel_error error = SPARSESEL_ERROR_INIT;
    if (sparsesel_execute(bindings[rank], &arrays[rank].io, streams[rank], &error) !=
        SPARSESEL_OK) {
      throw std::runtime_error("rank " + std::to_string(rank) + ": " + error.text);
    }
  }
}

void SynchronizeAll(const std::vector<void*>& streams) {
  for (void* stream : streams) Synchronize(stream);
}

std::vector<sparsesel_binding*> BindingsOf(const Bound& bound) {
  std::vector<sparsesel_binding*> bindings;
  for (int32_t rank = 0; rank < bound.world(); ++rank) bindings.push_back(bound.binding(rank));
  return bindings;
}

GroupGraph::GroupGraph(const std::vector<sparsesel_binding*>& bindings,
                       const std::vector<const std::vector<RankArrays>*>& calls,
                       const std::vector<void*>& streams, cudaStreamCaptureMode mode) {
  for (size_t rank = 0; rank < bindings.size(); ++rank) {
    const OnRank on(static_cast<int32_t>(rank));
    sparsesel_error error = SPARSESEL_ERROR_INIT;
    cudaGraph_t graph = nullptr;
    const sparsesel_status status = Capture(
        streams[rank], mode,
        [&] {
          sparsesel_status first = SPARSESEL_OK;
          for (const std::vector<RankArrays>* arrays : calls) {
            if (first != SPARSESEL_OK) break;
            first = sparsesel_execute(bindings[rank], &(*arrays)[rank].io, streams[rank], &error);
          }
          return first;
        },
        &graph);
    Graph made(graph);
    if (status != SPARSESEL_OK) {
      throw std::runtime_error("capture on rank " + std::to_string(rank) + ": " + error.text);
    }
    graphs_.push_back(std::move(made));
  }
}

void GroupGraph::Launch(const std::vector<void*>& streams) const {
  for (size_t rank = 0; rank < graphs_.size(); ++rank) {
    const OnRank on(static_cast<int32_t>(rank));
    graphs_[rank].Launch(streams[rank]);
  }
}

Results Finish(const std::vector<RankArrays>& arrays, const std::vector<void*>& streams) {
  SynchronizeAll(streams);
  Outcomes outcomes(arrays.size());
  for (size_t rank = 0; rank < arrays.size(); ++rank) {
    outcomes[rank].status = StatusOf(arrays[rank], &outcomes[rank].error);
  }
  return ReadResults(arrays, std::move(outcomes));
}

void Reset(std::vector<RankArrays>* arrays) {
  for (RankArrays& rank : *arrays) rank.Reset();
}

std::string ReplayAndCompare(const GroupGraph& graph, const Job& job,
                             const std::vector<oracle::Answer>& expected,
                             std::vector<RankArrays>* arrays, const std::vector<void*>& streams) {
  Reset(arrays);
  graph.Launch(streams);
  return Compare(job, expected, Finish(*arrays, streams));
}

}  // namespace contract
