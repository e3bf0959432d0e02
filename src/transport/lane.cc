#include "transport/lane.h"

#include <algorithm>
#include <chrono>
#include <mutex>

namespace sparsesel {
namespace {

// The caller's clock may be scripted and move while nobody is woken, so it is read this often.
constexpr int64_t kLongestSlice = 20'000'000;
constexpr int64_t kShortestSlice = 1'000'000;
// How long all ranks must have waited for different things before they are taken to be in different
// calls: a thread of the caller's own that has not come yet gets the chance to.
constexpr std::chrono::milliseconds kStuck{100};
constexpr int kSpins = 1000;

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

}  // namespace

const char* OperationName(Operation operation) {
  switch (operation) {
    case Operation::kControl:
      return "control all-gather";
    case Operation::kBarrier:
      return "barrier";
    case Operation::kAllGather:
      return "all_gather";
    case Operation::kAllToAll:
      return "all_to_all";
    case Operation::kSumBf16:
      return "sum_bf16";
    case Operation::kSumInt32:
      return "sum_int32";
  }
  return "unknown operation";
}

Lane::Lane(Hub* hub, int32_t index, bool overlaps)
    : hub_(hub),
      index_(index),
      overlaps_(overlaps),
      posts_(std::make_unique<Post[]>(2 * Index(hub->world()))),
      messages_(std::make_unique<CallMessage[]>(2 * Index(hub->world()))) {}

Status Lane::Meet(int32_t rank, int64_t deadline, const char* call, std::atomic<uint64_t>* waited) {
  Hub::Wait wait{rank, this, Hub::Goal::kMeet, 0, call};
  {
    const std::lock_guard lock(hub_->mutex_);
    Seat& seat = seats_[Index(rank)];
    ReleaseLocked(&seat);
    if (hub_->state_.failed()) return hub_->state_.Earlier();
    wait.operation = ++seat.entered;
    ++hub_->changes_;
    if (++arrived_ == hub_->world()) {
      arrived_ = 0;
      last_[wait.operation & 1] = rank;
      reading_ = hub_->world();
      completed_.store(wait.operation, std::memory_order_release);
      met_.notify_all();
      return {};
    }
    hub_->FailIfLeftBehind(wait);
  }
  const Environment& environment = hub_->environment();
  const int64_t start = waited == nullptr ? 0 : environment.Now();
  bool met = false;
  for (int i = 0; hub_->spins() && i < kSpins && !met && open(); ++i) {
    met = completed_.load(std::memory_order_acquire) >= wait.operation;
    if (!met) Pause();
  }
  if (!met) SPARSESEL_RETURN_IF_ERROR(Await(&wait, deadline));
  if (waited != nullptr) {
    // No other thread adds to this rank's times. A clock that goes back adds nothing.
    std::atomic<uint64_t>& sum = waited[last_[wait.operation & 1]];
    const int64_t time = std::max<int64_t>(0, environment.Now() - start);
    sum.store(sum.load(std::memory_order_relaxed) + static_cast<uint64_t>(time),
              std::memory_order_relaxed);
  }
  return {};
}

Status Lane::Await(Hub::Wait* wait, int64_t deadline) {
  Status result;
  uint64_t changes = 0;
  std::chrono::steady_clock::time_point quiet_since;
  std::unique_lock lock(hub_->mutex_);
  hub_->Add(wait);
  for (;;) {
    // An operation that is complete counts, even if the group has failed since: all ranks take it.
    if (Reached(*wait)) break;
    if (wait->goal == Hub::Goal::kMeet && hub_->state_.failed()) {
      result = hub_->state_.Get();
      break;
    }
    lock.unlock();
    const int64_t now = hub_->environment().Now();  // a callback: never under a lock
    lock.lock();
    if (Reached(*wait) || (wait->goal == Hub::Goal::kMeet && hub_->state_.failed())) continue;
    if (now >= deadline) {
      result = Expired(*wait);
      hub_->FailLocked(result);
      break;
    }
    if (hub_->StuckLocked()) {
      const auto real = std::chrono::steady_clock::now();
      if (changes != hub_->changes_) {
        changes = hub_->changes_;
        quiet_since = real;
      } else if (real - quiet_since >= kStuck) {
        hub_->FailLocked(hub_->DifferentCalls());
        continue;
      }
    }
    const int64_t left = std::max<int64_t>(deadline, 0) - std::max<int64_t>(now, 0);
    std::condition_variable& condition = wait->goal == Hub::Goal::kMeet ? met_ : drained_;
    condition.wait_for(lock,
                       std::chrono::nanoseconds(std::clamp(left, kShortestSlice, kLongestSlice)));
  }
  hub_->Remove(wait);
  return result;
}

bool Lane::Reached(const Hub::Wait& wait) const {
  if (wait.goal == Hub::Goal::kDrain) return reading_ == 0;
  return completed_.load(std::memory_order_relaxed) >= wait.operation;
}

int32_t Lane::FirstMissing(const Hub::Wait& wait) const {
  const uint64_t completed = completed_.load(std::memory_order_relaxed);
  const bool meets = wait.goal == Hub::Goal::kMeet;
  for (int32_t rank = 0; rank < hub_->world(); ++rank) {
    const Seat& seat = seats_[Index(rank)];
    if (meets ? seat.entered < wait.operation : seat.released < completed) {
      return rank;
    }
  }
  return -1;
}

int32_t Lane::MissingForGood(uint64_t operation) const {
  if (completed_.load(std::memory_order_relaxed) >= operation) return -1;
  for (int32_t rank = 0; rank < hub_->world(); ++rank) {
    const Seat& seat = seats_[Index(rank)];
    if (seat.entered < operation && (seat.left || hub_->left_[Index(rank)])) return rank;
  }
  return -1;
}

Status Lane::Expired(const Hub::Wait& wait) const {
  const int32_t missing = FirstMissing(wait);
  return (wait.goal == Hub::Goal::kMeet
              ? Status::Error(SPARSESEL_TIMEOUT,
                              "rank %d did not come within the limit of %s on rank %d", missing,
                              wait.call, wait.rank)
              : Status::Error(SPARSESEL_TIMEOUT,
                              "rank %d did not finish reading within the limit of %s on rank %d",
                              missing, wait.call, wait.rank))
      .WithRank(missing);
}

void Lane::ReleaseLocked(Seat* seat) {
  const uint64_t completed = completed_.load(std::memory_order_relaxed);
  if (seat->released == completed) return;
  seat->released = completed;
  if (--reading_ == 0) drained_.notify_all();
}

void Lane::Release(int32_t rank) {
  const std::lock_guard lock(hub_->mutex_);
  ReleaseLocked(&seats_[Index(rank)]);
}

Status Lane::Drain(int32_t rank, int64_t deadline, const char* call) {
  Hub::Wait wait{rank, this, Hub::Goal::kDrain, 0, call};
  {
    const std::lock_guard lock(hub_->mutex_);
    ReleaseLocked(&seats_[Index(rank)]);
    if (Reached(wait)) return {};
  }
  return Await(&wait, deadline);
}

void Lane::Leave(int32_t rank) {
  const std::lock_guard lock(hub_->mutex_);
  Seat& seat = seats_[Index(rank)];
  ReleaseLocked(&seat);
  seat.left = true;
  ++left_count_;
  for (Hub::Wait* wait = hub_->waits_; wait != nullptr; wait = wait->next) {
    if (wait->lane == this) hub_->FailIfLeftBehind(*wait);
  }
}

}  // namespace sparsesel
