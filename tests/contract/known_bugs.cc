#include "contract/known_bugs.h"

namespace contract {

std::string RunEverywhere(const Job& job, const Batch& batch, int repeats,
                          const OutputLayout& layout) {
  const std::vector<oracle::Answer> expected = ExpectRows(job, batch);
  const Group group(job.world());
  const std::vector<Combination> combinations = CoveringCombinations(job);
  if (combinations.size() < kLeastCombinations) return "hardly any combination can run this";
  for (const Combination& combination : combinations) {
    const Job run = With(job, combination);
    const Bound bound(group, run);
    if (!bound.ok()) return combination.text() + ": " + Describe(bound.outcomes());
    for (int i = 0; i < repeats; ++i) {
      const std::string difference = Compare(run, expected, Execute(bound, run, batch, layout));
      if (!difference.empty()) return combination.text() + ": " + difference;
    }
  }
  return "";
}

std::string RunEverywhere(const Job& job, const std::vector<Row>& rows, int repeats) {
  Batch batch = MakeBatch(job, static_cast<int32_t>(rows.size()));
  for (size_t row = 0; row < rows.size(); ++row) {
    SetRow(job, static_cast<int32_t>(row), rows[row], &batch);
  }
  return RunEverywhere(job, batch, repeats);
}

Job WithOutputs(Job job, uint32_t outputs) {
  for (sparsesel_problem& problem : job.problems) problem.outputs = outputs;
  return job;
}

}  // namespace contract
