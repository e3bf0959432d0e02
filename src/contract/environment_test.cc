#include "contract/environment.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace sparsesel {
namespace {

struct Counts {
  int64_t taken = 0;
  int64_t given_back = 0;
  size_t misalign = 0;
};

void* Allocate(void* context, int32_t, size_t bytes, size_t alignment, const char*) {
  auto& counts = *static_cast<Counts*>(context);
  if (bytes > 1 << 20) return nullptr;
  ++counts.taken;
  void* const pointer =
      std::aligned_alloc(alignment, (bytes + 2 * alignment) / alignment * alignment);
  std::memset(pointer, 0xee, bytes);
  return static_cast<char*>(pointer) + counts.misalign;
}

void Deallocate(void* context, int32_t, void* pointer, size_t, size_t, const char*) {
  auto& counts = *static_cast<Counts*>(context);
  ++counts.given_back;
  std::free(static_cast<char*>(pointer) - counts.misalign);
}

Environment Counting(Counts* counts) {
  Environment environment;
  environment.allocator = {counts, Allocate, Deallocate};
  return environment;
}

TEST_CASE("a buffer is zeroed, aligned, and given back once") {
  Counts counts;
  {
    Buffer buffer;
    REQUIRE(Buffer::Take(Counting(&counts), SPARSESEL_MEMORY_HOST, 1000, "test", &buffer).ok());
    REQUIRE(buffer.size() == 1000);
    REQUIRE(reinterpret_cast<uintptr_t>(buffer.data()) % kBufferAlignment == 0);
    REQUIRE(std::all_of(buffer.span().begin(), buffer.span().end(),
                        [](std::byte b) { return b == std::byte{0}; }));
    Buffer moved = std::move(buffer);
    REQUIRE(moved.size() == 1000);
    REQUIRE(Buffer::Take(Counting(&counts), SPARSESEL_MEMORY_HOST, 10, "test", &moved).ok());
    REQUIRE(counts.given_back == 1);
  }
  REQUIRE(counts.taken == 2);
  REQUIRE(counts.given_back == 2);
}

TEST_CASE("a buffer from the process allocator") {
  Buffer buffer;
  REQUIRE(Buffer::Take({}, SPARSESEL_MEMORY_HOST, 1, "test", &buffer).ok());
  REQUIRE(buffer.data()[0] == std::byte{0});
  REQUIRE(Buffer::Take({}, SPARSESEL_MEMORY_HOST, 0, "test", &buffer).ok());
  REQUIRE(buffer.data() == nullptr);
  REQUIRE(buffer.size() == 0);
}

TEST_CASE("memory that is not to be had is named") {
  Counts counts;
  Buffer buffer;
  const Status status =
      Buffer::Take(Counting(&counts), SPARSESEL_MEMORY_HOST, 1 << 21, "inbox", &buffer);
  REQUIRE(status.code() == SPARSESEL_OUT_OF_MEMORY);
  REQUIRE_THAT(status.text(), Catch::Contains("2097152 bytes of host memory for inbox"));
  REQUIRE(Buffer::Take({}, SPARSESEL_MEMORY_HOST, SIZE_MAX, "inbox", &buffer).code() ==
          SPARSESEL_OUT_OF_MEMORY);
}

TEST_CASE("an allocator that does not align is found out") {
  Counts counts{.misalign = 8};
  Buffer buffer;
  REQUIRE(Buffer::Take(Counting(&counts), SPARSESEL_MEMORY_HOST, 64, "test", &buffer).code() ==
          SPARSESEL_INTERNAL);
  REQUIRE(counts.given_back == 1);
}

TEST_CASE("callbacks that throw end nothing", "[bug_H01]") {
  Environment environment;
  environment.allocator = {nullptr,
                           [](void*, int32_t, size_t, size_t, const char*) -> void* { throw 1; },
                           [](void*, int32_t, void*, size_t, size_t, const char*) { throw 1; }};
  environment.logger = {nullptr, [](void*, int32_t, int32_t, const char*) { throw 1; }};
  environment.clock = {nullptr, [](void*) -> int64_t { throw 1; }};
  Buffer buffer;
  REQUIRE(Buffer::Take(environment, SPARSESEL_MEMORY_HOST, 64, "test", &buffer).code() ==
          SPARSESEL_OUT_OF_MEMORY);
  environment.Log(SPARSESEL_LOG_ERROR, "unheard");
  REQUIRE(environment.Now() == INT64_MAX);
}

TEST_CASE("the clock and the logger are the caller's") {
  struct Context {
    int64_t now = 41;
    std::string log;
  } context;
  Environment environment;
  environment.rank = 3;
  environment.clock = {&context, [](void* c) { return ++static_cast<Context*>(c)->now; }};
  environment.logger = {&context, [](void* c, int32_t level, int32_t rank, const char* text) {
                          static_cast<Context*>(c)->log =
                              std::to_string(level) + std::to_string(rank) + text;
                        }};
  REQUIRE(environment.Now() == 42);
  environment.Log(SPARSESEL_LOG_INFO, "said");
  REQUIRE(context.log == "33said");
  const Environment own;
  const int64_t first = own.Now();
  REQUIRE(own.Now() >= first);
}

}  // namespace
}  // namespace sparsesel
