// The candidates of all ranks of one job.
#ifndef SPARSESEL_TOOL_DATASET_H_
#define SPARSESEL_TOOL_DATASET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tool/result.h"

namespace sparsesel_tool {

inline constexpr int32_t kMaxRanks = 64;
inline constexpr int32_t kMaxRows = 1048576;
inline constexpr int32_t kMaxListLength = 65536;

struct RankLists {
  int32_t candidates = 0;       // length of each list
  std::vector<float> scores;    // [row, candidate]
  std::vector<int32_t> ids;     // [row, candidate]
  std::vector<int32_t> counts;  // [row], or empty: all candidates are there
};

struct Dataset {
  std::string name;
  int32_t rows = 0;
  std::vector<RankLists> ranks;
  std::vector<int32_t> expected;  // [row, expected_k] from the file, or empty
  int32_t expected_k = 0;

  int32_t world() const { return static_cast<int32_t>(ranks.size()); }
};

// F32 `scores` and I32 `ids` as [rank, row, candidate]; optional I32 `counts` [rank, row] and
// `expected_ids` [row, k].
Result LoadDataset(const std::string& path, Dataset* out);

// The ids that every rank should get.
struct Truth {
  std::string source;        // what is compared with, for the user
  std::vector<int32_t> ids;  // [row, k], then -1
};
// The file's if it has them for this k, else the tool's own, see reference.h.
Truth TruthOf(const Dataset& dataset, int32_t k);

}  // namespace sparsesel_tool

#endif  // SPARSESEL_TOOL_DATASET_H_
