// Device selection: W lists of candidates per row in, the greatest k keys of each row in descending
// order out. Plain pointers; nothing here allocates, synchronizes or looks at data on the host, so
// every launch can be captured.
//
// 1. All pointers are device pointers, aligned as their type. Strides count elements, not bytes.
// 2. "Key" is CandidateKey of contract/order.h: 0 for an absent candidate. Equal keys have equal
// ids,
//    so an output of ids is exact whichever of them is taken.
// 3. Outputs of rows at or beyond *active_rows are empty: ids -1, keys 0, selected 0, proof 1.
// 4. The id output may be exactly the id input of SplitRows; any other overlap is undefined.
// 5. A variant that does not support a shape returns cudaErrorNotSupported and launches nothing.
#ifndef SPARSESEL_KERNELS_SELECT_H_
#define SPARSESEL_KERNELS_SELECT_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "contract/order.h"

namespace sparsesel::kernels {

inline constexpr int32_t kMaxLists = 64;

// Wire records: list l of row r begins at base + l * list_stride + r * row_stride.
struct RecordLists {
  const Record* base = nullptr;
  int64_t list_stride = 0;
  int64_t row_stride = 0;
  int32_t lists = 0;
  int32_t length[kMaxLists] = {};
};

// One list per row in two arrays. A row's length is counts[row] clamped to [0, length], or length.
struct SplitRows {
  const uint32_t* scores = nullptr;
  const int32_t* ids = nullptr;
  int64_t score_stride = 0;
  int64_t id_stride = 0;
  int32_t length = 0;
  const int32_t* counts = nullptr;
};

struct SelectOutput {
  int32_t* ids = nullptr;  // rows x k: ids, then -1
  int64_t id_stride = 0;
  uint64_t* keys = nullptr;  // optional, rows x k: keys, then 0
  int64_t key_stride = 0;
  int32_t* selected = nullptr;  // optional, rows: min(k, present)
};

// For lists in descending key order, absent records last. Only the first `length` records of each
// list are looked at first.
struct Prefix {
  int32_t length = 0;  // 0: no prefix, lists in any order
  // The rest of each list is in memory too: a row that the prefix cannot decide is selected from
  // the whole lists in the same launch. Otherwise its proof is 0 and its output only a candidate
  // answer.
  bool complete = false;
  // Source order matters (original score bits are wanted later): an unseen record that only equals
  // the k-th key also spoils the proof.
  bool need_source = false;
  int32_t* proof = nullptr;  // optional, rows: 1 if the output is exact
};

template <class Input>
struct SelectArgs {
  Input input;
  int32_t rows = 0;
  int32_t k = 0;
  const int32_t* active_rows = nullptr;
  int32_t first_row = 0;  // what *active_rows calls row 0
  Prefix prefix;
  SelectOutput output;
  // The launch may start while the kernel before it in the stream still runs (programmatic
  // dependent launch); it waits for that kernel's end before it touches memory. Chips from 9.0 on.
  bool overlap_previous = false;
};

struct SelectShape {
  int32_t rows = 0;
  int32_t lists = 0;
  int32_t length = 0;  // the longest list, cut to the prefix
  int32_t k = 0;
};

// How one launch is laid out. What the tuner searches; never part of the answer.
struct SelectConfig {
  int32_t cluster = 0;  // blocks per row: 1, 2, 4, 8 or 16 (1: no cluster, any chip)
  int32_t threads = 0;  // per block
  int32_t keys = 0;     // per thread, held in registers; 0: read the lists in a second pass
  int32_t samples = 0;  // per row
};

struct SelectDevice {
  int32_t compute_capability = 0;  // 90 for 9.0
  int32_t processors = 0;
  int32_t shared_bytes_per_block = 0;  // after opting in
};
cudaError_t QuerySelectDevice(int device, SelectDevice* out);

// Sampled selection. With config.cluster > 1 this is the variant `cluster`, with 1 `block`; each
// takes unsorted lists (no prefix) and sorted ones (prefix).
bool SampledSupports(const SelectDevice& device, const SelectShape& shape,
                     const SelectConfig& config);
// A good configuration without tuning; cluster == 0 if none is supported.
SelectConfig SampledDefault(const SelectDevice& device, const SelectShape& shape);
// Every configuration that is supported; returns how many, writes at most `capacity`.
int32_t SampledConfigs(const SelectDevice& device, const SelectShape& shape, SelectConfig* out,
                       int32_t capacity);
cudaError_t LaunchSampled(const SelectDevice& device, const SelectConfig& config,
                          const SelectArgs<RecordLists>& args, cudaStream_t stream);
cudaError_t LaunchSampled(const SelectDevice& device, const SelectConfig& config,
                          const SelectArgs<SplitRows>& args, cudaStream_t stream);
// Call once per device before capturing (raises the shared memory limit of every kernel).
cudaError_t PrepareSampled(const SelectDevice& device);

// Selection by radix search and a sort in global memory, for every shape: one block a row, rows in
// turn over the blocks that the workspace holds. `radix`: the variant when no other supports a
// shape.
bool RadixSupports(const SelectShape& shape);
// Call once per device before capturing.
cudaError_t PrepareRadix();
// Enough for as many rows at once as the device can run, or for all.
size_t RadixWorkspaceBytes(const SelectDevice& device, const SelectShape& shape);
// `workspace` is aligned to 16 bytes; `workspace_bytes` at least RadixWorkspaceBytes({1 row, ...}).
cudaError_t LaunchRadix(const SelectDevice& device, const SelectArgs<RecordLists>& args,
                        void* workspace, size_t workspace_bytes, cudaStream_t stream);
cudaError_t LaunchRadix(const SelectDevice& device, const SelectArgs<SplitRows>& args,
                        void* workspace, size_t workspace_bytes, cudaStream_t stream);

}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_SELECT_H_
