// Where the candidates and ids of a job lie: in this process's memory or on GPUs.
#ifndef SPARSESEL_TOOL_MEMORY_H_
#define SPARSESEL_TOOL_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "sparsesel.h"
#include "tool/dataset.h"
#include "tool/result.h"

namespace sparsesel_tool {

// What a kind of memory offers. Streams are null where calls are synchronous.
struct Memory {
  int32_t kind;  // SPARSESEL_MEMORY_...
  // Once, before any group is made; `devices` becomes the ordinal of each rank's device, or empty.
  Result (*begin)(int32_t world, std::vector<int32_t>* devices);
  // The calling thread works for this device from now on.
  Result (*use)(int32_t device);
  Result (*allocate)(size_t bytes, void** out);
  void (*release)(void* memory);
  Result (*copy_in)(void* to, const void* from, size_t bytes);
  Result (*copy_out)(void* to, const void* from, size_t bytes);
  Result (*make_stream)(void** stream);
  void (*release_stream)(void* stream);
  // Runs what `launch` puts into the stream, and waits for its end: on GPUs captured into a graph
  // and replayed. There `meet` is called in between, whether or not capturing went well: making a
  // graph may wait for the device, where no other rank may wait for this one yet.
  Result (*replay)(void* stream, const std::function<Result()>& launch,
                   const std::function<void()>& meet);
};

// Null if this build has no such device; `device` as in Job.
const Memory* MemoryOf(const std::string& device);
const Memory* CudaMemory();  // null in a build without CUDA

// A dataset in a kind of memory, with room for outputs and a stream for each rank.
class Placed {
 public:
  static Result Create(const Memory& memory, const Dataset& dataset, int32_t k,
                       const std::vector<int32_t>& devices, Placed* out);

  const Memory& memory() const { return *memory_; }
  Result Use(int32_t rank) const;  // at the beginning of each rank's thread
  // The arrays of one rank from row `first` on; out_ids is the rank's room for `rows` rows.
  sparsesel_io Io(int32_t rank, int32_t first, int32_t rows) const;
  void* stream(int32_t rank) const { return ranks_[static_cast<size_t>(rank)].stream.get(); }

 private:
  using Owned = std::unique_ptr<void, void (*)(void*)>;
  struct Rank {
    int32_t candidates = 0;
    Owned scores{nullptr, nullptr};
    Owned ids{nullptr, nullptr};
    Owned counts{nullptr, nullptr};
    Owned out{nullptr, nullptr};
    Owned stream{nullptr, nullptr};
  };
  Result Put(const void* from, size_t bytes, Owned* to) const;

  const Memory* memory_ = nullptr;
  std::vector<int32_t> devices_;
  std::vector<Rank> ranks_;
};

}  // namespace sparsesel_tool

#endif  // SPARSESEL_TOOL_MEMORY_H_
