// Times of the stages of an execute on a stream.
#ifndef SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_SPANS_H_
#define SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_SPANS_H_

#include <cuda_runtime_api.h>

#include <utility>

#include "compositions/executor.h"
#include "transport/peer_group.h"

namespace sparsesel {

// ns between events, for spans; does nothing without spans.
class DeviceSpans {
 public:
  DeviceSpans(SpanTimes* spans, cudaStream_t stream) : spans_(spans), stream_(stream) {
    if (spans_ == nullptr) return;
    (void)cudaEventCreate(&begin_);
    (void)cudaEventCreate(&end_);
    (void)cudaEventRecord(begin_, stream_);
  }
  ~DeviceSpans() {
    if (spans_ == nullptr) return;
    (void)cudaEventDestroy(begin_);
    (void)cudaEventDestroy(end_);
  }
  Status End(Stage stage) {
    if (spans_ == nullptr) return {};
    SPARSESEL_RETURN_IF_ERROR(CudaStatus(cudaEventRecord(end_, stream_), "cudaEventRecord"));
    SPARSESEL_RETURN_IF_ERROR(CudaStatus(cudaEventSynchronize(end_), "cudaEventSynchronize"));
    float milliseconds = 0;
    SPARSESEL_RETURN_IF_ERROR(
        CudaStatus(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime"));
    spans_->stage[static_cast<size_t>(stage)] += static_cast<int64_t>(milliseconds * 1e6f);
    std::swap(begin_, end_);
    return {};
  }

 private:
  SpanTimes* const spans_;
  const cudaStream_t stream_;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

}  // namespace sparsesel

#endif  // SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_SPANS_H_
