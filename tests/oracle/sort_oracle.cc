#include <algorithm>
#include <bit>
#include <cmath>

#include "oracle/answer.h"

namespace oracle {
namespace {

struct Candidate {
  float score;
  uint32_t bits;
  int32_t id;
  size_t source;
};

bool ScoreBefore(float a, float b) {
  if (std::isnan(b)) return !std::isnan(a);
  return a > b;  // false if a is NaN; -0 and +0 are equal
}

}  // namespace

Answer SortOracle(const std::vector<List>& lists, int32_t k, bool by_id) {
  // Collected in the order of (rank, position), which a stable sort keeps among equals.
  std::vector<Candidate> all;
  for (const List& list : lists) {
    for (int64_t i = 0; i < list.count && i < static_cast<int64_t>(list.ids.size()); ++i) {
      const uint32_t bits = list.score_bits[static_cast<size_t>(i)];
      const int32_t id = list.ids[static_cast<size_t>(i)];
      if (id >= 0) all.push_back({std::bit_cast<float>(bits), bits, id, all.size()});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    if (ScoreBefore(a.score, b.score)) return true;
    if (ScoreBefore(b.score, a.score)) return false;
    return a.id < b.id;
  });
  if (all.size() > static_cast<size_t>(k)) all.resize(static_cast<size_t>(k));
  if (by_id) {
    std::sort(all.begin(), all.end(),
              [](const Candidate& a, const Candidate& b) { return a.source < b.source; });
    std::stable_sort(all.begin(), all.end(),
                     [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
  }
  Answer answer;
  answer.count = static_cast<int32_t>(all.size());
  for (const Candidate& candidate : all) {
    answer.ids.push_back(candidate.id);
    answer.score_bits.push_back(candidate.bits);
  }
  answer.ids.resize(static_cast<size_t>(k), -1);
  answer.score_bits.resize(static_cast<size_t>(k), 0xff800000u);
  return answer;
}

}  // namespace oracle
