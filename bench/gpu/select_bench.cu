// Device selection next to the floor: a kernel that reads the candidates once and writes k ids a
// row. Prints, for each shape, the floor and the default configuration, with ratios; on request the
// best of all configurations.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "bench/gpu/graph_timer.h"
#include "kernels/select.h"
#include "tests/gpu/device_buffer.h"
#include "tests/gpu/select_cases.h"

namespace sparsesel::bench {
namespace {

using kernels::RecordLists;
using kernels::SelectArgs;
using kernels::SelectConfig;
using kernels::SelectDevice;
using kernels::SelectShape;
using testing::Case;
using testing::DeviceBuffer;
using testing::Pattern;

// Eight blocks of 1024 a row, as in the figures of the design; `n4` is a row's records / 4.
__global__ void __cluster_dims__(8, 1, 1) __launch_bounds__(1024)
    FloorKernel(const int4* scores, const int4* ids, int* out, int n4, int k) {
  const int row = blockIdx.x / 8, part = blockIdx.x % 8, per = n4 / 8;
  const int4* p = scores + size_t(row) * n4 + part * per;
  const int4* q = ids + size_t(row) * n4 + part * per;
  int sum = 0;
  for (int i = threadIdx.x; i < per; i += 1024) {
    const int4 a = p[i], b = q[i];
    sum ^= a.x ^ a.y ^ a.z ^ a.w ^ b.x ^ b.y ^ b.z ^ b.w;
  }
  asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
  if (threadIdx.x < k / 8) out[size_t(row) * k + part * (k / 8) + threadIdx.x] = sum;
}
__global__ void EmptyKernel() {}

struct Measured {
  SelectConfig config;
  double microseconds;
};

class Bench {
 public:
  Bench(SelectDevice device, Pattern pattern, int32_t lists, int32_t rows, bool sorted)
      : device_(device),
        case_(testing::MakeCase(pattern, rows, std::vector<int32_t>(lists, kLength), 7)),
        ids_(size_t(rows) * kK) {
    if (sorted) SortLists(case_);
    records_.reset(new DeviceBuffer<Record>(case_.records));
    CHECK_CUDA(cudaStreamCreate(&stream_));
  }
  ~Bench() { cudaStreamDestroy(stream_); }

  double Floor() {
    // The same bytes seen as two arrays of half the size each.
    const int n4 = case_.lists() * kLength / 4;
    const int4* data = reinterpret_cast<const int4*>(records_->get());
    return GraphMicroseconds(stream_, [&] {
      FloorKernel<<<case_.rows * 8, 1024, 0, stream_>>>(data, data + size_t(case_.rows) * n4,
                                                        ids_.get(), n4, kK);
    });
  }

  SelectArgs<RecordLists> Args(int32_t prefix) {
    SelectArgs<RecordLists> args;
    args.input.base = records_->get();
    args.input.list_stride = case_.list_stride();
    args.input.row_stride = case_.list_capacity;
    args.input.lists = case_.lists();
    std::copy(case_.length.begin(), case_.length.end(), args.input.length);
    args.rows = case_.rows;
    args.k = kK;
    args.prefix.length = prefix;
    args.prefix.complete = true;
    args.output.ids = ids_.get();
    args.output.id_stride = kK;
    return args;
  }

  SelectShape Shape(int32_t prefix) const {
    return {case_.rows, case_.lists(), prefix > 0 ? prefix : kLength, kK};
  }

  double Time(const SelectConfig& config, int32_t prefix, int replays = 60, bool overlap = false) {
    auto args = Args(prefix);
    args.overlap_previous = overlap;
    return GraphMicroseconds(
        stream_, [&] { CHECK_CUDA(LaunchSampled(device_, config, args, stream_)); }, replays);
  }

  int Wrong(const SelectConfig& config, int32_t prefix) {
    ids_.Poison();
    CHECK_CUDA(LaunchSampled(device_, config, Args(prefix), stream_));
    CHECK_CUDA(cudaStreamSynchronize(stream_));
    const auto ids = ids_.Read();
    int wrong = 0;
    for (int32_t r = 0; r < case_.rows; ++r) {
      const auto want = ExpectedKeys(case_, r, kK, kLength);
      for (int32_t i = 0; i < kK; ++i) {
        const uint64_t key = i < static_cast<int32_t>(want.size()) ? want[i] : 0;
        wrong += ids[size_t(r) * kK + i] != KeyId(key);
      }
    }
    return wrong;
  }

