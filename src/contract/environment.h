// What the caller may replace: allocation, log and clock; and the one way the library takes memory
// whose size depends on the problem.
#ifndef SPARSESEL_CONTRACT_ENVIRONMENT_H_
#define SPARSESEL_CONTRACT_ENVIRONMENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "contract/status.h"
#include "sparsesel.h"

namespace sparsesel {

struct Environment {
  sparsesel_allocator allocator{};  // null functions: the process allocator (host), cudaMalloc
  sparsesel_logger logger{};        // null: silent
  sparsesel_clock clock{};          // null: the monotonic clock
  int32_t rank = 0;

  int64_t Now() const;  // ns
  void Log(int32_t level, const char* text) const;
};

// A span of memory from an Environment's allocator, zeroed when taken if it is host memory.
// Move-only. Keeps a copy of the environment, so it may outlive the comm.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  // OUT_OF_MEMORY names the tag and size. `tag` is static storage. bytes == 0 gives an empty
  // buffer.
  static Status Take(const Environment& environment, int32_t memory, size_t bytes, const char* tag,
                     Buffer* out);

  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  std::span<std::byte> span() const { return {data_, size_}; }

 private:
  Environment environment_;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  int32_t memory_ = SPARSESEL_MEMORY_HOST;
  const char* tag_ = nullptr;
};

// Keeps memory that a peer may still read, until the process ends.
void Abandon(std::shared_ptr<Buffer> memory);

inline constexpr size_t kBufferAlignment = 256;

}  // namespace sparsesel

#endif  // SPARSESEL_CONTRACT_ENVIRONMENT_H_
