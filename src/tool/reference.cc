#include "tool/reference.h"

#include <algorithm>
#include <cmath>

namespace sparsesel_tool {
namespace {

bool Precedes(const Candidate& a, const Candidate& b) {
  const bool a_nan = std::isnan(a.score);
  const bool b_nan = std::isnan(b.score);
  if (a_nan != b_nan) return b_nan;
  if (!a_nan && a.score != b.score) return a.score > b.score;
  return a.id < b.id;
}

}  // namespace

std::vector<Candidate> PresentCandidates(const Dataset& dataset, int32_t rank, int32_t row) {
  const RankLists& lists = dataset.ranks[static_cast<size_t>(rank)];
  const int32_t count = lists.counts.empty() ? lists.candidates
                                             : std::clamp(lists.counts[static_cast<size_t>(row)], 0,
                                                          lists.candidates);
  std::vector<Candidate> present;
  for (int32_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(int64_t{row} * lists.candidates + i);
    if (lists.ids[at] >= 0) present.push_back({lists.scores[at], lists.ids[at]});
  }
  return present;
}

std::vector<int32_t> ReferenceIds(const Dataset& dataset, int32_t k) {
  std::vector<int32_t> ids(static_cast<size_t>(dataset.rows) * static_cast<size_t>(k), -1);
  for (int32_t row = 0; row < dataset.rows; ++row) {
    std::vector<Candidate> all;
    for (int32_t rank = 0; rank < dataset.world(); ++rank) {
      const std::vector<Candidate> present = PresentCandidates(dataset, rank, row);
      all.insert(all.end(), present.begin(), present.end());
    }
    // What is equal in score and id has the same id, so the source need not be looked at.
    std::sort(all.begin(), all.end(), Precedes);
    const size_t selected = std::min(all.size(), static_cast<size_t>(k));
    const size_t begin = static_cast<size_t>(row) * static_cast<size_t>(k);
    for (size_t i = 0; i < selected; ++i) ids[begin + i] = all[i].id;
  }
  return ids;
}

}  // namespace sparsesel_tool
