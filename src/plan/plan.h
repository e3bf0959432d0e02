// A plan: one problem on one comm, and the phases it goes through: created, prepared, raced, bound.
#ifndef SPARSESEL_PLAN_PLAN_H_
#define SPARSESEL_PLAN_PLAN_H_

#include <memory>
#include <string>

#include "comm/comm.h"
#include "contract/problem.h"
#include "plan/binding.h"
#include "plan/workspace.h"
#include "race/report.h"

namespace sparsesel {

// In the options of collective calls, `invalid` is what was found wrong with them before the call:
// it is entered all the same, so that the peers hear of it instead of waiting.
struct PrepareOptions {
  Status invalid;
  uint64_t seed = 0;
  uint64_t time_budget = 1'000'000'000;
  std::string child_plans;  // empty: tune
  sparsesel_progress progress{};
};

struct RaceOptions {
  Status invalid;
  double margin = 0.02;
  double error_level = 0.05;
  uint64_t seed = 0;
  uint64_t time_budget = 2'000'000'000;
  uint64_t sample_duration = 200'000;
  int32_t max_pairs = 128;
  bool has_trial_io = false;
  sparsesel_io trial_io{};
  sparsesel_progress progress{};
};

class Plan {
 public:
  static Status Create(std::shared_ptr<Comm> comm, const Problem& problem,
                       std::shared_ptr<Plan>* plan);
  ~Plan();

  Status Memory(sparsesel_memory* memory) const;
  Status Prepare(const PrepareOptions& options);
  Status Race(const RaceOptions& options, std::shared_ptr<const Report>* report);
  // `workspace` may be null. `invalid`: as in the options above, about the other arguments.
  Status Bind(std::shared_ptr<Workspace> workspace, int32_t composition, const Status& invalid,
              std::shared_ptr<Binding>* binding);

 private:
  struct State;
  explicit Plan(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace sparsesel

#endif  // SPARSESEL_PLAN_PLAN_H_
