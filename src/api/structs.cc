#include "api/structs.h"

namespace sparsesel {
namespace {

uint32_t StructSize(const void* pointer) {
  uint32_t size;
  std::memcpy(&size, pointer, sizeof(size));
  return size;
}

Status CheckSize(const char* name, const void* pointer) {
  if (pointer == nullptr) return Status::Error(SPARSESEL_INVALID_ARGUMENT, "%s is NULL", name);
  const uint32_t size = StructSize(pointer);
  if (!IsPlausibleSize(size)) {
    return Status::Error(
        SPARSESEL_INVALID_ARGUMENT,
        "%s.struct_size is %u, not a multiple of 8 in %u .. %u: use its INIT macro", name, size,
        kLeastStructSize, kGreatestStructSize);
  }
  return {};
}

}  // namespace

Status CopyStructIn(const char* name, const void* in, size_t known, void* out) {
  SPARSESEL_RETURN_IF_ERROR(CheckSize(name, in));
  const size_t size = StructSize(in);
  const auto* bytes = static_cast<const unsigned char*>(in);
  for (size_t i = known; i < size; ++i) {
    if (bytes[i] != 0) {
      return Status::Error(
          SPARSESEL_UNSUPPORTED,
          "%s has %u bytes, of which this version knows %u, and byte %u is not zero", name, size,
          known, i);
    }
  }
  std::memcpy(out, in, std::min(size, known));
  return {};
}

Status CheckStructOut(const char* name, const void* out) { return CheckSize(name, out); }

void CopyStructOut(const void* in, size_t known, void* out) {
  const size_t size = std::min<size_t>(StructSize(out), known);
  std::memcpy(static_cast<char*>(out) + sizeof(uint32_t),
              static_cast<const char*>(in) + sizeof(uint32_t), size - sizeof(uint32_t));
}

}  // namespace sparsesel
