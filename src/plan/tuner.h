// Prepare's choice of child plans: for each capacity and composition the fastest of what can run.
#ifndef SPARSESEL_PLAN_TUNER_H_
#define SPARSESEL_PLAN_TUNER_H_

#include <memory>
#include <vector>

#include "comm/comm.h"
#include "compositions/composition.h"
#include "plan/plan.h"
#include "race/trials.h"

namespace sparsesel {

// A composition chosen at a capacity; `available` is false if nothing of that kind can run.
struct Choice {
  bool available = false;
  Composition composition;
};

struct CapacityChoice {
  int32_t capacity = 1;
  Choice choices[2];  // replicated, owner
  int32_t winner = 0;
};

// The most a binding can take at any capacity with any composition that could be chosen.
Status LargestWorkspace(const Comm& comm, const Backend& backend, const Job& job,
                        const std::vector<Composition>& compositions, size_t* bytes,
                        size_t* peer_visible);

// Collective. `compositions` are those of both kinds, the same on every rank; `trials` have memory
// for the largest. Choices come out in ascending capacity.
Status TuneChildPlans(Comm& comm, const Backend& backend, const Job& job,
                      const std::vector<Composition>& compositions, const PrepareOptions& options,
                      Trials& trials, std::vector<CapacityChoice>* choices);

}  // namespace sparsesel

#endif  // SPARSESEL_PLAN_TUNER_H_
