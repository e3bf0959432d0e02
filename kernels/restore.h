// Passes after selection, for outputs beyond ids in score order.
#ifndef SPARSESEL_KERNELS_RESTORE_H_
#define SPARSESEL_KERNELS_RESTORE_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/select.h"

namespace sparsesel::kernels {

// The original 32 score bits of every selected slot. Keys say all but the sign of zeros and of NaNs
// and the payload of NaNs; those are looked up in the records, slots of one key filled in source
// order (list, position).
struct RestoreArgs {
  RecordLists input;               // what was selected from, whole
  const uint64_t* keys = nullptr;  // [rows][k] as selection wrote them
  int64_t key_stride = 0;
  const int32_t* selected = nullptr;
  int32_t rows = 0;
  int32_t k = 0;
  uint32_t* scores = nullptr;  // [rows][k]; slots past `selected` become -inf
  int64_t score_stride = 0;
  // Optional, [rows][k]: where each slot came from, list * longest list + position. Then every slot
  // is looked up.
  uint32_t* sources = nullptr;
};
// Call once per device before capturing.
cudaError_t PrepareRestore();
cudaError_t LaunchRestore(const RestoreArgs& args, cudaStream_t stream);

// Reorders each row's first `selected` slots by ascending id. Equal ids go by source if sources are
// given; else they keep their order, which is that of their scores. In place.
struct IdOrderArgs {
  int32_t* ids = nullptr;
  int64_t id_stride = 0;
  uint32_t* scores = nullptr;  // optional, moved along
  int64_t score_stride = 0;
  const uint32_t* sources = nullptr;  // optional, [rows][k], as LaunchRestore wrote them
  const int32_t* selected = nullptr;
  int32_t rows = 0;
  int32_t k = 0;
};
size_t IdOrderWorkspaceBytes(const IdOrderArgs& args);
// Call once per device before capturing.
cudaError_t PrepareIdOrder();
cudaError_t LaunchIdOrder(const IdOrderArgs& args, void* workspace, size_t workspace_bytes,
                          cudaStream_t stream);

}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_RESTORE_H_
