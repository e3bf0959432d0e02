// What a device composition keeps for one slot: memory that peers store into, and for trials a
// stream and captured trains.
#ifndef SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_SLOT_H_
#define SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_SLOT_H_

#include <cuda_runtime_api.h>

#include <array>
#include <map>
#include <memory>
#include <tuple>

#include "compositions/executor.h"
#include "kernels/peer.h"
#include "transport/peer_group.h"

namespace sparsesel {

struct DeviceSlot {
  ~DeviceSlot();

  int32_t device = 0;
  cudaStream_t stream = nullptr;  // the rank's, for trials
  std::shared_ptr<void> kept;     // what captured graphs keep, besides the workspace
  // What kernels address: this rank's PeerState, what it has for the group, and all ranks' inboxes.
  std::shared_ptr<PeerMemory> state;
  std::shared_ptr<const PeerGroupMemory> group;
  std::shared_ptr<PeerMemory> own;
  std::array<std::shared_ptr<PeerMemory>, kMaxWorld> inboxes;
  kernels::PeerEnd end;  // without a shape, which is the executor's
  // Captured trains of (executor's serial, rows, length).
  struct Train {
    cudaGraphExec_t graph = nullptr;
    cudaEvent_t begin = nullptr;
    cudaEvent_t end = nullptr;
  };
  std::map<std::tuple<uint64_t, int32_t, int32_t>, Train> trains;
};

inline DeviceSlot& DeviceOf(const Slot& slot) {
  return *static_cast<DeviceSlot*>(slot.device.get());
}

Status MakeDeviceSlot(Comm& comm, bool overlaps, Slot* slot);
Status ReserveDeviceSlot(Comm& comm, size_t bytes, size_t peer_visible, Slot* slot);
Status ConnectDeviceSlot(Comm& comm, Slot* slot);
Status TimePeerTrain(const Comm& comm, const Executor& executor, const Slot& slot, int32_t length,
                     Call* call, double* ns);

// How ranks come together in the stream before a sample, so that what follows begins on all of them
// when the last has come; and how one waits until its stream is idle.
struct TrainMeeting {
  Status (*meet)(const Comm& comm, const Slot& slot, int64_t deadline);
  Status (*await)(const Slot& slot, int64_t deadline);
};
// As Backend::time_train: the train is captured once, and replayed.
Status TimeDeviceTrain(const TrainMeeting& meeting, const Comm& comm, const Executor& executor,
                       const Slot& slot, int32_t length, Call* call, double* ns);

// If `stream` is being captured, its graph keeps the slot's memory for as long as it lives.
Status KeepForCapture(const Slot& slot, cudaStream_t stream);
// Frees what destroyed graphs have let go of, which CUDA does not allow them to do themselves.
void FreeWhatGraphsLetGo();

}  // namespace sparsesel

#endif  // SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_SLOT_H_
