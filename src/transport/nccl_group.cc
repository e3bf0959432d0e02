// What the group does without CUDA.
#include "transport/nccl_group.h"

#include <array>
#include <utility>

#include "contract/guard.h"
#include "transport/bounded_call.h"

namespace sparsesel {
namespace {

NcclRank& Self(void* self) { return *static_cast<NcclRank*>(self); }

Status ControlAllGather(void* self, const void* send, void* receive, size_t bytes,
                        int64_t deadline) {
  NcclRank& rank = Self(self);
  return rank.control->control_all_gather(rank.control_self.get(), send, receive, bytes, deadline);
}

void Abort(void* self) {
  NcclRank& rank = Self(self);
  rank.control->abort(rank.control_self.get());
  rank.family->Abort();
}

// A failure that is found here is kept, so that all calls tell the same.
Status State(const void* self) {
  const NcclRank& rank = *static_cast<const NcclRank*>(self);
  SPARSESEL_RETURN_IF_ERROR(rank.control->state(rank.control_self.get()));
  const Status found = rank.family->AsyncError();
  if (found.ok()) return {};
  rank.control->fail(rank.control_self.get(), found);
  rank.family->Abort();
  return rank.control->state(rank.control_self.get());
}

void Fail(void* self, const Status& status) { FailNccl(Self(self), status); }

void SetSteadyTimeout(void* self, uint64_t timeout) { Self(self).steady_timeout = timeout; }

}  // namespace

const GroupTable* NcclGroupTable() {
  static constexpr GroupTable table = {
      SPARSESEL_TRANSPORT_NCCL, ControlAllGather, nullptr, nullptr, Abort, State, Fail,
      SetSteadyTimeout,
  };
  return &table;
}

void FailNccl(NcclRank& rank, const Status& status) {
  rank.control->fail(rank.control_self.get(), status);
  rank.family->Abort();
}

Status UseNccl(NcclRank& rank, NcclCommunicator& communicator, const char* what,
               absl::FunctionRef<NcclResult(const NcclLibrary& library, NcclHandle handle)> call) {
  const Status status = communicator.Use(what, call);
  if (!status.ok()) FailNccl(rank, status);
  return status;
}

Status CallBounded(NcclRank& rank, int64_t deadline, const char* what,
                   std::function<Status()> call) {
  const auto result = std::make_shared<Status>();
  const auto failed = [&rank] { return !rank.control->state(rank.control_self.get()).ok(); };
  const BoundedCall running([result, call = std::move(call)] { *result = Guarded(call); });
  if (running.Wait(rank.environment, deadline, failed)) return *result;
  SPARSESEL_RETURN_IF_ERROR(rank.control->state(rank.control_self.get()));
  return Status::Error(SPARSESEL_TIMEOUT, "%s did not end within the limit", what);
}

Status MakeNcclCommunicator(Comm& comm, std::shared_ptr<NcclCommunicator>* communicator) {
  NcclRank& rank = Self(comm.self().get());
  NcclUniqueId id{};
  Status local;
  if (rank.rank == 0) {
    local = NcclStatus(rank.library, rank.library.get_unique_id(&id), SPARSESEL_UNAVAILABLE,
                       "ncclGetUniqueId");
  }
  std::array<NcclUniqueId, kMaxWorld> ids;
  SPARSESEL_RETURN_IF_ERROR(comm.AllGatherOrFail(local, &id, ids.data(), sizeof(id)));
  // Not all of the limit, so that what comes of it can still be told.
  const int64_t now = comm.environment().Now();
  const int64_t deadline = now + (comm.StartupDeadline() - now) / 8 * 7;
  // Whoever lets go of it last ends what was made in it, be it this rank or the call.
  std::shared_ptr<NcclCommunicator> made;
  local = Guarded([&]() -> Status {
    const auto place = std::make_shared<std::shared_ptr<NcclCommunicator>>();
    const Status called =
        CallBounded(rank, deadline, "ncclCommInitRank",
                    [place, id = ids[0], library = rank.library, r = rank.rank, world = rank.world,
                     device = rank.device, enter = rank.enter_device,
                     limit = rank.steady_timeout.load(), family = rank.family]() -> Status {
                      SPARSESEL_RETURN_IF_ERROR(enter(device));
                      NcclHandle handle = nullptr;
                      SPARSESEL_RETURN_IF_ERROR(
                          NcclStatus(library, library.comm_init_rank(&handle, world, id, r),
                                     SPARSESEL_UNAVAILABLE, "ncclCommInitRank"));
                      *place = std::make_shared<NcclCommunicator>(library, handle, true, limit);
                      family->Add(*place);
                      return {};
                    });
    if (called.ok()) made = *place;
    return called;
  });
  SPARSESEL_RETURN_IF_ERROR(comm.AllGatherOrFail(local, nullptr, nullptr, 0));
  *communicator = std::move(made);
  return {};
}

#if !defined(SPARSESEL_HAS_CUDA)
namespace {
Status WithoutCuda() {
  return Status::Error(SPARSESEL_UNSUPPORTED,
                       "groups on device memory need a library that was built with CUDA");
}
}  // namespace

Status NcclGroupSupport() { return WithoutCuda(); }

Status CreateLocalNcclGroup(int32_t, const CommOptions&, std::vector<std::shared_ptr<Comm>>*) {
  return WithoutCuda();
}

Status MakeNcclMember(int32_t, int32_t, const CommOptions&, std::shared_ptr<Comm>*) {
  return WithoutCuda();
}

Status ConnectNcclMember(Comm&, const CommOptions&) { return WithoutCuda(); }
#endif  // !SPARSESEL_HAS_CUDA

}  // namespace sparsesel
