// The peer exchange: ranks store into each other's inboxes, and wait for what they are sent.
//
// Everything travels in packets of 16 bytes: two 64-bit words, each 32 bits of data and the 32-bit
// epoch of the step. A word is stored and loaded in one access, so whoever sees the epoch has the
// data, without fences or flags. Inboxes have two halves that epochs use in turn: a rank that is in
// step e has heard from every peer in step e - 1, which each sent after it had finished step e - 2,
// so nobody still reads the half that step e writes. For that, every step sends a header packet to
// every peer, rows or not. The epoch lives in device memory, so eager launches and replays mix.
//
// Where ranks share a device, a rank must hold little of it while it waits, or the rank it waits
// for finds no room for its own kernels. There the headers are sent last, after everything else has
// been stored, and one small block (LaunchAwait) waits for them before anything larger is launched.
//
// Lists in order need not be sent whole: with a prefix, each rank sends the first records of each
// list, keeps the list, as packets, in its own inbox, and says whether it is in order after all.
// Who finds the prefixes not enough, or a list out of order, fetches the rest from where it is
// kept; that is over before the step after the next writes the same half.
//
// A wait is bounded by a limit in pinned memory. When it expires, or the group is aborted, the
// rank's failure word is set and its peers are told, by a plain store into each one's device
// memory: a peer may belong to another process, whose host memory this rank's kernels cannot reach.
// A rank that has been told takes the failure over, its host's words included, with the first of
// its kernels that looks. From then on this and all later steps, in any slot, end at once with
// empty output.
#ifndef SPARSESEL_KERNELS_PEER_H_
#define SPARSESEL_KERNELS_PEER_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "contract/order.h"
#include "kernels/candidates.h"

namespace sparsesel::kernels {

inline constexpr int32_t kMaxPeers = 64;
// Blocks that may share one row's packing, each of which says whether its part is in order.
inline constexpr int32_t kPeerVerdicts = 16;

// Of what ranks store into each other's memory: packets, headers, inboxes, and PeerRankState. To be
// raised with any change of these, since ranks of one group may run different builds.
inline constexpr uint32_t kPeerLayout = 2;

// What a rank's host and its kernels tell each other without synchronizing: pinned host memory. No
// kernel of another process touches it.
struct PeerHostWords {
  uint64_t limit_ns;  // of one wait; may change at any time
  uint32_t abort;     // non-zero: waits end
  uint32_t failure;   // a sparsesel_status, 0 while all is well
  int32_t failed_rank;
};

// What a rank keeps in its own device memory for one slot.
struct PeerState {
  uint32_t epoch;        // of the last step begun; 0 is never an epoch
  uint32_t blocks_done;  // of the push under way
};

// What a rank keeps in its own device memory for the whole group. Peers store into `told` and touch
// nothing else: what is behind the pointers is this process's.
struct alignas(16) PeerRankState {
  uint32_t failure;     // as PeerHostWords', set once, by this rank's own kernels
  uint32_t told;        // by peers: a PeerFailure; any of several, 0 while there is none
  PeerHostWords* host;  // this rank's
  const uint32_t*
      abort;  // host memory that the group's processes share, or null: non-zero ends waits
};

// A status and the rank at fault in one word, never 0.
SPARSESEL_HOST_DEVICE constexpr uint32_t PeerFailure(int32_t status, int32_t rank) {
  return static_cast<uint32_t>(status) | static_cast<uint32_t>(rank + 1) << 8;
}
SPARSESEL_HOST_DEVICE constexpr int32_t FailureStatus(uint32_t failure) {
  return static_cast<int32_t>(failure & 0xff);
}
SPARSESEL_HOST_DEVICE constexpr int32_t FailureRank(uint32_t failure) {
  return static_cast<int32_t>(failure >> 8) - 1;
}

// Packets that one rank may receive in one step. Each half of an inbox holds at least as many.
struct PeerInboxShape {
  int32_t rows = 0;    // of the largest step
  int32_t length = 0;  // records per list that are sent
  int32_t words = 0;   // 32-bit words per answer row; 0 if no answers are sent
  int32_t world = 1;
  int32_t kept = 0;  // records per list that a rank keeps for its peers to fetch; 0: it sends all

