// Pack, restore, order by id and the general selection variant against the CPU.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/pack.h"
#include "kernels/restore.h"
#include "kernels/select.h"
#include "tests/gpu/device_buffer.h"
#include "tests/gpu/select_cases.h"

namespace sparsesel::testing {
namespace {

long checks = 0;
long failures = 0;
bool small = false;
kernels::SelectDevice device;

void Check(bool ok, const std::string& what) {
  ++checks;
  if (!ok && ++failures <= 30) std::printf("FAIL %s\n", what.c_str());
}

struct Source {
  Record record;
  uint64_t key;
  uint32_t number;  // list * longest list + position
};

// Every candidate of a row, in order, ties by source.
std::vector<Source> Ordered(const Case& c, int32_t row) {
  std::vector<Source> all;
  const int32_t longest = *std::max_element(c.length.begin(), c.length.end());
  for (int32_t l = 0; l < c.lists(); ++l) {
    for (int32_t i = 0; i < c.length[l]; ++i) {
      const Record record = c.at(l, row, i);
      if (CandidateKey(record) != kAbsentKey) {
        all.push_back({record, CandidateKey(record), static_cast<uint32_t>(l * longest + i)});
      }
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Source& a, const Source& b) { return a.key > b.key; });
  return all;
}

kernels::RecordLists ListsOf(const Case& c, const DeviceBuffer<Record>& records) {
  kernels::RecordLists lists;
  lists.base = records.get();
  lists.list_stride = c.list_stride();
  lists.row_stride = c.list_capacity;
  lists.lists = c.lists();
  std::copy(c.length.begin(), c.length.end(), lists.length);
  return lists;
}

// The general variant, then original score bits, then order by id.
void TestRadixAndRestore(const Case& c, int32_t k, int32_t blocks) {
  const std::string what = std::string(PatternName(c.pattern)) + " lists " +
                           std::to_string(c.lists()) + " length " + std::to_string(c.length[0]) +
                           " k " + std::to_string(k) + " rows " + std::to_string(c.rows);
  const DeviceBuffer<Record> records(c.records);
  DeviceBuffer<int32_t> ids(size_t(c.rows) * k), selected(c.rows);
  DeviceBuffer<uint64_t> keys(size_t(c.rows) * k);
  DeviceBuffer<uint32_t> scores(size_t(c.rows) * k);
  kernels::SelectArgs<kernels::RecordLists> args;
  args.input = ListsOf(c, records);
  args.rows = c.rows;
  args.k = k;
  args.output = {ids.get(), k, keys.get(), k, selected.get()};
  const int32_t longest = *std::max_element(c.length.begin(), c.length.end());
  const size_t bytes = kernels::RadixWorkspaceBytes(device, {blocks, c.lists(), longest, k});
  DeviceBuffer<unsigned char> workspace(bytes);
  CHECK_CUDA(kernels::LaunchRadix(device, args, workspace.get(), bytes, nullptr));
  kernels::RestoreArgs restore;
  restore.input = args.input;
  restore.keys = keys.get();
  restore.key_stride = k;
  restore.selected = selected.get();
  restore.rows = c.rows;
  restore.k = k;
  restore.scores = scores.get();
  restore.score_stride = k;
  CHECK_CUDA(kernels::LaunchRestore(restore, nullptr));
  CHECK_CUDA(cudaDeviceSynchronize());
  const auto got_ids = ids.Read();
  const auto got_scores = scores.Read();
  const auto got_selected = selected.Read();
  std::vector<std::vector<Source>> want;
  for (int32_t r = 0; r < c.rows; ++r) {
    want.push_back(Ordered(c, r));
    auto& row = want.back();
    if (static_cast<int32_t>(row.size()) > k) row.resize(k);
    int wrong = got_selected[r] != static_cast<int32_t>(row.size());
    for (int32_t i = 0; i < k; ++i) {
      const bool present = i < static_cast<int32_t>(row.size());
      wrong += got_ids[size_t(r) * k + i] != (present ? row[i].record.id : -1);
      wrong += got_scores[size_t(r) * k + i] !=
               (present ? row[i].record.score_bits : kMinusInfinityBits);
    }
    Check(wrong == 0,
          "radix+restore " + what + " row " + std::to_string(r) + ": " + std::to_string(wrong));
  }
  for (const bool by_source : {false, true}) {
    DeviceBuffer<int32_t> by_id_ids(got_ids);
    DeviceBuffer<uint32_t> by_id_scores(got_scores);
    DeviceBuffer<uint32_t> sources(size_t(c.rows) * k);
    kernels::IdOrderArgs order;
    order.ids = by_id_ids.get();
    order.id_stride = order.score_stride = k;
    order.scores = by_id_scores.get();
    order.selected = selected.get();
    order.rows = c.rows;
    order.k = k;
    if (by_source) {
      restore.scores = by_id_scores.get();
      restore.sources = sources.get();
      order.sources = sources.get();
      CHECK_CUDA(kernels::LaunchRestore(restore, nullptr));
    }
    const size_t order_bytes = kernels::IdOrderWorkspaceBytes(order);
    DeviceBuffer<unsigned char> order_workspace(order_bytes);
    CHECK_CUDA(kernels::LaunchIdOrder(order, order_workspace.get(), order_bytes, nullptr));
    CHECK_CUDA(cudaDeviceSynchronize());
    const auto ordered_ids = by_id_ids.Read();
    const auto ordered_scores = by_id_scores.Read();
    for (int32_t r = 0; r < c.rows; ++r) {
      auto row = want[r];
      std::stable_sort(row.begin(), row.end(), [&](const Source& a, const Source& b) {
        if (a.record.id != b.record.id) return a.record.id < b.record.id;
        return by_source && a.number < b.number;
      });
      int wrong = 0;
      for (int32_t i = 0; i < k; ++i) {
        const bool present = i < static_cast<int32_t>(row.size());
        wrong += ordered_ids[size_t(r) * k + i] != (present ? row[i].record.id : -1);
        wrong += ordered_scores[size_t(r) * k + i] !=
                 (present ? row[i].record.score_bits : kMinusInfinityBits);
      }
      Check(wrong == 0, std::string(by_source ? "by id and source " : "by id ") + what + " row " +
                            std::to_string(r) + ": " + std::to_string(wrong));
    }
  }
}

void TestPack(int32_t rows, int32_t candidates, int32_t map_kind, bool sort, bool positions,
              Pattern pattern) {
  const Case c = MakeCase(pattern, rows, {candidates}, 11 + candidates, 3);
  std::vector<uint32_t> scores;
  std::vector<int32_t> ids, counts, starts;
  for (const Record& record : c.records) {
    scores.push_back(record.score_bits);
    ids.push_back(record.id);
  }
  for (int32_t r = 0; r < rows; ++r) {
    counts.push_back(r % 4 == 0   ? candidates
                     : r % 4 == 1 ? -4
                     : r % 4 == 2 ? candidates / 2
                                  : INT32_MAX);
    starts.push_back(c.list_capacity > 5 ? r % 5 : 0);
    if (positions) {
      for (int32_t i = 0; i < c.list_capacity; ++i) {
        ids[size_t(r) * c.list_capacity + i] =
            i % 7 == 3 ? -1 : (i * 3) % (c.list_capacity - starts[r]);
      }
    }
  }
  const DeviceBuffer<uint32_t> device_scores(scores);
  const DeviceBuffer<int32_t> device_ids(ids), device_counts(counts), device_starts(starts);
  const int32_t active = rows - 1;
  const DeviceBuffer<int32_t> device_active(std::vector<int32_t>{active});
  const int32_t keep = sort ? std::max(1, candidates / 3) : candidates;
  const int64_t out_stride = candidates + 1;
  DeviceBuffer<Record> out(size_t(rows) * out_stride);
  kernels::PackArgs args;
  args.input.scores = device_scores.get();
  args.input.ids = device_ids.get();
  args.input.score_stride = args.input.id_stride = c.list_capacity;
  args.input.score_row_length = c.list_capacity;
  args.input.positions = positions;
  args.input.row_starts = positions ? device_starts.get() : nullptr;
  args.input.counts = device_counts.get();
  args.input.candidates = candidates;
  args.input.id_map = {map_kind, 1000, 16, 2, 5};
  args.active_rows = device_active.get();
  args.rows = rows;
  args.out = out.get();
  args.out_stride = out_stride;
  args.sort = sort;
  args.keep = sort ? keep : 0;
  const size_t bytes = kernels::PackWorkspaceBytes(args);
  DeviceBuffer<unsigned char> workspace(bytes);
  CHECK_CUDA(kernels::LaunchPack(args, workspace.get(), bytes, nullptr));
  CHECK_CUDA(cudaDeviceSynchronize());
  const auto got = out.Read();
  int wrong = 0;
  for (int32_t r = 0; r < rows; ++r) {
    std::vector<Record> want;
    const int32_t count = r < active ? std::clamp(counts[r], 0, candidates) : 0;
    for (int32_t i = 0; i < candidates; ++i) {
      const int32_t id = ids[size_t(r) * c.list_capacity + i];
      if (i >= count || id < 0) {
        want.push_back({0, -1});
        continue;
      }
      const int64_t mapped = map_kind == 0   ? int64_t{id}
                             : map_kind == 1 ? int64_t{id} + 1000
                                             : (int64_t{id} / 16 * 5 + 2) * 16 + id % 16;
      const size_t at = size_t(r) * c.list_capacity + (positions ? starts[r] + id : i);
      // A global id beyond int32 cannot be told apart from absence.
      want.push_back(mapped > INT32_MAX ? Record{0, -1}
                                        : Record{scores[at], static_cast<int32_t>(mapped)});
    }
    if (sort) std::stable_sort(want.begin(), want.end(), Before);
    for (int32_t i = 0; i < out_stride; ++i) {
      const Record& record = got[r * out_stride + i];
      if (i >= keep) {
        wrong += record.id != 0x5a5a5a5a;
      } else {
        wrong += record.id != want[i].id || record.score_bits != want[i].score_bits;
      }
    }
  }
  Check(wrong == 0, "pack " + std::to_string(candidates) + " map " + std::to_string(map_kind) +
                        (sort ? " sort " : " ") + PatternName(pattern) + ": " +
                        std::to_string(wrong));
}

}  // namespace
}  // namespace sparsesel::testing

