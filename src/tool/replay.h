// Bindings run on a dataset, every output compared with the truth.
#ifndef SPARSESEL_TOOL_REPLAY_H_
#define SPARSESEL_TOOL_REPLAY_H_

#include <cstdint>
#include <vector>

#include "sparsesel.h"
#include "tool/dataset.h"
#include "tool/group.h"
#include "tool/memory.h"
#include "tool/result.h"

namespace sparsesel_tool {

struct ReplayCount {
  int64_t executes = 0;
  int64_t rows = 0;       // compared, over all ranks
  int64_t wrong_ids = 0;  // places in which the output is not the truth
};

// Runs each of `capacities` `executes` times on every rank, with as many rows and from another
// first row each time, into poisoned outputs. bindings[rank].
Result Replay(const Group& group, const Placed& placed, int32_t dataset_rows, const Truth& truth,
              int32_t k, const std::vector<int32_t>& capacities, int32_t executes,
              const std::vector<Binding>& bindings, ReplayCount* count);

}  // namespace sparsesel_tool

#endif  // SPARSESEL_TOOL_REPLAY_H_
