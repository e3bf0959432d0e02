#include "transport/hub.h"

#include <sched.h>

#include "transport/lane.h"

namespace sparsesel {
namespace {

int32_t UsableCores() {
  cpu_set_t cores;
  return sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

}  // namespace

Hub::Hub(int32_t world, const Environment& environment)
    : world_(world),
      environment_(environment),
      spins_(world <= UsableCores()),
      control_(std::make_unique<Lane>(this, -1, false)) {}

std::shared_ptr<Lane> Hub::TakeLane(int32_t index, bool overlaps) {
  const std::lock_guard lock(mutex_);
  Entry& entry = lanes_[index];
  if (entry.lane == nullptr) entry.lane = std::make_shared<Lane>(this, index, overlaps);
  entry.lane->overlaps_ = entry.lane->overlaps_ || overlaps;
  std::shared_ptr<Lane> lane = entry.lane;
  if (++entry.taken == world_) lanes_.erase(index);
  return lane;
}

void Hub::Fail(const Status& why) {
  const std::lock_guard lock(mutex_);
  FailLocked(why);
}

void Hub::FailLocked(const Status& why) {
  if (!state_.Fail(why)) return;
  for (Wait* wait = waits_; wait != nullptr; wait = wait->next) wait->lane->met_.notify_all();
}

void Hub::Leave(int32_t rank) {
  const std::lock_guard lock(mutex_);
  left_[static_cast<size_t>(rank)] = true;
  ++left_count_;
  for (Wait* wait = waits_; wait != nullptr; wait = wait->next) FailIfLeftBehind(*wait);
}

void Hub::FailIfLeftBehind(const Wait& wait) {
  if (wait.goal != Goal::kMeet) return;
  if (left_count_ + wait.lane->left_count_ == 0) return;
  const int32_t missing = wait.lane->MissingForGood(wait.operation);
  if (missing < 0) return;
  FailLocked(Status::Error(SPARSESEL_PEER_FAILED,
                           "rank %d has released what rank %d waits for in %s", missing, wait.rank,
                           wait.call)
                 .WithRank(missing));
}

void Hub::Add(Wait* wait) {
  wait->next = waits_;
  if (waits_ != nullptr) waits_->previous = wait;
  waits_ = wait;
  ++wait_count_;
  ++changes_;
  if (++waiting_[static_cast<size_t>(wait->rank)] > 1) overlapped_ = true;
}

void Hub::Remove(Wait* wait) {
  (wait->previous == nullptr ? waits_ : wait->previous->next) = wait->next;
  if (wait->next != nullptr) wait->next->previous = wait->previous;
  --wait_count_;
  ++changes_;
  --waiting_[static_cast<size_t>(wait->rank)];
}

bool Hub::StuckLocked() const {
  // A rank that has ever waited for two things at once has a second thread, which may still come.
  if (overlapped_ || wait_count_ != world_ || state_.failed()) return false;
  for (const Wait* wait = waits_; wait != nullptr; wait = wait->next) {
    if (wait->goal != Goal::kMeet || wait->lane->overlaps_ || wait->lane->Reached(*wait)) {
      return false;
    }
  }
  return true;
}

Status Hub::DifferentCalls() const {
  const Wait* zero = waits_;
  while (zero->rank != 0) zero = zero->next;
  const Wait* other = zero;  // the lowest rank that is elsewhere
  for (const Wait* wait = waits_; wait != nullptr; wait = wait->next) {
    if (wait->lane != zero->lane && (other == zero || wait->rank < other->rank)) other = wait;
  }
  return Status::Error(
             SPARSESEL_MISMATCH,
             "every rank waits, but not for the same: rank 0 in %s on channel %d, rank %d "
             "in %s on channel %d (-1 is the control plane)",
             zero->call, zero->lane->index_, other->rank, other->call, other->lane->index_)
      .WithRank(other->rank);
}

}  // namespace sparsesel
