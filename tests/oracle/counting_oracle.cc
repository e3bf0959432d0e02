#include <algorithm>
#include <stdexcept>

#include "oracle/answer.h"

namespace oracle {
namespace {

// A score as a number to be ranked downwards: NaN below everything, the zeros alike.
int64_t Height(uint32_t bits) {
  const int64_t magnitude = bits % 0x80000000u;
  if (magnitude > 0x7f800000) return -0x100000000;
  return bits >= 0x80000000u ? -magnitude : magnitude;
}

// How many stand before each: by looking at every pair.
std::vector<size_t> PlacesByPairs(const std::vector<int64_t>& heights,
                                  const std::vector<int32_t>& ids) {
  std::vector<size_t> places(ids.size(), 0);
  for (size_t i = 0; i < ids.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      // j comes from the earlier source, so it stands first unless i is better.
      const bool i_first = heights[i] > heights[j] || (heights[i] == heights[j] && ids[i] < ids[j]);
      ++places[i_first ? j : i];
    }
  }
  return places;
}

// The same by counting digits, the least one first: id, then height.
std::vector<size_t> PlacesByDigits(const std::vector<int64_t>& heights,
                                   const std::vector<int32_t>& ids) {
  std::vector<size_t> places(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) places[i] = i;
  const auto pass = [&places](auto digit) {
    std::vector<size_t> before(0x10001, 0);
    std::vector<size_t> at(places.size());
    for (size_t i = 0; i < places.size(); ++i) at[places[i]] = i;
    for (size_t i : at) ++before[digit(i) + 1];
    for (size_t d = 1; d < before.size(); ++d) before[d] += before[d - 1];
    for (size_t i : at) places[i] = before[digit(i)]++;
  };
  pass([&](size_t i) { return static_cast<size_t>(ids[i] & 0xffff); });
  pass([&](size_t i) { return static_cast<size_t>(ids[i] >> 16); });
  // Depth below the greatest height; at most 33 bits.
  const auto depth = [&](size_t i) { return static_cast<uint64_t>(0x7f800000 - heights[i]); };
  pass([&](size_t i) { return static_cast<size_t>(depth(i) & 0xffff); });
  pass([&](size_t i) { return static_cast<size_t>(depth(i) >> 16 & 0xffff); });
  pass([&](size_t i) { return static_cast<size_t>(depth(i) >> 32); });
  return places;
}

}  // namespace

Answer CountingOracle(const std::vector<List>& lists, int32_t k, bool by_id) {
  std::vector<int64_t> heights;
  std::vector<int32_t> ids;
  std::vector<uint32_t> bits;
  for (const List& list : lists) {
    const auto length = static_cast<int64_t>(list.ids.size());
    const int64_t count = std::max<int64_t>(0, std::min(list.count, length));
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      if (list.ids[i] < 0) continue;
      heights.push_back(Height(list.score_bits[i]));
      ids.push_back(list.ids[i]);
      bits.push_back(list.score_bits[i]);
    }
  }
  const bool few = ids.size() <= 1500;
  std::vector<size_t> places = few ? PlacesByPairs(heights, ids) : PlacesByDigits(heights, ids);

  Answer answer;
  answer.count = static_cast<int32_t>(std::min(ids.size(), static_cast<size_t>(k)));
  if (by_id) {
    // The selected ones among themselves: with equal heights only id and source tell them apart.
    std::vector<size_t> selected;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (places[i] < static_cast<size_t>(k)) selected.push_back(i);
    }
    std::vector<int32_t> selected_ids;
    for (size_t i : selected) selected_ids.push_back(ids[i]);
    const std::vector<int64_t> level(selected.size(), 0);
    const std::vector<size_t> among =
        few ? PlacesByPairs(level, selected_ids) : PlacesByDigits(level, selected_ids);
    std::fill(places.begin(), places.end(), ids.size());
    for (size_t i = 0; i < selected.size(); ++i) places[selected[i]] = among[i];
  }
  answer.ids.assign(static_cast<size_t>(k), -1);
  answer.score_bits.assign(static_cast<size_t>(k), 0xff800000u);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (places[i] >= static_cast<size_t>(answer.count)) continue;
    answer.ids[places[i]] = ids[i];
    answer.score_bits[places[i]] = bits[i];
  }
  return answer;
}

Answer Expect(const std::vector<List>& lists, int32_t k, bool by_id) {
  Answer answer = SortOracle(lists, k, by_id);
  if (answer != CountingOracle(lists, k, by_id)) {
    throw std::logic_error("the two oracles disagree");
  }
  return answer;
}

}  // namespace oracle
