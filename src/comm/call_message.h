// The first thing ranks exchange in every collective call: which call this is, a digest of what
// must be equal, and how this rank fares so far. One size for all calls, so that ranks in different
// calls find out instead of misreading each other.
#ifndef SPARSESEL_COMM_CALL_MESSAGE_H_
#define SPARSESEL_COMM_CALL_MESSAGE_H_

#include <cstdint>
#include <span>

#include "contract/status.h"

namespace sparsesel {

enum class CallKind : int32_t {
  kJoin = 1,
  kPrepare,
  kRace,
  kBind,
  kWorkspaceCreate,
  kExecute,
};

const char* CallName(CallKind kind);  // "plan_prepare", ...

struct CallMessage {
  uint32_t magic = 0x4c535353;  // "SSSL"; also tells byte orders apart
  uint32_t abi_version = 0;     // sparsesel_version()
  CallKind kind = CallKind::kJoin;
  int32_t status = SPARSESEL_OK;
  int32_t status_rank = -1;
  int32_t backend_code = 0;
  uint64_t sequence = 0;  // collective calls on this comm (or executes on this channel) so far
  uint64_t digest = 0;    // of the binding, or of the fields all ranks must share
  uint64_t tag = 0;       // execute: sparsesel_io.tag
  int32_t rows = 0;       // execute
  int32_t active_rows = 0;
  int32_t world = 0;    // as the sender knows it; execute need not say
  int32_t rank = -1;    // the sender's, or -1: not said
  char text[192] = {};  // the sentence of `status`
};
static_assert(sizeof(CallMessage) == 256);

void SetStatus(const Status& status, int32_t rank, CallMessage* message);

// Judges what all ranks sent, in rank order; the same verdict on every rank. What is not a message
// of this library and version is MISMATCH; else a failed rank (the lowest) gives its own status;
// else the first field that differs from rank 0's gives MISMATCH, naming field, ranks and values.
Status CompareCalls(std::span<const CallMessage> messages);

}  // namespace sparsesel

#endif  // SPARSESEL_COMM_CALL_MESSAGE_H_
