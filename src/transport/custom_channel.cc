// The data plane over the caller's transport, or over the bootstrap, whose one operation everything
// is then made of.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <span>

#include "transport/custom_group.h"
#include "transport/sums.h"

namespace sparsesel {
namespace {

// What is made of all-gathers goes in chunks, so that scratch has one size, known from the start:
// about this much for the chunks of all ranks together, and at least kLeastChunk for each.
constexpr size_t kScratch = size_t{1} << 20;
constexpr size_t kLeastChunk = size_t{16} << 10;

struct CustomChannel {
  std::shared_ptr<CustomRank> rank;
  size_t world = 0;
  size_t self = 0;
  CallMessage message;
  bool begins = false;
  int64_t deadline = INT64_MAX;
  std::unique_ptr<CallMessage[]> messages;  // [world]
  size_t chunk = 0;                         // bytes; 0: nothing is made of all-gathers
  Buffer scratch;                           // a chunk to send, then [world] chunks received
  std::unique_ptr<uint64_t[]> sizes;        // [1 + world][2 * world]: own, then all ranks'

  std::byte* chunk_to_send() const { return scratch.data(); }
  std::byte* chunks_received() const { return scratch.data() + chunk; }
};

CustomChannel& Self(void* self) { return *static_cast<CustomChannel*>(self); }

Status TooLarge(const char* what, uint64_t bytes) {
  return Status::Error(SPARSESEL_INTERNAL, "%s of %d bytes cannot be addressed", what, bytes);
}

// The one operation that is always there.
Status Gather(CustomChannel& channel, const void* send, void* receive, uint64_t bytes) {
  CustomRank& rank = *channel.rank;
  if (rank.state.failed()) return rank.state.Earlier();
  if (bytes == 0) return {};  // the same on all ranks
  if (bytes > std::numeric_limits<size_t>::max() / channel.world) {
    return TooLarge("an all-gather", bytes);
  }
  if (channel.world == 1) {
    std::memcpy(receive, send, static_cast<size_t>(bytes));
    return {};
  }
  if (!rank.custom_data) {
    return BootstrapAllGather(rank, send, receive, static_cast<size_t>(bytes), channel.deadline);
  }
  return CallTransport(rank, "transport.all_gather", channel.deadline, [&](uint64_t timeout) {
    return rank.custom.all_gather(rank.custom.context, send, receive, bytes, nullptr, timeout);
  });
}

// Before the first data: what the ranks expect of each other may differ, and only messages have one
// size whatever happens.
Status CompareIfFirst(CustomChannel& channel) {
  if (!channel.begins) return {};
  channel.begins = false;
  SPARSESEL_RETURN_IF_ERROR(
      Gather(channel, &channel.message, channel.messages.get(), sizeof(CallMessage)));
  return CompareCalls({channel.messages.get(), channel.world});
}

void Begin(void* self, const CallMessage& message, int64_t deadline) {
  CustomChannel& channel = Self(self);
  channel.message = message;
  channel.begins = true;
  channel.deadline = deadline;
}

Status AllGather(void* self, const std::byte* send, uint64_t bytes, std::byte* receive,
                 Blocks* blocks) {
  CustomChannel& channel = Self(self);
  SPARSESEL_RETURN_IF_ERROR(CompareIfFirst(channel));
  SPARSESEL_RETURN_IF_ERROR(Gather(channel, send, receive, bytes));
  for (size_t rank = 0; rank < channel.world; ++rank) {
    blocks->from[rank] = receive + rank * bytes;
  }
  return {};
}

// All ranks' sizes, and the longest total that any rank sends. The same verdict on every rank.
Status GatherSizes(CustomChannel& channel, const uint64_t* send_bytes,
                   const uint64_t* receive_bytes, uint64_t* longest) {
  const size_t world = channel.world;
  uint64_t* const own = channel.sizes.get();
  uint64_t* const all = own + 2 * world;
  std::copy_n(send_bytes, world, own);
  std::copy_n(receive_bytes, world, own + world);
  SPARSESEL_RETURN_IF_ERROR(Gather(channel, own, all, 2 * world * sizeof(uint64_t)));
  *longest = 0;
  for (size_t from = 0; from < world; ++from) {
    uint64_t total = 0;
    for (size_t to = 0; to < world; ++to) {
      const uint64_t sent = all[from * 2 * world + to];
      const uint64_t expected = all[to * 2 * world + world + from];
      if (sent != expected) {
        return Status::Error(SPARSESEL_MISMATCH,
                             "in all_to_all rank %d sends %d bytes to rank %d, which expects %d",
                             from, sent, to, expected)
            .WithRank(static_cast<int32_t>(from));
      }
      if (__builtin_add_overflow(total, sent, &total)) return TooLarge("a block to a rank", sent);
    }
    *longest = std::max(*longest, total);
  }
  return {};
}

// The part of [begin, begin + size) that lies in [from, from + length).
struct Overlap {
  Overlap(uint64_t begin, uint64_t size, uint64_t from, uint64_t length)
      : first(std::max(begin, from)), last(std::min(begin + size, from + length)) {}
  bool empty() const { return first >= last; }
  size_t size() const { return static_cast<size_t>(last - first); }
  const uint64_t first;
  const uint64_t last;
};

// Each rank's blocks, put together in rank order, are a stream. All streams are gathered chunk by
// chunk, as far as the longest goes, and each rank keeps what is for it.
Status AllToAllByGathers(CustomChannel& channel, const std::byte* send, const uint64_t* send_bytes,
                         const uint64_t* send_offsets, std::byte* receive,
                         const uint64_t* receive_bytes, const uint64_t* receive_offsets) {
  const size_t world = channel.world;
  uint64_t longest = 0;
  SPARSESEL_RETURN_IF_ERROR(GatherSizes(channel, send_bytes, receive_bytes, &longest));
  const uint64_t* const all = channel.sizes.get() + 2 * world;
  for (uint64_t begin = 0; begin < longest; begin += channel.chunk) {
    const uint64_t size = std::min<uint64_t>(channel.chunk, longest - begin);
    uint64_t start = 0;
    std::memset(channel.chunk_to_send(), 0, static_cast<size_t>(size));
    for (size_t to = 0; to < world; start += send_bytes[to++]) {
      const Overlap part(begin, size, start, send_bytes[to]);
      if (part.empty()) continue;
      std::memcpy(channel.chunk_to_send() + (part.first - begin),
                  send + send_offsets[to] + (part.first - start), part.size());
    }
    SPARSESEL_RETURN_IF_ERROR(
        Gather(channel, channel.chunk_to_send(), channel.chunks_received(), size));
    for (size_t from = 0; from < world; ++from) {
      const uint64_t* const sizes = all + from * 2 * world;
      uint64_t own = 0;  // where the block for this rank begins in that stream
      for (size_t to = 0; to < channel.self; ++to) own += sizes[to];
      const Overlap part(begin, size, own, sizes[channel.self]);
      if (part.empty()) continue;
      std::memcpy(receive + receive_offsets[from] + (part.first - own),
                  channel.chunks_received() + from * size + (part.first - begin), part.size());
    }
  }
  return {};
}

Status AllToAll(void* self, const std::byte* send, const uint64_t* send_bytes,
                const uint64_t* send_offsets, std::byte* receive, const uint64_t* receive_bytes,
                const uint64_t* receive_offsets, Blocks* blocks) {
  CustomChannel& channel = Self(self);
  SPARSESEL_RETURN_IF_ERROR(CompareIfFirst(channel));
  CustomRank& rank = *channel.rank;
  if (channel.chunk > 0) {
    SPARSESEL_RETURN_IF_ERROR(AllToAllByGathers(channel, send, send_bytes, send_offsets, receive,
                                                receive_bytes, receive_offsets));
  } else {
    SPARSESEL_RETURN_IF_ERROR(
        CallTransport(rank, "transport.all_to_all", channel.deadline, [&](uint64_t timeout) {
          return rank.custom.all_to_all(rank.custom.context, send, send_bytes, send_offsets,
                                        receive, receive_bytes, receive_offsets, nullptr, timeout);
        }));
  }
  for (size_t from = 0; from < channel.world; ++from) {
    blocks->from[from] = receive == nullptr ? nullptr : receive + receive_offsets[from];
  }
  return {};
}

// Sums what all ranks send, chunk by chunk, in rank order.
template <typename Element>
Status SumByGathers(CustomChannel& channel, const Element* send, Element* receive, uint64_t count,
                    void (*sum)(std::span<const Element* const>, size_t, Element*)) {
  const uint64_t chunk = channel.chunk / sizeof(Element);
  for (uint64_t begin = 0; begin < count; begin += chunk) {
    const auto size = static_cast<size_t>(std::min(chunk, count - begin));
    SPARSESEL_RETURN_IF_ERROR(
        Gather(channel, send + begin, channel.chunks_received(), size * sizeof(Element)));
    std::array<const Element*, kMaxWorld> terms;
    for (size_t rank = 0; rank < channel.world; ++rank) {
      terms[rank] = reinterpret_cast<const Element*>(channel.chunks_received()) + rank * size;
    }
    sum({terms.data(), channel.world}, size, receive + begin);
  }
  return {};
}

Status ChannelSumBf16(void* self, const uint16_t* send, uint16_t* receive, uint64_t count) {
  CustomChannel& channel = Self(self);
  SPARSESEL_RETURN_IF_ERROR(CompareIfFirst(channel));
  CustomRank& rank = *channel.rank;
  if (!rank.custom_data || channel.world == 1) {
    return SumByGathers(channel, send, receive, count, SumBf16);
  }
  return CallTransport(rank, "transport.sum_bf16", channel.deadline, [&](uint64_t timeout) {
    return rank.custom.sum_bf16(rank.custom.context, send, receive, count, nullptr, timeout);
  });
}

Status ChannelSumInt32(void* self, const int32_t* send, int32_t* receive, uint64_t count) {
  CustomChannel& channel = Self(self);
  SPARSESEL_RETURN_IF_ERROR(CompareIfFirst(channel));
  CustomRank& rank = *channel.rank;
  if (!rank.custom_data || channel.world == 1) {
    return SumByGathers(channel, send, receive, count, SumInt32);
  }
  return CallTransport(rank, "transport.sum_int32", channel.deadline, [&](uint64_t timeout) {
    return rank.custom.sum_int32(rank.custom.context, send, receive, count, nullptr, timeout);
  });
}

// An exchange of messages is a barrier: the one of begin, if there is one to do, or else again.
Status Barrier(void* self) {
  Self(self).begins = true;
  return CompareIfFirst(Self(self));
}

// Operations return when the send buffer may be reused.
Status Drain(void*) { return {}; }
void Consumed(void*) {}

// The transport does not tell whom it waits for.
void Waits(const void*, uint64_t* wait) { std::fill_n(wait, kMaxWorld, 0); }

}  // namespace

HostChannelTable CustomChannelTable(bool custom_data, const sparsesel_transport& custom) {
  return {
      .name = custom_data ? "custom" : "bootstrap",
      .reads_peers_directly = false,
      .has_sum_bf16 = !custom_data || custom.sum_bf16 != nullptr,
      .has_sum_int32 = !custom_data || custom.sum_int32 != nullptr,
      .begin = Begin,
      .all_gather = AllGather,
      .all_to_all = AllToAll,
      .sum_bf16 = ChannelSumBf16,
      .sum_int32 = ChannelSumInt32,
      .barrier = Barrier,
      .drain = Drain,
      .waits = Waits,
      .consumed = Consumed,
  };
}

Status MakeCustomChannel(std::shared_ptr<CustomRank> rank, HostChannel* channel) {
  auto made = std::make_shared<CustomChannel>();
  made->world = static_cast<size_t>(rank->world);
  made->self = static_cast<size_t>(rank->rank);
  made->messages = std::make_unique<CallMessage[]>(made->world);
  if (!rank->custom_data || rank->custom.all_to_all == nullptr || made->world == 1) {
    // Whole lines, so that every rank's elements are aligned.
    made->chunk =
        std::max(kLeastChunk, kScratch / made->world / kBufferAlignment * kBufferAlignment);
    made->sizes = std::make_unique<uint64_t[]>((1 + made->world) * 2 * made->world);
    SPARSESEL_RETURN_IF_ERROR(Buffer::Take(rank->environment, SPARSESEL_MEMORY_HOST,
                                           (1 + made->world) * made->chunk, "transport scratch",
                                           &made->scratch));
  }
  channel->table = &rank->channel_table;
  made->rank = std::move(rank);
  channel->self = std::move(made);
  return {};
}

}  // namespace sparsesel
