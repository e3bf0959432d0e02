// One rank's row of a trial, twice: as the arrays that execute reads, and as the list that the
// contract sees after the id map, for the reference.
#ifndef SPARSESEL_RACE_TRIAL_INPUT_H_
#define SPARSESEL_RACE_TRIAL_INPUT_H_

#include <cstdint>
#include <vector>

#include "contract/job.h"
#include "contract/reference.h"
#include "race/inputs.h"

namespace sparsesel {

struct TrialRow {
  std::vector<float> scores;  // what io.scores holds for the row
  std::vector<int32_t> ids;   // what io.ids holds
  int32_t count = 0;          // what io.counts holds
  std::vector<float> list_scores;
  std::vector<int32_t> list_ids;  // global

  ReferenceList list() const { return {list_scores, list_ids, count}; }
};

// Any rank's row, made by any rank.
void MakeTrialRow(const Job& job, int32_t rank, InputKind kind, uint64_t seed, int64_t row,
                  TrialRow* made);

}  // namespace sparsesel

#endif  // SPARSESEL_RACE_TRIAL_INPUT_H_
