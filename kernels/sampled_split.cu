// Sampled selection from separate arrays of scores and ids.
#include <algorithm>

#include "kernels/sampled_launch.cuh"
#include "kernels/sampled_prepare.h"

namespace sparsesel::kernels {

cudaError_t PrepareSampledSplit(const SelectDevice& device) {
  return PrepareSampledKernels<SplitInput>(device);
}

cudaError_t LaunchSampled(const SelectDevice& device, const SelectConfig& config,
                          const SelectArgs<SplitRows>& args, cudaStream_t stream) {
  const SplitRows& rows = args.input;
  const bool wide = reinterpret_cast<uintptr_t>(rows.scores) % 8 == 0 &&
                    reinterpret_cast<uintptr_t>(rows.ids) % 8 == 0 && rows.score_stride % 2 == 0 &&
                    rows.id_stride % 2 == 0;
  const int32_t looked_at =
      args.prefix.length > 0 ? std::min(args.prefix.length, rows.length) : rows.length;
  return LaunchSampledKernel(device, config, {args.rows, 1, looked_at, args.k}, rows.length,
                             wide && rows.counts == nullptr, SplitInput{rows, wide}, args, stream);
}

}  // namespace sparsesel::kernels
