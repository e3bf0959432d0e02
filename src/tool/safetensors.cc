#include "tool/safetensors.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

#include "tool/safetensors_header.h"

namespace sparsesel_tool {
namespace {

constexpr uint64_t kLengthBytes = 8;

// Bytes of one element; 0 for a type that is not known.
uint64_t ElementBytes(std::string_view dtype) {
  constexpr std::pair<std::string_view, uint64_t> kTypes[] = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
      {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
      {"U32", 4},  {"F32", 4}, {"I64", 8}, {"U64", 8},     {"F64", 8}};
  for (const auto& [name, bytes] : kTypes) {
    if (name == dtype) return bytes;
  }
  return 0;
}

uint64_t LittleEndian(const std::byte* bytes) {
  uint64_t value = 0;
  for (uint64_t i = kLengthBytes; i-- > 0;)
    value = value << 8 | std::to_integer<uint64_t>(bytes[i]);
  return value;
}

Result ToTensor(const TensorHeader& header, std::span<const std::byte> data, Tensor* tensor) {
  const std::string who = "tensor " + QuotedName(header.name) + " ";
  if (header.data_offsets.size() != 2) return Failure(who + "has no two data offsets");
  const uint64_t begin = header.data_offsets[0];
  const uint64_t end = header.data_offsets[1];
  if (begin > end || end > data.size()) {
    return Failure(who + "lies at bytes " + std::to_string(begin) + " to " + std::to_string(end) +
                   " of " + std::to_string(data.size()));
  }
  uint64_t bytes = ElementBytes(header.dtype);
  if (bytes == 0) return Failure(who + "has an unknown dtype");
  for (const uint64_t extent : header.shape) {
    if (extent > static_cast<uint64_t>(INT64_MAX) ||
        __builtin_mul_overflow(bytes, extent, &bytes)) {
      return Failure(who + "has a shape beyond 64 bits");
    }
    tensor->shape.push_back(static_cast<int64_t>(extent));
  }
  if (bytes != end - begin) {
    return Failure(who + "takes " + std::to_string(bytes) + " bytes by its shape, but " +
                   std::to_string(end - begin) + " by its offsets");
  }
  tensor->name = header.name;
  tensor->dtype = header.dtype;
  tensor->data = data.subspan(begin, end - begin);
  return {};
}

// The data is covered by the tensors, each byte once.
Result CheckCover(std::span<const Tensor> sorted, std::span<const std::byte> data) {
  const std::byte* next = data.data();
  for (const Tensor& tensor : sorted) {
    if (tensor.data.data() != next) {
      return Failure("tensor " + QuotedName(tensor.name) + " leaves a hole or overlaps another");
    }
    next += tensor.data.size();
  }
  if (next != data.data() + data.size()) return Failure("there are bytes behind the last tensor");
  return {};
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

Result Safetensors::Parse(std::vector<std::byte> file, Safetensors* out) {
  Safetensors parsed;
  parsed.file_ = std::move(file);
  const std::span<const std::byte> all(parsed.file_);
  if (all.size() < kLengthBytes) return Failure("the file is too short to be safetensors");
  const uint64_t length = LittleEndian(all.data());
  if (length > kMaxHeaderBytes) {
    return Failure("the header claims " + std::to_string(length) + " bytes, more than " +
                   std::to_string(kMaxHeaderBytes));
  }
  if (length > all.size() - kLengthBytes) {
    return Failure("the header claims " + std::to_string(length) + " bytes, but the file has " +
                   std::to_string(all.size() - kLengthBytes) + " more");
  }
  std::vector<TensorHeader> headers;
  const std::string_view json(reinterpret_cast<const char*>(all.data()) + kLengthBytes, length);
  if (Result result = ParseSafetensorsHeader(json, &headers); !result.ok()) return result;

  const std::span<const std::byte> data = all.subspan(kLengthBytes + length);
  for (const TensorHeader& header : headers) {
    Tensor tensor;
    if (Result result = ToTensor(header, data, &tensor); !result.ok()) return result;
    parsed.tensors_.push_back(std::move(tensor));
  }
  // By place, empty ones before what begins at the same byte.
  std::sort(parsed.tensors_.begin(), parsed.tensors_.end(), [](const Tensor& a, const Tensor& b) {
    return std::pair(a.data.data(), a.data.size()) < std::pair(b.data.data(), b.data.size());
  });
  if (Result result = CheckCover(parsed.tensors_, data); !result.ok()) return result;
  *out = std::move(parsed);
  return {};
}

const Tensor* Safetensors::Find(std::string_view name) const {
  for (const Tensor& tensor : tensors_) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

Result ReadWholeFile(const std::string& path, std::vector<std::byte>* bytes) {
  // Not mapped: a file that shrinks while it is mapped ends the process.
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return Failure(std::generic_category().message(errno));
  if (!S_ISREG(info.st_mode)) return Failure("not a regular file");
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return Failure(std::generic_category().message(errno));
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size > kMaxFileBytes) return Failure("the file is larger than 8 GiB");
  bytes->resize(size);
  const size_t got = std::fread(bytes->data(), 1, size, file.get());
  if (got != size || std::fgetc(file.get()) != EOF)
    return Failure("the file changed while it was read");
  return {};
}

}  // namespace sparsesel_tool
