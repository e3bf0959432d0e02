#include "transport/group_state.h"

namespace sparsesel {

bool GroupState::Fail(const Status& why) {
  const std::lock_guard lock(mutex_);
  if (!why_.ok() || why.ok()) return false;
  why_ = why;
  failed_.store(true, std::memory_order_release);
  return true;
}

Status GroupState::Get() const {
  if (!failed()) return {};
  const std::lock_guard lock(mutex_);
  return why_;
}

Status GroupState::Earlier() const {
  const Status why = Get();
  if (why.ok() || why.code() == SPARSESEL_ABORTED) return why;
  return Status::Error(SPARSESEL_PEER_FAILED, "the group failed earlier: %s", why.text())
      .WithRank(why.rank())
      .WithBackendCode(why.backend_code());
}

Status AbortedStatus() {
  return Status::Error(SPARSESEL_ABORTED, "the group was ended by comm_abort");
}

}  // namespace sparsesel
