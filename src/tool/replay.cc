#include "tool/replay.h"

#include <algorithm>
#include <atomic>
#include <barrier>

namespace sparsesel_tool {
namespace {

constexpr int32_t kPoison = 0x5a5a5a5a;

int64_t CountWrong(const std::vector<int32_t>& ids, const int32_t* expected) {
  int64_t wrong = 0;
  for (size_t i = 0; i < ids.size(); ++i) wrong += ids[i] != expected[i];
  return wrong;
}

// A rank that is done, or has failed, is waited for no more.
class Leaving {
 public:
  explicit Leaving(std::barrier<>* ranks) : ranks_(ranks) {}
  ~Leaving() { ranks_->arrive_and_drop(); }
  Leaving(const Leaving&) = delete;
  Leaving& operator=(const Leaving&) = delete;

 private:
  std::barrier<>* const ranks_;
};

}  // namespace

Result Replay(const Group& group, const Placed& placed, int32_t dataset_rows, const Truth& truth,
              int32_t k, const std::vector<int32_t>& capacities, int32_t executes,
              const std::vector<Binding>& bindings, ReplayCount* count) {
  std::atomic<int64_t> wrong{0};
  std::atomic<int64_t> compared{0};
  std::barrier<> ranks(group.world());
  Result result = group.Run([&](int32_t rank) -> Result {
    const Leaving leaving(&ranks);
    if (Result r = placed.Use(rank); !r.ok()) return r;
    void* const stream = placed.stream(rank);
    const auto meet = [&] { ranks.arrive_and_wait(); };
    std::vector<int32_t> out;
    for (const int32_t capacity : capacities) {
      const int32_t rows = std::min(capacity, dataset_rows);
      for (int32_t i = 0; i < executes; ++i) {
        const int32_t first = i % (dataset_rows - rows + 1);
        out.assign(static_cast<size_t>(rows) * static_cast<size_t>(k), kPoison);
        sparsesel_io io = placed.Io(rank, first, rows);
        io.tag = static_cast<uint64_t>(i);
        const size_t bytes = out.size() * sizeof(int32_t);
        if (Result r = placed.memory().copy_in(io.out_ids, out.data(), bytes); !r.ok()) return r;
        const auto launch = [&]() -> Result {
          sparsesel_error error = SPARSESEL_ERROR_INIT;
          const sparsesel_status status =
              sparsesel_execute(bindings[static_cast<size_t>(rank)].get(), &io, stream, &error);
          return LibraryResult("execute", status, error);
        };
        if (Result r = placed.memory().replay(stream, launch, meet); !r.ok()) return r;
        if (Result r = placed.memory().copy_out(out.data(), io.out_ids, bytes); !r.ok()) return r;
        wrong += CountWrong(out, truth.ids.data() + int64_t{first} * k);
        compared += rows;
      }
    }
    return {};
  });
  count->executes += static_cast<int64_t>(capacities.size()) * executes;
  count->rows += compared;
  count->wrong_ids += wrong;
  return result;
}

}  // namespace sparsesel_tool
