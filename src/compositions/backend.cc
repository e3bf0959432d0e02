#include "compositions/executor.h"
#include "compositions/host/host_executor.h"

namespace sparsesel {

const Backend& BackendFor(const Comm&) { return HostBackend(); }

}  // namespace sparsesel
