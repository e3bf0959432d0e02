// What a device composition keeps for one slot: memory that peers store into, and for trials a
// stream and captured trains.
#ifndef SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_SLOT_H_
#define SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_SLOT_H_

#include <cuda_runtime_api.h>

#include <array>
#include <map>
#include <memory>
#include <tuple>

#include "compositions/device/device_trains.h"
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
  // Of (executor's serial, rows, length).
  std::map<std::tuple<uint64_t, int32_t, int32_t>, DeviceTrain> trains;
};

inline DeviceSlot& DeviceOf(const Slot& slot) {
  return *static_cast<DeviceSlot*>(slot.device.get());
}

Status MakeDeviceSlot(Comm& comm, bool overlaps, Slot* slot);
Status ReserveDeviceSlot(Comm& comm, size_t bytes, size_t peer_visible, Slot* slot);
Status ConnectDeviceSlot(Comm& comm, Slot* slot);
const TrainMeeting& PeerMeeting();

// If `stream` is being captured, its graph keeps the slot's memory, and what its kernels count in,
// for as long as it lives.
Status KeepForCapture(const Slot& slot, const ExecuteCounters& counters, cudaStream_t stream);
// Frees what destroyed graphs have let go of, which CUDA does not allow them to do themselves.
void FreeWhatGraphsLetGo();

}  // namespace sparsesel

#endif  // SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_SLOT_H_
