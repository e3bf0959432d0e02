// Pack: a rank's candidates of each row, in the caller's layout, into wire records.
//
// Absent (position at or beyond the row's count, or a negative id) becomes {0, -1}. All 32 bits of a
// present candidate's score are kept.
#ifndef SPARSESEL_KERNELS_PACK_H_
#define SPARSESEL_KERNELS_PACK_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "contract/order.h"

namespace sparsesel::kernels {

// From a rank's own ids to global ones.
struct IdMap {
  enum Kind : int32_t { kIdentity = 0, kOffset = 1, kInterleave = 2 };
  int32_t kind = kIdentity;
  int32_t offset = 0;  // kOffset: id + offset
  // kInterleave: blocks of `block` ids are dealt round `shards`; this is shard `shard`.
  int32_t block = 1;
  int32_t shard = 0;
  int32_t shards = 1;
};

struct PackArgs {
  const uint32_t* scores = nullptr;  // [rows][candidates]; or score rows, see positions
  const int32_t* ids = nullptr;      // [rows][candidates]: ids, or positions into the score row
  int64_t score_stride = 0;
  int64_t id_stride = 0;
  bool positions = false;                // ids[] are positions: the score is scores[start + position]
  const int32_t* row_starts = nullptr;   // positions: start of each score row; null: row * score_stride
  const int32_t* counts = nullptr;       // optional, clamped to [0, candidates]
  const int32_t* active_rows = nullptr;  // optional; rows beyond are written absent
  int32_t rows = 0;
  int32_t candidates = 0;
  IdMap map;
  Record* out = nullptr;  // row r at out + r * out_stride
  int64_t out_stride = 0;
  // Stable sort of each row: descending by key, absences last; then only the first `keep` are written
  // (0: all).
  bool sort = false;
  int32_t keep = 0;
};

// 0 unless sorting rows too long for shared memory.
size_t PackWorkspaceBytes(const PackArgs& args);
// Call once per device before capturing.
cudaError_t PreparePack();
cudaError_t LaunchPack(const PackArgs& args, void* workspace, size_t workspace_bytes,
                       cudaStream_t stream);

}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_PACK_H_
