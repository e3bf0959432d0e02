// Trains of executes for trials on a device: captured into a graph, begun by all ranks together.
#ifndef SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_TRAINS_H_
#define SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_TRAINS_H_

#include <cuda_runtime_api.h>

#include <mutex>
#include <span>

#include "compositions/executor.h"

namespace sparsesel {

// A captured train, and what shows when it ran.
struct DeviceTrain {
  cudaGraphExec_t graph = nullptr;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
};
void DestroyTrain(const DeviceTrain& train);

// How ranks come together in the stream before a train, so that it begins on all of them when the
// last has come; and how one waits until its stream is idle.
struct TrainMeeting {
  Status (*meet)(const Comm& comm, const Slot& slot, int64_t deadline);
  Status (*await)(const Slot& slot, int64_t deadline);
};

// Held while the stream of the rank's trials is captured, or copied in.
std::mutex& TrialStreamUse(const Comm& comm);

// As in Backend. A train that is timed is captured once per slot, and replayed.
Status TimeDeviceTrain(const Comm& comm, const Executor& executor, const Slot& slot, int32_t length,
                       Call* call, double* ns);
Status TimeDeviceSpans(const Comm& comm, const Executor& executor, const Slot& slot, Call* call,
                       std::span<SpanTimes> executes);

}  // namespace sparsesel

#endif  // SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_TRAINS_H_
