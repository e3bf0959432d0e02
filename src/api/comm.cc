// Groups: sparsesel_comm_*.
#include "comm/comm.h"

#include <array>
#include <memory>
#include <vector>

#include "api/errors.h"
#include "api/handles.h"
#include "api/options.h"
#include "api/structs.h"
#include "contract/ownership.h"
#include "sparsesel.h"

namespace sparsesel {
namespace {

Status CreateLocal(int32_t world, const sparsesel_comm_options* options, sparsesel_comm** comms) {
  if (comms == nullptr) return Status::Error(SPARSESEL_INVALID_ARGUMENT, "comms is NULL");
  const bool known_world = world >= 1 && world <= kMaxWorldSize;
  if (known_world) std::fill_n(comms, world, nullptr);
  CommOptions parsed;
  SPARSESEL_RETURN_IF_ERROR(ParseLocalOptions(options, world, &parsed));

  std::array<Reserved<sparsesel_comm>, kMaxWorldSize> reserved;
  for (int32_t rank = 0; rank < world; ++rank) {
    SPARSESEL_RETURN_IF_ERROR(reserved[rank].Take());
  }
  std::vector<std::shared_ptr<Comm>> made;
  SPARSESEL_RETURN_IF_ERROR(CreateLocalGroup(world, parsed, &made));
  for (int32_t rank = 0; rank < world; ++rank) {
    comms[rank] = reserved[rank].Publish(std::move(made[rank]));
  }
  return {};
}

Status Join(const sparsesel_comm_options* options, sparsesel_comm** comm) {
  if (comm == nullptr) return Status::Error(SPARSESEL_INVALID_ARGUMENT, "comm is NULL");
  *comm = nullptr;
  JoinOptions parsed;
  SPARSESEL_RETURN_IF_ERROR(ParseJoinOptions(options, &parsed));
  Reserved<sparsesel_comm> reserved;
  SPARSESEL_RETURN_IF_ERROR(reserved.Take());
  std::shared_ptr<Comm> made;
  SPARSESEL_RETURN_IF_ERROR(JoinGroup(parsed.rank, parsed.world, parsed.comm, &made));
  *comm = reserved.Publish(std::move(made));
  return {};
}

Status CommStatus(const sparsesel_comm* comm, sparsesel_comm_info* info) {
  Pinned<sparsesel_comm> pinned;
  SPARSESEL_RETURN_IF_ERROR(pinned.Take(comm));
  if (info != nullptr) SPARSESEL_RETURN_IF_ERROR(CheckStructOut("info", info));
  const Status state = pinned->State();
  if (info != nullptr) {
    sparsesel_comm_info filled = SPARSESEL_COMM_INFO_INIT;
    filled.rank = pinned->rank();
    filled.world_size = pinned->world();
    filled.transport = pinned->transport();
    filled.status = state.code();
    filled.failed_rank = state.rank();
    filled.control_calls = pinned->control_calls();
    CopyStructOut(&filled, sizeof(filled), info);
  }
  return state;
}

}  // namespace
}  // namespace sparsesel

using sparsesel::Call;
using sparsesel::Pinned;
using sparsesel::Status;

sparsesel_status sparsesel_comm_create_local(int32_t world, const sparsesel_comm_options* options,
                                             sparsesel_comm** comms, sparsesel_error* error) {
  return Call(error, [&] { return sparsesel::CreateLocal(world, options, comms); });
}

sparsesel_status sparsesel_comm_create(const sparsesel_comm_options* options, sparsesel_comm** comm,
                                       sparsesel_error* error) {
  return Call(error, [&] { return sparsesel::Join(options, comm); });
}

sparsesel_status sparsesel_comm_status(const sparsesel_comm* comm, sparsesel_comm_info* info,
                                       sparsesel_error* error) {
  return Call(error, [&] { return sparsesel::CommStatus(comm, info); });
}

sparsesel_status sparsesel_comm_abort(sparsesel_comm* comm, sparsesel_error* error) {
  return Call(error, [&]() -> Status {
    Pinned<sparsesel_comm> pinned;
    SPARSESEL_RETURN_IF_ERROR(pinned.Take(comm));
    pinned->Abort();
    return {};
  });
}

sparsesel_status sparsesel_comm_set_timeouts(sparsesel_comm* comm, uint64_t startup_timeout,
                                             uint64_t steady_timeout, sparsesel_error* error) {
  return Call(error, [&]() -> Status {
    Pinned<sparsesel_comm> pinned;
    SPARSESEL_RETURN_IF_ERROR(pinned.Take(comm));
    pinned->SetTimeouts(sparsesel::ClampTimeout(startup_timeout),
                        sparsesel::ClampTimeout(steady_timeout));
    return {};
  });
}

sparsesel_status sparsesel_comm_release(sparsesel_comm* comm, sparsesel_error* error) {
  return Call(error, [&] { return sparsesel::ReleaseHandle(comm); });
}

sparsesel_status sparsesel_owned_rows(int32_t rows, int32_t world, int32_t rank, int32_t* begin,
                                      int32_t* end, sparsesel_error* error) {
  return Call(error, [&]() -> Status {
    if (begin == nullptr || end == nullptr) {
      return Status::Error(SPARSESEL_INVALID_ARGUMENT, "begin or end is NULL");
    }
    if (rows < 0 || world < 1 || world > sparsesel::kMaxWorldSize || rank < 0 || rank >= world) {
      return Status::Error(SPARSESEL_INVALID_ARGUMENT,
                           "rows %d, world %d, rank %d: not 0 <= rank < world <= %d with rows >= 0",
                           rows, world, rank, sparsesel::kMaxWorldSize);
    }
    const sparsesel::RowRange range = sparsesel::OwnedRows(rows, world, rank);
    *begin = range.begin;
    *end = range.end;
    return {};
  });
}
