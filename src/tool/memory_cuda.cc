#include <cuda_runtime_api.h>

#include <cstdlib>

#include "tool/memory.h"

namespace sparsesel_tool {
namespace {

Result Checked(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return {};
  (void)cudaGetLastError();
  return Failure(std::string(what) + ": " + cudaGetErrorString(error));
}

Result Begin(int32_t world, std::vector<int32_t>* devices) {
  // Ranks that share a GPU wait for each other: their streams need queues of their own.
  (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  int count = 0;
  if (Result r = Checked(cudaGetDeviceCount(&count), "no CUDA device can be used"); !r.ok()) {
    return r;
  }
  for (int32_t rank = 0; rank < world; ++rank) devices->push_back(rank % count);
  return {};
}

// What `launch` records, as a graph that can be launched.
Result Capture(cudaStream_t stream, const std::function<Result()>& launch,
               cudaGraphExec_t* executable) {
  if (Result r = Checked(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
                         "cudaStreamBeginCapture");
      !r.ok()) {
    return r;
  }
  Result result = launch();
  cudaGraph_t graph = nullptr;
  const Result ended = Checked(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  if (result.ok()) result = ended;
  if (result.ok()) {
    result = Checked(cudaGraphInstantiate(executable, graph, 0), "cudaGraphInstantiate");
  }
  if (graph != nullptr) (void)cudaGraphDestroy(graph);
  return result;
}

Result Replay(void* stream, const std::function<Result()>& launch,
              const std::function<void()>& meet) {
  const auto own = static_cast<cudaStream_t>(stream);
  cudaGraphExec_t executable = nullptr;
  Result result = Capture(own, launch, &executable);
  if (result.ok()) result = Checked(cudaGraphUpload(executable, own), "cudaGraphUpload");
  if (result.ok()) result = Checked(cudaStreamSynchronize(own), "cudaGraphUpload");
  meet();
  if (result.ok()) result = Checked(cudaGraphLaunch(executable, own), "cudaGraphLaunch");
  if (result.ok()) result = Checked(cudaStreamSynchronize(own), "the replay");
  if (executable != nullptr) (void)cudaGraphExecDestroy(executable);
  return result;
}

}  // namespace

const Memory* CudaMemory() {
  static constexpr Memory memory = {
      SPARSESEL_MEMORY_DEVICE,
      Begin,
      [](int32_t device) { return Checked(cudaSetDevice(device), "cudaSetDevice"); },
      [](size_t bytes, void** out) { return Checked(cudaMalloc(out, bytes), "cudaMalloc"); },
      [](void* pointer) { (void)cudaFree(pointer); },
      [](void* to, const void* from, size_t bytes) {
        return Checked(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
      },
      [](void* to, const void* from, size_t bytes) {
        return Checked(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
      },
      [](void** stream) {
        return Checked(cudaStreamCreateWithFlags(reinterpret_cast<cudaStream_t*>(stream),
                                                 cudaStreamNonBlocking),
                       "cudaStreamCreateWithFlags");
      },
      [](void* stream) { (void)cudaStreamDestroy(static_cast<cudaStream_t>(stream)); },
      Replay,
  };
  return &memory;
}

}  // namespace sparsesel_tool
