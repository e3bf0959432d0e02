#include "comm/call_message.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace sparsesel {
namespace {

// Numbers as their kind reads best: digests in hexadecimal.
Status Differ(CallKind kind, const char* field, uint64_t expected, size_t rank, uint64_t found) {
  return Status::Error(SPARSESEL_MISMATCH,
                       "ranks disagree in %s: %s is %d on rank 0, %d on rank %d", CallName(kind),
                       field, expected, found, rank)
      .WithRank(static_cast<int32_t>(rank));
}

Status DifferHex(CallKind kind, const char* field, uint64_t expected, size_t rank, uint64_t found) {
  return Status::Error(SPARSESEL_MISMATCH,
                       "ranks disagree in %s: %s is %016x on rank 0, %016x on rank %d",
                       CallName(kind), field, expected, found, rank)
      .WithRank(static_cast<int32_t>(rank));
}

// What must hold before any other field can be read.
Status CompareProtocol(std::span<const CallMessage> messages) {
  const CallMessage expected;
  for (size_t rank = 0; rank < messages.size(); ++rank) {
    const CallMessage& message = messages[rank];
    if (message.magic != expected.magic) {
      return Status::Error(
                 SPARSESEL_MISMATCH,
                 "rank %d sends what is no message of this library on a machine like this "
                 "one: it begins with %08x, not %08x",
                 rank, message.magic, expected.magic)
          .WithRank(static_cast<int32_t>(rank));
    }
    if (message.abi_version != messages[0].abi_version) {
      return DifferHex(messages[0].kind, "the library's version", messages[0].abi_version, rank,
                       message.abi_version);
    }
  }
  return {};
}

Status StatusOf(const CallMessage& message, size_t rank, size_t world) {
  char text[sizeof(message.text) + 1];
  std::memcpy(text, message.text, sizeof(message.text));
  text[sizeof(message.text)] = '\0';
  const bool names_rank =
      message.status_rank >= 0 && static_cast<size_t>(message.status_rank) < world;
  return Status::Error(message.status, "%s", text)
      .WithRank(names_rank ? message.status_rank : static_cast<int32_t>(rank))
      .WithBackendCode(message.backend_code);
}

Status CompareFields(const CallMessage& first, const CallMessage& message, size_t rank) {
  if (message.kind != first.kind) {
    return Status::Error(SPARSESEL_MISMATCH,
                         "ranks are in different calls: rank 0 in %s, rank %d in %s",
                         CallName(first.kind), rank, CallName(message.kind))
        .WithRank(static_cast<int32_t>(rank));
  }
  if (message.world != first.world) {
    return Differ(first.kind, "world_size", first.world, rank, message.world);
  }
  if (message.rank >= 0 && static_cast<size_t>(message.rank) != rank) {
    return Status::Error(SPARSESEL_MISMATCH,
                         "in %s the member at place %d of the group says that it is rank %d",
                         CallName(first.kind), rank, message.rank)
        .WithRank(static_cast<int32_t>(rank));
  }
  if (message.sequence != first.sequence) {
    return Differ(first.kind, "the number of calls so far", first.sequence, rank, message.sequence);
  }
  if (message.digest != first.digest) {
    const char* const field = first.kind == CallKind::kExecute ? "the binding's digest"
                                                               : "the digest of what must be equal";
    return DifferHex(first.kind, field, first.digest, rank, message.digest);
  }
  if (message.rows != first.rows) {
    return Differ(first.kind, "rows", first.rows, rank, message.rows);
  }
  if (message.active_rows != first.active_rows) {
    return Differ(first.kind, "active_rows", first.active_rows, rank, message.active_rows);
  }
  if (message.tag != first.tag) {
    return Differ(first.kind, "tag", first.tag, rank, message.tag);
  }
  return {};
}

}  // namespace

const char* CallName(CallKind kind) {
  switch (kind) {
    case CallKind::kJoin:
      return "comm_create";
    case CallKind::kPrepare:
      return "plan_prepare";
    case CallKind::kRace:
      return "plan_race";
    case CallKind::kBind:
      return "plan_bind";
    case CallKind::kWorkspaceCreate:
      return "workspace_create";
    case CallKind::kExecute:
      return "execute";
  }
  return "an unknown call";
}

void SetStatus(const Status& status, int32_t rank, CallMessage* message) {
  message->status = status.code();
  message->status_rank = status.ok() || status.rank() >= 0 ? status.rank() : rank;
  message->backend_code = status.backend_code();
  const std::string_view text = status.ok() ? "" : status.text();
  size_t size = std::min(text.size(), sizeof(message->text) - 1);
  // What is cut is cut between characters: errors are UTF-8.
  while (size < text.size() && size > 0 && (text[size] & 0xc0) == 0x80) --size;
  std::memset(message->text, 0, sizeof(message->text));
  std::memcpy(message->text, text.data(), size);
}

Status CompareCalls(std::span<const CallMessage> messages) {
  SPARSESEL_RETURN_IF_ERROR(CompareProtocol(messages));
  for (size_t rank = 0; rank < messages.size(); ++rank) {
    if (messages[rank].status != SPARSESEL_OK) {
      return StatusOf(messages[rank], rank, messages.size());
    }
  }
  for (size_t rank = 0; rank < messages.size(); ++rank) {
    SPARSESEL_RETURN_IF_ERROR(CompareFields(messages[0], messages[rank], rank));
  }
  return {};
}

}  // namespace sparsesel
