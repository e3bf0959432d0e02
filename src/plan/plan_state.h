// What a plan holds; seen by plan/ only. plan.cc has its beginning, plan_race.cc its race,
// plan_bind.cc its end.
#ifndef SPARSESEL_PLAN_PLAN_STATE_H_
#define SPARSESEL_PLAN_PLAN_STATE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "compositions/composition.h"
#include "compositions/executor.h"
#include "contract/guard.h"
#include "contract/job.h"
#include "plan/plan.h"
#include "plan/tuner.h"
#include "race/trials.h"

namespace sparsesel {

struct TrialIo;

inline constexpr int32_t kKinds[2] = {SPARSESEL_COMPOSITION_REPLICATED,
                                      SPARSESEL_COMPOSITION_OWNER};

struct Plan::State {
  enum class Phase { kCreated, kPrepared, kRaced };

  std::shared_ptr<Comm> comm;
  const Backend* backend = nullptr;
  Job job;  // before prepare: the ranks are taken to be alike
  Phase phase = Phase::kCreated;
  bool bound = false;
  std::vector<CapacityChoice> choices;
  std::unique_ptr<Trials> trials;
  size_t trial_workspace = 0;

  std::vector<Composition> AllCompositions(const ChildPlanFilter& filter) const {
    std::vector<Composition> all;
    for (const int32_t kind : kKinds) {
      const std::vector<Composition> some =
          EnumerateCompositions(kind, job, backend->topology(*comm), filter);
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }

  // Runs a collective call. What its exchanges did not tell the peers ends the group, so that
  // nobody waits for a rank that has left.
  template <typename Body>
  Status Collective(Body&& body) const {
    const Status status = Guarded(body);
    // A device wait that has failed on this rank is known to its own kernels and those of its
    // peers.
    if (!status.ok() && !comm->State().ok()) comm->Fail(status);
    const bool untold = status.rank() < 0 && (status.code() == SPARSESEL_OUT_OF_MEMORY ||
                                              status.code() == SPARSESEL_INTERNAL);
    if (untold) comm->Fail(status);
    return status;
  }

  Status Prepare(const PrepareOptions& options);
  Status Race(const RaceOptions& options, std::shared_ptr<const Report>* report);
  Status RaceCapacities(const RaceOptions& options, TrialIo* trial_io, Report* report);
  Status Bind(std::shared_ptr<Workspace> workspace, int32_t composition, const Status& invalid,
              std::shared_ptr<Binding>* binding);
  Status MakeBinding(const std::shared_ptr<Workspace>& workspace, int32_t composition,
                     std::shared_ptr<Binding>* binding) const;
  uint64_t DecisionDigest(int32_t composition) const;
  const Choice& Chosen(const CapacityChoice& choice, int32_t composition) const {
    return choice.choices[composition == SPARSESEL_COMPOSITION_AUTO
                              ? choice.winner
                              : composition - SPARSESEL_COMPOSITION_REPLICATED];
  }
};

}  // namespace sparsesel

#endif  // SPARSESEL_PLAN_PLAN_STATE_H_
