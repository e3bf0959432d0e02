// What plans and races need of a kind of memory: executors for compositions, and a few operations
// on buffers. One table per backend; above this file, host and device differ in a few checks only.
#ifndef SPARSESEL_COMPOSITIONS_EXECUTOR_H_
#define SPARSESEL_COMPOSITIONS_EXECUTOR_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "comm/comm.h"
#include "compositions/composition.h"
#include "contract/environment.h"
#include "contract/job.h"
#include "contract/status.h"

namespace sparsesel {

// One execute, checked, with every stride filled in.
struct Call {
  sparsesel_io io{};
  Status local;         // why this rank cannot take part, told to all ranks by the first exchange
  CallMessage message;  // what ranks compare
  int64_t deadline = 0;
  void* stream = nullptr;
};

// ns that one execute spent in each stage.
struct SpanTimes {
  std::array<int64_t, kStages> stage{};
};

// Told by an execute when it begins and when its stages end; those that it does in tiles end more
// than once.
class StageClock {
 public:
  virtual ~StageClock() = default;
  virtual Status Begin(void* stream) = 0;
  virtual Status End(Stage stage, void* stream) = 0;
};

// The clock of an execute in a stream; null if nobody wants to know.
struct Stages {
  StageClock* clock = nullptr;
  void* stream = nullptr;

  Status Begin() const { return clock == nullptr ? Status() : clock->Begin(stream); }
  Status End(Stage stage) const { return clock == nullptr ? Status() : clock->End(stage, stream); }
};

// Counters of a binding, updated by its executes; read by any thread.
struct ExecuteCounters {
  std::atomic<uint64_t> executes{0};
  std::atomic<uint64_t> failures{0};
  std::atomic<uint64_t> prefix_refetches{0};
  std::atomic<uint64_t> timeouts{0};
  std::shared_ptr<Buffer> on_device;  // what the kernels of a device group count, or null
};

// Where an execute runs: one slot of a workspace.
struct Slot {
  std::shared_ptr<Buffer> memory;  // at least the executor's workspace_bytes
  HostChannel channel;             // host groups
  std::shared_ptr<void> device;    // device groups: what the backend keeps for a slot
};

// One composition at one capacity. Immutable: state lives in the slot.
class Executor {
 public:
  virtual ~Executor() = default;
  // Never used again, as an address may be.
  uint64_t serial() const { return serial_; }
  virtual size_t workspace_bytes() const = 0;
  virtual size_t peer_visible_bytes() const = 0;
  virtual int32_t tile_rows() const = 0;  // rows handled at once
  // `clock` may be null. Allocates nothing.
  virtual Status Execute(const Call& call, const Slot& slot, StageClock* clock,
                         ExecuteCounters* counters) const = 0;
  // Proves on this slot that what the composition relies on of its transport holds, at every
  // message size that Execute may use. Collective.
  virtual Status ProveLossless(const Slot& slot, int64_t deadline) const = 0;

 private:
  static inline std::atomic<uint64_t> next_serial_{0};
  const uint64_t serial_ = next_serial_.fetch_add(1, std::memory_order_relaxed);
};

struct Backend {
  int32_t memory;
  Topology (*topology)(const Comm& comm);
  // Collective in order, not in time: every rank makes the same slots in the same order.
  // `overlaps`: executes in other slots may run at the same time.
  Status (*make_slot)(Comm& comm, bool overlaps, Slot* slot);
  // Gives the slot fresh memory: workspace, and memory that peers reach. Local.
  Status (*reserve)(Comm& comm, size_t bytes, size_t peer_visible, Slot* slot);
  // Lets the ranks' slots reach each other, after all have reserved. Collective.
  Status (*connect)(Comm& comm, Slot* slot);
  // The stream that trials run in, and a wait until it is idle.
  void* (*trial_stream)(const Slot& slot);
  Status (*finish)(const Slot& slot);
  // UNSUPPORTED when no tile fits the memory limit.
  Status (*make_executor)(const Comm& comm, const Job& job, int32_t capacity,
                          const Composition& composition, std::unique_ptr<Executor>* executor);
  // Gives a binding's counters what kernels count in, if any do; and adds that to `stats`.
  Status (*make_counters)(const Comm& comm, ExecuteCounters* counters);
  Status (*read_counters)(const Comm& comm, const ExecuteCounters& counters,
                          sparsesel_stats* stats);
  Status (*copy_in)(const Comm& comm, void* to, const void* from, size_t bytes);
  Status (*copy_out)(const Comm& comm, void* to, const void* from, size_t bytes);
  // ns per execute of a train of `length` executes of one call. Sequence numbers are counted on
  // from call->message.sequence, which is left behind the last one.
  Status (*time_train)(const Comm& comm, const Executor& executor, const Slot& slot, int32_t length,
                       Call* call, double* ns);
  // The spans of as many executes of one call as there is room for. Sequence numbers as above.
  Status (*time_spans)(const Comm& comm, const Executor& executor, const Slot& slot, Call* call,
                       std::span<SpanTimes> executes);
  // Waits until peers have finished with what this rank sent through the slot.
  Status (*drain)(const Slot& slot, int64_t deadline);
};

const Backend& BackendFor(const Comm& comm);

}  // namespace sparsesel

#endif  // SPARSESEL_COMPOSITIONS_EXECUTOR_H_
