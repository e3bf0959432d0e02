#include "api/errors.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "api/structs.h"

namespace sparsesel {
namespace {

// Copies text cut to `size` bytes with its terminator, never in the middle of a UTF-8 character.
void CopyCut(const char* text, size_t size, char* out) {
  size_t length = strnlen(text, size - 1);
  if (text[length] != '\0') {
    while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80) --length;
  }
  std::memcpy(out, text, length);
  out[length] = '\0';
}

}  // namespace

void FillError(const Status& status, sparsesel_error* error) noexcept {
  if (error == nullptr || !IsPlausibleSize(error->struct_size)) return;
  const size_t size = std::min<size_t>(error->struct_size, sizeof(sparsesel_error));
  const auto has = [size](size_t offset, size_t bytes) { return offset + bytes <= size; };
  if (has(offsetof(sparsesel_error, status), 4)) error->status = status.code();
  if (has(offsetof(sparsesel_error, rank), 4)) error->rank = status.rank();
  if (has(offsetof(sparsesel_error, backend_code), 4)) error->backend_code = status.backend_code();
  constexpr size_t kText = offsetof(sparsesel_error, text);
  if (has(kText, 1)) CopyCut(status.text(), size - kText, error->text);
}

}  // namespace sparsesel
