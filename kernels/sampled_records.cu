// Sampled selection from wire records.
#include <algorithm>

#include "kernels/sampled_launch.cuh"
#include "kernels/sampled_prepare.h"

namespace sparsesel::kernels {

cudaError_t PrepareSampledRecords(const SelectDevice& device) {
  return PrepareSampledKernels<RecordInput>(device);
}

cudaError_t LaunchSampled(const SelectDevice& device, const SelectConfig& config,
                          const SelectArgs<RecordLists>& args, cudaStream_t stream) {
  const RecordLists& lists = args.input;
  if (lists.lists < 1 || lists.lists > kMaxLists) return cudaErrorNotSupported;
  const int32_t* end = lists.length + lists.lists;
  const int32_t longest = *std::max_element(lists.length, end);
  const bool uniform = std::all_of(lists.length, end, [&](int32_t n) { return n == longest; });
  const bool wide = reinterpret_cast<uintptr_t>(lists.base) % 16 == 0 &&
                    lists.list_stride % 2 == 0 && lists.row_stride % 2 == 0;
  const int32_t looked_at =
      args.prefix.length > 0 ? std::min(args.prefix.length, longest) : longest;
  const RecordInput input = {wide, uniform ? longest : -1, lists};
  return LaunchSampledKernel(device, config, {args.rows, lists.lists, looked_at, args.k}, longest,
                             uniform && wide, input, args, stream);
}

}  // namespace sparsesel::kernels
