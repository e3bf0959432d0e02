#include "tool/replay.h"

#include <algorithm>
#include <atomic>

namespace sparsesel_tool {
namespace {

constexpr int32_t kPoison = 0x5a5a5a5a;

int64_t CountWrong(const std::vector<int32_t>& ids, const int32_t* expected) {
  int64_t wrong = 0;
  for (size_t i = 0; i < ids.size(); ++i) wrong += ids[i] != expected[i];
  return wrong;
}

}  // namespace

sparsesel_io InputOf(const Dataset& dataset, int32_t rank, int32_t first, int32_t rows) {
  const RankLists& lists = dataset.ranks[static_cast<size_t>(rank)];
  const size_t offset = static_cast<size_t>(first) * static_cast<size_t>(lists.candidates);
  sparsesel_io io = SPARSESEL_IO_INIT;
  io.rows = rows;
  io.scores = lists.scores.data() + offset;
  io.ids = lists.ids.data() + offset;
  io.counts = lists.counts.empty() ? nullptr : lists.counts.data() + first;
  return io;
}

Result Replay(const Group& group, const Dataset& dataset, const Truth& truth, int32_t k,
              const std::vector<int32_t>& capacities, int32_t executes,
              const std::vector<Binding>& bindings, ReplayCount* count) {
  std::atomic<int64_t> wrong{0};
  std::atomic<int64_t> compared{0};
  const Result result = group.Run([&](int32_t rank) -> Result {
    sparsesel_error error = SPARSESEL_ERROR_INIT;
    std::vector<int32_t> out;
    for (const int32_t capacity : capacities) {
      const int32_t rows = std::min(capacity, dataset.rows);
      for (int32_t i = 0; i < executes; ++i) {
        const int32_t first = i % (dataset.rows - rows + 1);
        out.assign(static_cast<size_t>(rows) * static_cast<size_t>(k), kPoison);
        sparsesel_io io = InputOf(dataset, rank, first, rows);
        io.out_ids = out.data();
        io.tag = static_cast<uint64_t>(i);
        const sparsesel_status status =
            sparsesel_execute(bindings[static_cast<size_t>(rank)].get(), &io, nullptr, &error);
        if (status != SPARSESEL_OK) return LibraryResult("execute", status, error);
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
