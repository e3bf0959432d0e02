#include <algorithm>

#include "kernels/peer_fused.h"
#include "kernels/peer_input.cuh"
#include "kernels/sampled_launch.cuh"

namespace sparsesel::kernels {

cudaError_t PrepareFused(const SelectDevice& device) {
  return PrepareSampledKernels<PeerInput>(device);
}

cudaError_t FusedRows(const SelectDevice& device, const SelectConfig& config,
                      const SelectShape& shape, int32_t ranks, int32_t* rows) {
  *rows = 0;
  SampledPlan plan;
  if (!IsBuilt<PeerInput>(config.keys, config.cluster > 1) ||
      !SampledSupports(device, shape, config) ||
      !MakeSampledPlan(shape, shape.length, config, &plan)) {
    return cudaSuccess;
  }
  const void* const kernel = FindSampledKernel<PeerInput>(config);
  cudaLaunchConfig_t launch = {};
  launch.gridDim = dim3(static_cast<unsigned>(config.cluster));
  launch.blockDim = dim3(static_cast<unsigned>(config.threads));
  launch.dynamicSmemBytes = SampledSharedBytes(plan, static_cast<uint32_t>(config.threads));
  int teams = 0;
  if (config.cluster > 1) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = static_cast<unsigned>(config.cluster);
    attribute.val.clusterDim.y = 1;
    attribute.val.clusterDim.z = 1;
    launch.attrs = &attribute;
    launch.numAttrs = 1;
    const cudaError_t error = cudaOccupancyMaxActiveClusters(&teams, kernel, &launch);
    if (error != cudaSuccess) return error;
  } else {
    int blocks = 0;
    const cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        &blocks, kernel, config.threads, launch.dynamicSmemBytes);
    if (error != cudaSuccess) return error;
    teams = blocks * device.processors;
  }
  *rows = teams / ranks;
  return cudaSuccess;
}

cudaError_t LaunchFused(const SelectDevice& device, const SelectConfig& config,
                        const FusedArgs& args, cudaStream_t stream) {
  PeerInput input;
  input.end = args.end;
  input.header = args.header;
  input.rows = args.rows;
  input.own = args.input;
  input.status_word = args.status_word;
  const int32_t world = args.end.world;
  const int32_t* const last = args.candidates + world;
  const int32_t longest = *std::max_element(args.candidates, last);
  const bool uniform = std::all_of(args.candidates, last, [&](int32_t n) { return n == longest; });
  input.uniform_length = uniform ? longest : -1;
  input.has_prefix = args.end.shape.kept > 0;
  std::copy(args.candidates, last, input.lengths);
  SelectArgs<RecordLists> shared;
  shared.rows = args.rows.rows;
  shared.k = args.k;
  shared.active_rows = args.rows.active_rows;
  shared.first_row = args.rows.begin;
  shared.output = args.output;
  const int32_t sent = input.has_prefix ? std::min(longest, args.end.shape.length) : longest;
  if (input.has_prefix) {
    shared.prefix.length = sent;
    shared.prefix.complete = true;
  }
  return LaunchSampledKernel(device, config, {args.rows.rows, world, sent, args.k}, longest,
                             uniform, input, shared, stream);
}

}  // namespace sparsesel::kernels
