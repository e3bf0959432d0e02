// Finds the kernel for a configuration and launches it; instantiated once per kind of input so that
// the inputs compile in parallel.
#ifndef SPARSESEL_KERNELS_SAMPLED_LAUNCH_CUH_
#define SPARSESEL_KERNELS_SAMPLED_LAUNCH_CUH_

#include <cuda_runtime.h>

#include "kernels/sampled_config.h"
#include "kernels/sampled_kernel.cuh"

namespace sparsesel::kernels {
namespace {

// Waiting costs registers: inputs that do are built for few keys a thread, and only as clusters.
template <class Input>
constexpr bool IsBuilt(int32_t keys, bool cluster) {
  return !Input::kWaits || (cluster && (keys == 2 || keys == 4));
}

template <class Input>
const void* FindSampledKernel(const SelectConfig& config) {
#define SPARSESEL_FIND(Threads, Keys, Cluster)                                                 \
  if constexpr (IsBuilt<Input>(Keys, Cluster)) {                                               \
    if (config.threads == Threads && config.keys == Keys && (config.cluster > 1) == Cluster) { \
      return reinterpret_cast<const void*>(&SampledKernel<Input, Threads, Keys, Cluster>);     \
    }                                                                                          \
  }
  SPARSESEL_SAMPLED_KERNELS(SPARSESEL_FIND)
#undef SPARSESEL_FIND
  return nullptr;
}

template <class Input>
cudaError_t PrepareSampledKernels(const SelectDevice& device) {
  for (const SampledKernelKind& kind : kSampledKernels) {
    if (kind.cluster && device.compute_capability < 90) continue;
    if (!IsBuilt<Input>(kind.keys, kind.cluster)) continue;
    const void* kernel =
        FindSampledKernel<Input>({kind.cluster ? 2 : 1, kind.threads, kind.keys, 0});
    cudaFuncAttributes attributes;
    cudaError_t error = cudaFuncGetAttributes(&attributes, kernel);
    if (error != cudaSuccess) return error;
    error = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
        device.shared_bytes_per_block - static_cast<int>(attributes.sharedSizeBytes));
    if (error != cudaSuccess) return error;
    if (!kind.cluster) continue;
    error = cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

// `input` and the shape describe the same lists; `full_length` is the longest of them. `even`: all
// are equally long and may be read two records at a time.
template <class Input, class Args>
cudaError_t LaunchSampledKernel(const SelectDevice& device, const SelectConfig& config,
                                const SelectShape& shape, int32_t full_length, bool even,
                                const Input& input, const Args& args, cudaStream_t stream) {
  SampledParams<Input> params = {};
  if (!IsBuilt<Input>(config.keys, config.cluster > 1) || !SampledSupports(device, shape, config) ||
      !MakeSampledPlan(shape, full_length, config, &params.plan)) {
    return cudaErrorNotSupported;
  }
  if (args.rows == 0) return cudaSuccess;
  params.plan.whole_lines = even && shape.length % static_cast<int32_t>(kLineRecords) == 0;
  params.input = input;
  params.k = static_cast<uint32_t>(args.k);
  params.active_rows = args.active_rows;
  params.first_row = args.first_row;
  params.has_prefix = args.prefix.length > 0 && args.prefix.length < full_length;
  params.complete = params.has_prefix && args.prefix.complete;
  params.need_source = args.prefix.need_source;
  params.proof = args.prefix.proof;
  params.output = args.output;

  cudaLaunchConfig_t launch = {};
  launch.gridDim = dim3(static_cast<unsigned>(args.rows) * static_cast<unsigned>(config.cluster));
  launch.blockDim = dim3(static_cast<unsigned>(config.threads));
  launch.dynamicSmemBytes = SampledSharedBytes(params.plan, static_cast<uint32_t>(config.threads));
  launch.stream = stream;
  cudaLaunchAttribute attributes[2] = {};
  launch.attrs = attributes;
  if (config.cluster > 1) {
    cudaLaunchAttribute& attribute = attributes[launch.numAttrs++];
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = static_cast<unsigned>(config.cluster);
    attribute.val.clusterDim.y = 1;
    attribute.val.clusterDim.z = 1;
  }
  if (args.overlap_previous && device.compute_capability >= 90) {
    cudaLaunchAttribute& attribute = attributes[launch.numAttrs++];
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
  }
  void* arguments[] = {&params};
  return cudaLaunchKernelExC(&launch, FindSampledKernel<Input>(config), arguments);
}

}  // namespace
}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_SAMPLED_LAUNCH_CUH_
