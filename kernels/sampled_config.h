// The constants of sampled selection that were found by measuring. None of them can change an
// answer.
#ifndef SPARSESEL_KERNELS_SAMPLED_CONFIG_H_
#define SPARSESEL_KERNELS_SAMPLED_CONFIG_H_

#include <cstdint>

namespace sparsesel::kernels {

// Standard deviations between the k-th key's expected rank among the samples and the pivot (and
// four samples more). Fewer than one row in a million of randomly placed keys takes the slow way
// out.
inline constexpr double kSampledMargin = 4.5;
// The same for the size of one bucket, measured in its number of samples.
inline constexpr double kSampledBucketSpread = 4.5;
// A sample is served by threads of one warp.
inline constexpr uint32_t kSampledGroupMax = 32;

struct SampledKernelKind {
  int32_t threads;
  int32_t keys;
  bool cluster;
};

// The kernels that are built, X(threads, keys, cluster).
// clang-format off
#define SPARSESEL_SAMPLED_KERNELS(X)                                              \
  X(256, 2, true) X(512, 2, true) X(256, 4, true) X(512, 4, true) X(256, 8, true) \
  X(512, 8, true) X(512, 0, true) X(512, 8, false) X(512, 0, false) X(1024, 0, false)
// clang-format on

inline constexpr SampledKernelKind kSampledKernels[] = {
#define SPARSESEL_KIND(threads, keys, cluster) {threads, keys, cluster},
    SPARSESEL_SAMPLED_KERNELS(SPARSESEL_KIND)
#undef SPARSESEL_KIND
};

inline constexpr int32_t kSampledClusters[] = {16, 8, 4, 2, 1};
inline constexpr int32_t kSampledSamples[] = {256, 512, 1024};

}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_SAMPLED_CONFIG_H_
