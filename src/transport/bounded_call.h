// A call into a library that may wait for peers without end, made so that the caller need not.
#ifndef SPARSESEL_TRANSPORT_BOUNDED_CALL_H_
#define SPARSESEL_TRANSPORT_BOUNDED_CALL_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "absl/functional/function_ref.h"
#include "contract/environment.h"

namespace sparsesel {

// Starts `call` on a thread of its own, which ends with it. A call that nobody waits for any more
// goes on by itself, so it must own all that it touches.
class BoundedCall {
 public:
  // Throws where there is no thread or memory for it. `call` must not throw.
  explicit BoundedCall(std::function<void()> call);

  // Waits until the call has ended: true; or until the deadline, on the environment's clock, or
  // until `give_up` says so: false.
  bool Wait(const Environment& environment, int64_t deadline,
            absl::FunctionRef<bool()> give_up) const;

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool ended = false;
  };
  const std::shared_ptr<State> state_;
};

}  // namespace sparsesel

#endif  // SPARSESEL_TRANSPORT_BOUNDED_CALL_H_
