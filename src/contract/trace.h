// Named ranges for profilers, in a domain of the library's own ("sparsesel"). They cost a few
// nanoseconds while no profiler listens, and are empty in builds without CUDA, whose headers bring
// NVTX.
#ifndef SPARSESEL_CONTRACT_TRACE_H_
#define SPARSESEL_CONTRACT_TRACE_H_

#include <cstdint>

namespace sparsesel {

#if defined(SPARSESEL_HAS_CUDA)
// Open for its own scope. `name` is only read; `payload` is shown beside it, e.g. a number of rows.
class TraceRange {
 public:
  TraceRange(const char* name, int64_t payload);
  ~TraceRange();
  TraceRange(const TraceRange&) = delete;
  TraceRange& operator=(const TraceRange&) = delete;
};
#else
class TraceRange {
 public:
  TraceRange(const char*, int64_t) {}
  // Not trivial, so that a range of a scope is no unused variable.
  ~TraceRange() {}  // NOLINT(modernize-use-equals-default)
  TraceRange(const TraceRange&) = delete;
  TraceRange& operator=(const TraceRange&) = delete;
};
#endif

}  // namespace sparsesel

#endif  // SPARSESEL_CONTRACT_TRACE_H_
