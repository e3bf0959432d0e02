#include "compositions/executor.h"
#include "compositions/host/host_executor.h"
#if defined(SPARSESEL_HAS_CUDA)
#include "compositions/device/device_backend.h"
#endif

namespace sparsesel {

const Backend& BackendFor([[maybe_unused]] const Comm& comm) {
#if defined(SPARSESEL_HAS_CUDA)
  if (comm.memory() == SPARSESEL_MEMORY_DEVICE) return DeviceBackend(comm);
#endif
  return HostBackend();
}

}  // namespace sparsesel
