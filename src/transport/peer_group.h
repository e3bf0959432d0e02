// The group of ranks on GPUs that can store into each other's memory, in one process: several GPUs,
// or several ranks on one. Only in builds with CUDA.
#ifndef SPARSESEL_TRANSPORT_PEER_GROUP_H_
#define SPARSESEL_TRANSPORT_PEER_GROUP_H_

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/comm.h"
#include "contract/environment.h"
#include "kernels/peer.h"
#include "transport/thread_group.h"

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
  static Status Make(std::shared_ptr<PeerWords>* words);
  ~PeerWords();
  volatile kernels::PeerHostWords* get() const { return words_; }
  kernels::PeerHostWords* device() const { return words_; }  // unified addressing

 private:
  kernels::PeerHostWords* words_ = nullptr;
};

// Memory of one rank that its peers store into: an inbox and the state of a slot. Every rank that
// may still store into it holds a share, and so do graphs that were captured with it.
class PeerMemory {
 public:
  static Status Make(int32_t device, int64_t half_packets, std::shared_ptr<PeerWords> words,
                     std::shared_ptr<PeerMemory>* memory);
  ~PeerMemory();

  uint4* inbox() const { return inbox_; }
  kernels::PeerState* state() const { return state_; }
  int64_t half() const { return half_; }
  size_t bytes() const;

 private:
  int32_t device_ = 0;
  int64_t half_ = 0;
  uint4* inbox_ = nullptr;
  kernels::PeerState* state_ = nullptr;
  std::shared_ptr<PeerWords> words_;
};

// One rank's share of the group.
struct PeerRank {
  std::shared_ptr<ThreadRank> thread;  // control plane, and barriers on the host
  int32_t device = 0;
  int32_t ranks_on_device = 1;
  std::shared_ptr<PeerWords> words;
  std::shared_ptr<const std::vector<std::shared_ptr<PeerWords>>> all_words;
  // Where this rank's trials run. One a rank and no more: streams share the device's queues, and
  // ranks whose streams share one cannot wait for each other.
  cudaStream_t stream = nullptr;

  PeerRank() = default;
  PeerRank(const PeerRank&) = delete;
  PeerRank& operator=(const PeerRank&) = delete;
  ~PeerRank();
};

const GroupTable* PeerGroupTable();

// All ranks exchange the memories they made for one slot. Collective, in a collective call; `local`
// as in Comm::AllGatherOrFail.
Status SharePeerMemory(Comm& comm, const std::shared_ptr<PeerMemory>& own, const Status& local,
                       std::array<std::shared_ptr<PeerMemory>, kMaxWorld>* all);

}  // namespace sparsesel

#endif  // SPARSESEL_TRANSPORT_PEER_GROUP_H_
