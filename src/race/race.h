// The race: correctness, timing, holdouts, agreement. Every decision is computed by the same code
// from all-gathered data, so ranks agree by construction; the final vote only proves it.
#ifndef SPARSESEL_RACE_RACE_H_
#define SPARSESEL_RACE_RACE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/comm.h"
#include "race/decision.h"
#include "race/expected.h"
#include "race/report.h"
#include "race/trials.h"

namespace sparsesel {

struct RaceSettings {
  DecisionRule rule;
  uint64_t seed = 0;
  int64_t time_budget = 0;      // ns
  int64_t sample_duration = 0;  // ns
  int32_t max_pairs = 128;
  TrialIo* trial_io = nullptr;  // a caller's own trial rows, of all ranks or of none
  sparsesel_progress progress{};
};

// One capacity that is measured.
struct Contest {
  int32_t capacity = 1;
  const Executor* executors[2] = {};  // replicated, owner
  CapacityReport* report = nullptr;
};

// Fills in the contests' reports, winners included. Collective; at most nine control-plane
// all-gathers. WRONG_RESULT when a capacity has no exact composition; MISMATCH when ranks did not
// reach one decision.
Status RunRace(Comm& comm, const Job& job, const RaceSettings& settings, Trials& trials,
               std::vector<Contest>& contests, uint64_t* digest);

}  // namespace sparsesel

#endif  // SPARSESEL_RACE_RACE_H_
