// Pack: a rank's candidates of each row, in the caller's layout, into wire records.
//
// Absent (position at or beyond the row's count, or a negative id) becomes {0, -1}. All 32 bits of
// a present candidate's score are kept.
#ifndef SPARSESEL_KERNELS_PACK_H_
#define SPARSESEL_KERNELS_PACK_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "contract/order.h"
#include "kernels/candidates.h"

namespace sparsesel::kernels {

struct PackArgs {
  CandidateArrays input;
  const int32_t* active_rows = nullptr;  // optional; rows beyond are written absent
  int32_t first_row = 0;                 // of `input`, to be packed first
  int32_t rows = 0;
  Record* out = nullptr;  // row first_row + r at out + r * out_stride
  int64_t out_stride = 0;
  // Stable sort of each row: descending by key, absences last; then only the first `keep` are
  // written (0: all).
  bool sort = false;
  int32_t keep = 0;
  // Optional: becomes INVALID_ARGUMENT if a position or mapped id is out of range, which makes its
  // candidate absent.
  uint32_t* status_word = nullptr;
};

// 0 unless sorting rows too long for shared memory.
size_t PackWorkspaceBytes(const PackArgs& args);
// Call once per device before capturing.
cudaError_t PreparePack();
cudaError_t LaunchPack(const PackArgs& args, void* workspace, size_t workspace_bytes,
                       cudaStream_t stream);

}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_PACK_H_
