#include "stages/host/pack.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace sparsesel {
namespace {

constexpr Record kAbsent{0, -1};

Status BeyondInt32(const char* what, int32_t id, int64_t row, int32_t position) {
  return Status::Error(SPARSESEL_INVALID_ARGUMENT,
                       "%s %d of row %d, position %d, maps to a global id beyond int32", what, id,
                       row, position);
}

int32_t PresentCount(const Problem& problem, const PackInput& input, int64_t row) {
  if (input.counts == nullptr) return problem.candidates;
  return std::clamp(input.counts[row], 0, problem.candidates);
}

Status PackPairs(const Problem& problem, const PackInput& input, int64_t row, int32_t count,
                 Record* records) {
  const float* scores = input.scores + row * input.score_stride;
  const int32_t* ids = input.ids + row * input.id_stride;
  if (problem.id_map.kind == SPARSESEL_ID_IDENTITY) {
    for (int32_t i = 0; i < count; ++i) {
      const bool present = ids[i] >= 0;
      records[i] = {present ? std::bit_cast<uint32_t>(scores[i]) : 0u, present ? ids[i] : -1};
    }
    return {};
  }
  for (int32_t i = 0; i < count; ++i) {
    if (ids[i] < 0) {
      records[i] = kAbsent;
      continue;
    }
    const int64_t id = MapId(problem.id_map, ids[i]);
    if (id > std::numeric_limits<int32_t>::max()) return BeyondInt32("id", ids[i], row, i);
    records[i] = {std::bit_cast<uint32_t>(scores[i]), static_cast<int32_t>(id)};
  }
  return {};
}

Status PackPositions(const Problem& problem, const PackInput& input, int64_t row, int32_t count,
                     Record* records) {
  const float* scores = input.scores + row * input.score_stride;
  const int32_t* positions = input.ids + row * input.id_stride;
  const int64_t start = input.row_starts == nullptr ? 0 : input.row_starts[row];
  for (int32_t i = 0; i < count; ++i) {
    if (positions[i] < 0) {
      records[i] = kAbsent;
      continue;
    }
    const int64_t at = start + positions[i];
    if (at < 0 || at >= problem.score_row_length) {
      return Status::Error(SPARSESEL_INVALID_ARGUMENT,
                           "row %d, candidate %d: score position %d is outside the row of %d", row,
                           i, at, problem.score_row_length);
    }
    const int64_t id = MapId(problem.id_map, positions[i]);
    if (id > std::numeric_limits<int32_t>::max()) {
      return BeyondInt32("position", positions[i], row, i);
    }
    records[i] = {std::bit_cast<uint32_t>(scores[at]), static_cast<int32_t>(id)};
  }
  return {};
}

struct Item {
  uint64_t key;
  uint32_t position;
};

bool Before(const Item& a, const Item& b) {
  return a.key != b.key ? a.key > b.key : a.position < b.position;
}

bool InOrder(std::span<const Record> list) {
  uint64_t previous = ~uint64_t{0};
  for (const Record record : list) {
    const uint64_t key = CandidateKey(record);
    if (key > previous) return false;
    previous = key;
  }
  return true;
}

}  // namespace

Status PackRow(const Problem& problem, const PackInput& input, int64_t row, Record* records) {
  const int32_t count = PresentCount(problem, input, row);
  SPARSESEL_RETURN_IF_ERROR(problem.input_kind == SPARSESEL_INPUT_POSITIONS
                                ? PackPositions(problem, input, row, count, records)
                                : PackPairs(problem, input, row, count, records));
  std::fill(records + count, records + problem.candidates, kAbsent);
  return {};
}

size_t SortListScratchBytes(int32_t length) {
  return static_cast<size_t>(length) * (sizeof(Item) + sizeof(Record));
}

void SortList(std::span<Record> list, int32_t top, std::span<std::byte> scratch) {
  if (InOrder(list)) return;
  const size_t length = list.size();
  const std::span<Item> items(reinterpret_cast<Item*>(scratch.data()), length);
  const std::span<Record> copy(reinterpret_cast<Record*>(items.data() + length), length);
  std::copy(list.begin(), list.end(), copy.begin());
  for (size_t i = 0; i < length; ++i) {
    items[i] = {CandidateKey(list[i]), static_cast<uint32_t>(i)};
  }
  if (static_cast<size_t>(top) >= length) {
    std::sort(items.begin(), items.end(), Before);
    for (size_t i = 0; i < length; ++i) list[i] = copy[items[i].position];
    return;
  }
  std::nth_element(items.begin(), items.begin() + top - 1, items.end(), Before);
  const Item last = items[static_cast<size_t>(top) - 1];
  std::sort(items.begin(), items.begin() + top, Before);
  for (size_t i = 0; i < static_cast<size_t>(top); ++i) list[i] = copy[items[i].position];
  size_t next = static_cast<size_t>(top);
  for (size_t i = 0; i < length; ++i) {
    if (Before(last, {CandidateKey(copy[i]), static_cast<uint32_t>(i)})) list[next++] = copy[i];
  }
}

}  // namespace sparsesel