int main(int argc, char** argv) {
  using namespace sparsesel::testing;
  small = argc > 1 && std::strcmp(argv[1], "small") == 0;
  CHECK_CUDA(sparsesel::kernels::QuerySelectDevice(0, &device));
  CHECK_CUDA(sparsesel::kernels::PreparePack());
  CHECK_CUDA(sparsesel::kernels::PrepareIdOrder());
  uint32_t seed = 1;
  for (int p = 0; p < static_cast<int>(Pattern::kCount); ++p) {
    const auto pattern = static_cast<Pattern>(p);
    TestRadixAndRestore(MakeCase(pattern, 3, std::vector<int32_t>(5, 255), ++seed), 300, 2);
    if (small) continue;
    TestRadixAndRestore(MakeCase(pattern, 2, std::vector<int32_t>(16, 2048), ++seed), 2048, 2);
    TestRadixAndRestore(MakeCase(pattern, 3, {1, 0, 777}, ++seed), 1000, 1);
    TestRadixAndRestore(MakeCase(pattern, 1, std::vector<int32_t>(3, 30001), ++seed), 65536, 1);
  }
  if (!small) {
    TestRadixAndRestore(MakeCase(Pattern::kTies, 1, std::vector<int32_t>(64, 16384), ++seed), 4096,
                        1);
    TestRadixAndRestore(MakeCase(Pattern::kRandom, 70000, {5, 6}, ++seed), 4, 300);
  }
  std::printf("radix, restore, id order: %ld checks, %ld failures\n", checks, failures);
  for (const Pattern pattern :
       {Pattern::kRandom, Pattern::kZeros, Pattern::kNans, Pattern::kHalfAbsent}) {
    for (const int32_t candidates :
         small ? std::vector<int32_t>{255} : std::vector<int32_t>{1, 255, 2048, 5000}) {
      for (int map = 0; map < 3; ++map) {
        for (const bool sort : {false, true}) {
          for (const bool positions : {false, true}) {
            TestPack(6, candidates, map, sort, positions, pattern);
          }
        }
      }
    }
  }
  std::printf("pack: %ld checks, %ld failures\n", checks, failures);
  return failures == 0 ? 0 : 1;
}
