// Host select variants: W lists of records in, the greatest k keys in descending order out.
#ifndef SPARSESEL_STAGES_HOST_SELECT_H_
#define SPARSESEL_STAGES_HOST_SELECT_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "contract/order.h"

namespace sparsesel {

// One rank's records of one row. Absent records (id < 0) may stand anywhere, except in a sorted
// list, where they are last.
struct RecordList {
  const Record* data = nullptr;
  int32_t length = 0;
};

// One implementation of select. `run` writes the min(k, present) greatest keys to `keys`, in
// descending order, and returns how many. It allocates nothing; `scratch` holds at least
// `scratch_bytes(...)` bytes, aligned to 64, with any content. Equal keys appear as often as there
// are records that have them. Thread-safe for distinct scratch and keys.
struct HostSelectVariant {
  const char* name;         // stable: decisions are remembered by it
  int32_t revision;         // raised whenever the code behind the name changes
  bool needs_sorted_lists;  // each list in descending key order
  size_t (*scratch_bytes)(int32_t lists, int64_t total_records, int32_t k);
  int32_t (*run)(std::span<const RecordList> lists, int32_t k, std::span<std::byte> scratch,
                 uint64_t* keys);
};

// Every variant, in a fixed order: at least two for unsorted and two for sorted lists.
std::span<const HostSelectVariant> HostSelectVariants();

}  // namespace sparsesel

#endif  // SPARSESEL_STAGES_HOST_SELECT_H_
