// A problem together with what prepare learned of the other ranks: all that a stage needs to know,
// and, but for `problem` and `rank`, the same on every rank.
#ifndef SPARSESEL_CONTRACT_JOB_H_
#define SPARSESEL_CONTRACT_JOB_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "contract/problem.h"

namespace sparsesel {

struct Job {
  Problem problem;  // this rank's
  int32_t rank = 0;
  int32_t world = 1;
  std::array<int32_t, kMaxWorldSize> candidates{};  // list length of each rank
  int32_t longest = 0;                              // the greatest of them
  uint64_t memory_limit = 0;                        // the smallest of all ranks, 0: none
  bool all_sorted = false;  // every rank promises lists by score or in full order

  bool everywhere() const { return problem.output_scope == SPARSESEL_SCOPE_ALL_ROWS; }
};

}  // namespace sparsesel

#endif  // SPARSESEL_CONTRACT_JOB_H_
