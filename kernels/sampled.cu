// What sampled selection supports, and which configuration it takes when nobody has tuned.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdlib>

#include "kernels/sampled_config.h"
#include "kernels/sampled_plan.h"
#include "kernels/sampled_prepare.h"
#include "kernels/select.h"

namespace sparsesel::kernels {
namespace {

// Static shared memory and what the system keeps of every block.
constexpr size_t kSharedReserve = 2048;
constexpr int32_t kMaxRows = 1 << 20;

int32_t LargestCluster(const SelectDevice& device) {
  if (device.compute_capability < 90) return 1;
  return device.compute_capability < 110 ? 16 : 8;  // above 8 is a data-centre chip's privilege
}

}  // namespace

cudaError_t QuerySelectDevice(int device, SelectDevice* out) {
  int major = 0;
  int minor = 0;
  cudaError_t error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  }
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&out->processors, cudaDevAttrMultiProcessorCount, device);
  }
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&out->shared_bytes_per_block,
                                   cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  }
  out->compute_capability = major * 10 + minor;
  return error;
}

cudaError_t PrepareSampled(const SelectDevice& device) {
  const cudaError_t error = PrepareSampledRecords(device);
  return error != cudaSuccess ? error : PrepareSampledSplit(device);
}

bool SampledSupports(const SelectDevice& device, const SelectShape& shape,
                     const SelectConfig& config) {
  SampledPlan plan;
  return shape.rows >= 0 && shape.rows <= kMaxRows && config.cluster <= LargestCluster(device) &&
         MakeSampledPlan(shape, shape.length, config, &plan) &&
         SampledSharedBytes(plan, static_cast<uint32_t>(config.threads)) + kSharedReserve <=
             static_cast<size_t>(device.shared_bytes_per_block);
}

int32_t SampledConfigs(const SelectDevice& device, const SelectShape& shape, SelectConfig* out,
                       int32_t capacity) {
  int32_t count = 0;
  for (const int32_t cluster : kSampledClusters) {
    for (const SampledKernelKind& kind : kSampledKernels) {
      if (kind.cluster != (cluster > 1)) continue;
      for (const int32_t samples : kSampledSamples) {
        const SelectConfig config = {cluster, kind.threads, kind.keys, samples};
        if (!SampledSupports(device, shape, config)) continue;
        if (count < capacity) out[count] = config;
        ++count;
      }
    }
  }
  return count;
}

// What measuring on one H200 suggests (docs/kernels.md). As many blocks a row as leave each
// processor about one; then the kernel that holds the row with the fewest empty slots; samples
// enough for buckets of even size, few enough that ranking them (quadratic, shared by the row's
// blocks) stays cheap.
SelectConfig SampledDefault(const SelectDevice& device, const SelectShape& shape) {
  const int64_t keys = static_cast<int64_t>(shape.lists) * shape.length;
  const int32_t smallest = keys > 16384 ? 8 : keys > 8192 ? 4 : 2;
  // Clusters of 16 do not pack a chip completely: eight of them already share processors.
  const int64_t room = keys > 8192 ? device.processors : device.processors * 9 / 10;
  int32_t wanted = 16;
  while (wanted > smallest && int64_t{shape.rows} * wanted > room) wanted /= 2;
  const int32_t samples = keys > 65536 ? 1024 : wanted <= 8 || keys <= 16384 ? 256 : 512;

  SelectConfig best;
  int32_t best_rank = 0;
  for (const int32_t cluster : kSampledClusters) {
    for (const SampledKernelKind& kind : kSampledKernels) {
      if (kind.cluster != (cluster > 1)) continue;
      for (const int32_t count : kSampledSamples) {
        const SelectConfig config = {cluster, kind.threads, kind.keys, count};
        if (!SampledSupports(device, shape, config)) continue;
        // In order of weight: cluster size, samples, threads, slots per thread.
        const int32_t rank = 1000000 * (cluster > wanted ? 16 + cluster : wanted / cluster) +
                             100 * std::abs(count - samples) + (kind.threads == 512 ? 0 : 50) +
                             (kind.keys == 0 ? 32 : kind.keys);
        if (best.cluster == 0 || rank < best_rank) {
          best = config;
          best_rank = rank;
        }
      }
    }
  }
  return best;
}

}  // namespace sparsesel::kernels
