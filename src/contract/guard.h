// Exceptions become statuses where they would otherwise leave peers waiting: a rank that fails
// locally still takes part in the next exchange, with its status.
#ifndef SPARSESEL_CONTRACT_GUARD_H_
#define SPARSESEL_CONTRACT_GUARD_H_

#include <exception>
#include <new>

#include "contract/status.h"

namespace sparsesel {

// Runs `body`, which returns a Status.
template <typename Body>
Status Guarded(Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Status::Error(SPARSESEL_OUT_OF_MEMORY, "the process allocator failed");
  } catch (const std::exception& error) {
    return Status::Error(SPARSESEL_INTERNAL, "unexpected exception: %s", error.what());
  } catch (...) {
    return Status::Error(SPARSESEL_INTERNAL, "unexpected exception of unknown type");
  }
}

// The first failure of several steps is the one worth telling.
inline void KeepFirst(const Status& status, Status* kept) {
  if (kept->ok() && !status.ok()) *kept = status;
}

}  // namespace sparsesel

#endif  // SPARSESEL_CONTRACT_GUARD_H_
