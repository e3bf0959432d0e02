#include "tool/reshard.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "tool/reference.h"

namespace sparsesel_tool {
namespace {

constexpr std::string_view kNames[] = {"contiguous", "interleaved", "one-rank", "duplicate"};

using Lists = std::vector<std::vector<Candidate>>;  // of one row, by rank

Lists Deal(const std::vector<Candidate>& by_id, std::string_view name, int32_t world) {
  Lists lists(static_cast<size_t>(world));
  const size_t ranks = lists.size();
  for (size_t i = 0; i < by_id.size(); ++i) {
    size_t rank = ranks - 1;
    if (name == "contiguous") rank = i * ranks / by_id.size();
    if (name == "interleaved") rank = i % ranks;
    lists[rank].push_back(by_id[i]);
  }
  return lists;
}

Lists RowLists(const Dataset& dataset, int32_t row, std::string_view name, int32_t world) {
  Lists own;
  for (int32_t rank = 0; rank < dataset.world(); ++rank) {
    own.push_back(PresentCandidates(dataset, rank, row));
  }
  if (name == "duplicate") {
    Lists twice = own;
    for (size_t rank = 0; rank < own.size(); ++rank) {
      const std::vector<Candidate>& next = own[(rank + 1) % own.size()];
      twice[rank].insert(twice[rank].end(), next.begin(), next.end());
    }
    return twice;
  }
  std::vector<Candidate> all;
  for (const auto& list : own) all.insert(all.end(), list.begin(), list.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
  return Deal(all, name, world);
}

RankLists Store(const std::vector<Lists>& rows, size_t rank) {
  RankLists stored;
  size_t longest = 1;
  for (const Lists& row : rows) longest = std::max(longest, row[rank].size());
  stored.candidates = static_cast<int32_t>(longest);
  stored.scores.assign(rows.size() * longest, INFINITY);
  stored.ids.assign(rows.size() * longest, 0);
  for (size_t r = 0; r < rows.size(); ++r) {
    const std::vector<Candidate>& list = rows[r][rank];
    for (size_t i = 0; i < list.size(); ++i) {
      stored.scores[r * longest + i] = list[i].score;
      stored.ids[r * longest + i] = list[i].id;
    }
    stored.counts.push_back(static_cast<int32_t>(list.size()));
  }
  return stored;
}

}  // namespace

std::span<const std::string_view> ReshardNames() { return kNames; }

Result Reshard(const Dataset& dataset, std::string_view name, int32_t world, Dataset* out) {
  const bool duplicate = name == "duplicate";
  if (duplicate && world != dataset.world()) {
    return Failure("--reshard duplicate keeps the number of ranks: leave --world out");
  }
  std::vector<Lists> rows;
  rows.reserve(static_cast<size_t>(dataset.rows));
  for (int32_t row = 0; row < dataset.rows; ++row) {
    rows.push_back(RowLists(dataset, row, name, world));
  }
  Dataset dealt;
  dealt.name = dataset.name;
  dealt.rows = dataset.rows;
  for (size_t rank = 0; rank < static_cast<size_t>(world); ++rank) {
    dealt.ranks.push_back(Store(rows, rank));
    if (dealt.ranks.back().candidates > kMaxListLength) {
      return Failure("--reshard " + std::string(name) + " makes a list of " +
                     std::to_string(dealt.ranks.back().candidates) + " candidates, more than " +
                     std::to_string(kMaxListLength));
    }
  }
  // Each candidate twice: so is each expected id. The other ways change nothing (design's contract:
  // moving candidates between ranks changes no id).
  dealt.expected = dataset.expected;
  dealt.expected_k = dataset.expected_k;
  if (duplicate) {
    const auto k = static_cast<size_t>(dataset.expected_k);
    for (size_t i = 0; i < dealt.expected.size(); ++i) {
      dealt.expected[i] = dataset.expected[i / k * k + i % k / 2];
    }
  }
  *out = std::move(dealt);
  return {};
}

}  // namespace sparsesel_tool
