#include "tool/generate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace sparsesel_tool {
namespace {

constexpr std::string_view kNames[] = {"normal", "uniform",    "ties",   "equal",
                                       "sorted", "contiguous", "special"};

// SplitMix64: https://prng.di.unimi.it/splitmix64.c
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Below `bound`, which is small, so that the bias is of no matter.
  uint32_t Below(uint32_t bound) { return static_cast<uint32_t>((Next() >> 32) * bound >> 32); }
  float Uniform() { return static_cast<float>(Next() >> 40) * 0x1p-24f; }
  // A sum of uniforms: the library functions of the exact transforms differ between machines.
  float Normal() {
    float sum = -6.0f;
    for (int i = 0; i < 12; ++i) sum += Uniform();
    return sum;
  }

 private:
  uint64_t state_;
};

float Special(Random* random) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float choices[] = {infinity,
                           -infinity,
                           nan,
                           -nan,
                           0.0f,
                           -0.0f,
                           std::numeric_limits<float>::denorm_min(),
                           -std::numeric_limits<float>::denorm_min()};
  return random->Below(2) == 0 ? choices[random->Below(8)] : random->Normal();
}

float Score(const GeneratorOptions& options, int32_t rank, Random* random) {
  const std::string& name = options.distribution;
  if (name == "uniform") return random->Uniform();
  if (name == "ties") return static_cast<float>(random->Below(5));
  if (name == "equal") return 1.0f;
  if (name == "contiguous") return static_cast<float>(rank) + random->Uniform();
  if (name == "special") return Special(random);
  return random->Normal();
}

// Sorts one list by the full order; its ids are distinct and its scores are numbers.
void SortList(float* scores, int32_t* ids, int32_t length) {
  std::vector<std::pair<float, int32_t>> list;
  list.reserve(static_cast<size_t>(length));
  for (int32_t i = 0; i < length; ++i) list.emplace_back(-scores[i], ids[i]);
  std::sort(list.begin(), list.end());
  for (int32_t i = 0; i < length; ++i) {
    scores[i] = -list[static_cast<size_t>(i)].first;
    ids[i] = list[static_cast<size_t>(i)].second;
  }
}

}  // namespace

std::span<const std::string_view> DistributionNames() { return kNames; }

Result Generate(const GeneratorOptions& options, Dataset* out) {
  Dataset dataset;
  dataset.name = options.distribution + " scores of seed " + std::to_string(options.seed);
  dataset.rows = options.rows;
  dataset.ranks.resize(static_cast<size_t>(options.world));
  const auto length = static_cast<size_t>(options.candidates);
  for (RankLists& lists : dataset.ranks) {
    lists.candidates = options.candidates;
    lists.scores.resize(static_cast<size_t>(options.rows) * length);
    lists.ids.resize(lists.scores.size());
  }
  Random random(options.seed);
  std::vector<int32_t> ids(length * dataset.ranks.size());
  for (int32_t row = 0; row < options.rows; ++row) {
    // The ids of a row are distinct and dealt at random.
    std::iota(ids.begin(), ids.end(), 0);
    for (size_t i = ids.size(); i > 1; --i) {
      std::swap(ids[i - 1], ids[random.Below(static_cast<uint32_t>(i))]);
    }
    for (int32_t rank = 0; rank < options.world; ++rank) {
      RankLists& lists = dataset.ranks[static_cast<size_t>(rank)];
      float* scores = lists.scores.data() + static_cast<size_t>(row) * length;
      int32_t* own = lists.ids.data() + static_cast<size_t>(row) * length;
      for (size_t i = 0; i < length; ++i) {
        scores[i] = Score(options, rank, &random);
        own[i] = ids[static_cast<size_t>(rank) * length + i];
        if (options.distribution == "special" && random.Below(8) == 0) own[i] = -1;
      }
      if (options.distribution == "sorted") SortList(scores, own, options.candidates);
    }
  }
  *out = std::move(dataset);
  return {};
}

}  // namespace sparsesel_tool
