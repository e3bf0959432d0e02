// The group of ranks on GPUs that NCCL connects, on any hosts: its control plane is the caller's
// bootstrap, or, of a local group, the threads of this process.
//
// NCCL bounds nothing that runs on the device: what is bounded are the waits of the host. When one
// is over, or NCCL tells of an error, the group has failed, and its communicators are aborted
// unless they are borrowed. Ranks that differ in rows are not found out: NCCL takes sizes on trust.
#ifndef SPARSESEL_TRANSPORT_NCCL_GROUP_H_
#define SPARSESEL_TRANSPORT_NCCL_GROUP_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/functional/function_ref.h"
#include "comm/comm.h"
#include "transport/nccl_communicator.h"
#include "transport/nccl_library.h"

namespace sparsesel {

// One rank's share of the group.
struct NcclRank {
  NcclRank() = default;
  NcclRank(const NcclRank&) = delete;
  NcclRank& operator=(const NcclRank&) = delete;
  ~NcclRank() {
    if (destroy_stream != nullptr) destroy_stream(stream);
  }

  int32_t rank = 0;
  int32_t world = 1;
  int32_t device = 0;
  bool borrowed = false;
  Environment environment;
  std::atomic<uint64_t> steady_timeout{0};
  const GroupTable* control = nullptr;  // the group that carries the control plane, and the state
  std::shared_ptr<void> control_self;
  NcclLibrary library;
  std::shared_ptr<NcclFamily> family;
  // Of all slots that do not overlap, so that their executes have one order.
  std::shared_ptr<NcclCommunicator> communicator;
  void* stream = nullptr;  // where this rank's trials run
  std::mutex stream_use;   // held while the stream is captured, or copied in
  void (*destroy_stream)(void* stream) = nullptr;
  Status (*enter_device)(int32_t device) = nullptr;  // makes it the calling thread's
};

const GroupTable* NcclGroupTable();

// Ends the group for `status`.
void FailNccl(NcclRank& rank, const Status& status);

// As NcclCommunicator::Use; a failure is the group's, since peers wait for what did not start.
Status UseNccl(NcclRank& rank, NcclCommunicator& communicator, const char* what,
               absl::FunctionRef<NcclResult(const NcclLibrary& library, NcclHandle handle)> call);

// Runs `call` on another thread and waits for it, until the deadline (TIMEOUT) or the group's end.
// Then it goes on by itself, so it must own what it touches.
Status CallBounded(NcclRank& rank, int64_t deadline, const char* what,
                   std::function<Status()> call);

// Gives all ranks one more communicator. Collective, in a collective call.
Status MakeNcclCommunicator(Comm& comm, std::shared_ptr<NcclCommunicator>* communicator);

// OK, or why this build has no such group.
Status NcclGroupSupport();

// All ranks of a group in this process, a device each. `options` are validated.
Status CreateLocalNcclGroup(int32_t world, const CommOptions& options,
                            std::vector<std::shared_ptr<Comm>>* comms);

// Joining: what this rank can do alone; then, after all ranks have entered, the communicator.
// Collective, in kJoin.
Status MakeNcclMember(int32_t rank, int32_t world, const CommOptions& options,
                      std::shared_ptr<Comm>* comm);
Status ConnectNcclMember(Comm& comm, const CommOptions& options);

}  // namespace sparsesel

#endif  // SPARSESEL_TRANSPORT_NCCL_GROUP_H_
