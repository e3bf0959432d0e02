#include "stages/host/select.h"

#include <algorithm>

#include "stages/host/select_filter.h"
#include "stages/host/select_sort.h"
#include "stages/host/select_variants.h"

namespace sparsesel {
namespace {

size_t ArrayRoom(int64_t records) {
  const size_t room = MergeSortRoom(static_cast<size_t>(records) + kFilterSlack);
  return (room + 7) / 8 * 8;  // arrays begin on cache lines
}

}  // namespace

size_t KeyArraysBytes(int64_t records) { return 2 * ArrayRoom(records) * sizeof(uint64_t); }

KeyArrays KeyArraysIn(std::span<std::byte> scratch, int64_t records) {
  auto* const keys = reinterpret_cast<uint64_t*>(scratch.data());
  return {keys, keys + ArrayRoom(records)};
}

int64_t TotalRecords(std::span<const RecordList> lists) {
  int64_t total = 0;
  for (const RecordList& list : lists) total += list.length;
  return total;
}

size_t KeysAtLeast(std::span<const RecordList> lists, uint64_t pivot, uint64_t* keys) {
  size_t count = 0;
  for (const RecordList& list : lists) {
    count += KeysAtLeast(list.data, static_cast<size_t>(list.length), pivot, keys + count);
  }
  return count;
}

int32_t SortAndEmit(KeyArrays arrays, size_t count, int32_t k, uint64_t* out) {
  const uint64_t* const sorted = SortDescending(arrays.keys, count, arrays.other);
  const size_t emitted = std::min(count, static_cast<size_t>(k));
  std::copy_n(sorted, emitted, out);
  return static_cast<int32_t>(emitted);
}

std::span<const HostSelectVariant> HostSelectVariants() {
  // The first of each kind is what is taken where nothing was raced.
  static const HostSelectVariant table[] = {
      kSelectThreshold, kSelectRadix, kSelectNthElement, kSelectMergeTree, kSelectLoserTree,
  };
  return table;
}

}  // namespace sparsesel
