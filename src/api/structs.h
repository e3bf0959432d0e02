// Structs that cross the interface with their size in front, between callers and libraries of
// different versions.
#ifndef SPARSESEL_API_STRUCTS_H_
#define SPARSESEL_API_STRUCTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "contract/status.h"

namespace sparsesel {

// No version of any struct is smaller or larger; so a size outside is a mistake, not a version, and
// nothing is read or written beyond what it names.
inline constexpr uint32_t kLeastStructSize = 8;
inline constexpr uint32_t kGreatestStructSize = 4096;

// Structs have no padding and their fields no more than 8 bytes, so that a size of another version
// is a multiple of 8 and never cuts a field.
constexpr bool IsPlausibleSize(uint32_t size) {
  return size >= kLeastStructSize && size <= kGreatestStructSize && size % 8 == 0;
}

// Copies min(struct_size, known) bytes of `in` over `out`, which holds `known` bytes of defaults.
// INVALID_ARGUMENT: NULL, or a size that no version has. UNSUPPORTED: bytes beyond `known` that are
// not zero.
Status CopyStructIn(const char* name, const void* in, size_t known, void* out);

// INVALID_ARGUMENT unless `out` can be filled by CopyStructOut.
Status CheckStructOut(const char* name, const void* out);

// Fills what the caller's struct has room for and leaves its struct_size and what is unknown alone.
void CopyStructOut(const void* in, size_t known, void* out);

// The whole of a caller's option struct, missing fields zero, which is their default.
template <typename Struct>
Status ReadStruct(const char* name, const Struct* in, Struct* out) {
  *out = Struct{};
  const Status status = CopyStructIn(name, in, sizeof(Struct), out);
  out->struct_size = sizeof(Struct);
  return status;
}

// The same for options that may be NULL.
template <typename Struct>
Status ReadOptionalStruct(const char* name, const Struct* in, Struct* out) {
  if (in != nullptr) return ReadStruct(name, in, out);
  *out = Struct{};
  out->struct_size = sizeof(Struct);
  return {};
}

}  // namespace sparsesel

#endif  // SPARSESEL_API_STRUCTS_H_
