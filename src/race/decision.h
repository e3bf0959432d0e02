// The statistics of a race: from paired samples to a decision. Pure, and run by every rank on the
// same gathered data.
#ifndef SPARSESEL_RACE_DECISION_H_
#define SPARSESEL_RACE_DECISION_H_

#include <cstdint>
#include <span>

#include "sparsesel.h"

namespace sparsesel {

struct DecisionRule {
  double margin = 0.02;       // owner must be faster by this fraction
  double error_level = 0.05;  // over all looks, divided evenly among them
  int32_t looks = 3;
};

// The fewest pairs after which a look can decide.
int32_t FewestPairs(const DecisionRule& rule);

// The state after a look.
struct Verdict {
  bool decided = false;
  int32_t rule = SPARSESEL_RULE_INCONCLUSIVE;
  int32_t winner = SPARSESEL_COMPOSITION_REPLICATED;
  double ratio = 0;  // median of replicated / owner
  double ratio_low = 0;
  double ratio_high = 0;
};

// replicated[i] and owner[i] are the i-th pair, ns, maximum over ranks. `last_look`: an undecided
// verdict becomes INCONCLUSIVE. Any sample that is not a positive, finite, plausible duration (over
// an hour) gives INVALID_TIMING.
Verdict Judge(std::span<const double> replicated, std::span<const double> owner,
              const DecisionRule& rule, bool last_look);

// Median and half the distance of the quartiles.
struct Summary {
  double median = 0;
  double spread = 0;
};
Summary Summarize(std::span<const double> samples);

}  // namespace sparsesel

#endif  // SPARSESEL_RACE_DECISION_H_
