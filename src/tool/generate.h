// Candidates made up from a seed; the same on every machine.
#ifndef SPARSESEL_TOOL_GENERATE_H_
#define SPARSESEL_TOOL_GENERATE_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tool/dataset.h"

namespace sparsesel_tool {

// "normal", "uniform"  scores of that distribution
// "ties"               scores of few values, so that thousands are equal at the cutoff
// "equal"              one score
// "sorted"             normal, each list in the full order
// "contiguous"         the scores of a rank lie in a range of its own: few ranks have all winners
// "special"            infinities, NaNs, zeros of both signs, subnormals, absent candidates
std::span<const std::string_view> DistributionNames();

struct GeneratorOptions {
  std::string distribution = "normal";
  uint64_t seed = 1;
  int32_t world = 8;
  int32_t rows = 8;
  int32_t candidates = 2048;
};
Result Generate(const GeneratorOptions& options, Dataset* out);

}  // namespace sparsesel_tool

#endif  // SPARSESEL_TOOL_GENERATE_H_
