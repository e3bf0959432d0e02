#include "contract/environment.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#if defined(SPARSESEL_HAS_CUDA)
#include <cuda_runtime_api.h>
#endif

namespace sparsesel {
namespace {

const char* MemoryName(int32_t memory) {
  switch (memory) {
    case SPARSESEL_MEMORY_HOST:
      return "host";
    case SPARSESEL_MEMORY_DEVICE:
      return "device";
    case SPARSESEL_MEMORY_PINNED:
      return "pinned";
    default:
      return "unknown";
  }
}

void* DefaultAllocate(int32_t memory, size_t bytes) {
  if (memory == SPARSESEL_MEMORY_HOST) {
    // aligned_alloc wants a multiple of the alignment.
    const size_t padded = (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
    return padded < bytes ? nullptr : std::aligned_alloc(kBufferAlignment, padded);
  }
#if defined(SPARSESEL_HAS_CUDA)
  void* pointer = nullptr;
  const cudaError_t error = memory == SPARSESEL_MEMORY_DEVICE
                                ? cudaMalloc(&pointer, bytes)
                                : cudaHostAlloc(&pointer, bytes, cudaHostAllocDefault);
  if (error == cudaSuccess) return pointer;
  (void)cudaGetLastError();  // else the caller's next check finds our failure
#endif
  return nullptr;
}

void DefaultDeallocate(int32_t memory, void* pointer) {
  if (memory == SPARSESEL_MEMORY_HOST) {
    std::free(pointer);
    return;
  }
#if defined(SPARSESEL_HAS_CUDA)
  (void)(memory == SPARSESEL_MEMORY_DEVICE ? cudaFree(pointer) : cudaFreeHost(pointer));
#endif
}

// Callbacks must not throw, but one that does must not end the process.
void* Allocate(const Environment& environment, int32_t memory, size_t bytes, const char* tag) {
  const sparsesel_allocator& allocator = environment.allocator;
  if (allocator.allocate == nullptr) return DefaultAllocate(memory, bytes);
  try {
    return allocator.allocate(allocator.context, memory, bytes, kBufferAlignment, tag);
  } catch (...) {
    return nullptr;
  }
}

void Deallocate(const Environment& environment, int32_t memory, void* pointer, size_t bytes,
                const char* tag) {
  const sparsesel_allocator& allocator = environment.allocator;
  if (allocator.allocate == nullptr) {
    DefaultDeallocate(memory, pointer);
    return;
  }
  if (allocator.deallocate == nullptr) return;
  try {
    allocator.deallocate(allocator.context, memory, pointer, bytes, kBufferAlignment, tag);
  } catch (...) {
    environment.Log(SPARSESEL_LOG_ERROR, "the allocator's deallocate threw an exception");
  }
}

}  // namespace

int64_t Environment::Now() const {
  if (clock.now == nullptr) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  try {
    return clock.now(clock.context);
  } catch (...) {
    return INT64_MAX;  // every deadline is over: waits end instead of lasting for ever
  }
}

void Environment::Log(int32_t level, const char* text) const {
  if (logger.log == nullptr) return;
  try {
    logger.log(logger.context, level, rank, text);
  } catch (...) {
    // There is nobody left to tell.
  }
}

Buffer::Buffer(Buffer&& other) noexcept { *this = std::move(other); }

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  if (data_ != nullptr) Deallocate(environment_, memory_, data_, size_, tag_);
  environment_ = other.environment_;
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  memory_ = other.memory_;
  tag_ = other.tag_;
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) Deallocate(environment_, memory_, data_, size_, tag_);
}

Status Buffer::Take(const Environment& environment, int32_t memory, size_t bytes, const char* tag,
                    Buffer* out) {
  Buffer buffer;
  if (bytes > 0) {
    void* const pointer = Allocate(environment, memory, bytes, tag);
    if (pointer == nullptr) {
      return Status::Error(SPARSESEL_OUT_OF_MEMORY,
                           "%u bytes of %s memory for %s are not to be had", bytes,
                           MemoryName(memory), tag);
    }
    buffer.environment_ = environment;
    buffer.data_ = static_cast<std::byte*>(pointer);
    buffer.size_ = bytes;
    buffer.memory_ = memory;
    buffer.tag_ = tag;
    if (reinterpret_cast<uintptr_t>(pointer) % kBufferAlignment != 0) {
      return Status::Error(SPARSESEL_INTERNAL, "the allocator's memory for %s is not aligned to %u",
                           tag, kBufferAlignment);
    }
    if (memory != SPARSESEL_MEMORY_DEVICE) std::memset(pointer, 0, bytes);
  }
  *out = std::move(buffer);
  return {};
}

void Abandon(std::shared_ptr<Buffer> memory) {
  // Never destroyed: whoever still reads it belongs to a group that has failed.
  static auto& abandoned = *new std::vector<std::shared_ptr<Buffer>>;
  static auto& mutex = *new std::mutex;
  const std::lock_guard lock(mutex);
  abandoned.push_back(std::move(memory));
}

}  // namespace sparsesel
