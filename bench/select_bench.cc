// Host select of one row, one thread: every variant beside what the standard library offers.
// Each iteration takes another input; together they are larger than a second-level cache.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "contract/order.h"
#include "stages/host/select.h"

namespace sparsesel {
namespace {

constexpr int32_t kPerList = 2048;
constexpr int32_t kWanted = 2048;
constexpr size_t kInputs = 24;  // 24 rows of 16 lists are 6 MiB

enum class Scores { kRandom, kTies };

struct Input {
  std::vector<std::vector<Record>> lists;
  std::vector<RecordList> views;
};

Input MakeInput(int32_t lists, Scores scores, bool sorted, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<int32_t> ids(static_cast<size_t>(lists) * kPerList);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(4 * i);
  std::shuffle(ids.begin(), ids.end(), random);
  Input input;
  input.lists.resize(static_cast<size_t>(lists));
  size_t next = 0;
  for (auto& list : input.lists) {
    for (int32_t i = 0; i < kPerList; ++i) {
      float score = normal(random);
      if (scores == Scores::kTies) score = std::round(score * 8) / 8;
      list.push_back({std::bit_cast<uint32_t>(score), ids[next++]});
    }
    if (sorted) {
      std::sort(list.begin(), list.end(),
                [](Record a, Record b) { return CandidateKey(a) > CandidateKey(b); });
    }
    input.views.push_back({list.data(), kPerList});
  }
  return input;
}

std::vector<Input> MakeInputs(int32_t lists, Scores scores, bool sorted) {
  std::vector<Input> inputs;
  for (size_t i = 0; i < kInputs; ++i) inputs.push_back(MakeInput(lists, scores, sorted, i));
  return inputs;
}

// What a caller without this library would write: all keys, and one algorithm.
using Algorithm = void (*)(std::vector<uint64_t>& keys, size_t k);

void NthElementAndSort(std::vector<uint64_t>& keys, size_t k) {
  const auto middle = keys.begin() + static_cast<ptrdiff_t>(k);
  std::nth_element(keys.begin(), middle, keys.end(), std::greater<>());
  std::sort(keys.begin(), middle, std::greater<>());
}

void PartialSort(std::vector<uint64_t>& keys, size_t k) {
  std::partial_sort(keys.begin(), keys.begin() + static_cast<ptrdiff_t>(k), keys.end(),
                    std::greater<>());
}

void FullSort(std::vector<uint64_t>& keys, size_t) {
  std::sort(keys.begin(), keys.end(), std::greater<>());
}

void RunStandard(benchmark::State& state, Algorithm algorithm, int32_t lists, Scores scores) {
  const std::vector<Input> inputs = MakeInputs(lists, scores, false);
  std::vector<uint64_t> keys(static_cast<size_t>(lists) * kPerList);
  size_t next = 0;
  for (auto _ : state) {
    size_t count = 0;
    for (const RecordList& list : inputs[next].views) {
      for (int32_t i = 0; i < list.length; ++i) keys[count++] = CandidateKey(list.data[i]);
    }
    algorithm(keys, kWanted);
    benchmark::DoNotOptimize(keys.data());
    benchmark::ClobberMemory();
    next = (next + 1) % kInputs;
  }
}

void RunVariant(benchmark::State& state, const HostSelectVariant* variant, int32_t lists,
                Scores scores, bool sorted) {
  const std::vector<Input> inputs = MakeInputs(lists, scores, sorted);
  const size_t bytes = variant->scratch_bytes(lists, int64_t{lists} * kPerList, kWanted);
  constexpr std::align_val_t kAlignment{64};
  auto* const scratch = static_cast<std::byte*>(::operator new(bytes, kAlignment));
  std::vector<uint64_t> keys(kWanted);
  size_t next = 0;
  for (auto _ : state) {
    variant->run(inputs[next].views, kWanted, {scratch, bytes}, keys.data());
    benchmark::DoNotOptimize(keys.data());
    benchmark::ClobberMemory();
    next = (next + 1) % kInputs;
  }
  ::operator delete(scratch, kAlignment);
}

// Inputs are made only for the benchmarks that the filter picks.
const bool registered = [] {
  const auto add = [](const std::string& name, auto run) {
    benchmark::RegisterBenchmark(name.c_str(), run)->Unit(benchmark::kMicrosecond);
  };
  for (const int32_t lists : {16, 8}) {
    for (const Scores scores : {Scores::kRandom, Scores::kTies}) {
      const std::string shape =
          "/W" + std::to_string(lists) + (scores == Scores::kRandom ? "/random" : "/ties");
      const std::pair<const char*, Algorithm> standard[] = {
          {"std.nth_element+sort", NthElementAndSort},
          {"std.partial_sort", PartialSort},
          {"std.sort", FullSort}};
      for (const auto& [name, algorithm] : standard) {
        add("select/" + std::string(name) + shape, [=, algorithm = algorithm](auto& state) {
          RunStandard(state, algorithm, lists, scores);
        });
      }
      for (const HostSelectVariant& variant : HostSelectVariants()) {
        const bool sorted = variant.needs_sorted_lists;
        add("select/" + std::string(variant.name) + (sorted ? "/sorted" : "/unsorted") + shape,
            [=, variant = &variant](auto& state) {
              RunVariant(state, variant, lists, scores, sorted);
            });
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace sparsesel
