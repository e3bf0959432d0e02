// How the tool's parts fail: one line for the user and the exit status that goes with it.
#ifndef SPARSESEL_TOOL_RESULT_H_
#define SPARSESEL_TOOL_RESULT_H_

#include <string>
#include <utility>

#include "sparsesel.h"

namespace sparsesel_tool {

inline constexpr int kExitWrongIds = 1;
inline constexpr int kExitError = 2;  // usage, files, and what the library refuses

struct [[nodiscard]] Result {
  int exit = 0;
  std::string text;

  bool ok() const { return exit == 0; }
};

inline Result Failure(std::string text) { return {kExitError, std::move(text)}; }

// What the library said, e.g. "plan_race: SPARSESEL_TIMEOUT: rank 3 did not come (rank 3)".
Result LibraryResult(const char* call, sparsesel_status status, const sparsesel_error& error);

}  // namespace sparsesel_tool

#endif  // SPARSESEL_TOOL_RESULT_H_
