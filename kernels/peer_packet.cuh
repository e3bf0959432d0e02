// Packets: how they are stored, loaded and waited for. See peer.h.
#ifndef SPARSESEL_KERNELS_PEER_PACKET_CUH_
#define SPARSESEL_KERNELS_PEER_PACKET_CUH_

#include <cstdint>

#include "kernels/peer.h"
#include "sparsesel.h"

namespace sparsesel::kernels {
namespace {

__device__ __forceinline__ void StorePacket(uint4* at, uint32_t first, uint32_t second,
                                            uint32_t epoch) {
  asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(first),
               "r"(epoch), "r"(second), "r"(epoch)
               : "memory");
}

__device__ __forceinline__ uint4 LoadPacket(const uint4* at) {
  uint4 packet;
  asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(packet.x), "=r"(packet.y), "=r"(packet.z), "=r"(packet.w)
               : "l"(at)
               : "memory");
  return packet;
}

__device__ __forceinline__ bool Arrived(const uint4& packet, uint32_t epoch) {
  return packet.y == epoch && packet.w == epoch;
}

__device__ __forceinline__ uint64_t GlobalNanoseconds() {
  uint64_t ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

__device__ __forceinline__ uint32_t LoadWord(const uint32_t* at) {
  return *reinterpret_cast<const volatile uint32_t*>(at);
}

// This rank's own failure, and what it has been told.
__device__ __forceinline__ uint2 FailureWords(const PeerEnd& end) {
  uint2 words;
  asm volatile("ld.volatile.global.v2.u32 {%0, %1}, [%2];"
               : "=r"(words.x), "=r"(words.y)
               : "l"(&end.ranks[end.rank]->failure)
               : "memory");
  return words;
}

// Fails this rank, on the device and for its host, and tells its peers; a rank's first failure
// stays. Status 0: takes over what a peer has told. Peers are told by plain stores, since not every
// link between devices has atomics: of several tellers any is as right as another.
__device__ __noinline__ void FailPeers(const PeerEnd& end, uint32_t status, int32_t rank) {
  PeerRankState* const own = end.ranks[end.rank];
  const bool tell = status != 0;
  if (!tell) {
    const uint32_t told = LoadWord(&own->told);
    if (told == 0) return;
    status = static_cast<uint32_t>(FailureStatus(told));
    rank = FailureRank(told);
  }
  if (atomicCAS(&own->failure, 0u, status) == 0u) {
    volatile PeerHostWords* const host = own->host;
    host->failed_rank = rank;
    __threadfence_system();
    host->failure = status;
    if (status == SPARSESEL_TIMEOUT && end.counters != nullptr) {
      atomicAdd(&end.counters->timeouts, 1ull);
    }
  }
  // Whoever waits for a rank that has only waited itself hears that a peer failed; an abort and a
  // mismatch are everybody's.
  const bool shared = status == SPARSESEL_ABORTED || status == SPARSESEL_MISMATCH;
  const int32_t kind = shared ? static_cast<int32_t>(status) : SPARSESEL_PEER_FAILED;
  for (int32_t peer = 0; tell && peer < end.world; ++peer) {
    if (peer == end.rank) continue;
    *const_cast<volatile uint32_t*>(&end.ranks[peer]->told) = PeerFailure(kind, rank);
  }
  __threadfence_system();
}

// A status, 0 while all is well.
__device__ __forceinline__ uint32_t Failure(const PeerEnd& end) {
  const uint2 words = FailureWords(end);
  if (__builtin_expect((words.x | words.y) == 0, 1)) return 0;
  FailPeers(end, 0, 0);
  return LoadWord(&end.ranks[end.rank]->failure);
}

// How often a wait looks whether the group has failed, and at the host's words, which are far.
inline constexpr uint32_t kPollsBetweenGlances = 64;
inline constexpr uint32_t kPollsBetweenChecks = 1024;

// Whether a wait for `source`, begun at `begin` and at its `poll`-th look, is to be given up: the
// group has failed, or fails now because the limit is over.
__device__ __noinline__ bool GiveUp(const PeerEnd& end, uint32_t poll, uint64_t begin,
                                    int32_t source) {
  uint32_t status = 0;
  const uint2 words = FailureWords(end);
  if ((words.x | words.y) == 0) {
    if (poll % kPollsBetweenChecks != 0) return false;
    const PeerRankState* const own = end.ranks[end.rank];
    const volatile PeerHostWords* const host = own->host;
    if (host->abort != 0 || (own->abort != nullptr && LoadWord(own->abort) != 0)) {
      status = SPARSESEL_ABORTED;
      source = end.rank;
    } else if (GlobalNanoseconds() - begin > host->limit_ns) {
      status = SPARSESEL_TIMEOUT;
    } else {
      return false;
    }
  }
  FailPeers(end, status, source);
  return true;
}

// Waits for one packet from `source`, which has not arrived if the group has failed or the limit is
// over.
__device__ __noinline__ uint4 AwaitLatePacket(const PeerEnd& end, const uint4* at, uint32_t epoch,
                                              int32_t source) {
  const uint64_t begin = GlobalNanoseconds();
  for (uint32_t poll = 1;; ++poll) {
    const uint4 packet = LoadPacket(at);
    if (Arrived(packet, epoch) ||
        (poll % kPollsBetweenGlances == 0 && GiveUp(end, poll, begin, source))) {
      return packet;
    }
  }
}

__device__ __forceinline__ bool AwaitPacket(const PeerEnd& end, const uint4* at, uint32_t epoch,
                                            int32_t source, uint4* packet) {
  *packet = LoadPacket(at);
  if (Arrived(*packet, epoch)) return true;
  *packet = AwaitLatePacket(end, at, epoch, source);
  return Arrived(*packet, epoch);
}

// The same for a header, of which one thread waits for each: the time is counted.
__device__ __noinline__ uint4 AwaitLateHeader(const PeerEnd& end, const uint4* at, uint32_t epoch,
                                              int32_t source) {
  const uint64_t begin = GlobalNanoseconds();
  const uint4 packet = AwaitLatePacket(end, at, epoch, source);
  if (end.counters != nullptr) {
    atomicAdd(&end.counters->wait_ns[source], GlobalNanoseconds() - begin);
  }
  return packet;
}

__device__ __forceinline__ bool AwaitHeader(const PeerEnd& end, const uint4* at, uint32_t epoch,
                                            int32_t source, uint4* packet) {
  *packet = LoadPacket(at);
  if (Arrived(*packet, epoch)) return true;
  *packet = AwaitLateHeader(end, at, epoch, source);
  return Arrived(*packet, epoch);
}

// By one thread per step.
__device__ __forceinline__ void CountStep(const PeerEnd& end, const PeerRows& rows) {
  if (end.counters != nullptr && rows.begin == 0) atomicAdd(&end.counters->executes, 1ull);
}

// Epochs run from 1 to 2^32 - 2 and round again: 0 is what fresh memory holds, and an even number
// of them keeps the two halves alternating across the wrap.
__device__ __forceinline__ uint32_t NextEpoch(uint32_t epoch) {
  return epoch >= UINT32_MAX - 1 ? 1u : epoch + 1u;
}

// The half of rank `rank`'s inbox that `epoch` uses.
__device__ __forceinline__ uint4* InboxHalf(const PeerEnd& end, int32_t rank, uint32_t epoch) {
  return end.inbox[rank] + (epoch & 1) * end.half;
}

}  // namespace
}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_PEER_PACKET_CUH_
