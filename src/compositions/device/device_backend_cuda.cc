#include "compositions/device/device_backend.h"
#include "compositions/device/device_executors.h"
#include "compositions/device/device_slot.h"

namespace sparsesel {
namespace {

Topology DeviceTopology(const Comm&) { return {SPARSESEL_MEMORY_DEVICE, false, false}; }

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

const Backend& DeviceBackend() {
  static constexpr Backend backend = {
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
      Drain,
  };
  return backend;
}

}  // namespace sparsesel
