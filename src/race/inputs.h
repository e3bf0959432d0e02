// Inputs of trials and holdouts, as functions of (seed, rank, row): every rank can make every list.
#ifndef SPARSESEL_RACE_INPUTS_H_
#define SPARSESEL_RACE_INPUTS_H_

#include <cstdint>
#include <span>

namespace sparsesel {

enum class InputKind : int32_t {
  kTrial,       // what is timed: distinct random scores, ids dealt over the ranks
  kRandom,      // another generator
  kCutoffTies,  // thousands of equal scores around the cutoff
  kAllEqual,
  kAllAbsent,
  kFewPresent,  // fewer than k in all
  kAbsencesInMiddle,
  kDuplicateIds,  // the same (score, id) on several ranks, and the same id with other scores
  kInfinities,
  kNans,   // both signs, several payloads, among numbers; some rows NaN only
  kZeros,  // -0.0 and +0.0 across the cutoff
  kSubnormals,
  kExtremeIds,        // 0 and INT32_MAX
  kOneRankOnly,       // everything on one rank
  kContiguousShards,  // all winners on few ranks
  kSorted,            // each list in full order, absences last
  kReverseSorted,
};
inline constexpr int32_t kInputKinds = 17;

const char* InputKindName(InputKind kind);

// What a generator needs to know; the same on all ranks.
struct InputShape {
  int32_t world = 1;
  int32_t k = 1;
  std::span<const int32_t> candidates;  // per rank
  // Per rank, SPARSESEL_ORDER_...; empty if no rank promises any. Only the trial keeps promises:
  // the holdouts check that a broken one costs no exactness.
  std::span<const int32_t> input_order = {};
};

// Writes rank `rank`'s list of one row: shape.candidates[rank] scores and ids, and returns its
// count. Absent ids among the first `count` are negative. Positions beyond the count hold plausible
// garbage.
int32_t FillInput(InputKind kind, uint64_t seed, const InputShape& shape, int32_t rank, int64_t row,
                  float* scores, int32_t* ids);

}  // namespace sparsesel

#endif  // SPARSESEL_RACE_INPUTS_H_
