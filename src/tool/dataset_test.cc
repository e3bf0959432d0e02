#include "tool/dataset.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "tool/generate.h"
#include "tool/reference.h"
#include "tool/reshard.h"

namespace sparsesel_tool {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

Dataset TwoRanks() {
  Dataset dataset;
  dataset.rows = 1;
  dataset.ranks.push_back({4, {1.0f, NAN, -kInf, 5.0f}, {7, 3, 9, -1}, {}});
  dataset.ranks.push_back({4, {-0.0f, 0.0f, 1.0f, 9.0f}, {2, 1, 6, 8}, {3}});
  return dataset;
}

}  // namespace

TEST_CASE("reference: the order of the contract") {
  // 1.0 twice by id, the zeros are equal, -inf before NaN, absent ones nowhere.
  REQUIRE(ReferenceIds(TwoRanks(), 8) == std::vector<int32_t>{6, 7, 1, 2, 9, 3, -1, -1});
  REQUIRE(ReferenceIds(TwoRanks(), 3) == std::vector<int32_t>{6, 7, 1});
}

TEST_CASE("re-sharding keeps every candidate") {
  const Dataset dataset = TwoRanks();
  const std::vector<int32_t> truth = ReferenceIds(dataset, 8);
  for (const char* name : {"contiguous", "interleaved", "one-rank"}) {
    for (const int32_t world : {1, 2, 3, 5, 64}) {
      CAPTURE(name, world);
      Dataset dealt;
      REQUIRE(Reshard(dataset, name, world, &dealt).ok());
      REQUIRE(dealt.world() == world);
      REQUIRE(ReferenceIds(dealt, 8) == truth);
    }
  }
}

TEST_CASE("re-sharding: duplicates double what is expected") {
  Dataset dataset = TwoRanks();
  dataset.expected = ReferenceIds(dataset, 8);
  dataset.expected_k = 8;
  Dataset dealt;
  REQUIRE(Reshard(dataset, "duplicate", 2, &dealt).ok());
  REQUIRE(dealt.expected == ReferenceIds(dealt, 8));
  REQUIRE(dealt.expected == std::vector<int32_t>{6, 6, 7, 7, 1, 1, 2, 2});
  REQUIRE(Reshard(dataset, "duplicate", 3, &dealt).exit == kExitError);
}

TEST_CASE("re-sharding refuses lists that are too long") {
  GeneratorOptions options;
  options.world = 3;
  options.rows = 1;
  options.candidates = 30000;
  Dataset dataset;
  REQUIRE(Generate(options, &dataset).ok());
  Dataset dealt;
  REQUIRE(Reshard(dataset, "one-rank", 3, &dealt).exit == kExitError);
  REQUIRE(Reshard(dataset, "contiguous", 2, &dealt).ok());
}

TEST_CASE("generated candidates: every distribution, distinct ids, the same each time") {
  for (const std::string_view name : DistributionNames()) {
    CAPTURE(std::string(name));
    GeneratorOptions options;
    options.distribution = name;
    options.world = 3;
    options.rows = 2;
    options.candidates = 50;
    Dataset first;
    Dataset second;
    REQUIRE(Generate(options, &first).ok());
    REQUIRE(Generate(options, &second).ok());
    std::set<int32_t> ids;
    for (size_t rank = 0; rank < 3; ++rank) {
      REQUIRE(first.ranks[rank].ids == second.ranks[rank].ids);
      for (size_t i = 0; i < 50; ++i) {
        const int32_t id = first.ranks[rank].ids[i];
        if (id >= 0) REQUIRE(ids.insert(id).second);
      }
    }
  }
}

TEST_CASE("the bundled file: the tool's own reference is what the file expects") {
  Dataset dataset;
  const Result result = LoadDataset(SPARSESEL_TEST_DATA_DIR "/manpages.safetensors", &dataset);
  REQUIRE(result.text.empty());
  REQUIRE(dataset.world() == 16);
  REQUIRE(dataset.rows == 8);
  REQUIRE(dataset.expected_k == 2048);
  REQUIRE(ReferenceIds(dataset, 2048) == dataset.expected);
  const Truth prefix = TruthOf(dataset, 10);
  REQUIRE(prefix.ids == ReferenceIds(dataset, 10));
  REQUIRE(prefix.source == "expected_ids of the file");
  REQUIRE(TruthOf(dataset, 2049).source == "the tool's own reference");
}

}  // namespace sparsesel_tool
