#include "api/text.h"

#include <cstring>

namespace sparsesel {

Status CheckTextOut(const char* text, size_t size, const size_t* needed) {
  if (text == nullptr && size != 0) {
    return Status::Error(SPARSESEL_INVALID_ARGUMENT, "text is NULL, but size is %d", size);
  }
  if (text == nullptr && needed == nullptr) {
    return Status::Error(SPARSESEL_INVALID_ARGUMENT, "text and needed are both NULL");
  }
  return {};
}

Status CopyTextOut(const std::string& source, char* text, size_t size, size_t* needed) {
  const size_t bytes = source.size() + 1;
  if (needed != nullptr) *needed = bytes;
  if (text == nullptr) return {};
  if (size < bytes) {
    return Status::Error(SPARSESEL_INVALID_ARGUMENT, "the text takes %d bytes, but size is %d",
                         bytes, size);
  }
  std::memcpy(text, source.c_str(), bytes);
  return {};
}

}  // namespace sparsesel
