// What launches cost by themselves, to compare with: kernels that do nothing.
#ifndef SPARSESEL_BENCH_GPU_LAUNCH_FLOOR_H_
#define SPARSESEL_BENCH_GPU_LAUNCH_FLOOR_H_

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace sparsesel::bench {

// As much as a kernel of the peer transport is given.
struct LaunchArguments {
  uint64_t words[256];
};
__global__ void NothingKernel(const __grid_constant__ LaunchArguments) {}

inline cudaError_t LaunchNothing(int blocks, int cluster, cudaStream_t stream) {
  cudaLaunchConfig_t launch = {};
  launch.gridDim = dim3(static_cast<unsigned>(blocks));
  launch.blockDim = dim3(512);
  launch.stream = stream;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = static_cast<unsigned>(cluster);
  attribute.val.clusterDim.y = 1;
  attribute.val.clusterDim.z = 1;
  launch.attrs = &attribute;
  launch.numAttrs = cluster > 1 ? 1 : 0;
  if (cluster > 8) {
    const cudaError_t allowed =
        cudaFuncSetAttribute(NothingKernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (allowed != cudaSuccess) return allowed;
  }
  return cudaLaunchKernelEx(&launch, NothingKernel, LaunchArguments{});
}

// Microseconds per kernel when each of `streams` streams of the current device replays a train of
// kernels of one cluster of `cluster` blocks: the least that as many ranks on one device pay for
// one kernel each. Negative: it failed.
inline double LaunchFloor(int streams, int cluster) {
  constexpr int kLength = 400;
  std::vector<cudaStream_t> all(static_cast<size_t>(streams));
  std::vector<cudaGraphExec_t> graphs(all.size());
  std::vector<cudaEvent_t> begins(all.size());
  std::vector<cudaEvent_t> ends(all.size());
  bool ok = true;
  const auto must = [&](cudaError_t error) { ok &= error == cudaSuccess; };
  for (size_t s = 0; s < all.size(); ++s) {
    must(cudaStreamCreateWithFlags(&all[s], cudaStreamNonBlocking));
    must(cudaEventCreate(&begins[s]));
    must(cudaEventCreate(&ends[s]));
    must(cudaStreamBeginCapture(all[s], cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < kLength; ++i) must(LaunchNothing(cluster, cluster, all[s]));
    cudaGraph_t graph = nullptr;
    must(cudaStreamEndCapture(all[s], &graph));
    must(cudaGraphInstantiate(&graphs[s], graph, 0));
    must(cudaGraphUpload(graphs[s], all[s]));
    if (graph != nullptr) cudaGraphDestroy(graph);
  }
  double slowest = 0;
  for (int run = 0; run < 3; ++run) {  // the last one counts
    must(cudaDeviceSynchronize());
    for (size_t s = 0; s < all.size(); ++s) {
      must(cudaEventRecord(begins[s], all[s]));
      must(cudaGraphLaunch(graphs[s], all[s]));
      must(cudaEventRecord(ends[s], all[s]));
    }
    must(cudaDeviceSynchronize());
    slowest = 0;
    for (size_t s = 0; s < all.size(); ++s) {
      float ms = 0;
      must(cudaEventElapsedTime(&ms, begins[s], ends[s]));
      slowest = std::max(slowest, ms * 1e3 / kLength);
    }
  }
  for (size_t s = 0; s < all.size(); ++s) {
    cudaGraphExecDestroy(graphs[s]);
    cudaEventDestroy(begins[s]);
    cudaEventDestroy(ends[s]);
    cudaStreamDestroy(all[s]);
  }
  return ok ? slowest : -1;
}

// Host microseconds per call of `launch`, of which a hundred fit the stream's queue: the median of
// several hundreds.
template <typename Launch>
double HostCost(cudaStream_t stream, Launch launch) {
  constexpr int kCalls = 100;
  std::vector<double> costs;
  for (int run = 0; run < 21; ++run) {
    cudaStreamSynchronize(stream);
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) launch();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    costs.push_back(took.count() / kCalls);
  }
  cudaStreamSynchronize(stream);
  std::nth_element(costs.begin(), costs.begin() + 10, costs.end());
  return costs[10];
}

}  // namespace sparsesel::bench

#endif  // SPARSESEL_BENCH_GPU_LAUNCH_FLOOR_H_
