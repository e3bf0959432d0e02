#include "comm/comm.h"

#include <array>
#include <cstring>
#include <utility>

#include "contract/guard.h"

namespace sparsesel {

int64_t DeadlineAfter(int64_t now, uint64_t timeout) {
  const uint64_t left = static_cast<uint64_t>(INT64_MAX) - static_cast<uint64_t>(now < 0 ? 0 : now);
  return timeout >= left ? INT64_MAX : now + static_cast<int64_t>(timeout);
}

Comm::Comm(int32_t rank, int32_t world, int32_t memory, int32_t device,
           const Environment& environment, uint64_t startup_timeout, uint64_t steady_timeout,
           const GroupTable* table, std::shared_ptr<void> self)
    : rank_(rank),
      world_(world),
      memory_(memory),
      device_(device),
      environment_(environment),
      startup_timeout_(startup_timeout),
      steady_timeout_(steady_timeout),
      table_(table),
      self_(std::move(self)),
      joint_(std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(world + 1) *
                                                         (kJointBytes + sizeof(CallMessage)))) {}

int64_t Comm::StartupDeadline() const {
  return DeadlineAfter(environment_.Now(), startup_timeout_.load(std::memory_order_relaxed));
}

int64_t Comm::SteadyDeadline() const {
  return DeadlineAfter(environment_.Now(), steady_timeout_.load(std::memory_order_relaxed));
}

void Comm::SetTimeouts(uint64_t startup, uint64_t steady) {
  if (startup != 0) startup_timeout_.store(startup, std::memory_order_relaxed);
  if (steady == 0) return;
  steady_timeout_.store(steady, std::memory_order_relaxed);
  if (table_->set_steady_timeout != nullptr) table_->set_steady_timeout(self_.get(), steady);
}

Status Comm::State() const { return table_->state(self_.get()); }

void Comm::Fail(const Status& status) { table_->fail(self_.get(), status); }

void Comm::Abort() { table_->abort(self_.get()); }

Status Comm::Enter(CallKind kind, uint64_t digest, const Status& local) {
  kind_.store(kind, std::memory_order_relaxed);
  CallMessage message;
  message.abi_version = sparsesel_version();
  message.kind = kind;
  message.sequence = sequence_.fetch_add(1, std::memory_order_relaxed);
  message.digest = digest;
  message.world = world_;
  message.rank = rank_;
  SetStatus(local, rank_, &message);
  // Room for the largest world: in comm_create ranks may differ about its size.
  std::array<CallMessage, kMaxWorld> messages;
  SPARSESEL_RETURN_IF_ERROR(AllGather(&message, messages.data(), sizeof(message)));
  return CompareCalls({messages.data(), static_cast<size_t>(world_)});
}

Status Comm::AllGather(const void* send, void* receive, size_t bytes) {
  control_calls_.fetch_add(1, std::memory_order_relaxed);
  return table_->control_all_gather(self_.get(), send, receive, bytes, StartupDeadline());
}

Status Comm::AllGatherOrFail(const Status& local, const void* send, void* receive, size_t bytes) {
  CallMessage message;
  message.abi_version = sparsesel_version();
  message.kind = kind_.load(std::memory_order_relaxed);
  message.rank = rank_;
  message.world = world_;
  SetStatus(local, rank_, &message);
  std::array<CallMessage, kMaxWorld> messages;
  const auto world = static_cast<size_t>(world_);
  if (bytes > kJointBytes) {
    SPARSESEL_RETURN_IF_ERROR(AllGather(&message, messages.data(), sizeof(message)));
    SPARSESEL_RETURN_IF_ERROR(CompareCalls({messages.data(), world}));
    return AllGather(send, receive, bytes);
  }
  const size_t joint = sizeof(message) + bytes;
  std::byte* const mine = joint_.get();
  std::byte* const all = mine + joint;
  std::memcpy(mine, &message, sizeof(message));
  if (!local.ok()) {
    std::memset(mine + sizeof(message), 0, bytes);  // what failed need not have been written
  } else if (bytes > 0) {
    std::memcpy(mine + sizeof(message), send, bytes);
  }
  SPARSESEL_RETURN_IF_ERROR(AllGather(mine, all, joint));
  for (size_t rank = 0; rank < world; ++rank) {
    std::memcpy(&messages[rank], all + rank * joint, sizeof(message));
  }
  SPARSESEL_RETURN_IF_ERROR(CompareCalls({messages.data(), world}));
  for (size_t rank = 0; rank < world && bytes > 0; ++rank) {
    std::memcpy(static_cast<std::byte*>(receive) + rank * bytes,
                all + rank * joint + sizeof(message), bytes);
  }
  return {};
}

Status Comm::MakeHostChannel(HostChannel* channel, bool overlaps) {
  // Counted even on failure, so that this rank's next channel meets its peers' next one.
  const int32_t index = channels_.fetch_add(1, std::memory_order_relaxed);
  if (table_->make_host_channel == nullptr) {
    return Status::Error(SPARSESEL_UNSUPPORTED, "this group has no channels on host memory");
  }
  return Guarded([&] { return table_->make_host_channel(self_.get(), index, overlaps, channel); });
}

}  // namespace sparsesel
