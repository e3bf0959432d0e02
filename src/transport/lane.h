// A sequence of operations that all ranks of a hub go through in one order: the control plane, or
// the channels of one workspace slot.
//
// For operation n a rank writes its post, then meets the others. Posts are kept twice, by the
// parity of n: a rank can write for n + 2 only after n + 1 was complete, so after every rank had
// entered n + 1, and with that had finished reading the posts of n.
//
// What posts point to is read by peers after the meeting. A rank says that it has finished by
// entering its next operation, or by Release; Drain waits until all have.
#ifndef SPARSESEL_TRANSPORT_LANE_H_
#define SPARSESEL_TRANSPORT_LANE_H_

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/call_message.h"
#include "transport/hub.h"

namespace sparsesel {

enum class Operation : int32_t {
  kControl,
  kBarrier,
  kAllGather,
  kAllToAll,
  kSumBf16,
  kSumInt32,
};

const char* OperationName(Operation operation);

// What one rank brings to one operation.
struct Post {
  Operation operation = Operation::kBarrier;
  bool begins = false;  // the first operation after begin: `message` is to be compared
  uint64_t bytes = 0;   // what it sends to each; of all-to-all unused; of sums the element count
  const std::byte* send = nullptr;
  sparsesel_status status = SPARSESEL_OK;         // control only: why this rank has no data
  std::vector<std::byte> staged;                  // control only: a copy of the data
  std::array<uint64_t, kMaxWorld> send_bytes;     // all-to-all only
  std::array<uint64_t, kMaxWorld> send_offsets;   // all-to-all only
  std::array<uint64_t, kMaxWorld> receive_bytes;  // all-to-all only
};

class Lane {
 public:
  // `index` names the lane in sentences; negative is the control plane.
  Lane(Hub* hub, int32_t index, bool overlaps);

  // Whether operation n + 1 may be posted: false once the group has failed.
  bool open() const { return !hub_->state().failed(); }

  // This rank's own post and message of its next operation; only while open().
  Post& NextPost(int32_t rank) { return post(rank, entered(rank) + 1); }
  CallMessage& NextMessage(int32_t rank) { return messages(entered(rank) + 1)[Index(rank)]; }

  // Returns when all ranks have entered the operation, or the group has failed. `call` is static
  // storage. Adds the time waited to `waited[r]` of the rank that came last, if not null.
  Status Meet(int32_t rank, int64_t deadline, const char* call, std::atomic<uint64_t>* waited);

  // What all brought to the operation that `rank` met last.
  const Post& Met(int32_t rank, int32_t peer) { return post(peer, entered(rank)); }
  std::span<const CallMessage> MetMessages(int32_t rank) {
    return {messages(entered(rank)), static_cast<size_t>(hub_->world())};
  }

  // This rank has finished reading. Never blocks.
  void Release(int32_t rank);
  // Waits until the others have finished reading, on a failed group too.
  Status Drain(int32_t rank, int64_t deadline, const char* call);
  // Releases for good; who waits for this rank here fails at once.
  void Leave(int32_t rank);

 private:
  friend class Hub;

  struct Seat {
    uint64_t entered = 0;   // the last operation entered
    uint64_t released = 0;  // the last operation whose blocks are no longer read
    bool left = false;
  };

  static size_t Index(int32_t rank) { return static_cast<size_t>(rank); }
  uint64_t entered(int32_t rank) const { return seats_[Index(rank)].entered; }
  Post& post(int32_t rank, uint64_t operation) {
    return posts_[(operation & 1) * Index(hub_->world()) + Index(rank)];
  }
  CallMessage* messages(uint64_t operation) {
    return messages_.get() + (operation & 1) * Index(hub_->world());
  }

  Status Await(Hub::Wait* wait, int64_t deadline);
  // These want the hub's mutex held.
  bool Reached(const Hub::Wait& wait) const;
  void ReleaseLocked(Seat* seat);
  int32_t FirstMissing(const Hub::Wait& wait) const;
  // A rank that is missing and will never come, or -1.
  int32_t MissingForGood(uint64_t operation) const;
  Status Expired(const Hub::Wait& wait) const;

  Hub* const hub_;
  const int32_t index_;
  bool overlaps_;
  std::unique_ptr<Post[]> posts_;            // [2][world]
  std::unique_ptr<CallMessage[]> messages_;  // [2][world]
  std::atomic<uint64_t> completed_{0};       // operations that all ranks have entered
  std::array<int32_t, 2> last_{};            // who completed them, by parity

  // Guarded by the hub's mutex; a rank reads its own seat's `entered` without.
  std::array<Seat, kMaxWorld> seats_;
  int32_t arrived_ = 0;  // ranks in operation completed_ + 1
  int32_t left_count_ = 0;
  int32_t reading_ = 0;  // seats that have not released operation completed_
  // Apart, since every meeting ends in as many releases as there are ranks.
  std::condition_variable met_;
  std::condition_variable drained_;
};

}  // namespace sparsesel

#endif  // SPARSESEL_TRANSPORT_LANE_H_
