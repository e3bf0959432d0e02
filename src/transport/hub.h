// Where the ranks of a group in one process meet: what all lanes share, and who waits for what.
#ifndef SPARSESEL_TRANSPORT_HUB_H_
#define SPARSESEL_TRANSPORT_HUB_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "contract/environment.h"
#include "contract/status.h"
#include "transport/group_state.h"
#include "transport/host_channel.h"

namespace sparsesel {

class Lane;

class Hub {
 public:
  Hub(int32_t world, const Environment& environment);

  int32_t world() const { return world_; }
  const Environment& environment() const { return environment_; }
  const GroupState& state() const { return state_; }
  Lane& control() { return *control_; }

  // The lane of channel `index`. The hub lets go of it when every rank has taken it.
  std::shared_ptr<Lane> TakeLane(int32_t index, bool overlaps);

  // Ends the group and wakes whoever waits. The first failure stays.
  void Fail(const Status& why);

  // Rank `rank` will never come again. Who waits for it fails at once.
  void Leave(int32_t rank);

  // Spinning pays only while every rank can have a core of its own.
  bool spins() const { return spins_; }

 private:
  friend class Lane;

  enum class Goal { kMeet, kDrain };
  // One blocked thread; lives on its stack, linked into waits_.
  struct Wait {
    int32_t rank;
    Lane* lane;
    Goal goal;
    uint64_t operation;  // kMeet: the number that all must reach
    const char* call;    // what the rank is doing, static storage
    Wait* previous = nullptr;
    Wait* next = nullptr;
  };

  // All of these want mutex_ held.
  void Add(Wait* wait);
  void Remove(Wait* wait);
  void FailLocked(const Status& why);
  void FailIfLeftBehind(const Wait& wait);
  // True if every rank waits, once, and not all for the same: nobody is left to come.
  bool StuckLocked() const;
  Status DifferentCalls() const;

  const int32_t world_;
  const Environment environment_;
  const bool spins_;
  GroupState state_;

  // Also guards what lanes say it does. Of std, like the lanes' conditions, since those wait on the
  // monotonic clock, and since ThreadSanitizer understands them.
  std::mutex mutex_;
  Wait* waits_ = nullptr;
  int32_t wait_count_ = 0;
  std::array<int32_t, kMaxWorld> waiting_{};  // waits of each rank
  std::array<bool, kMaxWorld> left_{};
  int32_t left_count_ = 0;
  uint64_t changes_ = 0;     // of waits and arrivals
  bool overlapped_ = false;  // some rank has waited for two things at once
  struct Entry {
    std::shared_ptr<Lane> lane;
    int32_t taken = 0;
  };
  std::map<int32_t, Entry> lanes_;
  std::unique_ptr<Lane> control_;
};

}  // namespace sparsesel

#endif  // SPARSESEL_TRANSPORT_HUB_H_