  SPARSESEL_HOST_DEVICE constexpr int64_t header() const { return 0; }             // [world]
  SPARSESEL_HOST_DEVICE constexpr int64_t answer_header() const { return world; }  // [world]
  SPARSESEL_HOST_DEVICE constexpr int64_t records() const { return 2 * int64_t{world}; }
  // [world, rows, length]
  SPARSESEL_HOST_DEVICE constexpr int64_t answers() const {
    return records() + int64_t{world} * rows * length;
  }
  // [rows, words / 2]
  SPARSESEL_HOST_DEVICE constexpr int64_t lists_kept() const {
    return answers() + int64_t{rows} * ((words + 1) / 2);
  }
  // [rows, kept], this rank's own, for others to read
  SPARSESEL_HOST_DEVICE constexpr int64_t verdicts() const {
    return lists_kept() + int64_t{rows} * kept;
  }
  // [world, rows, kPeerVerdicts]; then the end
  SPARSESEL_HOST_DEVICE constexpr int64_t packets() const {
    return verdicts() + (kept == 0 ? 0 : int64_t{world} * rows * kPeerVerdicts);
  }
};

// What kernels count for a binding, in the rank's own device memory.
struct PeerCounters {
  unsigned long long executes;
  unsigned long long prefix_refetches;  // rows whose lists were fetched whole after all
  unsigned long long timeouts;
  unsigned long long wait_ns[kMaxPeers];  // for each rank's headers
};

// One rank's end of the exchange, as its kernels see it.
struct PeerEnd {
  int32_t rank = 0;
  int32_t world = 1;
  PeerInboxShape shape;
  int64_t half = 0;                      // packets from the first half of an inbox to the second
  PeerState* state = nullptr;            // this rank's
  uint4* inbox[kMaxPeers] = {};          // every rank's, as this rank addresses it
  PeerRankState* ranks[kMaxPeers] = {};  // likewise
  PeerCounters* counters = nullptr;      // may be null
};

// Which rows a step handles, and who owns them: row r of [begin, begin + rows) is dealt as row
// r - deal_begin of deal_rows.
struct PeerRows {
  int32_t begin = 0;
  int32_t rows = 0;
  int32_t deal_begin = 0;
  int32_t deal_rows = 0;
  const int32_t* active_rows = nullptr;  // may be null
};

// What ranks compare in every step: 64 bits that must be equal.
struct PeerHeader {
  uint32_t digest = 0;
  uint32_t rows = 0;
};

// Packs this rank's rows and stores them into the inboxes of all ranks, or of each row's owner;
// begins a new epoch. `headers_last`: see above.
cudaError_t LaunchPushRecords(const PeerEnd& end, const PeerHeader& header, const PeerRows& rows,
                              const CandidateArrays& input, bool to_owner, bool headers_last,
                              uint32_t* status_word, int32_t blocks, cudaStream_t stream);

enum class PeerPhase { kRecords, kAnswers };
// Waits with one block for every rank's header of the step's records or answers.
cudaError_t LaunchAwait(const PeerEnd& end, PeerPhase phase, uint32_t* status_word,
                        cudaStream_t stream);

// Waits for every rank's header and for the lists of the rows this rank selects (all, or those it
// owns), and stores them as records: list l of row r at lists + (l * rows.rows + r - rows.begin) *
// length, rows counted among all of the step.
cudaError_t LaunchCollectRecords(const PeerEnd& end, const PeerHeader& header, const PeerRows& rows,
                                 const int32_t* candidates, bool owned_only, Record* lists,
                                 uint32_t* status_word, int32_t blocks, cudaStream_t stream);

// Answers of the owned rows, [rows.rows, words] by row of the step, into everybody's inbox.
cudaError_t LaunchPushAnswers(const PeerEnd& end, const PeerRows& rows, const int32_t* answers,
                              bool headers_last, int32_t blocks, cudaStream_t stream);

struct AnswerOutput {
  int32_t* ids = nullptr;
  int64_t id_stride = 0;
  uint32_t* score_bits = nullptr;  // null unless answers carry them
  int64_t score_stride = 0;
  int32_t* counts = nullptr;  // may be null
  int32_t k = 0;
};

// Waits for the answers of all rows of the step and writes them out; row 0 of `output` is
// rows.begin.
cudaError_t LaunchCollectAnswers(const PeerEnd& end, const PeerRows& rows,
                                 const AnswerOutput& output, uint32_t* status_word, int32_t blocks,
                                 cudaStream_t stream);

// After a failure: the rows of the step become empty, so that nobody takes a partial answer for
// one.
cudaError_t LaunchEmptyOnFailure(const PeerEnd& end, int32_t rows, const AnswerOutput& output,
                                 uint32_t* status_word, int32_t blocks, cudaStream_t stream);

// Loads every kernel of the exchange on the current device: loading one later could wait for the
// device, and a peer's kernel there for this rank.
cudaError_t PreparePeer();

// Blocks of the waiting kernels that can run at once on the current device.
cudaError_t PeerResidentBlocks(int32_t* blocks);

// Meets all ranks kMeetings times, each within `limit_ns`, one launch after the other; *met (device
// memory, 0 before) counts the meetings to which all came. Needs an inbox of its own, fresh.
inline constexpr uint32_t kMeetings = 3;
cudaError_t LaunchMeetings(const PeerEnd& end, uint64_t limit_ns, uint32_t* met,
                           cudaStream_t stream);

}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_PEER_H_
