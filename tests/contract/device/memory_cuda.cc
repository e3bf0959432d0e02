// Arrays in the memory of the current device, which all ranks of a test share.
#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>

#include "contract/device/cuda_check.h"
#include "contract/memory.h"

namespace contract {
namespace {

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
    // Neighbours that nobody has; if there are not so many, then from the first on.
    size_t first = 0;
    for (size_t start = 0; start + world <= kStreams; ++start) {
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
    for (void*& stream : streams_) {
      cudaStream_t made = nullptr;
      CHECK_CUDA(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
      stream = made;
    }
    // A queue may be found for a stream when it is first used.
    void* touched = nullptr;
    CHECK_CUDA(cudaMalloc(&touched, 1));
    for (void* stream : streams_) {
      CHECK_CUDA(cudaMemsetAsync(touched, 0, 1, static_cast<cudaStream_t>(stream)));
    }
    CHECK_CUDA(cudaDeviceSynchronize());
    CHECK_CUDA(cudaFree(touched));
  }

  std::mutex mutex_;
  std::array<void*, kStreams> streams_{};
  std::array<int, kStreams> uses_{};
};

// What the test's arrays are taken and given back on. Nothing goes back to the device before
// somebody asks for that (memory_test.cc).
cudaStream_t MemoryStream() {
  static const cudaStream_t stream = [] {
    cudaMemPool_t pool = nullptr;
    CHECK_CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
    uint64_t all = UINT64_MAX;
    CHECK_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
    cudaStream_t made = nullptr;
    CHECK_CUDA(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking));
    return made;
  }();
  return stream;
}

}  // namespace

// cudaFree waits for all that the device does, holding what other threads need to launch: with a
// rank of one group waiting there for another, that would stop both. So memory is taken and given
// back in the order of a stream, which waits for nothing else.
void* TakeMemory(size_t bytes) {
  void* memory = nullptr;
  CHECK_CUDA(cudaMallocAsync(&memory, std::max<size_t>(1, bytes), MemoryStream()));
  Synchronize(MemoryStream());
  return memory;
}

// From destructors: what is wrong shows in the next call that is checked.
void FreeMemory(void* memory) { (void)cudaFreeAsync(memory, MemoryStream()); }

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
