// The data plane of a group of threads: ranks read each other's buffers.
#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <span>

#include "transport/lane.h"
#include "transport/sums.h"
#include "transport/thread_group.h"

namespace sparsesel {
namespace {

struct ThreadChannel {
  ThreadChannel(std::shared_ptr<ThreadRank> rank_in, std::shared_ptr<Lane> lane_in)
      : member(std::move(rank_in)), lane(std::move(lane_in)) {}
  ~ThreadChannel() { lane->Leave(rank()); }
  ThreadChannel(const ThreadChannel&) = delete;
  ThreadChannel& operator=(const ThreadChannel&) = delete;

  int32_t rank() const { return member->rank; }
  int32_t world() const { return member->hub->world(); }
  const char* call() const { return CallName(message.kind); }

  const std::shared_ptr<ThreadRank> member;
  const std::shared_ptr<Lane> lane;
  CallMessage message;
  bool begins = false;
  int64_t deadline = INT64_MAX;
  std::array<std::atomic<uint64_t>, kMaxWorld> waited{};
};

ThreadChannel& Self(void* self) { return *static_cast<ThreadChannel*>(self); }

void Begin(void* self, const CallMessage& message, int64_t deadline) {
  ThreadChannel& channel = Self(self);
  channel.lane->Release(channel.rank());
  channel.message = message;
  channel.begins = true;
  channel.deadline = deadline;
}

Status OperationMismatch(int32_t rank, const char* field, const char* expected, const char* found) {
  return Status::Error(SPARSESEL_MISMATCH,
                       "ranks disagree in an exchange: %s is %s on rank 0, %s "
                       "on rank %d",
                       field, expected, found, rank)
      .WithRank(rank);
}

// Every rank checks all pairs, so that all come to the same verdict.
Status JudgeAllToAll(ThreadChannel& channel) {
  for (int32_t from = 0; from < channel.world(); ++from) {
    const Post& sender = channel.lane->Met(channel.rank(), from);
    for (int32_t to = 0; to < channel.world(); ++to) {
      const uint64_t sent = sender.send_bytes[static_cast<size_t>(to)];
      const Post& receiver = channel.lane->Met(channel.rank(), to);
      const uint64_t expected = receiver.receive_bytes[static_cast<size_t>(from)];
      if (sent != expected) {
        return Status::Error(SPARSESEL_MISMATCH,
                             "in all_to_all rank %d sends %d bytes to rank %d, which expects %d",
                             from, sent, to, expected)
            .WithRank(from);
      }
    }
  }
  return {};
}

// The same verdict on every rank, from what all posted.
Status Judge(ThreadChannel& channel) {
  const Post& first = channel.lane->Met(channel.rank(), 0);
  bool messages = true;
  for (int32_t rank = 0; rank < channel.world(); ++rank) {
    messages = messages && channel.lane->Met(channel.rank(), rank).begins;
  }
  // Before all else, for it says why a rank that failed is in another operation.
  if (messages) {
    SPARSESEL_RETURN_IF_ERROR(CompareCalls(channel.lane->MetMessages(channel.rank())));
  }
  for (int32_t rank = 1; rank < channel.world(); ++rank) {
    const Post& post = channel.lane->Met(channel.rank(), rank);
    if (post.begins != first.begins) {
      return OperationMismatch(rank, "its place in the execute", first.begins ? "first" : "later",
                               post.begins ? "first" : "later");
    }
    if (post.operation != first.operation) {
      return OperationMismatch(rank, "the operation", OperationName(first.operation),
                               OperationName(post.operation));
    }
    if (post.bytes != first.bytes) {
      return Status::Error(SPARSESEL_MISMATCH,
                           "ranks disagree about the size of %s: %d on rank 0, %d on rank %d",
                           OperationName(first.operation), first.bytes, post.bytes, rank)
          .WithRank(rank);
    }
  }
  return first.operation == Operation::kAllToAll ? JudgeAllToAll(channel) : Status();
}

// Null once the group has failed.
Post* NextPost(ThreadChannel& channel, Operation operation, const void* send, uint64_t bytes) {
  if (!channel.lane->open()) return nullptr;
  Post& post = channel.lane->NextPost(channel.rank());
  post.operation = operation;
  post.begins = channel.begins;
  post.send = static_cast<const std::byte*>(send);
  post.bytes = bytes;
  if (channel.begins) channel.lane->NextMessage(channel.rank()) = channel.message;
  return &post;
}

Status MeetAndJudge(ThreadChannel& channel) {
  channel.begins = false;
  SPARSESEL_RETURN_IF_ERROR(
      channel.lane->Meet(channel.rank(), channel.deadline, channel.call(), channel.waited.data()));
  return Judge(channel);
}

Status Failed(ThreadChannel& channel) {
  channel.lane->Release(channel.rank());
  return channel.member->hub->state().Earlier();
}

Status AllGather(void* self, const std::byte* send, uint64_t bytes, std::byte*, Blocks* blocks) {
  ThreadChannel& channel = Self(self);
  if (NextPost(channel, Operation::kAllGather, send, bytes) == nullptr) return Failed(channel);
  SPARSESEL_RETURN_IF_ERROR(MeetAndJudge(channel));
  for (int32_t rank = 0; rank < channel.world(); ++rank) {
    blocks->from[rank] = channel.lane->Met(channel.rank(), rank).send;
  }
  return {};
}

Status AllToAll(void* self, const std::byte* send, const uint64_t* send_bytes,
                const uint64_t* send_offsets, std::byte*, const uint64_t* receive_bytes,
                const uint64_t*, Blocks* blocks) {
  ThreadChannel& channel = Self(self);
  Post* const post = NextPost(channel, Operation::kAllToAll, send, 0);
  if (post == nullptr) return Failed(channel);
  const auto world = static_cast<size_t>(channel.world());
  std::copy_n(send_bytes, world, post->send_bytes.begin());
  std::copy_n(send_offsets, world, post->send_offsets.begin());
  std::copy_n(receive_bytes, world, post->receive_bytes.begin());
  SPARSESEL_RETURN_IF_ERROR(MeetAndJudge(channel));
  const auto own = static_cast<size_t>(channel.rank());
  for (int32_t rank = 0; rank < channel.world(); ++rank) {
    const Post& peer = channel.lane->Met(channel.rank(), rank);
    blocks->from[rank] = peer.send_bytes[own] == 0 ? peer.send : peer.send + peer.send_offsets[own];
  }
  return {};
}

template <typename Element>
Status Sum(void* self, Operation operation, const Element* send, Element* receive, uint64_t count,
           void (*sum)(std::span<const Element* const>, size_t, Element*)) {
  ThreadChannel& channel = Self(self);
  if (NextPost(channel, operation, send, count) == nullptr) return Failed(channel);
  SPARSESEL_RETURN_IF_ERROR(MeetAndJudge(channel));
  std::array<const Element*, kMaxWorld> terms;
  const auto world = static_cast<size_t>(channel.world());
  for (size_t rank = 0; rank < world; ++rank) {
    const Post& post = channel.lane->Met(channel.rank(), static_cast<int32_t>(rank));
    terms[rank] = reinterpret_cast<const Element*>(post.send);
  }
  sum({terms.data(), world}, count, receive);
  channel.lane->Release(channel.rank());  // nothing of the peers is left with the caller
  return {};
}

Status ChannelSumBf16(void* self, const uint16_t* send, uint16_t* receive, uint64_t count) {
  return Sum(self, Operation::kSumBf16, send, receive, count, SumBf16);
}

Status ChannelSumInt32(void* self, const int32_t* send, int32_t* receive, uint64_t count) {
  return Sum(self, Operation::kSumInt32, send, receive, count, SumInt32);
}

Status Barrier(void* self) {
  ThreadChannel& channel = Self(self);
  if (NextPost(channel, Operation::kBarrier, nullptr, 0) == nullptr) return Failed(channel);
  return MeetAndJudge(channel);
}

Status Drain(void* self) {
  ThreadChannel& channel = Self(self);
  return channel.lane->Drain(channel.rank(), channel.deadline, channel.call());
}

void Waits(const void* self, uint64_t* wait) {
  const auto& channel = *static_cast<const ThreadChannel*>(self);
  for (size_t rank = 0; rank < kMaxWorld; ++rank) {
    wait[rank] = channel.waited[rank].load(std::memory_order_relaxed);
  }
}

void Consumed(void* self) {
  ThreadChannel& channel = Self(self);
  channel.lane->Release(channel.rank());
}

}  // namespace

const HostChannelTable* ThreadChannelTable() {
  static constexpr HostChannelTable table = {
      "threads",       true,    true,  true,  Begin,    AllGather, AllToAll, ChannelSumBf16,
      ChannelSumInt32, Barrier, Drain, Waits, Consumed,
  };
  return &table;
}

HostChannel MakeThreadChannel(std::shared_ptr<ThreadRank> rank, int32_t index, bool overlaps) {
  std::shared_ptr<Lane> lane = rank->hub->TakeLane(index, overlaps);
  return {ThreadChannelTable(), std::make_shared<ThreadChannel>(std::move(rank), std::move(lane))};
}

}  // namespace sparsesel
