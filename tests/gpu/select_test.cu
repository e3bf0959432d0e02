// Device selection against the CPU: every configuration, every kind of input, poisoned outputs with
// canaries between the rows. `select_test small` is a reduced run, `tiny` one for
// compute-sanitizer, `least` one for its racecheck, which is a thousand times slower still.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/select.h"
#include "tests/gpu/device_buffer.h"
#include "tests/gpu/select_cases.h"

namespace sparsesel::testing {
namespace {

using kernels::RecordLists;
using kernels::SelectArgs;
using kernels::SelectConfig;
using kernels::SelectDevice;
using kernels::SelectShape;
using kernels::SplitRows;

SelectDevice device;
long checks = 0;
long failures = 0;
bool small = false;
int pattern_step = 1;

constexpr int32_t kGuard = 3;  // elements between rows of an output
constexpr int32_t kPoison32 = 0x5a5a5a5a;

struct Outputs {
  DeviceBuffer<int32_t> ids;
  DeviceBuffer<uint64_t> keys;
  DeviceBuffer<int32_t> selected;
  DeviceBuffer<int32_t> proof;
  int32_t stride;
  Outputs(int32_t rows, int32_t k)
      : ids(size_t(rows) * (k + kGuard)),
        keys(size_t(rows) * (k + kGuard)),
        selected(rows),
        proof(rows),
        stride(k + kGuard) {}
  void Poison() {
    ids.Poison();
    keys.Poison();
    selected.Poison();
    proof.Poison();
  }
  kernels::SelectOutput View() { return {ids.get(), stride, keys.get(), stride, selected.get()}; }
};

struct Expected {
  std::vector<std::vector<uint64_t>> keys;  // per row
  std::vector<int> proof;                   // per row; empty: not asked for
};

void Fail(const std::string& what, int32_t row, const std::string& detail) {
  if (++failures <= 40) std::printf("FAIL %s row %d: %s\n", what.c_str(), row, detail.c_str());
}

void Compare(const std::string& what, Outputs& out, int32_t rows, int32_t k,
             const Expected& expected) {
  const auto ids = out.ids.Read();
  const auto keys = out.keys.Read();
  const auto selected = out.selected.Read();
  const auto proof = out.proof.Read();
  ++checks;
  for (int32_t r = 0; r < rows; ++r) {
    const auto& want = expected.keys[r];
    if (!expected.proof.empty() && proof[r] != expected.proof[r]) {
      return Fail(what, r, "proof " + std::to_string(proof[r]));
    }
    if (!expected.proof.empty() && expected.proof[r] == 0) continue;
    if (selected[r] != static_cast<int32_t>(want.size())) {
      return Fail(what, r,
                  "selected " + std::to_string(selected[r]) + " of " + std::to_string(want.size()));
    }
    for (int32_t i = 0; i < k + kGuard; ++i) {
      const size_t at = size_t(r) * out.stride + i;
      const uint64_t key = i < static_cast<int32_t>(want.size()) ? want[i] : 0;
      const int32_t id = i < k ? KeyId(key) : kPoison32;
      if (ids[at] != id || (i < k && keys[at] != key)) {
        return Fail(what, r,
                    "slot " + std::to_string(i) + " id " + std::to_string(ids[at]) +
                        " instead of " + std::to_string(id));
      }
    }
  }
}

RecordLists ListsOf(const Case& c, const DeviceBuffer<Record>& records) {
  RecordLists lists;
  lists.base = records.get();
  lists.list_stride = c.list_stride();
  lists.row_stride = c.list_capacity;
  lists.lists = c.lists();
  std::copy(c.length.begin(), c.length.end(), lists.length);
  return lists;
}

std::string Describe(const Case& c, int32_t k, const SelectConfig& config, const char* extra) {
  char text[200];
  std::snprintf(text, sizeof text, "%s rows=%d lists=%d length=%d k=%d C=%d T=%d V=%d S=%d %s",
                PatternName(c.pattern), c.rows, c.lists(), c.length[0], k, config.cluster,
                config.threads, config.keys, config.samples, extra);
  return text;
}

std::vector<SelectConfig> ConfigsFor(const SelectShape& shape, size_t most, uint32_t turn) {
  std::vector<SelectConfig> all(512);
  all.resize(kernels::SampledConfigs(device, shape, all.data(), 512));
  std::vector<SelectConfig> some = {kernels::SampledDefault(device, shape)};
  if (all.empty()) return {};
  for (size_t i = 0; i < std::min(most, all.size()); ++i) {
    some.push_back(all[(turn + i * all.size() / std::min(most, all.size())) % all.size()]);
  }
  return some;
}

// `order`: what the lists promise. 0 nothing, else a prefix of that length.
void TestRecords(const Case& c, int32_t k, size_t most_configs) {
  const DeviceBuffer<Record> records(c.records);
  const int32_t longest = *std::max_element(c.length.begin(), c.length.end());
  Expected expected;
  for (int32_t r = 0; r < c.rows; ++r) expected.keys.push_back(ExpectedKeys(c, r, k, longest));
  Outputs out(c.rows, k);
  for (const auto& config : ConfigsFor({c.rows, c.lists(), longest, k}, most_configs, checks)) {
    SelectArgs<RecordLists> args;
    args.input = ListsOf(c, records);
    args.rows = c.rows;
    args.k = k;
    args.output = out.View();
    out.Poison();
    CHECK_CUDA(kernels::LaunchSampled(device, config, args, nullptr));
    CHECK_CUDA(cudaDeviceSynchronize());
    Compare(Describe(c, k, config, "unsorted"), out, c.rows, k, expected);
  }
}

void TestPrefix(const Case& c, int32_t k, int32_t prefix, size_t most_configs) {
  const DeviceBuffer<Record> records(c.records);
  const int32_t longest = *std::max_element(c.length.begin(), c.length.end());
  Outputs out(c.rows, k);
  for (const bool complete : {false, true}) {
    for (const bool need_source : {false, true}) {
      Expected expected;
      for (int32_t r = 0; r < c.rows; ++r) {
        expected.keys.push_back(ExpectedKeys(c, r, k, longest));
        expected.proof.push_back(complete || ExpectedProof(c, r, k, prefix, need_source));
      }
      const SelectShape shape = {c.rows, c.lists(), std::min(prefix, longest), k};
      for (const auto& config : ConfigsFor(shape, most_configs, checks)) {
        SelectArgs<RecordLists> args;
        args.input = ListsOf(c, records);
        args.rows = c.rows;
        args.k = k;
        args.output = out.View();
        args.prefix = {prefix, complete, need_source, out.proof.get()};
        out.Poison();
        CHECK_CUDA(kernels::LaunchSampled(device, config, args, nullptr));
        CHECK_CUDA(cudaDeviceSynchronize());
        const std::string extra = "prefix=" + std::to_string(prefix) +
                                  (complete ? " complete" : "") + (need_source ? " source" : "");
        Compare(Describe(c, k, config, extra.c_str()), out, c.rows, k, expected);
      }
    }
  }
}

// One input for each kind of input, small.
void RunLeast() {
  Case c = MakeCase(Pattern{}, 2, std::vector<int32_t>(5, 255), 1);
  TestRecords(c, 100, 4);
  SortLists(c);
  TestPrefix(c, 100, 64, 2);
}

void RunRecords() {
  const std::vector<int32_t> worlds =
      small ? std::vector<int32_t>{1, 5, 16} : std::vector<int32_t>{1, 2, 3, 5, 8, 12, 16};
  const std::vector<int32_t> lengths =
      small ? std::vector<int32_t>{255, 2048} : std::vector<int32_t>{1, 255, 2047, 2048, 2049};
  const std::vector<int32_t> ks =
      small ? std::vector<int32_t>{3, 2048} : std::vector<int32_t>{1, 3, 2047, 2048, 4096};
  uint32_t seed = 1;
  for (int p = 0; p < static_cast<int>(Pattern::kCount); p += pattern_step) {
    for (const int32_t world : worlds) {
      for (const int32_t length : lengths) {
        if (small && length == 2048 && world != 16) continue;
        const Case c = MakeCase(static_cast<Pattern>(p), 2, std::vector<int32_t>(world, length),
                                ++seed, seed % 3);
        for (const int32_t k : ks) TestRecords(c, k, small ? 2 : 6);
      }
    }
  }
  if (!small) {
    for (int p = 0; p < static_cast<int>(Pattern::kCount); p += pattern_step) {
      const Case c = MakeCase(static_cast<Pattern>(p), 3, std::vector<int32_t>(16, 2048), ++seed);
      TestRecords(c, 2048, 512);
      const Case wide =
          MakeCase(static_cast<Pattern>(p), 1, std::vector<int32_t>(64, 2048), ++seed);
      TestRecords(wide, 2048, 8);
      std::vector<int32_t> uneven;
      for (int32_t l = 0; l < 13; ++l) uneven.push_back((l * 397) % 2049);
      TestRecords(MakeCase(static_cast<Pattern>(p), 2, uneven, ++seed), 2048, 6);
    }
  }
}

void RunPrefixes() {
  uint32_t seed = 1000;
  for (int p = 0; p < static_cast<int>(Pattern::kCount); p += pattern_step) {
    for (const int32_t world :
         small ? std::vector<int32_t>{16} : std::vector<int32_t>{1, 2, 4, 8, 16}) {
      Case c = MakeCase(static_cast<Pattern>(p), 2, std::vector<int32_t>(world, 2048), ++seed);
      SortLists(c);
      TestPrefix(c, 2048, 256, small ? 1 : 4);
      if (small) continue;
      TestPrefix(c, 2048, std::max(1, 4096 / world), 6);
      TestPrefix(c, 100, 37, 4);
      TestPrefix(c, 2048, 2048, 2);
    }
  }
}

void RunSplit() {
  uint32_t seed = 5000;
  for (int p = 0; p < static_cast<int>(Pattern::kCount); p += pattern_step) {
    for (const int32_t length :
         small ? std::vector<int32_t>{2049} : std::vector<int32_t>{1, 2049, 8192, 32768}) {
      const int32_t rows = 5;
      const int32_t k = 2048;
      Case c = MakeCase(static_cast<Pattern>(p), rows, {length}, ++seed, 1);
      std::vector<uint32_t> scores;
      std::vector<int32_t> ids;
      for (const Record& record : c.records) {
        scores.push_back(record.score_bits);
        ids.push_back(record.id);
      }
      const std::vector<int32_t> counts = {length, 0, -4, length / 2 + 1, INT32_MAX};
      const DeviceBuffer<uint32_t> device_scores(scores);
      const DeviceBuffer<int32_t> device_ids(ids), device_counts(counts);
      const DeviceBuffer<int32_t> active(std::vector<int32_t>{4});
      Outputs out(rows, k);
      for (const auto& config : ConfigsFor({rows, 1, length, k}, small ? 2 : 8, seed)) {
        for (const bool counted : {false, true}) {
          Expected expected;
          for (int32_t r = 0; r < rows; ++r) {
            const int32_t n = counted ? std::clamp(counts[r], 0, length) : length;
            expected.keys.push_back(ExpectedKeys(c, r, counted && r >= 4 ? 0 : k, n));
          }
          SelectArgs<SplitRows> args;
          args.input = {
              device_scores.get(), device_ids.get(), c.list_capacity,
              c.list_capacity,     length,           counted ? device_counts.get() : nullptr};
          args.rows = rows;
          args.k = k;
          args.active_rows = counted ? active.get() : nullptr;
          args.output = out.View();
          out.Poison();
          CHECK_CUDA(kernels::LaunchSampled(device, config, args, nullptr));
          CHECK_CUDA(cudaDeviceSynchronize());
          Compare(Describe(c, k, config, counted ? "split counted" : "split"), out, rows, k,
                  expected);
        }
      }
    }
  }
}

}  // namespace
}  // namespace sparsesel::testing

int main(int argc, char** argv) {
  using namespace sparsesel::testing;
  const bool tiny = argc > 1 && std::strcmp(argv[1], "tiny") == 0;
  small = tiny || (argc > 1 && std::strcmp(argv[1], "small") == 0);
  const bool least = argc > 1 && std::strcmp(argv[1], "least") == 0;
  if (tiny) pattern_step = 9;  // random, one key, one list only
  CHECK_CUDA(sparsesel::kernels::QuerySelectDevice(0, &device));
  CHECK_CUDA(sparsesel::kernels::PrepareSampled(device));
  const auto part = [](const char* name, void (*run)()) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::printf("%s: %ld checks, %ld failures, %.1f s\n", name, checks, failures, took.count());
    std::fflush(stdout);
  };
  if (least) {
    part("least", RunLeast);
    return failures == 0 ? 0 : 1;
  }
  part("records", RunRecords);
  part("prefixes", RunPrefixes);
  part("split", RunSplit);
  return failures == 0 ? 0 : 1;
}
