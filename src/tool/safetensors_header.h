// The JSON header of a safetensors file, read as a stream of events, so that depth, types and
// repeated names are judged before anything is stored.
#ifndef SPARSESEL_TOOL_SAFETENSORS_HEADER_H_
#define SPARSESEL_TOOL_SAFETENSORS_HEADER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tool/result.h"

namespace sparsesel_tool {

struct TensorHeader {
  std::string name;
  std::string dtype;
  std::vector<uint64_t> shape;
  std::vector<uint64_t> data_offsets;
};

// Checks the form of the header; the numbers may still be anything.
Result ParseSafetensorsHeader(std::string_view json, std::vector<TensorHeader>* tensors);

// A name from the file, cut and cleaned for one line on a terminal.
std::string QuotedName(const std::string& name);

}  // namespace sparsesel_tool

#endif  // SPARSESEL_TOOL_SAFETENSORS_HEADER_H_
