// What ranks of a device group tell each other about where they run, and what follows from it.
#ifndef SPARSESEL_TRANSPORT_PEER_MEMBER_H_
#define SPARSESEL_TRANSPORT_PEER_MEMBER_H_

#include <cstdint>
#include <span>

#include "contract/status.h"
#include "transport/group_board.h"

namespace sparsesel {

// Exchanged as it is.
struct PeerMember {
  char machine[40] = {};     // the running system's boot id: one kernel, whatever its containers
  char host[64] = {};        // its name, for sentences
  uint64_t process[2] = {};  // never the same in two processes
  char device_name[64] = {};
  uint8_t device[16] = {};  // the GPU's UUID: ordinals are each process's own
  int32_t ordinal = 0;      // in its process
  int32_t processors = 0;
  GroupBoard::Name board{};  // rank 0's
};

// This process; the device's part is the caller's.
PeerMember MakePeerMember();

bool SameProcess(const PeerMember& one, const PeerMember& other);
bool SameDevice(const PeerMember& one, const PeerMember& other);

// UNAVAILABLE, naming the first rank that cannot be in one group with rank 0: on another machine,
// or on a device of another kind, for which other tiles would be chosen. The same on every rank.
Status CheckMembers(std::span<const PeerMember> members);

int32_t RanksOnDevice(std::span<const PeerMember> members, int32_t rank);
// The ranks that are in other processes than `rank`, as a mask.
uint64_t RanksElsewhere(std::span<const PeerMember> members, int32_t rank);

}  // namespace sparsesel

#endif  // SPARSESEL_TRANSPORT_PEER_MEMBER_H_
