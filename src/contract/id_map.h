// From a rank's own id (or position) to the global one. Shared by host and device code.
#ifndef SPARSESEL_CONTRACT_ID_MAP_H_
#define SPARSESEL_CONTRACT_ID_MAP_H_

#include <cstdint>

#include "contract/order.h"
#include "sparsesel.h"

namespace sparsesel {

struct IdMap {
  int32_t kind = SPARSESEL_ID_IDENTITY;
  int32_t offset = 0;
  int32_t block = 1;
  int32_t shard = 0;
  int32_t shards = 1;
};

inline constexpr int64_t kIdBeyondInt32 = int64_t{1} << 32;

// id >= 0. A result above INT32_MAX does not fit an id; it is never negative.
SPARSESEL_HOST_DEVICE constexpr int64_t MapId(const IdMap& map, int32_t id) {
  if (map.kind == SPARSESEL_ID_OFFSET) return int64_t{id} + map.offset;
  if (map.kind == SPARSESEL_ID_INTERLEAVE) {
    // Factors below 2^31 each: group < 2^62, and is bounded before it is multiplied again.
    const int64_t block = map.block;
    const int64_t group = (id / block) * map.shards + map.shard;
    if (group > INT32_MAX / block) return kIdBeyondInt32;
    return group * block + id % block;
  }
  return id;
}

}  // namespace sparsesel

#endif  // SPARSESEL_CONTRACT_ID_MAP_H_
