// What a composition over NCCL keeps for one slot, and how its ranks meet.
#ifndef SPARSESEL_COMPOSITIONS_DEVICE_NCCL_SLOT_H_
#define SPARSESEL_COMPOSITIONS_DEVICE_NCCL_SLOT_H_

#include <cuda_runtime_api.h>

#include <memory>

#include "absl/functional/function_ref.h"
#include "compositions/device/device_slot.h"
#include "compositions/executor.h"
#include "transport/nccl_group.h"

namespace sparsesel {

struct NcclSlot : DeviceSlot {
  std::shared_ptr<NcclRank> rank;
  // The rank's, or of slots that overlap their own, made when they are connected.
  std::shared_ptr<NcclCommunicator> communicator;
};

inline NcclSlot& NcclOf(const Slot& slot) { return static_cast<NcclSlot&>(DeviceOf(slot)); }

// As in Backend.
Status MakeNcclSlot(Comm& comm, bool overlaps, Slot* slot);
Status ReserveNcclSlot(Comm& comm, size_t bytes, size_t peer_visible, Slot* slot);
Status ConnectNcclSlot(Comm& comm, Slot* slot);
Status FinishNccl(const Slot& slot);
const TrainMeeting& NcclMeeting();
Status DrainNccl(const Slot& slot, int64_t deadline);

// Polls `query`, of a stream or an event, until it is done; when the deadline has passed the group
// has failed. The only way to wait here: kernels of NCCL wait for peers without end.
Status AwaitNccl(NcclRank& rank, int64_t deadline, absl::FunctionRef<cudaError_t()> query);

}  // namespace sparsesel

#endif  // SPARSESEL_COMPOSITIONS_DEVICE_NCCL_SLOT_H_
