// The bundled real file, as it is and dealt anew.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>

#include "contract/batch.h"
#include "contract/combinations.h"
#include "contract/rows.h"

namespace contract {
namespace {

constexpr size_t kRanks = 16;
constexpr size_t kRows = 8;
constexpr size_t kList = 2048;

struct Manpages {
  std::vector<Row> rows;
  std::vector<std::vector<int32_t>> expected_ids;
};

template <typename T>
std::vector<T> Tensor(const nlohmann::json& header, const std::string& bytes, size_t data,
                      const char* name) {
  const size_t begin = header.at(name).at("data_offsets").at(0);
  const size_t end = header.at(name).at("data_offsets").at(1);
  std::vector<T> values((end - begin) / sizeof(T));
  std::memcpy(values.data(), bytes.data() + data + begin, end - begin);
  return values;
}

const Manpages& File() {
  static const Manpages file = [] {
    std::ifstream stream(SPARSESEL_TEST_DATA_DIR "/manpages.safetensors", std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    uint64_t header_size = 0;
    std::memcpy(&header_size, bytes.data(), sizeof(header_size));
    const nlohmann::json header = nlohmann::json::parse(bytes.substr(8, header_size));
    const size_t data = 8 + header_size;
    const auto scores = Tensor<uint32_t>(header, bytes, data, "scores");
    const auto ids = Tensor<int32_t>(header, bytes, data, "ids");
    const auto expected = Tensor<int32_t>(header, bytes, data, "expected_ids");
    Manpages made;
    for (size_t row = 0; row < kRows; ++row) {
      Row lists;
      for (size_t rank = 0; rank < kRanks; ++rank) {
        const auto at = static_cast<ptrdiff_t>((rank * kRows + row) * kList);
        lists.push_back({{scores.begin() + at, scores.begin() + at + kList},
                         {ids.begin() + at, ids.begin() + at + kList},
                         kList});
      }
      made.rows.push_back(lists);
      const auto at = static_cast<ptrdiff_t>(row * kList);
      made.expected_ids.emplace_back(expected.begin() + at, expected.begin() + at + kList);
    }
    return made;
  }();
  return file;
}

// All candidates of a row, one after the other.
oracle::List Joined(const Row& row) {
  oracle::List all;
  for (const oracle::List& list : row) {
    all.ids.insert(all.ids.end(), list.ids.begin(), list.ids.end());
    all.score_bits.insert(all.score_bits.end(), list.score_bits.begin(), list.score_bits.end());
  }
  all.count = static_cast<int64_t>(all.ids.size());
  return all;
}

// Deals all candidates of a row to `world` ranks, number i to rank place(i).
template <typename Place>
Row Deal(const oracle::List& all, size_t world, Place place) {
  Row row(world);
  for (size_t i = 0; i < all.ids.size(); ++i) {
    oracle::List& list = row[place(i)];
    list.ids.push_back(all.ids[i]);
    list.score_bits.push_back(all.score_bits[i]);
    ++list.count;
  }
  return row;
}

oracle::List ById(const oracle::List& all) {
  std::vector<size_t> order(all.ids.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return all.ids[a] < all.ids[b]; });
  oracle::List sorted;
  for (size_t i : order) {
    sorted.ids.push_back(all.ids[i]);
    sorted.score_bits.push_back(all.score_bits[i]);
  }
  sorted.count = all.count;
  return sorted;
}

// In the order of the scores: the winners are on the first ranks.
oracle::List ByScore(const oracle::List& all) {
  oracle::List sorted;
  const oracle::Answer answer =
      oracle::SortOracle({all}, static_cast<int32_t>(all.ids.size()), false);
  sorted.ids = answer.ids;
  sorted.score_bits = answer.score_bits;
  sorted.count = all.count;
  return sorted;
}

// Each batch is run by itself.
void CheckEverywhere(const Group& group, const Job& job, const std::vector<Batch>& batches) {
  std::vector<std::vector<oracle::Answer>> expected;
  for (const Batch& batch : batches) expected.push_back(ExpectRows(job, batch));
  for (const Combination& combination : CoveringCombinations(job)) {
    INFO(combination.text());
    const Job run = With(job, combination);
    const Bound bound(group, run);
    // A prefix may be longer than other ranks' lists.
    if (!bound.ok() && !kOnDevice) continue;
    INFO(Describe(bound.outcomes()));
    REQUIRE(bound.ok());
    for (size_t i = 0; i < batches.size(); ++i) {
      CHECK(Compare(run, expected[i], Execute(bound, run, batches[i])) == "");
    }
  }
}

template <typename Reshard>
void CheckReshard(size_t world, bool same_answer, Reshard reshard) {
  std::vector<Row> rows;
  for (const Row& row : File().rows) rows.push_back(reshard(row));
  Job job = MakeJob(static_cast<int32_t>(world), 2048, 1, {1, 8});
  for (size_t rank = 0; rank < world; ++rank) {
    size_t longest = 1;
    for (const Row& row : rows) longest = std::max(longest, row[rank].ids.size());
    job.problems[rank].candidates = static_cast<int32_t>(longest);
  }
  Batch batch = MakeBatch(job, static_cast<int32_t>(kRows));
  for (size_t row = 0; row < kRows; ++row) {
    SetRow(job, static_cast<int32_t>(row), rows[row], &batch);
  }
  const std::vector<oracle::Answer> expected = ExpectRows(job, batch);
  for (size_t row = 0; row < kRows && same_answer; ++row) {
    REQUIRE(expected[row].ids == File().expected_ids[row]);
  }
  const Group group(job.world());
  CheckEverywhere(group, job, {batch});
  if (!kOnDevice) return;
  // And row by row: then the kernel that does everything finds room beside those of many ranks.
  job.capacities = {1};
  std::vector<Batch> single(kRows, MakeBatch(job, 1));
  for (size_t row = 0; row < kRows; ++row) SetRow(job, 0, rows[row], &single[row]);
  CheckEverywhere(group, job, single);
}

TEST_CASE("manpages: as the file has them") {
  CheckReshard(16, true, [](const Row& row) { return row; });
}

TEST_CASE("manpages: contiguous shards by id, and by score") {
  for (size_t world : {4, 5, 16}) {
    const auto place = [&](size_t i) { return i * world / (kRanks * kList); };
    CheckReshard(world, true,
                 [&](const Row& row) { return Deal(ById(Joined(row)), world, place); });
    CheckReshard(world, true,
                 [&](const Row& row) { return Deal(ByScore(Joined(row)), world, place); });
  }
}

TEST_CASE("manpages: interleaved") {
  for (size_t world : {2, 7, 16}) {
    CheckReshard(world, true, [&](const Row& row) {
      return Deal(ByScore(Joined(row)), world, [&](size_t i) { return i % world; });
    });
  }
}

TEST_CASE("manpages: everything on one rank") {
  for (size_t owner : {0, 3}) {
    CheckReshard(4, true, [&](const Row& row) {
      return Deal(Joined(row), 4, [&](size_t) { return owner; });
    });
  }
}

TEST_CASE("manpages: every list on two ranks") {
  CheckReshard(16, false, [](const Row& row) {
    Row twice = row;
    for (size_t rank = 0; rank < twice.size(); ++rank) twice[rank] = row[rank / 2 * 2];
    return twice;
  });
}

}  // namespace
}  // namespace contract
