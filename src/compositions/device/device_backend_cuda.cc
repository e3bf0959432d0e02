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

// Not by cudaMemcpy: that goes through the legacy stream, which waits for blocking streams of the
// caller's, and returns when pageable memory has been read, not when it has arrived.
Status Copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  SPARSESEL_RETURN_IF_ERROR(
      CudaStatus(cudaMemcpyAsync(to, from, bytes, kind, cudaStreamPerThread), "cudaMemcpyAsync"));
  return CudaStatus(cudaStreamSynchronize(cudaStreamPerThread), "cudaStreamSynchronize");
}

Status CopyIn(void* to, const void* from, size_t bytes) {
  return Copy(to, from, bytes, cudaMemcpyHostToDevice);
}

Status CopyOut(void* to, const void* from, size_t bytes) {
  return Copy(to, from, bytes, cudaMemcpyDeviceToHost);
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
      TimeDeviceTrain,
      TimeDeviceSpans,
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
      TimeDeviceTrain,
      TimeDeviceSpans,
      DrainNccl,
  };
  return comm.transport() == SPARSESEL_TRANSPORT_NCCL ? nccl : peer;
}

}  // namespace sparsesel