  std::vector<Measured> Search(int32_t prefix) {
    std::vector<SelectConfig> configs(512);
    configs.resize(kernels::SampledConfigs(device_, Shape(prefix), configs.data(), 512));
    std::vector<Measured> measured;
    for (const auto& config : configs) measured.push_back({config, Time(config, prefix, 15)});
    std::sort(measured.begin(), measured.end(),
              [](const Measured& a, const Measured& b) { return a.microseconds < b.microseconds; });
    return measured;
  }

  static constexpr int32_t kLength = 2048;
  static constexpr int32_t kK = 2048;

 private:
  SelectDevice device_;
  Case case_;
  DeviceBuffer<int32_t> ids_;
  std::unique_ptr<DeviceBuffer<Record>> records_;
  cudaStream_t stream_ = nullptr;
};

void Print(const Measured& m, double floor) {
  std::printf(" | %d/%d/%d/%d %.2f (%.2fx)", m.config.cluster, m.config.threads, m.config.keys,
              m.config.samples, m.microseconds, m.microseconds / floor);
}

void Table(const SelectDevice& device, bool sorted, const std::vector<int32_t>& all_rows,
           bool search) {
  std::printf("\n%s: floor | default as cluster/threads/keys/samples us (ratio) | overlapped%s\n",
              sorted ? "sorted lists, prefix 4096 / lists" : "unsorted lists",
              search ? " | the best four" : "");
  for (const int32_t lists :
       sorted ? std::vector<int32_t>{16, 8, 4} : std::vector<int32_t>{16, 8}) {
    for (const int32_t rows : all_rows) {
      Bench bench(device, Pattern::kRandom, lists, rows, sorted);
      const double floor = bench.Floor();
      const int32_t prefix = sorted ? 4096 / lists : 0;
      const SelectConfig standard = SampledDefault(device, bench.Shape(prefix));
      std::printf("%2dx2048 rows=%-3d floor %.2f", lists, rows, floor);
      Print({standard, bench.Time(standard, prefix)}, floor);
      std::printf(" | overlapped %.2f", bench.Time(standard, prefix, 60, true));
      if (search) {
        const auto measured = bench.Search(prefix);
        for (size_t i = 0; i < std::min<size_t>(4, measured.size()); ++i) Print(measured[i], floor);
      }
      std::printf(" | wrong %d\n", bench.Wrong(standard, prefix));
      std::fflush(stdout);
    }
  }
}

void Patterns(const SelectDevice& device) {
  std::printf("\ndefault configuration, 16x2048, by input: unsorted us at 1 and 8 rows | sorted\n");
  for (int p = 0; p < static_cast<int>(Pattern::kCount); ++p) {
    std::printf("%-18s", PatternName(static_cast<Pattern>(p)));
    for (const bool sorted : {false, true}) {
      for (const int32_t rows : {1, 8}) {
        Bench bench(device, static_cast<Pattern>(p), 16, rows, sorted);
        const int32_t prefix = sorted ? 256 : 0;
        const SelectConfig config = SampledDefault(device, bench.Shape(prefix));
        std::printf(" %7.2f%s", bench.Time(config, prefix, 15),
                    bench.Wrong(config, prefix) ? "!" : "");
      }
      std::printf(sorted ? "\n" : " |");
    }
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace sparsesel::bench

// `select_bench search` tries every configuration too.
int main(int argc, char** argv) {
  using namespace sparsesel;
  const bool search = argc > 1 && std::strcmp(argv[1], "search") == 0;
  kernels::SelectDevice device;
  CHECK_CUDA(kernels::QuerySelectDevice(0, &device));
  CHECK_CUDA(kernels::PrepareSampled(device));
  cudaDeviceProp properties;
  int driver = 0;
  CHECK_CUDA(cudaGetDeviceProperties(&properties, 0));
  CHECK_CUDA(cudaDriverGetVersion(&driver));
  std::printf("%s, driver API %d, runtime %d\n", properties.name, driver, CUDART_VERSION);
  cudaStream_t stream;
  CHECK_CUDA(cudaStreamCreate(&stream));
  std::printf("empty graph node %.2f us\n", bench::GraphMicroseconds(stream, [&] {
                bench::EmptyKernel<<<1, 32, 0, stream>>>();
              }));
  const std::vector<int32_t> rows = {1, 2, 4, 8, 16, 64};
  bench::Table(device, false, rows, search);
  bench::Table(device, true, rows, search);
  bench::Patterns(device);
  return 0;
}
