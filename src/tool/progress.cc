#include "tool/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace sparsesel_tool {

Progress::Progress() : terminal_(isatty(STDERR_FILENO) == 1) {}

void Progress::Show(const std::string& phase, double fraction, const std::string& text) {
  const int percent = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * 100.0);
  if (terminal_) {
    // Cut to a narrow terminal: a line that wraps could not be rewritten.
    std::fprintf(stderr, "\r\033[K%s",
                 (phase + " " + std::to_string(percent) + "% " + text).substr(0, 78).c_str());
    std::fflush(stderr);
    dirty_ = true;
    return;
  }
  // At most a line per tenth and phase.
  const std::string line = phase + " " + std::to_string(percent / 10 * 10) + "%";
  if (line == said_) return;
  said_ = line;
  std::fprintf(stderr, "%s %s\n", line.c_str(), text.c_str());
}

void Progress::Clear() {
  if (!dirty_) return;
  std::fprintf(stderr, "\r\033[K");
  std::fflush(stderr);
  dirty_ = false;
}

sparsesel_progress Progress::Callback(const char* phase) {
  phase_ = phase;
  return {this, &Progress::Step};
}

void Progress::Step(void* context, double fraction, const char* text) {
  auto* progress = static_cast<Progress*>(context);
  progress->Show(progress->phase_, fraction, text);
}

}  // namespace sparsesel_tool
