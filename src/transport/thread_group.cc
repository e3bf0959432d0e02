#include "transport/thread_group.h"

#include <cstring>
#include <exception>

#include "transport/lane.h"

namespace sparsesel {
namespace {

ThreadRank& Self(void* self) { return *static_cast<ThreadRank*>(self); }

// For sentences: the call, where the bytes are a call's first message.
const char* CallOf(const void* send, size_t bytes) {
  CallMessage message;
  const uint32_t magic = message.magic;
  if (bytes < sizeof(message)) return "a collective call";
  std::memcpy(static_cast<void*>(&message), send, sizeof(message));
  return message.magic == magic ? CallName(message.kind) : "a collective call";
}

Status JudgeControl(Lane& lane, int32_t self, int32_t world) {
  const uint64_t bytes = lane.Met(self, 0).bytes;
  for (int32_t rank = 0; rank < world; ++rank) {
    const Post& post = lane.Met(self, rank);
    if (post.status != SPARSESEL_OK) {
      return Status::Error(post.status, "rank %d has no memory for a message of %d bytes", rank,
                           post.bytes)
          .WithRank(rank);
    }
    if (post.bytes != bytes) {
      return Status::Error(SPARSESEL_MISMATCH,
                           "ranks send control messages of different sizes: rank 0 %d bytes, rank "
                           "%d %d",
                           bytes, rank, post.bytes)
          .WithRank(rank);
    }
  }
  return {};
}

Status ControlAllGather(void* self, const void* send, void* receive, size_t bytes,
                        int64_t deadline) {
  ThreadRank& rank = Self(self);
  Lane& lane = rank.hub->control();
  if (!lane.open()) return rank.hub->state().Earlier();
  Post& post = lane.NextPost(rank.rank);
  post.operation = Operation::kControl;
  post.bytes = bytes;
  post.status = SPARSESEL_OK;
  // Copied to the lane, so that this rank may return before slower ones have read it. A rank that
  // has no memory for that still meets the others, to tell them.
  try {
    post.staged.assign(static_cast<const std::byte*>(send),
                       static_cast<const std::byte*>(send) + bytes);
  } catch (const std::exception&) {
    post.status = SPARSESEL_OUT_OF_MEMORY;
  }
  SPARSESEL_RETURN_IF_ERROR(lane.Meet(rank.rank, deadline, CallOf(send, bytes), nullptr));
  SPARSESEL_RETURN_IF_ERROR(JudgeControl(lane, rank.rank, rank.hub->world()));
  for (int32_t peer = 0; peer < rank.hub->world() && bytes > 0; ++peer) {
    std::memcpy(static_cast<std::byte*>(receive) + static_cast<size_t>(peer) * bytes,
                lane.Met(rank.rank, peer).staged.data(), bytes);
  }
  return {};
}

Status MakeHostChannel(void* self, int32_t index, bool overlaps, HostChannel* channel) {
  *channel = MakeThreadChannel(Self(self).shared_from_this(), index, overlaps);
  return {};
}

const HostChannelTable* ChannelTable(const void*) { return ThreadChannelTable(); }

void Abort(void* self) { Self(self).hub->Fail(AbortedStatus()); }

Status State(const void* self) { return static_cast<const ThreadRank*>(self)->hub->state().Get(); }

void Fail(void* self, const Status& status) {
  ThreadRank& rank = Self(self);
  rank.hub->Fail(status.rank() >= 0 ? status : Status(status).WithRank(rank.rank));
}

}  // namespace

std::vector<std::shared_ptr<void>> MakeThreadGroup(int32_t world, const Environment& environment) {
  const auto hub = std::make_shared<Hub>(world, environment);
  std::vector<std::shared_ptr<void>> ranks;
  ranks.reserve(static_cast<size_t>(world));
  for (int32_t rank = 0; rank < world; ++rank) {
    ranks.push_back(std::make_shared<ThreadRank>(hub, rank));
  }
  return ranks;
}

const GroupTable* ThreadGroupTable() {
  static constexpr GroupTable table = {
      SPARSESEL_TRANSPORT_THREADS,
      ControlAllGather,
      MakeHostChannel,
      ChannelTable,
      Abort,
      State,
      Fail,
      nullptr,
  };
  return &table;
}

}  // namespace sparsesel
