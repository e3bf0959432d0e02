// One rank's membership in a group: its identity, its control plane, its limits and its state.
#ifndef SPARSESEL_COMM_COMM_H_
#define SPARSESEL_COMM_COMM_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/call_message.h"
#include "contract/environment.h"
#include "contract/status.h"
#include "transport/host_channel.h"

namespace sparsesel {

// The control plane and the making of channels, for one kind of group; implemented in transport/.
struct GroupTable {
  int32_t transport;  // SPARSESEL_TRANSPORT_...
  // All-gather of small host messages: `receive` holds world * bytes in rank order.
  Status (*control_all_gather)(void* self, const void* send, void* receive, size_t bytes,
                               int64_t deadline);
  // Makes channel number `index` of this rank, for host memory; the same index on all ranks, 0 .. .
  // Local; the channel finds its peers by index. Null for device groups. `overlaps`: another
  // channel may be in an operation at the same time; UNAVAILABLE where the transport has one order
  // of calls.
  Status (*make_host_channel)(void* self, int32_t index, bool overlaps, HostChannel* channel);
  // The table that those channels will have, for what it says of the transport. Null for device
  // groups.
  const HostChannelTable* (*host_channel_table)(const void* self);
  void (*abort)(void* self);
  Status (*state)(const void* self);  // OK, or why the group failed (with the rank at fault)
  void (*fail)(void* self, const Status& status);
  // Tells device waits of a new limit, ns; null where none run.
  void (*set_steady_timeout)(void* self, uint64_t timeout);
};

// `now` + `timeout`, or the end of time.
int64_t DeadlineAfter(int64_t now, uint64_t timeout);

class Comm {
 public:
  // `self` is the group as seen by this rank; shared by the comm, its channels and bindings.
  Comm(int32_t rank, int32_t world, int32_t memory, int32_t device, const Environment& environment,
       uint64_t startup_timeout, uint64_t steady_timeout, const GroupTable* table,
       std::shared_ptr<void> self);

  int32_t rank() const { return rank_; }
  int32_t world() const { return world_; }
  int32_t memory() const { return memory_; }  // SPARSESEL_MEMORY_...
  int32_t device() const { return device_; }  // CUDA ordinal, -1 for host groups
  int32_t transport() const { return table_->transport; }
  const Environment& environment() const { return environment_; }
  const std::shared_ptr<void>& self() const { return self_; }
  const HostChannelTable& host_channel_table() const {
    return *table_->host_channel_table(self_.get());
  }

  int64_t StartupDeadline() const;  // from now, on the environment's clock
  int64_t SteadyDeadline() const;
  void SetTimeouts(uint64_t startup, uint64_t steady);  // 0 keeps one

  Status State() const;
  void Abort();
  // Ends the group for a reason that no exchange could tell the peers, so that none waits in vain.
  void Fail(const Status& status);
  uint64_t control_calls() const { return control_calls_.load(std::memory_order_relaxed); }

  // Begins a collective call: exchanges CallMessages with this rank's own `local` status and
  // returns the verdict, the same on all ranks. `digest` covers what must be equal.
  Status Enter(CallKind kind, uint64_t digest, const Status& local);
  // All-gather inside a collective call; `receive` holds world * bytes.
  Status AllGather(const void* send, void* receive, size_t bytes);
  // Like AllGather, but first no rank proceeds if any rank's `local` is not OK: the status of the
  // lowest failed rank is returned on all. Status and data travel together, in one all-gather, up
  // to kJointBytes; more takes two. Allocates nothing, so that no rank can fail before its peers
  // hear.
  Status AllGatherOrFail(const Status& local, const void* send, void* receive, size_t bytes);
  static constexpr size_t kJointBytes = size_t{16} * 1024 - sizeof(CallMessage);

  // The next index; the same order on all ranks. `overlaps` as in GroupTable.
  Status MakeHostChannel(HostChannel* channel, bool overlaps = false);

 private:
  const int32_t rank_;
  const int32_t world_;
  const int32_t memory_;
  const int32_t device_;
  const Environment environment_;
  std::atomic<uint64_t> startup_timeout_;
  std::atomic<uint64_t> steady_timeout_;
  const GroupTable* const table_;
  const std::shared_ptr<void> self_;
  const std::unique_ptr<std::byte[]> joint_;  // (1 + world) messages of AllGatherOrFail
  std::atomic<uint64_t> control_calls_{0};
  std::atomic<uint64_t> sequence_{0};
  std::atomic<CallKind> kind_{CallKind::kJoin};  // of the last call entered
  std::atomic<int32_t> channels_{0};
};

// Defaults filled in from validated options (see api/): environment, timeouts, devices.
struct CommOptions {
  Status invalid;  // JoinGroup: what was found wrong before the call, to be told to the peers
  int32_t transport = SPARSESEL_TRANSPORT_AUTO;
  int32_t memory = SPARSESEL_MEMORY_HOST;
  std::vector<int32_t> devices;
  uint64_t startup_timeout = 120'000'000'000;
  uint64_t steady_timeout = 30'000'000'000;
  Environment environment;
  sparsesel_bootstrap bootstrap{};
  bool has_custom = false;
  sparsesel_transport custom{};
  void* borrowed_communicator = nullptr;  // an ncclComm_t
  void* nccl_library = nullptr;           // a dlopen handle
};

Status CreateLocalGroup(int32_t world, const CommOptions& options,
                        std::vector<std::shared_ptr<Comm>>* comms);
Status JoinGroup(int32_t rank, int32_t world, const CommOptions& options,
                 std::shared_ptr<Comm>* comm);

}  // namespace sparsesel

#endif  // SPARSESEL_COMM_COMM_H_
