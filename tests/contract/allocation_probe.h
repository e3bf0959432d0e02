// Counts, and fails, what the process allocates: through malloc and operator new (this executable's
// own replace the process's), and through the library's allocator callbacks.
#ifndef SPARSESEL_TESTS_CONTRACT_ALLOCATION_PROBE_H_
#define SPARSESEL_TESTS_CONTRACT_ALLOCATION_PROBE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "sparsesel.h"

namespace contract {

// Counts the calling thread's allocations while it lives; scopes may be nested.
class AllocationCount {
 public:
  AllocationCount();
  AllocationCount(const AllocationCount&) = delete;
  AllocationCount& operator=(const AllocationCount&) = delete;
  ~AllocationCount();
  int64_t value() const { return count_; }

 private:
  int64_t count_ = 0;
  int64_t* const outer_;
};

// The test's own code inside a library call (callbacks): neither counted nor failed.
class AllocationPause {
 public:
  AllocationPause();
  AllocationPause(const AllocationPause&) = delete;
  AllocationPause& operator=(const AllocationPause&) = delete;
  ~AllocationPause();

 private:
  int64_t* const count_;
  int64_t* const countdown_;
};

// From `nth` on, 1 being the next, one allocation of the calling thread fails.
class AllocationFailure {
 public:
  explicit AllocationFailure(int64_t nth);
  AllocationFailure(const AllocationFailure&) = delete;
  AllocationFailure& operator=(const AllocationFailure&) = delete;
  ~AllocationFailure();
  bool has_happened() const { return countdown_ <= 0; }

 private:
  int64_t countdown_;
  int64_t* const outer_;
};

// Blocks that the process holds.
int64_t LiveAllocations();

// Allocator callbacks that count, and fail one call if asked to.
class CountingAllocator {
 public:
  sparsesel_allocator callbacks();

  int64_t live_bytes() const { return live_bytes_; }
  int64_t peak_bytes() const { return peak_bytes_; }
  int64_t calls() const { return calls_; }
  int64_t wrong_frees() const { return wrong_frees_; }  // sizes or tags that do not match
  void ResetPeak() { peak_bytes_ = live_bytes_.load(); }
  // The call that returns NULL, 1 being the next; 0: none.
  void FailCall(int64_t nth) { fail_in_ = nth; }

 private:
  static void* Allocate(void* context, int32_t memory, size_t bytes, size_t alignment,
                        const char* tag);
  static void Deallocate(void* context, int32_t memory, void* pointer, size_t bytes,
                         size_t alignment, const char* tag);

  std::atomic<int64_t> live_bytes_{0};
  std::atomic<int64_t> peak_bytes_{0};
  std::atomic<int64_t> calls_{0};
  std::atomic<int64_t> wrong_frees_{0};
  std::atomic<int64_t> fail_in_{0};
};

}  // namespace contract

#endif  // SPARSESEL_TESTS_CONTRACT_ALLOCATION_PROBE_H_
