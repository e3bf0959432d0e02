// What the tool says on stderr while it works: one line that is rewritten on a terminal, a line per
// phase elsewhere.
#ifndef SPARSESEL_TOOL_PROGRESS_H_
#define SPARSESEL_TOOL_PROGRESS_H_

#include <string>

#include "sparsesel.h"

namespace sparsesel_tool {

class Progress {
 public:
  Progress();
  ~Progress() { Clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // One thread at a time. fraction: 0 .. 1.
  void Show(const std::string& phase, double fraction, const std::string& text);
  void Clear();

  // A callback that shows steps of `phase`; valid as long as this object.
  sparsesel_progress Callback(const char* phase);

 private:
  static void Step(void* context, double fraction, const char* text);

  const bool terminal_;
  std::string phase_;  // of Callback
  std::string said_;   // the last line, where lines stay
  bool dirty_ = false;
};

}  // namespace sparsesel_tool

#endif  // SPARSESEL_TOOL_PROGRESS_H_
