// The general variant: nothing it does depends on how many keys, lists or rows there are.
#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/block_sort.cuh"
#include "kernels/input.cuh"
#include "kernels/sampled_fallback.cuh"
#include "kernels/select.h"

namespace sparsesel::kernels {
namespace {

constexpr int kThreads = 1024;
constexpr int32_t kMaxRows = 1 << 20;
constexpr int32_t kMaxLength = 65536;

template <class Input>
struct RadixParams {
  Input input;
  LineMap lines;
  int32_t limit;
  int32_t rows;
  uint32_t k;
  uint32_t slots;  // keys per block in the workspace
  const int32_t* active_rows;
  int32_t first_row;
  int32_t* proof;
  bool has_prefix;
  bool need_source;
  SelectOutput output;
  uint64_t* workspace;
};

// True if a list that is cut may still hold something that belongs before, or with, `last`.
template <class View>
__device__ bool PrefixHides(const View& view, const LineMap& lines, int32_t limit, uint64_t last,
                            bool need_source) {
  bool hides = false;
  for (uint32_t list = threadIdx.x; list * lines.per_list < lines.lines; list += kThreads) {
    if (view.Length(list) <= limit) continue;
    uint64_t pair[2];
    FetchKeys(view, list, (limit - 1) & ~1, limit, pair[0], pair[1]);
    const uint64_t unseen = pair[(limit - 1) & 1];
    hides |= unseen != kAbsentKey && (unseen > last || (need_source && unseen == last));
  }
  return hides;
}

template <class Input>
__global__ void __launch_bounds__(kThreads)
    RadixKernel(const __grid_constant__ RadixParams<Input> params) {
  __shared__ uint32_t bins[513];
  __shared__ uint32_t cursor;
  SampledPlan no_plan = {};
  BlockShared shared(no_plan, nullptr, nullptr);
  shared.bins = bins;
  const Team<false> team(0);
  const uint32_t lane = threadIdx.x & (kWarp - 1);
  uint64_t* keys = params.workspace + static_cast<int64_t>(blockIdx.x) * params.slots;

  for (int64_t row = blockIdx.x; row < params.rows; row += gridDim.x) {
    const OutputRow out(params.output, row);
    const bool active =
        params.active_rows == nullptr || params.first_row + row < *params.active_rows;
    uint32_t selected = 0;
    bool hides = false;
    __syncthreads();
    if (threadIdx.x == 0) cursor = 0;
    if (active) {
      const auto view = params.input.Row(row, nullptr);
      const RadixCut cut =
          FindCut<kThreads>(team, view, params.lines, params.limit, params.k, shared);
      selected = cut.key == kAbsentKey ? cut.greater : params.k;
      const uint32_t slots = SortSlots(max(1u, cut.greater));
      for (uint32_t i = cut.greater + threadIdx.x; i < slots; i += kThreads) keys[i] = kAbsentKey;
      ForEachKey<kThreads>(team, view, params.lines, params.limit, [&](uint64_t key) {
        const uint32_t taking = __ballot_sync(kFullWarp, key > cut.key);
        if (taking == 0) return;
        uint32_t base = 0;
        if (lane == 0) base = atomicAdd(&cursor, static_cast<uint32_t>(__popc(taking)));
        base = __shfl_sync(kFullWarp, base, 0);
        if (key > cut.key) keys[base + __popc(taking & ((1u << lane) - 1))] = key;
        __syncwarp();
      });
      hides = params.has_prefix &&
              PrefixHides(view, params.lines, params.limit, cut.key, params.need_source);
      BlockSort(keys, slots, [](uint64_t a, uint64_t b) { return a > b; });
      for (uint32_t i = threadIdx.x; i < params.k; i += kThreads) {
        out.Write(i, i < cut.greater ? keys[i] : cut.key);
      }
    } else {
      for (uint32_t i = threadIdx.x; i < params.k; i += kThreads) out.Write(i, kAbsentKey);
    }
    hides = __syncthreads_or(hides);
    if (threadIdx.x == 0) {
      if (params.output.selected != nullptr) params.output.selected[row] = selected;
      if (params.proof != nullptr) params.proof[row] = !hides;
    }
  }
}

LineMap MapLines(int32_t lists, int32_t length) {
  LineMap map;
  map.per_list = (static_cast<uint32_t>(length) + kLineRecords - 1) / kLineRecords;
  map.lines = static_cast<uint32_t>(lists) * map.per_list;
  if (map.per_list > 1) {
    map.magic = static_cast<uint32_t>(((uint64_t{1} << 32) + map.per_list - 1) / map.per_list);
  }
  return map;
}

int32_t BlocksAtOnce(const SelectDevice& device) { return 2 * device.processors; }

template <class Input, class Args>
cudaError_t Launch(const SelectDevice& device, const Input& input, int32_t lists, int32_t longest,
                   const Args& args, void* workspace, size_t workspace_bytes, cudaStream_t stream) {
  // The whole lists are here, so a prefix that may be completed is of no use.
  const bool cut = args.prefix.length > 0 && args.prefix.length < longest && !args.prefix.complete;
  const int32_t limit = cut ? args.prefix.length : longest;
  if (!RadixSupports({args.rows, lists, limit, args.k})) return cudaErrorNotSupported;
  if (args.rows == 0) return cudaSuccess;
  RadixParams<Input> params = {};
  params.slots = SortSlots(static_cast<uint32_t>(args.k));
  const size_t fit = workspace_bytes / (params.slots * sizeof(uint64_t));
  if (fit == 0) return cudaErrorInvalidValue;
  params.input = input;
  params.lines = MapLines(lists, limit);
  params.limit = limit;
  params.rows = args.rows;
  params.k = static_cast<uint32_t>(args.k);
  params.active_rows = args.active_rows;
  params.first_row = args.first_row;
  params.proof = args.prefix.proof;
  params.has_prefix = cut;
  params.need_source = args.prefix.need_source;
  params.output = args.output;
  params.workspace = static_cast<uint64_t*>(workspace);
  const int64_t blocks =
      std::min<int64_t>({args.rows, static_cast<int64_t>(fit), BlocksAtOnce(device)});
  RadixKernel<Input><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(params);
  return cudaPeekAtLastError();
}

}  // namespace

cudaError_t PrepareRadix() {
  cudaFuncAttributes attributes;
  const cudaError_t error = cudaFuncGetAttributes(&attributes, RadixKernel<RecordInput>);
  return error == cudaSuccess ? cudaFuncGetAttributes(&attributes, RadixKernel<SplitInput>) : error;
}

bool RadixSupports(const SelectShape& shape) {
  return shape.rows >= 0 && shape.rows <= kMaxRows && shape.lists >= 1 &&
         shape.lists <= kMaxLists && shape.length >= 0 && shape.length <= kMaxLength &&
         shape.k >= 1 && shape.k <= kMaxLength;
}

size_t RadixWorkspaceBytes(const SelectDevice& device, const SelectShape& shape) {
  const int64_t blocks = std::clamp<int64_t>(shape.rows, 1, BlocksAtOnce(device));
  return static_cast<size_t>(blocks) * SortSlots(static_cast<uint32_t>(shape.k)) * sizeof(uint64_t);
}

cudaError_t LaunchRadix(const SelectDevice& device, const SelectArgs<RecordLists>& args,
                        void* workspace, size_t workspace_bytes, cudaStream_t stream) {
  const RecordLists& lists = args.input;
  if (lists.lists < 1 || lists.lists > kMaxLists) return cudaErrorNotSupported;
  const int32_t* end = lists.length + lists.lists;
  const int32_t longest = *std::max_element(lists.length, end);
  const bool uniform = std::all_of(lists.length, end, [&](int32_t n) { return n == longest; });
  const bool wide = reinterpret_cast<uintptr_t>(lists.base) % 16 == 0 &&
                    lists.list_stride % 2 == 0 && lists.row_stride % 2 == 0;
  const RecordInput input = {wide, uniform ? longest : -1, lists};
  return Launch(device, input, lists.lists, longest, args, workspace, workspace_bytes, stream);
}

cudaError_t LaunchRadix(const SelectDevice& device, const SelectArgs<SplitRows>& args,
                        void* workspace, size_t workspace_bytes, cudaStream_t stream) {
  const SplitRows& rows = args.input;
  const bool wide = reinterpret_cast<uintptr_t>(rows.scores) % 8 == 0 &&
                    reinterpret_cast<uintptr_t>(rows.ids) % 8 == 0 && rows.score_stride % 2 == 0 &&
                    rows.id_stride % 2 == 0;
  return Launch(device, SplitInput{rows, wide}, 1, rows.length, args, workspace, workspace_bytes,
                stream);
}

}  // namespace sparsesel::kernels
