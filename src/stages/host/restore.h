// From selected keys back to records: the original score bits, and ties in source order.
#ifndef SPARSESEL_STAGES_HOST_RESTORE_H_
#define SPARSESEL_STAGES_HOST_RESTORE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "contract/order.h"
#include "stages/host/select.h"

namespace sparsesel {

// For either function below, with at most k records; 64-byte aligned, of any content.
size_t RestoreScratchBytes(int32_t k);

// `keys` are the selected keys of `lists`, descending. records[i] becomes a record with key
// keys[i]; among equal keys, records come in source order: by list, then by position. sources[i]
// becomes (list << 32) | position. One pass over the lists.
void RestoreRecords(std::span<const RecordList> lists, std::span<const uint64_t> keys,
                    std::span<std::byte> scratch, Record* records, uint64_t* sources);

// Sorts present records by id ascending, ties by source. Both arrays are permuted alike.
void OrderById(std::span<Record> records, std::span<uint64_t> sources,
               std::span<std::byte> scratch);

}  // namespace sparsesel

#endif  // SPARSESEL_STAGES_HOST_RESTORE_H_
