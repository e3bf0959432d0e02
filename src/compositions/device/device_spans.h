// Times of the stages of an execute on a stream.
#ifndef SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_SPANS_H_
#define SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_SPANS_H_

#include <cuda_runtime_api.h>

#include <utility>

#include "absl/functional/function_ref.h"
#include "compositions/executor.h"
#include "transport/peer_group.h"

namespace sparsesel {

inline Status SynchronizeEvent(cudaEvent_t event) {
  return CudaStatus(cudaEventSynchronize(event), "cudaEventSynchronize");
}

// ns between events, for spans; does nothing without spans. `wait` is how to wait for one, where
// that should be bounded; it lives as long as this object.
class DeviceSpans {
 public:
  DeviceSpans(SpanTimes* spans, cudaStream_t stream,
              absl::FunctionRef<Status(cudaEvent_t)> wait = SynchronizeEvent)
      : spans_(spans), stream_(stream), wait_(wait) {
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
    SPARSESEL_RETURN_IF_ERROR(wait_(end_));
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
  const absl::FunctionRef<Status(cudaEvent_t)> wait_;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

}  // namespace sparsesel

#endif  // SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_SPANS_H_
