// The variants by name, for the table in select.cc, and what several of them share.
#ifndef SPARSESEL_STAGES_HOST_SELECT_VARIANTS_H_
#define SPARSESEL_STAGES_HOST_SELECT_VARIANTS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "stages/host/select.h"

namespace sparsesel {

// Unsorted lists.
extern const HostSelectVariant kSelectThreshold;
extern const HostSelectVariant kSelectRadix;
extern const HostSelectVariant kSelectNthElement;
// Sorted lists.
extern const HostSelectVariant kSelectMergeTree;
extern const HostSelectVariant kSelectLoserTree;

// Two arrays of keys in scratch, each with room for all records, for a sort and for the whole
// vectors that compactions store.
struct KeyArrays {
  uint64_t* keys;
  uint64_t* other;
};

size_t KeyArraysBytes(int64_t records);
KeyArrays KeyArraysIn(std::span<std::byte> scratch, int64_t records);

int64_t TotalRecords(std::span<const RecordList> lists);

// Writes the keys >= pivot of all lists to `keys` and returns how many; pivot > kAbsentKey.
size_t KeysAtLeast(std::span<const RecordList> lists, uint64_t pivot, uint64_t* keys);

// Sorts `count` keys that hold the greatest k, or are all there are, and writes the min(k, count)
// greatest to `out`. Returns how many.
int32_t SortAndEmit(KeyArrays arrays, size_t count, int32_t k, uint64_t* out);

}  // namespace sparsesel

#endif  // SPARSESEL_STAGES_HOST_SELECT_VARIANTS_H_
