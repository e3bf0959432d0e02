// Memory and channels that bindings run in.
#ifndef SPARSESEL_PLAN_WORKSPACE_H_
#define SPARSESEL_PLAN_WORKSPACE_H_

#include <memory>

#include "comm/comm.h"

namespace sparsesel {

class Workspace {
 public:
  // Collective. `invalid`: what was found wrong with the arguments before the call, see plan.h.
  static Status Create(std::shared_ptr<Comm> comm, int32_t slots, const Status& invalid,
                       std::shared_ptr<Workspace>* workspace);
  // One slot, for one binding. Local; inside a collective call of all ranks.
  static Status CreateOwn(std::shared_ptr<Comm> comm, std::shared_ptr<Workspace>* workspace);
  ~Workspace();

  const std::shared_ptr<Comm>& comm() const;

  struct State;
  State& state() { return *state_; }

 private:
  static Status Make(std::shared_ptr<Comm> comm, int32_t slots,
                     std::shared_ptr<Workspace>* workspace);
  explicit Workspace(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace sparsesel

#endif  // SPARSESEL_PLAN_WORKSPACE_H_
