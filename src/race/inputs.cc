#include "race/inputs.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "contract/order.h"
#include "race/random.h"
#include "sparsesel.h"

namespace sparsesel {
namespace {

// Everything below is made of integers: no rounding mode, flush-to-zero mode or mathematical
// library can make two ranks see different inputs.

float ToFloat(uint32_t bits) { return std::bit_cast<float>(bits); }

// One list while it is written, and what its numbers are made from.
struct List {
  const InputShape& shape;
  int32_t rank;
  int64_t row;
  uint64_t shared_key;  // the same on all ranks
  int32_t length;       // candidates of this rank
  int32_t longest;      // candidates of the rank that has most
  int64_t total;        // candidates of all ranks
  int bits;             // of a number that tells all candidates of all ranks apart
  RandomStream own;     // differs from rank to rank
  float* scores;
  int32_t* ids;

  void Set(int32_t i, uint32_t score_bits, int32_t id) {
    scores[i] = ToFloat(score_bits);
    ids[i] = id;
  }
  // Different for every candidate of the row, on any rank.
  uint32_t Slot(int32_t i) const {
    return static_cast<uint32_t>(i) * static_cast<uint32_t>(shape.world) +
           static_cast<uint32_t>(rank);
  }
  int32_t UniqueId(int32_t i) const {
    return static_cast<int32_t>(Permutation(bits, shared_key)(Slot(i)));
  }
  // Different for all ranks and positions of the row; 0.5 .. 8.
  uint32_t DistinctScore(int32_t i) const {
    return 0x3f000000u + (Permutation(bits, shared_key + 1)(Slot(i)) << (25 - bits));
  }
};

uint32_t FiniteScore(RandomStream& stream) {
  const auto bits = static_cast<uint32_t>(stream.Next());
  // An exponent of all ones is an infinity or a NaN: shorten it.
  return (bits & kInfinityBits) == kInfinityBits ? bits & ~0x40000000u : bits;
}

uint32_t SmallScore(RandomStream& stream) {  // positive, 0.5 .. 8, 2^16 values
  return 0x3f000000u + (stream.Below(1u << 16) << 9);
}

int32_t AbsentId(RandomStream& stream) {
  return stream.OneIn(2) ? -1 : static_cast<int32_t>(stream.Next() | kSignBit);
}

// Descending in the contract's order from `start`, ids ascending; in steps of at most `step`, 0
// being one of them unless `distinct`, which keeps the ranks' scores apart, too.
void FillDescending(List& list, int32_t count, uint32_t start, uint32_t step, bool distinct) {
  const auto world = static_cast<uint32_t>(list.shape.world);
  uint32_t order = distinct ? start - static_cast<uint32_t>(list.rank) : start;
  for (int32_t i = 0; i < count; ++i) {
    const uint32_t steps = list.own.Below(step) + (distinct ? 1 : 0);
    order -= distinct ? steps * world : steps;
    list.Set(i, ScoreFromOrder(order), static_cast<int32_t>(list.Slot(i)));
  }
}

int32_t FillTrial(List& list) {
  const auto promise = list.shape.input_order.empty()
                           ? int32_t{SPARSESEL_ORDER_NONE}
                           : list.shape.input_order[static_cast<size_t>(list.rank)];
  if (promise != SPARSESEL_ORDER_NONE) {
    // At most 65536 steps of at most 8 x 64: from 8.0 never down to 0.
    FillDescending(list, list.length, ScoreOrder(0x41000000u), 8, true);
    return list.length;
  }
  for (int32_t i = 0; i < list.length; ++i) {
    list.Set(i, list.DistinctScore(i), list.UniqueId(i));
  }
  return list.length;
}

int32_t FillRandom(List& list) {
  const int32_t count = static_cast<int32_t>(list.own.Below(list.length + 1));
  for (int32_t i = 0; i < list.length; ++i) {
    list.Set(i, FiniteScore(list.own), list.UniqueId(i));
  }
  return count;
}

// Some winners, then one score for most, so that the cutoff lies among equals.
int32_t FillCutoffTies(List& list) {
  const uint32_t tie = 0x40000000u;  // 2.0
  const int64_t winners = std::min<int64_t>(list.shape.k / 2, list.total / 4);
  for (int32_t i = 0; i < list.length; ++i) {
    uint32_t score = tie;
    if (list.own.Chance(winners, list.total)) {
      score = tie + 1 + list.own.Below(1u << 20);
    } else if (list.own.OneIn(5)) {
      score = tie - 1 - list.own.Below(1u << 20);
    }
    list.Set(i, score, list.UniqueId(i));
  }
  return list.length;
}

int32_t FillAllEqual(List& list) {
  RandomStream shared(list.shared_key);
  const uint32_t score = FiniteScore(shared);
  for (int32_t i = 0; i < list.length; ++i) list.Set(i, score, list.UniqueId(i));
  return list.length;
}

// By count on some ranks, by id on others.
int32_t FillAllAbsent(List& list) {
  const bool by_count = list.own.OneIn(2);
  for (int32_t i = 0; i < list.length; ++i) {
    list.Set(i, SmallScore(list.own), by_count ? list.UniqueId(i) : AbsentId(list.own));
  }
  return by_count ? 0 : list.length;
}

// The ranks share k - 1 places and use some of theirs: at the front by count, or anywhere by id.
int32_t FillFewPresent(List& list) {
  const int32_t places = list.shape.k - 1;
  const int32_t share = places / list.shape.world + (list.rank < places % list.shape.world ? 1 : 0);
  int32_t left = static_cast<int32_t>(list.own.Below(std::min(share, list.length) + 1));
  const bool by_count = list.row % 2 == 0;
  const int32_t count = by_count ? left : list.length;
  for (int32_t i = 0; i < list.length; ++i) {
    const bool present = by_count || (left > 0 && list.own.Chance(left, list.length - i));
    if (present) --left;
    list.Set(i, SmallScore(list.own), present ? list.UniqueId(i) : AbsentId(list.own));
  }
  return count;
}

// Runs of absent candidates, which have the best scores, between runs of present ones.
int32_t FillAbsencesInMiddle(List& list) {
  const int32_t count =
      list.length -
      static_cast<int32_t>(list.own.Below(static_cast<uint32_t>(list.length) / 8 + 1));
  bool present = true;
  int32_t run = 0;
  for (int32_t i = 0; i < list.length; ++i) {
    if (run-- == 0) {
      present = !present;
      run = static_cast<int32_t>(list.own.Below(present ? 96 : 48));
    }
    if (present) {
      list.Set(i, SmallScore(list.own), list.UniqueId(i));
    } else {
      list.Set(i, list.own.OneIn(2) ? kInfinityBits : 0x42000000u, AbsentId(list.own));
    }
  }
  return count;
}

// Most ids recur, on this rank and others, with the score that belongs to the id; some with
// another.
int32_t FillDuplicateIds(List& list) {
  const auto distinct = static_cast<uint32_t>(std::max<int64_t>(list.total / 4, 1));
  for (int32_t i = 0; i < list.length; ++i) {
    const uint32_t id = list.own.Below(distinct);
    RandomStream of_id(list.shared_key ^ SplitMix(id));
    uint32_t score = SmallScore(of_id);
    if (list.own.OneIn(4)) score = SmallScore(list.own);
    list.Set(i, score, static_cast<int32_t>(id));
  }
  return list.length;
}

// A quarter of each sign; in every other row so much -inf that some of it is selected.
int32_t FillInfinities(List& list) {
  const int64_t finite =
      list.row % 2 == 0 ? list.total / 2 : std::min<int64_t>(list.shape.k / 3, list.total / 2);
  const int64_t positive = list.row % 2 == 0 ? list.total / 4 : list.shape.k / 3;
  for (int32_t i = 0; i < list.length; ++i) {
    uint32_t score = kMinusInfinityBits;
    if (list.own.Chance(positive, list.total)) {
      score = kInfinityBits;
    } else if (list.own.Chance(finite, list.total)) {
      score = FiniteScore(list.own);
    }
    list.Set(i, score, list.UniqueId(i));
  }
  return list.length;
}

uint32_t NanScore(RandomStream& stream) {
  constexpr uint32_t kNans[] = {0x7fc00000u, 0xffc00000u, 0x7f800001u,
                                0xff800001u, 0x7fffffffu, 0xffffffffu};
  if (stream.OneIn(2)) return kNans[stream.Below(6)];
  return static_cast<uint32_t>(stream.Next()) | kInfinityBits | 1u;
}

// Row by row: NaNs only, fewer numbers than k, and half of each.
int32_t FillNans(List& list) {
  const int64_t numbers = list.row % 3 == 0   ? list.total / 2
                          : list.row % 3 == 1 ? std::min<int64_t>(list.shape.k / 2, list.total / 2)
                                              : 0;
  for (int32_t i = 0; i < list.length; ++i) {
    const bool number = list.own.Chance(numbers, list.total);
    uint32_t score = NanScore(list.own);
    if (number) score = list.own.OneIn(8) ? kMinusInfinityBits : FiniteScore(list.own);
    list.Set(i, score, list.UniqueId(i));
  }
  return list.length;
}

int32_t FillZeros(List& list) {
  const int64_t winners = std::min<int64_t>(list.shape.k / 2, list.total / 4);
  for (int32_t i = 0; i < list.length; ++i) {
    uint32_t score = list.own.OneIn(2) ? kSignBit : 0;
    if (list.own.Chance(winners, list.total)) {
      score = SmallScore(list.own);
    } else if (list.own.OneIn(6)) {
      score = SmallScore(list.own) | kSignBit;
    }
    list.Set(i, score, list.UniqueId(i));
  }
  return list.length;
}

// Both signs, zeros and the least normal numbers among them.
int32_t FillSubnormals(List& list) {
  for (int32_t i = 0; i < list.length; ++i) {
    const uint32_t sign = list.own.OneIn(3) ? kSignBit : 0;
    const uint32_t magnitude = list.own.OneIn(2) ? list.own.Below(16) : list.own.Below(0x00800008u);
    list.Set(i, sign | magnitude, list.UniqueId(i));
  }
  return list.length;
}

int32_t FillExtremeIds(List& list) {
  constexpr int32_t kGreatest = std::numeric_limits<int32_t>::max();
  for (int32_t i = 0; i < list.length; ++i) {
    int32_t id = 0;
    switch (list.own.Below(4)) {
      case 0:
        id = kGreatest;
        break;
      case 1:
        id = kGreatest - list.UniqueId(i);
        break;
      case 2:
        id = list.UniqueId(i);
        break;
      default:
        break;
    }
    const uint32_t score = 0x3f800000u + list.own.Below(4);
    list.Set(i, list.own.OneIn(8) ? NanScore(list.own) : score, id);
  }
  return list.length;
}

int32_t FillOneRankOnly(List& list) {
  RandomStream shared(list.shared_key);
  const bool chosen = static_cast<int32_t>(shared.Below(list.shape.world)) == list.rank;
  const bool by_count = list.own.OneIn(2);
  for (int32_t i = 0; i < list.length; ++i) {
    const bool plausible = chosen || by_count;
    list.Set(i, SmallScore(list.own), plausible ? list.UniqueId(i) : AbsentId(list.own));
  }
  return chosen || !by_count ? list.length : 0;
}

// Each rank's scores lie above all those of the next one, the ranks being turned row by row.
int32_t FillContiguousShards(List& list) {
  const auto place = static_cast<uint32_t>((list.rank + list.row) % list.shape.world);
  const auto height = static_cast<uint32_t>(list.shape.world) - place;
  for (int32_t i = 0; i < list.length; ++i) {
    list.Set(i, 0x3f000000u + (height << 18) + list.own.Below(1u << 18),
             static_cast<int32_t>(place) * list.longest + i);
  }
  return list.length;
}

// Ties within and between ranks; every other row crosses zero. NaNs follow, then absences.
int32_t FillSorted(List& list) {
  const int32_t present =
      list.length -
      static_cast<int32_t>(list.own.Below(static_cast<uint32_t>(list.length) / 8 + 1));
  const int32_t numbers = list.row % 4 == 3 ? present - present / 8 : present;
  const uint32_t start = list.row % 2 == 0 ? ScoreOrder(0x41000000u)
                                           : kZeroOrder + static_cast<uint32_t>(list.length / 2);
  FillDescending(list, numbers, start, 3, false);
  for (int32_t i = numbers; i < list.length; ++i) {
    const auto id = static_cast<int32_t>(list.Slot(i));
    list.Set(i, i < present ? NanScore(list.own) : 0x42000000u, i < present ? id : -1);
  }
  return list.length;
}

int32_t FillReverseSorted(List& list) {
  const int32_t count = FillSorted(list);
  std::reverse(list.scores, list.scores + list.length);
  std::reverse(list.ids, list.ids + list.length);
  return count;
}

struct Generator {
  const char* name;
  int32_t (*fill)(List& list);
};

constexpr Generator kGenerators[kInputKinds] = {
    {"trial", FillTrial},
    {"random", FillRandom},
    {"cutoff_ties", FillCutoffTies},
    {"all_equal", FillAllEqual},
    {"all_absent", FillAllAbsent},
    {"few_present", FillFewPresent},
    {"absences_in_middle", FillAbsencesInMiddle},
    {"duplicate_ids", FillDuplicateIds},
    {"infinities", FillInfinities},
    {"nans", FillNans},
    {"zeros", FillZeros},
    {"subnormals", FillSubnormals},
    {"extreme_ids", FillExtremeIds},
    {"one_rank_only", FillOneRankOnly},
    {"contiguous_shards", FillContiguousShards},
    {"sorted", FillSorted},
    {"reverse_sorted", FillReverseSorted},
};

}  // namespace

const char* InputKindName(InputKind kind) { return kGenerators[static_cast<size_t>(kind)].name; }

int32_t FillInput(InputKind kind, uint64_t seed, const InputShape& shape, int32_t rank, int64_t row,
                  float* scores, int32_t* ids) {
  int64_t total = 0;
  int32_t longest = 1;
  for (int32_t candidates : shape.candidates) {
    total += candidates;
    longest = std::max(longest, candidates);
  }
  const uint64_t slots = static_cast<uint64_t>(longest) * static_cast<uint64_t>(shape.world);
  const uint64_t of_kind = SplitMix(seed ^ SplitMix(static_cast<uint64_t>(kind) + 1));
  const uint64_t of_row = SplitMix(of_kind ^ SplitMix(static_cast<uint64_t>(row) + 1));
  List list{.shape = shape,
            .rank = rank,
            .row = row,
            .shared_key = of_row,
            .length = shape.candidates[static_cast<size_t>(rank)],
            .longest = longest,
            .total = total,
            .bits = static_cast<int>(std::bit_width(slots)),  // at most 23
            .own = RandomStream(SplitMix(of_row ^ SplitMix(static_cast<uint64_t>(rank) + 1))),
            .scores = scores,
            .ids = ids};
  const int32_t count = kGenerators[static_cast<size_t>(kind)].fill(list);
  // What lies beyond the count looks better than what counts.
  for (int32_t i = count; i < list.length; ++i) list.Set(i, 0x43000000u, list.UniqueId(i));
  return count;
}

}  // namespace sparsesel
