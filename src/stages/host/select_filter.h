// Data-parallel passes over records and keys: a pivot in, what is at or above it out. Each is
// compiled for several instruction sets and picks the best one of the CPU at hand.
#ifndef SPARSESEL_STAGES_HOST_SELECT_FILTER_H_
#define SPARSESEL_STAGES_HOST_SELECT_FILTER_H_

#include <cstddef>
#include <cstdint>

#include "contract/order.h"

namespace sparsesel {

// Whole vectors are stored at the end of a compaction, so that outputs must have room for this many
// keys beyond the input's length. What is there afterwards is unspecified.
inline constexpr size_t kFilterSlack = 8;

// Writes the keys of the records with key >= pivot, in the order of the records, and returns how
// many. The pivot is above kAbsentKey. `keys` has room for `length + kFilterSlack`.
size_t KeysAtLeast(const Record* records, size_t length, uint64_t pivot, uint64_t* keys);

// The same from keys. In place (`kept` == `keys`) it writes nothing beyond `keys[length - 1]`.
size_t KeepAtLeast(const uint64_t* keys, size_t length, uint64_t pivot, uint64_t* kept);

// keys[i] = CandidateKey(records[i]); writes exactly `length` keys, also over the records.
void KeysOfRecords(const Record* records, size_t length, uint64_t* keys);

}  // namespace sparsesel

#endif  // SPARSESEL_STAGES_HOST_SELECT_FILTER_H_
