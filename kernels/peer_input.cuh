// Sampled selection's input for the fused kernel: lists that arrive in this rank's inbox while the
// kernel runs. Begin sends this rank's share. A thread that has fetched all its packets fetches
// them again until they have arrived: one loop, since waiting for each by itself costs registers.
#ifndef SPARSESEL_KERNELS_PEER_INPUT_CUH_
#define SPARSESEL_KERNELS_PEER_INPUT_CUH_

#include <cstdint>

#include "kernels/candidates.cuh"
#include "kernels/peer_packet.cuh"

namespace sparsesel::kernels {
namespace {

struct PeerInput {
  static constexpr bool kWaits = true;

  PeerEnd end;
  PeerHeader header;
  PeerRows rows;
  CandidateArrays own;
  int32_t uniform_length = -1;  // -1: lengths differ
  int32_t lengths[kMaxPeers] = {};
  uint32_t* status_word = nullptr;
  bool has_prefix = false;  // end.shape.length records of each list are sent, the rest is kept

  // Two packets; those that do not exist carry the epoch that nobody waits for.
  struct Raw {
    uint4 first;
    uint4 second;
  };
  __device__ __forceinline__ Raw None() const {
    return {make_uint4(0, 0, 0, 0), make_uint4(0, 0, 0, 0)};
  }

  struct View {
    static constexpr bool kWaits = PeerInput::kWaits;
    const PeerInput& input;
    const uint4* row;  // of source 0 in this rank's inbox
    uint32_t epoch;
    uint32_t* failed;  // shared by the block
    int64_t slot;

    __device__ __forceinline__ const uint4* At(uint32_t list, int32_t at) const {
      const PeerInboxShape& shape = input.end.shape;
      if (input.has_prefix && at >= shape.length) {
        return InboxHalf(input.end, static_cast<int32_t>(list), epoch) + shape.lists_kept() +
               slot * shape.kept + at;
      }
      return row + static_cast<int64_t>(list) * shape.rows * shape.length + at;
    }
    __device__ __forceinline__ int32_t Length(uint32_t list) const {
      return input.uniform_length >= 0 ? input.uniform_length : input.lengths[list];
    }
    __device__ __forceinline__ Raw FetchWhole(uint32_t list, int32_t at) const {
      const uint4* const packet = At(list, at);
      return {LoadPacket(packet), LoadPacket(packet + 1)};
    }
    __device__ __forceinline__ Raw Fetch(uint32_t list, int32_t at, int32_t limit) const {
      const int32_t length = min(limit, Length(list));
      Raw raw = input.None();
      if (at < length) raw.first = LoadPacket(At(list, at));
      if (at + 1 < length) raw.second = LoadPacket(At(list, at + 1));
      return raw;
    }
    // Whether something of `raw` is still to come.
    __device__ __forceinline__ bool IsLate(uint32_t list, int32_t at, int32_t limit,
                                           const Raw& raw) const {
      const int32_t length = min(limit, Length(list));
      return (at < length && !Arrived(raw.first, epoch)) ||
             (at + 1 < length && !Arrived(raw.second, epoch));
    }
    // Whether to wait no longer; `poll` counts from 1, and `begin` is set by the first.
    __device__ __forceinline__ bool GivesUp(uint32_t poll, uint32_t list, uint64_t* begin) const {
      if (poll == 1) *begin = GlobalNanoseconds();
      if (poll % kPollsBetweenGlances != 0 ||
          !GiveUp(input.end, poll, *begin, static_cast<int32_t>(list))) {
        return false;
      }
      *failed = 1;
      return true;
    }
    // What has not arrived counts as absent: whoever has given up says so.
    __device__ __forceinline__ uint64_t Key(int32_t at, int32_t length, const uint4& packet) const {
      return at < length && Arrived(packet, epoch)
                 ? CandidateKey(packet.x, static_cast<int32_t>(packet.z))
                 : kAbsentKey;
    }
    __device__ __forceinline__ void Resolve(uint32_t list, int32_t at, int32_t limit,
                                            const Raw& raw, uint64_t& first,
                                            uint64_t& second) const {
      const int32_t length = min(limit, Length(list));
      first = Key(at, length, raw.first);
      second = Key(at + 1, length, raw.second);
    }
  };

  __device__ __forceinline__ uint32_t Epoch() const {
    return NextEpoch(LoadWord(&end.state->epoch));
  }

  // Whether the group has ended before this step, whose packets may be complete all the same.
  __device__ __forceinline__ bool Over() const {
    const uint2 words = FailureWords(end);
    return (words.x | words.y) != 0;
  }

  __device__ __forceinline__ View Row(int64_t slot, uint32_t* failed) const {
    const uint32_t epoch = Epoch();
    return {*this, InboxHalf(end, end.rank, epoch) + end.shape.records() + slot * end.shape.length,
            epoch, failed, slot};
  }

