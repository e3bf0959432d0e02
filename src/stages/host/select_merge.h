// Merging two descending runs of keys, without branches that depend on them.
#ifndef SPARSESEL_STAGES_HOST_SELECT_MERGE_H_
#define SPARSESEL_STAGES_HOST_SELECT_MERGE_H_

#include <cstddef>
#include <cstdint>

namespace sparsesel {

// Keys of present candidates lie strictly between these. A run that is merged has kBeforeRun right
// before its first key and kAfterRun right after its last, so that neither end needs a check.
inline constexpr uint64_t kBeforeRun = ~uint64_t{0};
inline constexpr uint64_t kAfterRun = 0;

// A descending run of keys, with its two guards outside.
struct Run {
  uint64_t* keys = nullptr;
  size_t length = 0;
};

// Writes the first `count` keys of the merged runs, count <= a.length + b.length, and no guards.
// `out` overlaps neither run.
void MergeRuns(Run a, Run b, size_t count, uint64_t* out);

}  // namespace sparsesel

#endif  // SPARSESEL_STAGES_HOST_SELECT_MERGE_H_
