#include "tool/memory.h"

#include <cstdlib>
#include <cstring>
#include <utility>

namespace sparsesel_tool {
namespace {

Result Copy(void* to, const void* from, size_t bytes) {
  std::memcpy(to, from, bytes);
  return {};
}

const Memory& HostMemory() {
  static constexpr Memory memory = {
      SPARSESEL_MEMORY_HOST,
      [](int32_t, std::vector<int32_t>*) { return Result(); },
      [](int32_t) { return Result(); },
      [](size_t bytes, void** out) {
        *out = std::malloc(bytes);
        return *out == nullptr ? Failure("there is not enough memory for this job") : Result();
      },
      std::free,
      Copy,
      Copy,
      [](void** stream) {
        *stream = nullptr;
        return Result();
      },
      [](void*) {},
      [](void*, const std::function<Result()>& launch, const std::function<void()>&) {
        return launch();
      },
  };
  return memory;
}

}  // namespace

#if !defined(SPARSESEL_TOOL_HAS_CUDA)
const Memory* CudaMemory() { return nullptr; }
#endif

const Memory* MemoryOf(const std::string& device) {
  return device == "cuda" ? CudaMemory() : &HostMemory();
}

Result Placed::Put(const void* from, size_t bytes, Owned* to) const {
  void* memory = nullptr;
  if (Result r = memory_->allocate(bytes, &memory); !r.ok()) return r;
  *to = Owned(memory, memory_->release);
  return from == nullptr ? Result() : memory_->copy_in(memory, from, bytes);
}

Result Placed::Create(const Memory& memory, const Dataset& dataset, int32_t k,
                      const std::vector<int32_t>& devices, Placed* out) {
  Placed made;
  made.memory_ = &memory;
  made.devices_ = devices;
  for (const RankLists& lists : dataset.ranks) {
    made.ranks_.emplace_back();
    const auto number = static_cast<int32_t>(made.ranks_.size()) - 1;
    if (Result r = made.Use(number); !r.ok()) return r;
    Rank& rank = made.ranks_.back();
    rank.candidates = lists.candidates;
    Result r = made.Put(lists.scores.data(), lists.scores.size() * sizeof(float), &rank.scores);
    if (r.ok()) r = made.Put(lists.ids.data(), lists.ids.size() * sizeof(int32_t), &rank.ids);
    if (r.ok() && !lists.counts.empty()) {
      r = made.Put(lists.counts.data(), lists.counts.size() * sizeof(int32_t), &rank.counts);
    }
    if (r.ok()) {
      r = made.Put(nullptr,
                   static_cast<size_t>(dataset.rows) * static_cast<size_t>(k) * sizeof(int32_t),
                   &rank.out);
    }
    void* stream = nullptr;
    if (r.ok()) r = memory.make_stream(&stream);
    if (!r.ok()) return r;
    rank.stream = Owned(stream, memory.release_stream);
  }
  *out = std::move(made);
  return {};
}

Result Placed::Use(int32_t rank) const {
  return devices_.empty() ? Result() : memory_->use(devices_[static_cast<size_t>(rank)]);
}

sparsesel_io Placed::Io(int32_t rank, int32_t first, int32_t rows) const {
  const Rank& own = ranks_[static_cast<size_t>(rank)];
  const int64_t offset = int64_t{first} * own.candidates;
  sparsesel_io io = SPARSESEL_IO_INIT;
  io.rows = rows;
  io.scores = static_cast<const float*>(own.scores.get()) + offset;
  io.ids = static_cast<const int32_t*>(own.ids.get()) + offset;
  if (own.counts != nullptr) io.counts = static_cast<const int32_t*>(own.counts.get()) + first;
  io.out_ids = static_cast<int32_t*>(own.out.get());
  return io;
}

}  // namespace sparsesel_tool