  // Sends this rank's list of the row to every rank, shared by the row's threads. The first row
  // also sends the headers and waits for those of the others.
  __device__ __forceinline__ void Begin(int64_t slot, bool active, uint32_t member,
                                        uint32_t members) const {
    const uint32_t epoch = Epoch();
    if (slot == 0 && member < static_cast<uint32_t>(end.world)) {
      StorePacket(
          InboxHalf(end, static_cast<int32_t>(member), epoch) + end.shape.header() + end.rank,
          header.digest, header.rows, epoch);
    }
    if (active && has_prefix) {
      SendPrefix(slot, epoch, member, members);
    } else if (active) {
      const int64_t row = rows.begin + slot;
      const int32_t count = PresentCount(own, row);
      const int64_t place =
          end.shape.records() + (int64_t{end.rank} * end.shape.rows + slot) * end.shape.length;
      bool bad = false;
      const auto candidates = static_cast<uint32_t>(own.candidates);
      for (uint32_t item = member; item < candidates * end.world; item += members) {
        // Begin with oneself and go round, so that ranks do not all store to the same one at once.
        const uint32_t turn = item / candidates;
        const auto at = static_cast<int32_t>(item - turn * candidates);
        int32_t peer = end.rank + static_cast<int32_t>(turn);
        if (peer >= end.world) peer -= end.world;
        const Record record = at < count ? PackCandidate(own, row, at, &bad) : Record{0, -1};
        StorePacket(InboxHalf(end, peer, epoch) + place + at, record.score_bits,
                    static_cast<uint32_t>(record.id), epoch);
      }
      if (bad && status_word != nullptr) *status_word = SPARSESEL_INVALID_ARGUMENT;
    }
    if (slot == 0 && member < static_cast<uint32_t>(end.world)) {
      const auto source = static_cast<int32_t>(member);
      uint4 packet;
      if (AwaitHeader(end, InboxHalf(end, end.rank, epoch) + end.shape.header() + source, epoch,
                      source, &packet) &&
          (packet.x != header.digest || packet.z != header.rows)) {
        FailPeers(end, SPARSESEL_MISMATCH, source);
      }
    }
    __syncwarp();
  }

  // Keeps this rank's list of the row, sends its first records to every rank, and says to each
  // whether the part that this block has seen is in order.
  __device__ __forceinline__ void SendPrefix(int64_t slot, uint32_t epoch, uint32_t member,
                                             uint32_t members) const {
    const int64_t row = rows.begin + slot;
    const int32_t count = PresentCount(own, row);
    const int32_t sent = min(end.shape.length, own.candidates);
    const int64_t list = int64_t{end.rank} * end.shape.rows + slot;
    const int64_t place = end.shape.records() + list * end.shape.length;
    uint4* const kept =
        InboxHalf(end, end.rank, epoch) + end.shape.lists_kept() + slot * end.shape.kept;
    bool bad = false;
    bool in_order = true;
    // Each warp takes neighbouring records, and one more to see that the next part goes on in
    // order.
    for (uint32_t at = member; at < static_cast<uint32_t>(own.candidates); at += members) {
      const auto i = static_cast<int32_t>(at);
      const Record record = i < count ? PackCandidate(own, row, i, &bad) : Record{0, -1};
      if (i + 1 < count) {
        in_order &= CandidateKey(record) >= CandidateKey(PackCandidate(own, row, i + 1, &bad));
      }
      const auto bits = static_cast<uint32_t>(record.id);
      StorePacket(kept + i, record.score_bits, bits, epoch);
      if (i >= sent) continue;
      for (int32_t turn = 0, peer = end.rank; turn < end.world; ++turn) {
        StorePacket(InboxHalf(end, peer, epoch) + place + i, record.score_bits, bits, epoch);
        peer = peer + 1 == end.world ? 0 : peer + 1;
      }
    }
    if (bad && status_word != nullptr) *status_word = SPARSESEL_INVALID_ARGUMENT;
    in_order = __syncthreads_and(in_order) != 0;
    if (threadIdx.x < static_cast<uint32_t>(end.world)) {
      StorePacket(InboxHalf(end, static_cast<int32_t>(threadIdx.x), epoch) + end.shape.verdicts() +
                      list * kPeerVerdicts + member / blockDim.x,
                  in_order ? 1 : 0, 0, epoch);
    }
  }

  // Whether any rank's list of the row is out of order: the row's first threads wait for one
  // verdict each, and the one that finds out says so. A wait that fails counts as in order: the
  // step has failed then, which is found elsewhere.
  __device__ __forceinline__ bool OutOfOrder(int64_t slot, uint32_t member) const {
    const uint32_t blocks = gridDim.x / static_cast<uint32_t>(rows.rows);
    bool found = false;
    if (member < static_cast<uint32_t>(end.world) * blocks) {
      const uint32_t epoch = Epoch();
      const auto source = static_cast<int32_t>(member / blocks);
      const int64_t list = int64_t{source} * end.shape.rows + slot;
      uint4 packet;
      found = AwaitPacket(end,
                          InboxHalf(end, end.rank, epoch) + end.shape.verdicts() +
                              list * kPeerVerdicts + member % blocks,
                          epoch, source, &packet) &&
              packet.x == 0;
    }
    __syncwarp();
    return found;
  }

  // The last block to come here ends the step.
  __device__ __forceinline__ void End() const {
    __syncthreads();
    if (threadIdx.x != 0) return;
    PeerState* const state = end.state;
    const uint32_t epoch = Epoch();
    __threadfence();
    if (atomicAdd(&state->blocks_done, 1u) + 1 != gridDim.x) return;
    const uint32_t failure = Failure(end);
    if (failure != 0 && status_word != nullptr) *status_word = failure;
    state->blocks_done = 0;
    state->epoch = epoch;
    CountStep(end, rows);
  }

  // By one thread of a row that takes the way out.
  __device__ __forceinline__ void CountRefetch() const {
    if (has_prefix && end.counters != nullptr) atomicAdd(&end.counters->prefix_refetches, 1ull);
  }
};

}  // namespace
}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_PEER_INPUT_CUH_
