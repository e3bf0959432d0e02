// A validated sparsesel_problem, with every default filled in.
#ifndef SPARSESEL_CONTRACT_PROBLEM_H_
#define SPARSESEL_CONTRACT_PROBLEM_H_

#include <cstdint>
#include <span>
#include <vector>

#include "contract/id_map.h"
#include "contract/status.h"
#include "sparsesel.h"

namespace sparsesel {

inline constexpr int32_t kMaxWorldSize = 64;
inline constexpr int32_t kMaxK = 65536;
inline constexpr int32_t kMaxCandidates = 65536;
inline constexpr int32_t kMaxCapacity = 1048576;
inline constexpr int32_t kMaxCapacities = 1024;
inline constexpr int32_t kDefaultK = 2048;

struct Problem {
  int32_t k = kDefaultK;
  std::vector<int32_t> capacities{1};  // ascending, distinct
  int32_t candidates = kDefaultK;
  int32_t alignment = 4;
  int64_t score_stride = kDefaultK;
  int64_t id_stride = kDefaultK;
  int64_t output_stride = kDefaultK;
  int64_t score_row_length = 0;
  int32_t input_kind = SPARSESEL_INPUT_PAIRS;
  int32_t input_order = SPARSESEL_ORDER_NONE;
  IdMap id_map;
  int32_t output_order = SPARSESEL_OUTPUT_BY_SCORE;
  uint32_t outputs = 0;
  int32_t output_scope = SPARSESEL_SCOPE_ALL_ROWS;
  int32_t phase = SPARSESEL_PHASE_DECODE;
  int32_t requests = 1;
  uint32_t workload = 0;
  int32_t race_policy = SPARSESEL_RACE_CONSERVATIVE;
  uint64_t memory_limit = 0;  // 0: none

  bool wants_scores() const { return (outputs & SPARSESEL_OUTPUT_SCORES) != 0; }
  bool wants_counts() const { return (outputs & SPARSESEL_OUTPUT_COUNTS) != 0; }
  // Outputs in which two candidates of one key can be told apart, so that ties go by source.
  bool needs_source() const { return wants_scores(); }
  // Whether the policy lets this workload be raced.
  bool is_raced() const;
};

// Checks every field; the sentence names the field and its value. `options` may come from a caller
// whose struct has another size: it has been normalized to this library's size before.
Status ParseProblem(const sparsesel_problem& options, Problem* problem);

// One field that all ranks must share, for comparing and for the digest.
struct SharedField {
  const char* name;
  uint64_t value;
};
// In a fixed order, the same number for every problem.
std::vector<SharedField> SharedFields(const Problem& problem);

}  // namespace sparsesel

#endif  // SPARSESEL_CONTRACT_PROBLEM_H_
