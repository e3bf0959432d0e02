// The memory that groups keep their candidates and ids in: what the tests must know of it, and all
// that they do with it. Two programs are made of the same tests: in one groups are on host memory
// (memory_host.cc), in the other on a device's (device/memory_cuda.cc).
//
// Tags: [host] is for what only groups on host memory have, [device] for the others.
#ifndef SPARSESEL_TESTS_CONTRACT_MEMORY_H_
#define SPARSESEL_TESTS_CONTRACT_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sparsesel.h"

namespace contract {

#if defined(SPARSESEL_TEST_ON_DEVICE)
inline constexpr bool kOnDevice = true;
#else
inline constexpr bool kOnDevice = false;
#endif
inline constexpr int32_t kGroupMemory = kOnDevice ? SPARSESEL_MEMORY_DEVICE : SPARSESEL_MEMORY_HOST;

// The devices of a group's ranks: as many as SPARSESEL_TEST_DEVICES says, dealt round. Empty if
// that is not set, for the library's default, and on host memory.
std::vector<int32_t> DevicesOf(int32_t world);
// While it lives, the calling thread's current device is that of a rank.
class OnRank {
 public:
  explicit OnRank(int32_t rank);
  OnRank(const OnRank&) = delete;
  OnRank& operator=(const OnRank&) = delete;
  ~OnRank();

 private:
  int before_ = 0;
};

// All of these throw std::runtime_error with the failed call's name. Taking and freeing memory may
// wait for kernels, and a rank's kernels for its peers: so never while a rank executes for which
// another one, on the same thread or one that this thread is waited for by, has yet to.
void* TakeMemory(size_t bytes);  // of the current device
void FreeMemory(void* memory);
void TrimMemory();  // gives back what was kept to be taken again
void CopyIn(void* to, const void* from, size_t bytes);
void CopyOut(void* to, const void* from, size_t bytes);

// What a rank executes on; NULL on host memory. Those that one call gives do not wait for each
// other, and neither do those of other calls until they have been given back.
std::vector<void*> TakeStreams(int32_t world);
void GiveBackStreams(const std::vector<void*>& streams);
// Returns when all that was enqueued is done.
void Synchronize(void* stream);

// An array in the groups' memory.
template <typename T>
class Array {
 public:
  Array() = default;
  explicit Array(const std::vector<T>& values)
      : size_(values.size()), data_(static_cast<T*>(TakeMemory(size_ * sizeof(T)))) {
    Write(values);
  }
  Array(size_t size, T value) : Array(std::vector<T>(size, value)) {}
  Array(Array&& other) noexcept
      : size_(std::exchange(other.size_, 0)), data_(std::exchange(other.data_, nullptr)) {}
  Array& operator=(Array&& other) noexcept {
    std::swap(size_, other.size_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~Array() {
    if (data_ != nullptr) FreeMemory(data_);
  }

  T* data() const { return data_; }
  size_t size() const { return size_; }
  void Write(const std::vector<T>& values) { CopyIn(data_, values.data(), size_ * sizeof(T)); }
  std::vector<T> Read() const {
    std::vector<T> values(size_);
    CopyOut(values.data(), data_, size_ * sizeof(T));
    return values;
  }

 private:
  size_t size_ = 0;
  T* data_ = nullptr;
};

}  // namespace contract

#endif  // SPARSESEL_TESTS_CONTRACT_MEMORY_H_
