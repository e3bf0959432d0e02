// Texts that are copied into a caller's buffer.
#ifndef SPARSESEL_API_TEXT_H_
#define SPARSESEL_API_TEXT_H_

#include <cstddef>
#include <string>

#include "contract/status.h"

namespace sparsesel {

// Refuses, before the text is made, a buffer that cannot receive any.
Status CheckTextOut(const char* text, size_t size, const size_t* needed);

// Writes `source` and its terminator, and `*needed` if asked for. INVALID_ARGUMENT, and no text, if
// it does not fit; text == NULL with size 0 asks for `*needed` only.
Status CopyTextOut(const std::string& source, char* text, size_t size, size_t* needed);

}  // namespace sparsesel

#endif  // SPARSESEL_API_TEXT_H_
