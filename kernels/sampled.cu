// What sampled selection supports, and which configuration it takes when nobody has tuned.
#include <cuda_runtime.h>

#include <algorithm>

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

// Few rows: as many blocks a row as the chip allows. Many rows: fewer, larger shares. A register-held
// share that is mostly empty wastes samples, so the smallest that fits is best.
SelectConfig SampledDefault(const SelectDevice& device, const SelectShape& shape) {
  SelectConfig best;
  double best_cost = 0;
  for (const int32_t cluster : kSampledClusters) {
    for (const SampledKernelKind& kind : kSampledKernels) {
      if (kind.cluster != (cluster > 1)) continue;
      for (const int32_t samples : kSampledSamples) {
        const SelectConfig config = {cluster, kind.threads, kind.keys, samples};
        if (!SampledSupports(device, shape, config)) continue;
        const double blocks = static_cast<double>(shape.rows) * cluster;
        const double share = static_cast<double>(shape.lists) * shape.length / cluster;
        const double held = kind.keys > 0 ? static_cast<double>(kind.threads) * kind.keys : share;
        const double waves = std::max(1.0, blocks * kind.threads / (device.processors * 1024.0));
        const double cost = waves * (2.0 + held / 4096 + (kind.keys == 0 ? 2.0 : 0.0) +
                                     static_cast<double>(samples) * samples / cluster / 65536) +
                            held / share * 0.5;
        if (best.cluster == 0 || cost < best_cost) {
          best = config;
          best_cost = cost;
        }
      }
    }
  }
  return best;
}

}  // namespace sparsesel::kernels
