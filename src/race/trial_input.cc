#include "race/trial_input.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

namespace sparsesel {
namespace {

// The greatest own id whose global id fits an int32.
int32_t GreatestOwnId(const IdMap& map) {
  int32_t low = 0;
  int32_t high = std::numeric_limits<int32_t>::max();
  while (low < high) {  // MapId is monotone
    const int32_t middle = low + (high - low) / 2 + 1;
    if (MapId(map, middle) <= std::numeric_limits<int32_t>::max()) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace

void MakeTrialRow(const Job& job, int32_t rank, InputKind kind, uint64_t seed, int64_t row,
                  TrialRow* made) {
  const RankFacts& facts = job.facts[static_cast<size_t>(rank)];
  const auto length = static_cast<size_t>(facts.candidates);
  std::array<int32_t, kMaxWorldSize> orders{};
  for (size_t r = 0; r < orders.size(); ++r) orders[r] = job.facts[r].input_order;
  const auto world = static_cast<size_t>(job.world);
  InputShape shape;
  shape.world = job.world;
  shape.k = job.problem.k;
  shape.candidates = std::span(job.candidates).first(world);
  shape.input_order = std::span(orders).first(world);

  made->list_scores.resize(length);
  made->list_ids.resize(length);
  made->count =
      FillInput(kind, seed, shape, rank, row, made->list_scores.data(), made->list_ids.data());
  // Own ids from generated ones: within what the map can take and, as positions, within the row.
  int64_t limit = int64_t{GreatestOwnId(facts.id_map)} + 1;
  const bool positions = facts.input_kind == SPARSESEL_INPUT_POSITIONS;
  if (positions) limit = std::min(limit, facts.score_row_length);
  made->ids = made->list_ids;
  for (int32_t& id : made->ids) {
    if (id >= 0) id = static_cast<int32_t>(id % limit);
  }
  made->scores = made->list_scores;
  if (positions) {
    made->scores.assign(static_cast<size_t>(facts.score_row_length), 0.0f);
    for (size_t i = 0; i < length; ++i) {
      if (made->ids[i] >= 0) made->scores[static_cast<size_t>(made->ids[i])] = made->list_scores[i];
    }
  }
  for (size_t i = 0; i < length; ++i) {
    if (made->ids[i] < 0) continue;
    // Two candidates may share a position: then they share the score that was written last.
    if (positions) made->list_scores[i] = made->scores[static_cast<size_t>(made->ids[i])];
    made->list_ids[i] = static_cast<int32_t>(
        std::min<int64_t>(MapId(facts.id_map, made->ids[i]), std::numeric_limits<int32_t>::max()));
  }
}

}  // namespace sparsesel
