// The same candidates, dealt to the ranks in another way.
#ifndef SPARSESEL_TOOL_RESHARD_H_
#define SPARSESEL_TOOL_RESHARD_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "tool/dataset.h"

namespace sparsesel_tool {

// "contiguous"   each rank has a range of ids
// "interleaved"  ids go round the ranks in turn
// "one-rank"     all on the last rank, nothing on the others
// "duplicate"    each rank has its own candidates and those of the next rank, so every one twice
std::span<const std::string_view> ReshardNames();

// To `world` ranks; "duplicate" keeps the number of ranks. The positions of lists beyond their
// counts are filled with candidates that would win if they were read.
Result Reshard(const Dataset& dataset, std::string_view name, int32_t world, Dataset* out);

}  // namespace sparsesel_tool

#endif  // SPARSESEL_TOOL_RESHARD_H_
