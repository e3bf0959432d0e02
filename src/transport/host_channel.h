// The data plane for host memory, as a table of functions: what a composition needs of a transport.
//
// A channel belongs to one rank and one workspace slot; its peers are the other ranks' channels of
// the same slot. Operations are collective, in one order. Nothing here allocates after creation.
#ifndef SPARSESEL_TRANSPORT_HOST_CHANNEL_H_
#define SPARSESEL_TRANSPORT_HOST_CHANNEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "comm/call_message.h"
#include "contract/status.h"

namespace sparsesel {

inline constexpr int32_t kMaxWorld = 64;

// Where each rank's data lies after an exchange: blocks[r] is what rank r sent to this rank.
struct Blocks {
  const std::byte* from[kMaxWorld] = {};
};

struct HostChannelTable {
  const char* name;  // "threads", "custom", "bootstrap"
  // True: blocks point into the peers' own send buffers and `receive` may be null. Then a send
  // buffer stays in use until the peers have consumed it, which drain waits for.
  bool reads_peers_directly;
  bool has_sum_bf16;
  bool has_sum_int32;

  // Begins an execute: stores what is to be compared. The first operation after it compares the
  // messages of all ranks before moving data; a verdict that is not OK is returned by that
  // operation on every rank, and leaves the group usable. Local, never blocks. `deadline` is on the
  // environment's clock and holds for all operations, and drain, until the next begin.
  void (*begin)(void* self, const CallMessage& message, int64_t deadline);

  // `bytes` from each rank to every rank; the same on all ranks. `receive` holds world * bytes.
  Status (*all_gather)(void* self, const std::byte* send, uint64_t bytes, std::byte* receive,
                       Blocks* blocks);
  // send_bytes[r] at send + send_offsets[r] to each rank r. Arrays of `world`.
  Status (*all_to_all)(void* self, const std::byte* send, const uint64_t* send_bytes,
                       const uint64_t* send_offsets, std::byte* receive,
                       const uint64_t* receive_bytes, const uint64_t* receive_offsets,
                       Blocks* blocks);
  // receive[i] = sum over ranks; send and receive do not overlap.
  Status (*sum_bf16)(void* self, const uint16_t* send, uint16_t* receive, uint64_t count);
  Status (*sum_int32)(void* self, const int32_t* send, int32_t* receive, uint64_t count);
  // Waits until every rank has entered; compares messages like any operation.
  Status (*barrier)(void* self);
  // Waits until no peer reads what this rank sent before; called before send buffers are written
  // again or freed. A peer reads an operation's blocks until it calls the next operation, begin,
  // consumed or drain on its channel, or frees its channel. A failed group is still waited for,
  // since a peer may be in the middle of a copy; TIMEOUT means that one may still be, so that the
  // buffers must stay as they are. To drain outside of an execute, call begin for a fresh deadline.
  Status (*drain)(void* self);
  // ns this rank has waited for each rank so far, where it can tell; `wait` has kMaxWorld entries.
  void (*waits)(const void* self, uint64_t* wait);
  // Says that this rank has finished with the blocks of its operations so far. Local, never blocks.
  // Called at the end of every execute, successful or not, so that a peer's next drain finds
  // nothing to wait for.
  void (*consumed)(void* self);
};

struct HostChannel {
  const HostChannelTable* table = nullptr;
  std::shared_ptr<void> self;
};

}  // namespace sparsesel

#endif  // SPARSESEL_TRANSPORT_HOST_CHANNEL_H_
