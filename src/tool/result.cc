#include "tool/result.h"

namespace sparsesel_tool {

Result LibraryResult(const char* call, sparsesel_status status, const sparsesel_error& error) {
  if (status == SPARSESEL_OK) return {};
  std::string text = std::string(call) + ": " + sparsesel_status_name(status);
  if (error.text[0] != '\0') text += std::string(": ") + error.text;
  if (error.rank >= 0) text += " (rank " + std::to_string(error.rank) + ")";
  return {status == SPARSESEL_WRONG_RESULT ? kExitWrongIds : kExitError, std::move(text)};
}

}  // namespace sparsesel_tool
