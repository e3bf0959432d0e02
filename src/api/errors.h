// The one place where what happened inside becomes a sparsesel_status and a sparsesel_error.
#ifndef SPARSESEL_API_ERRORS_H_
#define SPARSESEL_API_ERRORS_H_

#include <utility>

#include "contract/guard.h"
#include "contract/status.h"
#include "sparsesel.h"

namespace sparsesel {

// Fills as much of `error` as its struct_size says there is. NULL, or a size that no version of the
// struct can have: nothing is written.
void FillError(const Status& status, sparsesel_error* error) noexcept;

// Runs the body of an interface function, which returns a Status, and lets no exception out.
template <typename Body>
sparsesel_status Call(sparsesel_error* error, Body&& body) noexcept {
  const Status status = Guarded(std::forward<Body>(body));
  FillError(status, error);
  return status.code();
}

}  // namespace sparsesel

#endif  // SPARSESEL_API_ERRORS_H_
