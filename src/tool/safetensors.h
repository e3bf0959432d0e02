// A strict reader of safetensors files: https://github.com/huggingface/safetensors#format.
//
//   8 bytes   length of the header, little-endian
//   header    a JSON object: name -> {dtype, shape, data_offsets: [begin, end]}, and optionally
//             "__metadata__", an object of strings
//   data      the tensors, one behind the other, without holes
//
// Nothing in a file is believed: every number is checked against the file's real size before it is
// used, and whatever the format does not allow is refused with one sentence.
#ifndef SPARSESEL_TOOL_SAFETENSORS_H_
#define SPARSESEL_TOOL_SAFETENSORS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tool/result.h"

namespace sparsesel_tool {

struct Tensor {
  std::string name;
  std::string dtype;           // "F32", "I32", ...
  std::vector<int64_t> shape;  // the product fits the data
  std::span<const std::byte> data;
};

class Safetensors {
 public:
  static constexpr uint64_t kMaxHeaderBytes = uint64_t{16} << 20;
  static constexpr size_t kMaxTensors = 4096;
  static constexpr size_t kMaxDimensions = 16;

  // `file` is the whole file.
  static Result Parse(std::vector<std::byte> file, Safetensors* out);

  std::span<const Tensor> tensors() const { return tensors_; }
  const Tensor* Find(std::string_view name) const;  // null if there is none

 private:
  std::vector<std::byte> file_;
  std::vector<Tensor> tensors_;  // in the order of their data
};

// A regular file of at most kMaxFileBytes.
inline constexpr uint64_t kMaxFileBytes = uint64_t{8} << 30;
Result ReadWholeFile(const std::string& path, std::vector<std::byte>* bytes);

}  // namespace sparsesel_tool

#endif  // SPARSESEL_TOOL_SAFETENSORS_H_
