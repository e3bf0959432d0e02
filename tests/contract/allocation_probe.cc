#include "contract/allocation_probe.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "contract/group_fixture.h"

namespace contract {
namespace {

// Trivial, so that using them allocates nothing.
thread_local int64_t* counting = nullptr;
thread_local int64_t* failing = nullptr;
std::atomic<int64_t> live{0};

// Called for every allocation; false if it is to fail.
bool Permit() {
  if (counting != nullptr) ++*counting;
  return failing == nullptr || --*failing != 0;
}

}  // namespace

AllocationCount::AllocationCount() : outer_(counting) { counting = &count_; }
AllocationCount::~AllocationCount() {
  counting = outer_;
  if (outer_ != nullptr) *outer_ += count_;
}

AllocationPause::AllocationPause() : count_(counting), countdown_(failing) {
  counting = nullptr;
  failing = nullptr;
}
AllocationPause::~AllocationPause() {
  counting = count_;
  failing = countdown_;
}

AllocationFailure::AllocationFailure(int64_t nth) : countdown_(nth), outer_(failing) {
  failing = &countdown_;
}
AllocationFailure::~AllocationFailure() { failing = outer_; }

int64_t LiveAllocations() { return live; }

// What is kept in front of a block, to be compared when it is freed.
struct alignas(16) BlockNote {
  size_t bytes;
  size_t alignment;
  const char* tag;
  void* block;
};

sparsesel_allocator CountingAllocator::callbacks() { return {this, Allocate, Deallocate}; }

void* CountingAllocator::Allocate(void* context, int32_t memory, size_t bytes, size_t alignment,
                                  const char* tag) {
  const AllocationPause pause;
  auto* const self = static_cast<CountingAllocator*>(context);
  ++self->calls_;
  if (self->fail_in_ > 0 && --self->fail_in_ == 0) return nullptr;
  if (memory != SPARSESEL_MEMORY_HOST || tag == nullptr) return nullptr;
  auto* const block = static_cast<char*>(std::malloc(bytes + alignment + sizeof(BlockNote)));
  if (block == nullptr) return nullptr;
  const auto first = reinterpret_cast<uintptr_t>(block) + sizeof(BlockNote);
  const uintptr_t aligned = (first + alignment - 1) / alignment * alignment;
  const BlockNote note{bytes, alignment, tag, block};
  std::memcpy(reinterpret_cast<char*>(aligned) - sizeof(note), &note, sizeof(note));
  // Nothing may count on zeros.
  std::memset(reinterpret_cast<char*>(aligned), 0xa5, bytes);
  const int64_t now = self->live_bytes_ += static_cast<int64_t>(bytes);
  int64_t peak = self->peak_bytes_;
  while (peak < now && !self->peak_bytes_.compare_exchange_weak(peak, now)) {
  }
  return reinterpret_cast<void*>(aligned);
}

void CountingAllocator::Deallocate(void* context, int32_t memory, void* pointer, size_t bytes,
                                   size_t alignment, const char* tag) {
  const AllocationPause pause;
  auto* const self = static_cast<CountingAllocator*>(context);
  BlockNote note;
  std::memcpy(&note, static_cast<char*>(pointer) - sizeof(note), sizeof(note));
  self->wrong_frees_ += memory != SPARSESEL_MEMORY_HOST || note.bytes != bytes ||
                        note.alignment != alignment || note.tag != tag;
  self->live_bytes_ -= static_cast<int64_t>(note.bytes);
  std::free(note.block);
}

}  // namespace contract

#define EXPORTED __attribute__((visibility("default")))

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

// The C library's own names for its allocator, under which it stays reachable.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* block, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* block);
void* memalign(size_t alignment, size_t bytes) noexcept;

EXPORTED void* malloc(size_t bytes) noexcept {
  if (!contract::Permit()) return nullptr;
  ++contract::live;
  return __libc_malloc(bytes);
}
EXPORTED void* calloc(size_t count, size_t bytes) noexcept {
  if (!contract::Permit()) return nullptr;
  ++contract::live;
  return __libc_calloc(count, bytes);
}
EXPORTED void* realloc(void* block, size_t bytes) noexcept {
  if (!contract::Permit()) return nullptr;
  if (block == nullptr) ++contract::live;
  return __libc_realloc(block, bytes);
}
EXPORTED void* memalign(size_t alignment, size_t bytes) noexcept {
  if (!contract::Permit()) return nullptr;
  ++contract::live;
  return __libc_memalign(alignment, bytes);
}
EXPORTED void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  return memalign(alignment, bytes);
}
EXPORTED int posix_memalign(void** block, size_t alignment, size_t bytes) noexcept {
  *block = memalign(alignment, bytes);
  return *block == nullptr ? ENOMEM : 0;
}
EXPORTED void free(void* block) noexcept {
  if (block != nullptr) --contract::live;
  __libc_free(block);
}
}  // extern "C"

#else

// A sanitizer has malloc; operator new is left.
namespace {

void* New(size_t bytes, size_t alignment) {
  if (!contract::Permit()) return nullptr;
  void* block = nullptr;
  if (alignment <= 16) {
    block = std::malloc(bytes == 0 ? 1 : bytes);
  } else if (posix_memalign(&block, alignment, bytes) != 0) {
    return nullptr;
  }
  ++contract::live;
  return block;
}

void* NewOrThrow(size_t bytes, size_t alignment) {
  void* const block = New(bytes, alignment);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

void Delete(void* block) {
  if (block != nullptr) --contract::live;
  std::free(block);
}

}  // namespace

EXPORTED void* operator new(size_t bytes) { return NewOrThrow(bytes, 1); }
EXPORTED void* operator new[](size_t bytes) { return NewOrThrow(bytes, 1); }
EXPORTED void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return New(bytes, 1); }
EXPORTED void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  return New(bytes, 1);
}
EXPORTED void* operator new(size_t bytes, std::align_val_t alignment) {
  return NewOrThrow(bytes, static_cast<size_t>(alignment));
}
EXPORTED void* operator new[](size_t bytes, std::align_val_t alignment) {
  return NewOrThrow(bytes, static_cast<size_t>(alignment));
}
EXPORTED void operator delete(void* block) noexcept { Delete(block); }
EXPORTED void operator delete[](void* block) noexcept { Delete(block); }
EXPORTED void operator delete(void* block, size_t) noexcept { Delete(block); }
EXPORTED void operator delete[](void* block, size_t) noexcept { Delete(block); }
EXPORTED void operator delete(void* block, std::align_val_t) noexcept { Delete(block); }
EXPORTED void operator delete[](void* block, std::align_val_t) noexcept { Delete(block); }
EXPORTED void operator delete(void* block, size_t, std::align_val_t) noexcept { Delete(block); }
EXPORTED void operator delete[](void* block, size_t, std::align_val_t) noexcept { Delete(block); }

#endif
