// Microseconds per launch under graph replay: the median over many replays of a graph of 20
// launches.
#ifndef SPARSESEL_BENCH_GPU_GRAPH_TIMER_H_
#define SPARSESEL_BENCH_GPU_GRAPH_TIMER_H_

#include <cuda_runtime.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "tests/gpu/device_buffer.h"

namespace sparsesel::bench {

inline double GraphMicroseconds(cudaStream_t stream, const std::function<void()>& launch,
                                int replays = 60) {
  constexpr int kLaunches = 20;
  constexpr int kWarmUp = 5;
  launch();
  CHECK_CUDA(cudaStreamSynchronize(stream));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < kLaunches; ++i) launch();
  CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
  CHECK_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  cudaEvent_t begin, end;
  CHECK_CUDA(cudaEventCreate(&begin));
  CHECK_CUDA(cudaEventCreate(&end));
  std::vector<float> times;
  for (int i = 0; i < replays + kWarmUp; ++i) {
    CHECK_CUDA(cudaEventRecord(begin, stream));
    CHECK_CUDA(cudaGraphLaunch(exec, stream));
    CHECK_CUDA(cudaEventRecord(end, stream));
    CHECK_CUDA(cudaEventSynchronize(end));
    float ms = 0;
    CHECK_CUDA(cudaEventElapsedTime(&ms, begin, end));
    if (i >= kWarmUp) times.push_back(ms * 1000 / kLaunches);
  }
  CHECK_CUDA(cudaEventDestroy(begin));
  CHECK_CUDA(cudaEventDestroy(end));
  CHECK_CUDA(cudaGraphExecDestroy(exec));
  CHECK_CUDA(cudaGraphDestroy(graph));
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

}  // namespace sparsesel::bench

#endif  // SPARSESEL_BENCH_GPU_GRAPH_TIMER_H_
