// Executes of all ranks captured into CUDA graphs, one graph a rank.
//
// On a device an execute is enqueued, so one thread can do it for all ranks in turn: it must only
// have enqueued everything before it waits for anything.
#ifndef SPARSESEL_TESTS_CONTRACT_DEVICE_GRAPHS_H_
#define SPARSESEL_TESTS_CONTRACT_DEVICE_GRAPHS_H_

#include <cuda_runtime_api.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "contract/batch.h"
#include "contract/group_fixture.h"

namespace contract {

inline cudaStream_t AsStream(void* stream) { return static_cast<cudaStream_t>(stream); }

// Streams of one kind for a group's ranks.
class Streams {
 public:
  Streams(int32_t world, unsigned flags);
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  ~Streams();
  const std::vector<void*>& all() const { return streams_; }

 private:
  std::vector<void*> streams_;
};

// An instantiated graph.
class Graph {
 public:
  Graph() = default;
  // Takes over the graph, too.
  explicit Graph(cudaGraph_t graph);
  Graph(Graph&& other) noexcept : exec_(std::exchange(other.exec_, nullptr)) {}
  Graph& operator=(Graph&& other) noexcept {
    std::swap(exec_, other.exec_);
    return *this;
  }
  ~Graph();
  void Launch(void* stream) const;

 private:
  cudaGraphExec_t exec_ = nullptr;
};

// What `enqueue` enqueues on the stream; the capture ends whatever it returns or throws. `graph` is
// the caller's, NULL if there is none.
sparsesel_status Capture(void* stream, cudaStreamCaptureMode mode,
                         const std::function<sparsesel_status()>& enqueue, cudaGraph_t* graph);

// Enqueues on every rank's stream, in turn; throws the sentence of the first that is refused.
void EnqueueAll(const std::vector<sparsesel_binding*>& bindings,
                const std::vector<RankArrays>& arrays, const std::vector<void*>& streams);
void SynchronizeAll(const std::vector<void*>& streams);
std::vector<sparsesel_binding*> BindingsOf(const Bound& bound);

// One graph a rank, of one execute for each element of `calls`.
class GroupGraph {
 public:
  GroupGraph(const std::vector<sparsesel_binding*>& bindings,
             const std::vector<const std::vector<RankArrays>*>& calls,
             const std::vector<void*>& streams,
             cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal);
  // Of one execute.
  GroupGraph(const Bound& bound, const std::vector<RankArrays>& arrays,
             const std::vector<void*>& streams,
             cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal)
      : GroupGraph(BindingsOf(bound), {&arrays}, streams, mode) {}

  // Enqueues it on every rank's stream.
  void Launch(const std::vector<void*>& streams) const;
  const Graph& rank(int32_t rank) const { return graphs_[static_cast<size_t>(rank)]; }

 private:
  std::vector<Graph> graphs_;
};

// What the arrays hold when all is done, as the outcome of one execute of each rank.
Results Finish(const std::vector<RankArrays>& arrays, const std::vector<void*>& streams);
void Reset(std::vector<RankArrays>* arrays);

// Launches once from fresh outputs and compares; empty if all was right.
std::string ReplayAndCompare(const GroupGraph& graph, const Job& job,
                             const std::vector<oracle::Answer>& expected,
                             std::vector<RankArrays>* arrays, const std::vector<void*>& streams);

}  // namespace contract

#endif  // SPARSESEL_TESTS_CONTRACT_DEVICE_GRAPHS_H_
