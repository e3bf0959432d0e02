// The group of ranks on GPUs that can store into each other's memory: several GPUs, or several
// ranks on one; in one process, or in several of one machine. Only in builds with CUDA.
#ifndef SPARSESEL_TRANSPORT_PEER_GROUP_H_
#define SPARSESEL_TRANSPORT_PEER_GROUP_H_

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "comm/comm.h"
#include "contract/environment.h"
#include "kernels/peer.h"
#include "transport/group_board.h"
#include "transport/peer_member.h"
#include "transport/peer_memory.h"

namespace sparsesel {

// A CUDA error as a status; `what` is the call that failed.
Status CudaStatus(cudaError_t error, const char* what);

// Makes a device current for a scope: the caller's choice comes back.
class OnDevice {
 public:
  explicit OnDevice(int32_t device) {
    error_ = cudaGetDevice(&previous_);
    if (error_ == cudaSuccess && previous_ != device) error_ = cudaSetDevice(device);
    changed_ = previous_ != device;
  }
  ~OnDevice() {
    if (changed_) (void)cudaSetDevice(previous_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  cudaError_t error() const { return error_; }

 private:
  int previous_ = 0;
  bool changed_ = false;
  cudaError_t error_ = cudaSuccess;
};

// Pinned host memory that kernels and the host share, without either waiting for the other.
class PeerWords {
 public:
  static Status Make(uint64_t limit, std::shared_ptr<PeerWords>* words);
  ~PeerWords();
  volatile kernels::PeerHostWords* get() const { return words_; }
  kernels::PeerHostWords* device() const { return words_; }  // unified addressing

 private:
  kernels::PeerHostWords* words_ = nullptr;
};

// What a group's kernels address beside the memory of a slot. Slots hold a share, and so do graphs.
struct PeerGroupMemory {
  std::shared_ptr<PeerWords> words;  // this rank's
  std::shared_ptr<void> abort_page;  // null, or what keeps PeerRankState::abort mapped
  std::array<std::shared_ptr<PeerMemory>, kMaxWorld> ranks;  // each begins with a PeerRankState

  kernels::PeerRankState* state(size_t rank) const {
    return reinterpret_cast<kernels::PeerRankState*>(ranks[rank]->data());
  }
};

// One rank's share of the group.
struct PeerRank {
  int32_t rank = 0;
  // The control plane: a ThreadRank, or a CustomRank whose bootstrap it is.
  const GroupTable* control_table = nullptr;
  std::shared_ptr<void> control;
  int32_t device = 0;
  int32_t ranks_on_device = 1;
  uint64_t elsewhere = 0;             // ranks that are in other processes, as a mask
  std::shared_ptr<GroupBoard> board;  // where processes tell each other of the end; null in one
  std::shared_ptr<PeerWords> words;
  // Of all ranks of a local group; of this rank alone in a joined one.
  std::shared_ptr<const std::vector<std::shared_ptr<PeerWords>>> local_words;
  std::shared_ptr<const PeerGroupMemory> memory;
  // Where this rank's trials run. One a rank and no more: streams share the device's queues, and
  // ranks whose streams share one cannot wait for each other.
  cudaStream_t stream = nullptr;
  std::mutex stream_use;  // held while the stream is captured, or copied in

  PeerRank() = default;
  PeerRank(const PeerRank&) = delete;
  PeerRank& operator=(const PeerRank&) = delete;
  ~PeerRank();
};

const GroupTable* PeerGroupTable();

// What ended the group, as far as devices and other processes have said; OK if nothing has.
Status PeerFailureOf(const PeerRank& rank);

// The first state of a rank's own memory in a group (PeerGroupMemory::ranks), which also has an
// inbox for ProveCoResidency.
Status MakeRankMemory(const PeerRank& rank, int32_t world, const uint32_t* abort,
                      std::shared_ptr<PeerMemory>* memory);

// Ranks wait for each other inside kernels, so all of them must be able to run at once. That is
// shown, not assumed: each rank's kernels, on the stream of its trials, must meet the others'.
// `ranks` are those of this process; the others do the same at the same time, if there are any.
Status ProveCoResidency(int32_t world, std::span<const PeerRank* const> ranks);

// The device's part of `member`.
Status DescribeMember(int32_t device, PeerMember* member);

// Which of `options.devices` serve `count` ranks; checks that they exist.
Status ChooseDevices(int32_t count, const CommOptions& options, std::vector<int32_t>* devices);

// Lets kernels on `from` store into `to`, both of this process.
Status EnablePeer(int32_t from, int32_t to);

// Stream and kernels of a rank whose device is chosen.
Status SetUpRank(PeerRank* rank);

}  // namespace sparsesel

#endif  // SPARSESEL_TRANSPORT_PEER_GROUP_H_
