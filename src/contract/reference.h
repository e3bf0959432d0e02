// The answer by definition: plain and slow, the judge of every composition in a race.
#ifndef SPARSESEL_CONTRACT_REFERENCE_H_
#define SPARSESEL_CONTRACT_REFERENCE_H_

#include <cstdint>
#include <span>
#include <vector>

namespace sparsesel {

// One rank's list of one row, as the contract sees it: global ids, positions at or beyond `count`
// are absent.
struct ReferenceList {
  std::span<const float> scores;
  std::span<const int32_t> ids;
  int32_t count = 0;  // clamped to 0 .. ids.size()
};

struct ReferenceRow {
  std::vector<int32_t> ids;          // k, then -1
  std::vector<uint32_t> score_bits;  // k, then -inf
  int32_t count = 0;
};

// Lists in rank order; `by_id` for SPARSESEL_OUTPUT_BY_ID.
ReferenceRow SelectReference(std::span<const ReferenceList> lists, int32_t k, bool by_id);

}  // namespace sparsesel

#endif  // SPARSESEL_CONTRACT_REFERENCE_H_
