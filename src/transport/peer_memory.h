// Device memory that the ranks of a group store into, in one process or several. Only in builds
// with CUDA.
#ifndef SPARSESEL_TRANSPORT_PEER_MEMORY_H_
#define SPARSESEL_TRANSPORT_PEER_MEMORY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "comm/comm.h"
#include "contract/status.h"
#include "transport/group_board.h"

namespace sparsesel {

// Owned by this process, or a mapping of another's. Every rank of this process that may still store
// into it holds a share, and so do graphs that were captured with it.
//
// What has been lent to other processes must not be freed before they have closed their mappings.
// Nobody waits for that: the memory is put aside with its last share, and freed by a later call
// that finds it returned, or its borrowers gone.
class PeerMemory {
 public:
  // Owned and zeroed. `lent`: other processes will map it.
  static Status Make(int32_t device, size_t bytes, bool lent, std::shared_ptr<PeerMemory>* memory);
  // Frees what was put aside and has been returned since.
  static void FreeReturned();
  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  std::byte* data() const { return data_; }

 private:
  friend class PeerLoan;
  explicit PeerMemory(int32_t device) : device_(device) {}

  const int32_t device_;
  std::byte* data_ = nullptr;
  // Of memory that is lent or borrowed; null otherwise.
  std::shared_ptr<GroupBoard> board_;
  int32_t lender_ = -1;     // -1: this process
  int32_t number_ = -1;     // the lender's
  uint64_t borrowers_ = 0;  // ranks; of what is lent
};

// All ranks exchange the memories that they made for one purpose, `own` here. Collective, in a
// collective call; `local` as in Comm::AllGatherOrFail. UNAVAILABLE names two ranks of which one
// cannot map the other's memory.
Status SharePeerMemory(Comm& comm, const std::shared_ptr<PeerMemory>& own, const Status& local,
                       std::array<std::shared_ptr<PeerMemory>, kMaxWorld>* all);

}  // namespace sparsesel

#endif  // SPARSESEL_TRANSPORT_PEER_MEMORY_H_
