// Compositions on host memory: execute runs all stages on the calling thread, tile by tile.
#ifndef SPARSESEL_COMPOSITIONS_HOST_HOST_EXECUTOR_H_
#define SPARSESEL_COMPOSITIONS_HOST_HOST_EXECUTOR_H_

#include "compositions/executor.h"

namespace sparsesel {

const Backend& HostBackend();

}  // namespace sparsesel

#endif  // SPARSESEL_COMPOSITIONS_HOST_HOST_EXECUTOR_H_
