// Whether a group works, and if not, what ended it. The first failure stays.
#ifndef SPARSESEL_TRANSPORT_GROUP_STATE_H_
#define SPARSESEL_TRANSPORT_GROUP_STATE_H_

#include <atomic>
#include <mutex>

#include "contract/status.h"

namespace sparsesel {

class GroupState {
 public:
  bool failed() const { return failed_.load(std::memory_order_acquire); }

  // False if the group had failed before.
  bool Fail(const Status& why);

  Status Get() const;  // OK, or what ended the group

  // What a call gets that comes after the failure: ABORTED stays, all else is PEER_FAILED.
  Status Earlier() const;

 private:
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  Status why_;  // guarded by mutex_
};

// What abort leaves behind.
Status AbortedStatus();

}  // namespace sparsesel

#endif  // SPARSESEL_TRANSPORT_GROUP_STATE_H_
