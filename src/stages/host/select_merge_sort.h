// A merge sort of keys that takes the same time whatever their distribution.
#ifndef SPARSESEL_STAGES_HOST_SELECT_MERGE_SORT_H_
#define SPARSESEL_STAGES_HOST_SELECT_MERGE_SORT_H_

#include <cstddef>
#include <cstdint>

namespace sparsesel {

// How many keys an array must have room for when `length` of them are sorted in it.
constexpr size_t MergeSortRoom(size_t length) { return length + length / 4 + 8; }

// Sorts `length` keys in descending order. Works in both arrays and returns the one that holds the
// result. No key is 0: zeros fill the rest of the room.
uint64_t* MergeSortDescending(uint64_t* keys, size_t length, uint64_t* other);

}  // namespace sparsesel

#endif  // SPARSESEL_STAGES_HOST_SELECT_MERGE_SORT_H_
