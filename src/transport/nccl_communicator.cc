#include "transport/nccl_communicator.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "comm/comm.h"
#include "contract/environment.h"
#include "transport/bounded_call.h"

namespace sparsesel {
namespace {

// NCCL is told on a thread of its own. Without one the communicator is left as it is: waiting here
// might be for ever.
void AbortApart(const NcclLibrary& library, NcclHandle handle) {
  try {
    const BoundedCall call([library, handle] { (void)library.comm_abort(handle); });
  } catch (const std::exception&) {
    return;
  }
}

}  // namespace

NcclCommunicator::NcclCommunicator(const NcclLibrary& library, NcclHandle handle, bool owned,
                                   uint64_t release_limit)
    : library_(library), owned_(owned), release_limit_(release_limit), handle_(handle) {}

NcclCommunicator::~NcclCommunicator() {
  NcclOpaque* const handle = handle_.exchange(nullptr);
  if (!owned_ || handle == nullptr) return;
  try {
    const NcclLibrary library = library_;
    const BoundedCall call([library, handle] { (void)library.comm_destroy(handle); });
    const Environment machine;
    (void)call.Wait(machine, DeadlineAfter(machine.Now(), release_limit_), [] { return false; });
  } catch (const std::exception&) {
    return;  // lost, as in AbortApart
  }
}

Status NcclCommunicator::Use(
    const char* what,
    absl::FunctionRef<NcclResult(const NcclLibrary& library, NcclHandle handle)> call) {
  Status status;
  {
    const std::lock_guard lock(mutex_);
    NcclOpaque* const handle = handle_.load();
    if (handle == nullptr || aborted_.load()) {
      status = Status::Error(SPARSESEL_PEER_FAILED, "%s: the communicator has been aborted", what);
    } else {
      const NcclResult result = call(library_, handle);
      status =
          NcclStatus(library_, result,
                     result == kNcclRemoteError ? SPARSESEL_PEER_FAILED : SPARSESEL_INTERNAL, what);
    }
  }
  // Whoever wanted to abort it meanwhile has found it in use.
  if (aborted_.load()) AbortIfFree();
  return status;
}

Status NcclCommunicator::AsyncError() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  NcclOpaque* const handle = handle_.load();
  if (!lock.owns_lock() || handle == nullptr) return {};
  NcclResult error = kNcclSuccess;
  const NcclResult asked = library_.comm_get_async_error(handle, &error);
  if (asked != kNcclSuccess) error = asked;
  if (error == kNcclSuccess || error == kNcclInProgress) return {};
  return NcclStatus(library_, error,
                    error == kNcclRemoteError ? SPARSESEL_PEER_FAILED : SPARSESEL_INTERNAL,
                    "NCCL has failed meanwhile");
}

void NcclCommunicator::Abort(bool even_if_used) {
  if (!owned_) return;
  aborted_.store(true);
  if (!even_if_used) return AbortIfFree();
  if (NcclOpaque* const handle = handle_.exchange(nullptr); handle != nullptr) {
    AbortApart(library_, handle);
  }
}

void NcclCommunicator::AbortIfFree() {
  if (!owned_) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;
  if (NcclOpaque* const handle = handle_.exchange(nullptr); handle != nullptr) {
    AbortApart(library_, handle);
  }
}

void NcclFamily::Add(const std::shared_ptr<NcclCommunicator>& communicator) {
  const std::lock_guard lock(mutex_);
  std::erase_if(members_, [](const auto& member) { return member.expired(); });
  members_.push_back(communicator);
  if (aborted_) communicator->Abort();
}

// A share that is taken here may turn out to be the last: then letting go of it waits, which the
// lock does not mind, since communicators do not know of families.
void NcclFamily::Abort(bool even_if_used) {
  const std::lock_guard lock(mutex_);
  aborted_ = true;
  for (const auto& member : members_) {
    if (const auto communicator = member.lock()) communicator->Abort(even_if_used);
  }
}

Status NcclFamily::AsyncError() const {
  const std::lock_guard lock(mutex_);
  for (const auto& member : members_) {
    if (const auto communicator = member.lock()) {
      SPARSESEL_RETURN_IF_ERROR(communicator->AsyncError());
    }
  }
  return {};
}

}  // namespace sparsesel
