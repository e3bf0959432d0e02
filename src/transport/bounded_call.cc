#include "transport/bounded_call.h"

#include <chrono>
#include <thread>
#include <utility>

namespace sparsesel {
namespace {

// How often the clock, which may be the caller's, and `give_up` are looked at.
constexpr std::chrono::milliseconds kLook{2};

}  // namespace

BoundedCall::BoundedCall(std::function<void()> call) : state_(std::make_shared<State>()) {
  std::thread([state = state_, call = std::move(call)]() mutable {
    call();
    call = nullptr;  // what it owns goes before anybody hears that it has ended
    const std::lock_guard lock(state->mutex);
    state->ended = true;
    state->changed.notify_all();
  }).detach();
}

bool BoundedCall::Wait(const Environment& environment, int64_t deadline,
                       absl::FunctionRef<bool()> give_up) const {
  std::unique_lock lock(state_->mutex);
  while (!state_->ended) {
    state_->changed.wait_for(lock, kLook);
    if (state_->ended) break;
    // Callbacks are not called under a lock.
    lock.unlock();
    const bool over = environment.Now() >= deadline || give_up();
    lock.lock();
    if (over) return state_->ended;
  }
  return true;
}

}  // namespace sparsesel
