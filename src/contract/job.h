// A problem together with what prepare learned of the other ranks: all that a stage needs to know.
#ifndef SPARSESEL_CONTRACT_JOB_H_
#define SPARSESEL_CONTRACT_JOB_H_

#include <array>
#include <cstdint>

#include "contract/problem.h"

namespace sparsesel {

// What may differ between ranks and others have to know.
struct RankFacts {
  int32_t candidates = 0;
  int32_t input_kind = 0;
  int32_t input_order = 0;
  IdMap id_map;
  int64_t score_row_length = 0;
  uint64_t memory_limit = 0;
};

// But for `problem` and `rank`, the same on every rank.
struct Job {
  Problem problem;  // this rank's
  int32_t rank = 0;
  int32_t world = 1;
  std::array<RankFacts, kMaxWorldSize> facts{};
  std::array<int32_t, kMaxWorldSize> candidates{};  // list length of each rank
  int32_t longest = 0;                              // the greatest of them
  uint64_t memory_limit = 0;                        // the smallest of all ranks, 0: none

  bool everywhere() const { return problem.output_scope == SPARSESEL_SCOPE_ALL_ROWS; }
};

// The job as this rank sees it before it knows the others: all like itself.
Job LonelyJob(const Problem& problem, int32_t rank, int32_t world);
RankFacts FactsOf(const Problem& problem);
// Fills in what follows from the facts of all ranks.
void SetFacts(const std::array<RankFacts, kMaxWorldSize>& facts, Job* job);

}  // namespace sparsesel

#endif  // SPARSESEL_CONTRACT_JOB_H_
