// What the processes of a group on one machine say to each other's hosts without meeting: that the
// group has ended, and which memory of another process they have let go of. A page or more of
// shared memory, known by a name only until every rank has opened it.
#ifndef SPARSESEL_TRANSPORT_GROUP_BOARD_H_
#define SPARSESEL_TRANSPORT_GROUP_BOARD_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "contract/status.h"
#include "transport/host_channel.h"

namespace sparsesel {

// One rank's view. Destroying it says that this rank has let go of everything and will never come
// again; the system says so for a process that dies.
class GroupBoard {
 public:
  using Name = std::array<char, 40>;
  static constexpr int32_t kMemories = 512;  // that one rank may lend at a time

  // One rank makes the board under a fresh name, and the others open it.
  static Status Create(int32_t rank, std::shared_ptr<GroupBoard>* board, Name* name);
  static Status Open(const Name& name, int32_t rank, std::shared_ptr<GroupBoard>* board);
  ~GroupBoard();
  GroupBoard(const GroupBoard&) = delete;
  GroupBoard& operator=(const GroupBoard&) = delete;

  // Nobody opens it any more: the name goes away. Whoever made it does so at the latest when its
  // view goes.
  void HideName();

  // How the group ended; `failure` is a PeerFailure (kernels/peer.h), of which the first stays.
  void Abort();
  bool aborted() const;
  void Fail(uint32_t failure);
  uint32_t failure() const;  // 0: none

  // Memory that this rank lends to other processes has a number; -1 if there is none left.
  int32_t TakeNumber();
  void FreeNumber(int32_t number);
  // This rank no longer addresses memory `number` of rank `lender`.
  void Return(int32_t lender, int32_t number);
  // Whether all of `borrowers`, a mask of ranks, have returned memory `number` of this rank, have
  // left or have died.
  bool Returned(int32_t number, uint64_t borrowers) const;
  // Has left or died. For other ranks; not for those that this process has too.
  bool Gone(int32_t rank) const;

  // The page with `abort` in it, for those who want to read it from elsewhere.
  void* page() const { return words_; }
  static constexpr size_t kPageBytes = 4096;
  const uint32_t* abort_word() const;

 private:
  struct Words;

  explicit GroupBoard(int32_t rank) : rank_(rank) {}
  Status Map(int file);
  void HoldLock();

  const int32_t rank_;
  int file_ = -1;  // open as long as this view: with it goes the lock that shows this rank alive
  Words* words_ = nullptr;
  Name name_{};  // empty: hidden, or another's
  std::mutex mutex_;
  std::array<bool, kMemories> taken_{};  // guarded by mutex_
};

}  // namespace sparsesel

#endif  // SPARSESEL_TRANSPORT_GROUP_BOARD_H_
