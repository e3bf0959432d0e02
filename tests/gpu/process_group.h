// A group of processes on one machine: shared memory that they inherit, with a bootstrap for the
// library, barriers for the test, and a place for what went wrong.
#ifndef SPARSESEL_TESTS_GPU_PROCESS_GROUP_H_
#define SPARSESEL_TESTS_GPU_PROCESS_GROUP_H_

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>

#include "sparsesel.h"

namespace sparsesel::testing {

inline constexpr int kMostProcesses = 16;
inline constexpr size_t kMostBytes = size_t{1} << 20;  // of a rank in one all-gather

// All zero at first.
struct SharedWords {
  std::atomic<uint64_t> posted[kMostProcesses];   // all-gathers that each rank has begun
  std::atomic<uint64_t> reached[kMostProcesses];  // barriers
  std::atomic<uint32_t> failures;
  // Two areas, used in turn: a rank that begins the next but one has seen all others begin the
  // next, which each did after it had read this one.
  unsigned char area[2][kMostProcesses][kMostBytes];
};

// As one process sees it.
class ProcessGroup {
 public:
  // `file` is shared memory of sizeof(SharedWords) bytes.
  ProcessGroup(int file, int rank, int world) : rank_(rank), world_(world) {
    words_ = static_cast<SharedWords*>(
        mmap(nullptr, sizeof(SharedWords), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  }

  SharedWords& words() { return *words_; }
  int rank() const { return rank_; }
  int world() const { return world_; }

  // False if some rank does not come in time.
  bool Barrier(std::chrono::seconds limit = std::chrono::seconds(120)) {
    const uint64_t mine = words_->reached[rank_].fetch_add(1) + 1;
    const auto end = std::chrono::steady_clock::now() + limit;
    for (int r = 0; r < world_; ++r) {
      while (words_->reached[r].load() < mine) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::yield();
      }
    }
    return true;
  }

  sparsesel_bootstrap bootstrap() { return {this, Start, Test, Free}; }

 private:
  static sparsesel_status Start(void* context, const void* send, void* receive, size_t bytes,
                                void** request) {
    ProcessGroup& group = *static_cast<ProcessGroup*>(context);
    if (bytes > kMostBytes) return SPARSESEL_INTERNAL;
    const uint64_t round = group.words_->posted[group.rank_].load();
    std::memcpy(group.words_->area[round % 2][group.rank_], send, bytes);
    group.words_->posted[group.rank_].store(round + 1);
    group.round_ = round;
    group.receive_ = static_cast<unsigned char*>(receive);
    group.bytes_ = bytes;
    *request = context;
    return SPARSESEL_OK;
  }
  static sparsesel_status Test(void* context, void*) {
    ProcessGroup& group = *static_cast<ProcessGroup*>(context);
    for (int r = 0; r < group.world_; ++r) {
      if (group.words_->posted[r].load() <= group.round_) return SPARSESEL_IN_PROGRESS;
    }
    for (int r = 0; r < group.world_; ++r) {
      std::memcpy(group.receive_ + static_cast<size_t>(r) * group.bytes_,
                  group.words_->area[group.round_ % 2][r], group.bytes_);
    }
    return SPARSESEL_OK;
  }
  static void Free(void*, void*) {}

  const int rank_;
  const int world_;
  SharedWords* words_ = nullptr;
  uint64_t round_ = 0;
  unsigned char* receive_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace sparsesel::testing

#endif  // SPARSESEL_TESTS_GPU_PROCESS_GROUP_H_
