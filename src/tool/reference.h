// The tool's own answer to a job, for inputs that come without one: every present candidate of a
// row in one list, sorted by the order of the header's convention 10.
#ifndef SPARSESEL_TOOL_REFERENCE_H_
#define SPARSESEL_TOOL_REFERENCE_H_

#include <cstdint>
#include <vector>

#include "tool/dataset.h"

namespace sparsesel_tool {

struct Candidate {
  float score;
  int32_t id;
};

// The present candidates of one row of one rank, by position.
std::vector<Candidate> PresentCandidates(const Dataset& dataset, int32_t rank, int32_t row);

// [row, k], then -1.
std::vector<int32_t> ReferenceIds(const Dataset& dataset, int32_t k);

}  // namespace sparsesel_tool

#endif  // SPARSESEL_TOOL_REFERENCE_H_
