// Sorting keys in descending order: the few thousand that survive a threshold.
#ifndef SPARSESEL_STAGES_HOST_SELECT_SORT_H_
#define SPARSESEL_STAGES_HOST_SELECT_SORT_H_

#include <cstddef>
#include <cstdint>

#include "stages/host/select_merge_sort.h"

namespace sparsesel {

// Sorts `length` keys in descending order. Works in both arrays, each with room for
// MergeSortRoom(length), and returns the one that holds the result. Linear time where scores are
// mostly distinct, a merge sort where they are not. No key is kAbsentKey.
uint64_t* SortDescending(uint64_t* keys, size_t length, uint64_t* other);

}  // namespace sparsesel

#endif  // SPARSESEL_STAGES_HOST_SELECT_SORT_H_
