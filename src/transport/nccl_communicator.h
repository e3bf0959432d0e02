// NCCL communicators: who may use one when, and how it ends.
//
// NCCL lets a communicator be aborted while a call on it hangs, but frees it then. So the handle is
// used under a lock, and an abort that meets a call leaves the freeing to it. Aborting and
// destroying wait for kernels, for other ranks and for captured graphs, so both are done on threads
// of their own.
#ifndef SPARSESEL_TRANSPORT_NCCL_COMMUNICATOR_H_
#define SPARSESEL_TRANSPORT_NCCL_COMMUNICATOR_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/functional/function_ref.h"
#include "contract/status.h"
#include "transport/nccl_library.h"

namespace sparsesel {

class NcclCommunicator {
 public:
  // `owned`: it is destroyed with this object, waiting for that up to `release_limit` ns of the
  // machine's clock, since it may go on a thread that no callback may be called from. Else it is
  // the caller's, and neither aborted nor destroyed.
  NcclCommunicator(const NcclLibrary& library, NcclHandle handle, bool owned,
                   uint64_t release_limit);
  ~NcclCommunicator();
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;

  // Runs `call`, one at a time. `what` is the call's name, for sentences.
  Status Use(const char* what,
             absl::FunctionRef<NcclResult(const NcclLibrary& library, NcclHandle handle)> call);

  // What NCCL has found wrong meanwhile. Never blocks: OK while a call is in NCCL.
  Status AsyncError();

  // Ends what runs on it, if it is owned. Never blocks. If a call is in NCCL, it happens when that
  // returns; `even_if_used`: at once, for a call that hangs.
  void Abort(bool even_if_used = false);

  // Bytes per rank up to which every operation has been tried: connections and algorithms are set
  // up by their first use, which should not be in a capture. For who connects slots.
  size_t warmed = 0;

 private:
  void AbortIfFree();

  const NcclLibrary library_;
  const bool owned_;
  const uint64_t release_limit_;
  std::mutex mutex_;  // held while NCCL is called
  std::atomic<NcclHandle> handle_;
  std::atomic<bool> aborted_{false};
};

// The communicators that fail together: those of a rank, or of all ranks of a local group.
class NcclFamily {
 public:
  // Aborts at once what comes after a failure.
  void Add(const std::shared_ptr<NcclCommunicator>& communicator);
  void Abort(bool even_if_used = false);
  Status AsyncError() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::weak_ptr<NcclCommunicator>> members_;
  bool aborted_ = false;
};

}  // namespace sparsesel

#endif  // SPARSESEL_TRANSPORT_NCCL_COMMUNICATOR_H_
