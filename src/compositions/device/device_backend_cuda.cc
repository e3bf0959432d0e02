#include "compositions/device/device_backend.h"
#include "compositions/device/device_executors.h"
#include "compositions/device/device_slot.h"
#include "compositions/device/nccl_slot.h"

namespace sparsesel {
namespace {

Topology DeviceTopology(const Comm& comm) {
  const bool sums = comm.transport() == SPARSESEL_TRANSPORT_NCCL;
  return {SPARSESEL_MEMORY_DEVICE, sums, sums, comm.transport()};
}

Status CopyIn(void* to, const void* from, size_t bytes) {
  return CudaStatus(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
}

Status CopyOut(void* to, const void* from, size_t bytes) {
  return CudaStatus(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
}

void* TrialStream(const Slot& slot) { return DeviceOf(slot).stream; }

Status Finish(const Slot& slot) {
  return CudaStatus(cudaStreamSynchronize(DeviceOf(slot).stream), "cudaStreamSynchronize");
}

// Peers hold shares of what they store into, or mappings that are waited for without anybody
// waiting (transport/peer_memory.h): there is nothing to do here.
Status Drain(const Slot&, int64_t) { return {}; }

}  // namespace

const Backend& DeviceBackend(const Comm& comm) {
  static constexpr Backend peer = {
      SPARSESEL_MEMORY_DEVICE,
      DeviceTopology,
      MakeDeviceSlot,
      ReserveDeviceSlot,
      ConnectDeviceSlot,
      TrialStream,
      Finish,
      MakePeerExecutor,
      CopyIn,
      CopyOut,
      TimePeerTrain,
      Drain,
  };
  static constexpr Backend nccl = {
      SPARSESEL_MEMORY_DEVICE,
      DeviceTopology,
      MakeNcclSlot,
      ReserveNcclSlot,
      ConnectNcclSlot,
      TrialStream,
      FinishNccl,
      MakeNcclExecutor,
      CopyIn,
      CopyOut,
      TimeNcclTrain,
      DrainNccl,
  };
  return comm.transport() == SPARSESEL_TRANSPORT_NCCL ? nccl : peer;
}

}  // namespace sparsesel
