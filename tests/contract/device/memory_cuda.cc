// Arrays in the memory of the current device, which all ranks of a test share.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "contract/device/cuda_check.h"
#include "contract/memory.h"

namespace contract {
namespace {

int32_t TestDevices() {
  static const int32_t devices = [] {
    const char* const asked = std::getenv("SPARSESEL_TEST_DEVICES");
    return asked == nullptr ? 1 : std::max(1, std::atoi(asked));
  }();
  return devices;
}

int32_t DeviceOf(size_t rank) { return static_cast<int32_t>(rank) % TestDevices(); }

// Ranks that share a device wait for each other: each must have a hardware queue of its own, and
// streams are dealt to the queues in the order in which they are made. So as many are made as there
// may be queues, at once and for ever, and groups that live at a time get different ones.
class StreamPool {
 public:
  static StreamPool& Get() {
    static auto& pool = *new StreamPool;  // never destroyed: at exit the driver may be gone
    return pool;
  }

  std::vector<void*> Take(size_t world) {
    const std::lock_guard lock(mutex_);
    // Neighbours that nobody has, the first of them on the first device; if there are not so many,
    // then from the first on.
    size_t first = 0;
    for (size_t start = 0; start + world <= kStreams; start += static_cast<size_t>(TestDevices())) {
      const auto begin = uses_.begin() + static_cast<ptrdiff_t>(start);
      if (std::all_of(begin, begin + static_cast<ptrdiff_t>(world),
                      [](int uses) { return uses == 0; })) {
        first = start;
        break;
      }
    }
    std::vector<void*> taken;
    for (size_t i = 0; i < world; ++i) {
      const size_t at = (first + i) % kStreams;
      ++uses_[at];
      taken.push_back(streams_[at]);
    }
    return taken;
  }

  void GiveBack(const std::vector<void*>& streams) {
    const std::lock_guard lock(mutex_);
    for (void* stream : streams) {
      --uses_[static_cast<size_t>(std::find(streams_.begin(), streams_.end(), stream) -
                                  streams_.begin())];
    }
  }

 private:
  static constexpr size_t kStreams = 32;

  StreamPool() {
    for (size_t i = 0; i < kStreams; ++i) {
      const OnRank on(static_cast<int32_t>(i));
      cudaStream_t made = nullptr;
      CHECK_CUDA(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
      streams_[i] = made;
    }
  }

  std::mutex mutex_;
  std::array<void*, kStreams> streams_{};
  std::array<int, kStreams> uses_{};
};

// Blocks that tests gave back, by device and size. cudaFree waits for all that the device does,
// holding what other threads need to launch: with a rank of one group waiting there for another,
// that would stop both. So blocks are kept, but for large ones.
class Blocks {
 public:
  static Blocks& Get() {
    static auto& blocks = *new Blocks;  // never destroyed: at exit the driver may be gone
    return blocks;
  }

  void* Take(size_t bytes) {
    const size_t size = std::bit_ceil(std::max<size_t>(kLeast, bytes));
    if (size > kMost) return Allocate(bytes);
    int device = 0;
    CHECK_CUDA(cudaGetDevice(&device));
    const std::lock_guard lock(mutex_);
    std::vector<void*>& free = free_[{device, size}];
    void* block = free.empty() ? Allocate(size) : free.back();
    if (!free.empty()) free.pop_back();
    kinds_[block] = {device, size};
    return block;
  }
  void GiveBack(void* block) {
    const std::lock_guard lock(mutex_);
    const auto it = kinds_.find(block);
    if (it == kinds_.end()) {
      (void)cudaFree(block);  // what is wrong shows in the next call that is checked
    } else {
      free_[it->second].push_back(block);
      kinds_.erase(it);
    }
  }
  void Trim() {
    const std::lock_guard lock(mutex_);
    for (const auto& [kind, free] : free_) {
      for (void* block : free) CHECK_CUDA(cudaFree(block));
    }
    free_.clear();
  }

 private:
  static constexpr size_t kLeast = 512;
  static constexpr size_t kMost = size_t{64} << 20;

  static void* Allocate(size_t bytes) {
    void* block = nullptr;
    CHECK_CUDA(cudaMalloc(&block, bytes));
    return block;
  }

  std::mutex mutex_;
  using Kind = std::pair<int, size_t>;  // device, size
  std::map<void*, Kind> kinds_;         // of the blocks that are out
  std::map<Kind, std::vector<void*>> free_;
};

}  // namespace

std::vector<int32_t> DevicesOf(int32_t world) {
  std::vector<int32_t> devices;
  if (TestDevices() == 1) return devices;
  for (size_t rank = 0; rank < static_cast<size_t>(world); ++rank) {
    devices.push_back(DeviceOf(rank));
  }
  return devices;
}

OnRank::OnRank(int32_t rank) {
  CHECK_CUDA(cudaGetDevice(&before_));
  CHECK_CUDA(cudaSetDevice(DeviceOf(static_cast<size_t>(rank))));
}
OnRank::~OnRank() { (void)cudaSetDevice(before_); }

void* TakeMemory(size_t bytes) { return Blocks::Get().Take(bytes); }
void FreeMemory(void* memory) { Blocks::Get().GiveBack(memory); }
void TrimMemory() { Blocks::Get().Trim(); }

void CopyIn(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  CHECK_CUDA(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
  // A copy of pageable memory returns when that has been read; other streams do not wait for more.
  CHECK_CUDA(cudaStreamSynchronize(cudaStreamLegacy));
}

void CopyOut(void* to, const void* from, size_t bytes) {
  if (bytes > 0) CHECK_CUDA(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
}

std::vector<void*> TakeStreams(int32_t world) {
  return StreamPool::Get().Take(static_cast<size_t>(world));
}

void GiveBackStreams(const std::vector<void*>& streams) { StreamPool::Get().GiveBack(streams); }

void Synchronize(void* stream) {
  CHECK_CUDA(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)));
}

}  // namespace contract
