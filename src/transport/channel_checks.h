// For tests: what the channels of every transport on host memory must do.
#ifndef SPARSESEL_TRANSPORT_CHANNEL_CHECKS_H_
#define SPARSESEL_TRANSPORT_CHANNEL_CHECKS_H_

#include <cstring>
#include <vector>

#include "transport/rank_threads.h"

namespace sparsesel {

// One rank's operations, each on data that names its sender, receiver and round.
class ChannelCheck {
 public:
  ChannelCheck(const Comm& comm, const HostChannel& channel)
      : comm_(comm), channel_(channel), world_(static_cast<size_t>(comm.world())) {}

  Status Run(uint64_t round) {
    round_ = round;
    BeginExecute(channel_, comm_, round);
    SPARSESEL_RETURN_IF_ERROR(Drain());
    SPARSESEL_RETURN_IF_ERROR(AllGather(round % 7 * 300 + 1));
    SPARSESEL_RETURN_IF_ERROR(channel_.table->barrier(self()));
    SPARSESEL_RETURN_IF_ERROR(AllToAll());
    SPARSESEL_RETURN_IF_ERROR(SumInt32(1000 + round));
    SPARSESEL_RETURN_IF_ERROR(SumBf16(333));
    SPARSESEL_RETURN_IF_ERROR(AllGather(0));
    channel_.table->consumed(self());
    return {};
  }

 private:
  void* self() const { return channel_.self.get(); }
  Status Drain() { return channel_.table->drain(self()); }
  int32_t Word(size_t from, size_t to, size_t i) const {
    return static_cast<int32_t>(round_ * 1000003 + from * 10007 + to * 101 + i);
  }
  // Some ranks have nothing for some others.
  size_t Words(size_t from, size_t to) const { return (from * 5 + to * 3 + round_) % 4 * 50; }

  Status AllGather(size_t words) {
    SPARSESEL_RETURN_IF_ERROR(Drain());
    send_.assign(words, 0);
    for (size_t i = 0; i < words; ++i) send_[i] = Word(rank(), 0, i);
    receive_.assign(words * world_, -1);
    Blocks blocks;
    SPARSESEL_RETURN_IF_ERROR(channel_.table->all_gather(
        self(), Bytes(send_), words * sizeof(int32_t), Bytes(receive_), &blocks));
    for (size_t from = 0; from < world_; ++from) {
      for (size_t i = 0; i < words; ++i) {
        if (Read(blocks, from, i) != Word(from, 0, i)) return Wrong("all_gather");
      }
    }
    return {};
  }

  Status AllToAll() {
    SPARSESEL_RETURN_IF_ERROR(Drain());
    std::vector<uint64_t> send_bytes(world_), send_offsets(world_);
    std::vector<uint64_t> receive_bytes(world_), receive_offsets(world_);
    size_t sent = 0;
    size_t received = 0;
    for (size_t peer = 0; peer < world_; ++peer) {
      send_bytes[peer] = Words(rank(), peer) * 4;
      send_offsets[peer] = sent;
      sent += send_bytes[peer] + 8;  // with gaps
      receive_bytes[peer] = Words(peer, rank()) * 4;
      receive_offsets[peer] = received;
      received += receive_bytes[peer] + 4;
    }
    send_.assign(sent / 4, 0);
    receive_.assign(received / 4, -1);
    for (size_t peer = 0; peer < world_; ++peer) {
      for (size_t i = 0; i < Words(rank(), peer); ++i) {
        send_[send_offsets[peer] / 4 + i] = Word(rank(), peer, i);
      }
    }
    Blocks blocks;
    SPARSESEL_RETURN_IF_ERROR(channel_.table->all_to_all(
        self(), Bytes(send_), send_bytes.data(), send_offsets.data(), Bytes(receive_),
        receive_bytes.data(), receive_offsets.data(), &blocks));
    for (size_t from = 0; from < world_; ++from) {
      for (size_t i = 0; i < Words(from, rank()); ++i) {
        if (Read(blocks, from, i) != Word(from, rank(), i)) return Wrong("all_to_all");
      }
    }
    return {};
  }

  Status SumInt32(size_t count) {
    if (!channel_.table->has_sum_int32) return {};
    std::vector<int32_t> send(count), sums(count, -1);
    for (size_t i = 0; i < count; ++i) send[i] = INT32_MAX - Word(rank(), 1, i);
    SPARSESEL_RETURN_IF_ERROR(channel_.table->sum_int32(self(), send.data(), sums.data(), count));
    for (size_t i = 0; i < count; ++i) {
      uint32_t expected = 0;
      for (size_t from = 0; from < world_; ++from) {
        expected += static_cast<uint32_t>(INT32_MAX - Word(from, 1, i));
      }
      if (static_cast<uint32_t>(sums[i]) != expected) return Wrong("sum_int32");
    }
    return Drain();
  }

  // Every element is pushed by one rank, as reductions that replicate do.
  Status SumBf16(size_t count) {
    if (!channel_.table->has_sum_bf16) return {};
    std::vector<uint16_t> send(count), sums(count, 1);
    for (size_t i = 0; i < count; ++i) {
      if (i % world_ == rank()) send[i] = static_cast<uint16_t>(0x3f80 + i);
    }
    SPARSESEL_RETURN_IF_ERROR(channel_.table->sum_bf16(self(), send.data(), sums.data(), count));
    for (size_t i = 0; i < count; ++i) {
      if (sums[i] != 0x3f80 + i) return Wrong("sum_bf16");
    }
    return Drain();
  }

  static std::byte* Bytes(std::vector<int32_t>& words) {
    return reinterpret_cast<std::byte*>(words.data());
  }
  static int32_t Read(const Blocks& blocks, size_t from, size_t i) {
    int32_t word;
    std::memcpy(&word, blocks.from[from] + i * sizeof(word), sizeof(word));
    return word;
  }
  size_t rank() const { return static_cast<size_t>(comm_.rank()); }

  const Comm& comm_;
  const HostChannel channel_;
  const size_t world_;
  uint64_t round_ = 0;
  std::vector<int32_t> send_;
  std::vector<int32_t> receive_;
};

inline void CheckChannels(const Comms& comms, std::vector<HostChannel> channels, uint64_t rounds) {
  RequireOk(OnEachRank(static_cast<int32_t>(comms.size()), [&](int32_t rank) {
    HostChannel& channel = channels[static_cast<size_t>(rank)];
    {
      ChannelCheck check(At(comms, rank), channel);
      for (uint64_t round = 0; round < rounds; ++round) {
        SPARSESEL_RETURN_IF_ERROR(check.Run(round));
      }
      // Before the buffers in `check` go.
      BeginExecute(channel, At(comms, rank), rounds);
      SPARSESEL_RETURN_IF_ERROR(channel.table->drain(channel.self.get()));
    }
    channel = {};
    return Status();
  }));
}

}  // namespace sparsesel

#endif  // SPARSESEL_TRANSPORT_CHANNEL_CHECKS_H_
