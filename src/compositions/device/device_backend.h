// Compositions on device memory, over the group's transport: peer or NCCL. Only in builds with
// CUDA.
#ifndef SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_BACKEND_H_
#define SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_BACKEND_H_

#include "compositions/executor.h"

namespace sparsesel {

const Backend& DeviceBackend(const Comm& comm);

}  // namespace sparsesel

#endif  // SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_BACKEND_H_
