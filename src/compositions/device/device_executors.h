// The executors of device groups, one maker per transport.
#ifndef SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_EXECUTORS_H_
#define SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_EXECUTORS_H_

#include <memory>

#include "compositions/executor.h"

namespace sparsesel {

// As Backend::make_executor.
Status MakePeerExecutor(const Comm& comm, const Job& job, int32_t capacity,
                        const Composition& composition, std::unique_ptr<Executor>* executor);

Status MakeNcclExecutor(const Comm& comm, const Job& job, int32_t capacity,
                        const Composition& composition, std::unique_ptr<Executor>* executor);

}  // namespace sparsesel

#endif  // SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_EXECUTORS_H_
