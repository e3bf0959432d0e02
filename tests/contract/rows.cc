#include "contract/rows.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace contract {
namespace {

uint32_t Bits(float score) { return std::bit_cast<uint32_t>(score); }

uint32_t Below(Random& random, uint64_t limit) { return static_cast<uint32_t>(random() % limit); }

uint32_t Normal(Random& random) {
  // A sum of uniform numbers: the same on every machine, unlike std::normal_distribution.
  int64_t sum = 0;
  for (int i = 0; i < 4; ++i) sum += static_cast<int64_t>(random() >> 40);
  return Bits(static_cast<float>(sum - (int64_t{1} << 25)) * 0x1p-22f);
}

uint32_t AnyBits(Random& random) { return static_cast<uint32_t>(random()); }

uint32_t AnyNan(Random& random) {
  constexpr uint32_t kNans[] = {kNan,        kMinusNan,   0x7f800001u,
                                0xff800001u, 0x7fffffffu, 0xffffffffu};
  return kNans[Below(random, 6)];
}

Row Gaussian(const RowShape& shape, Random& random) {
  return DealRow(shape, random, [&](int32_t) { return Normal(random); });
}

Row AllPatterns(const RowShape& shape, Random& random) {
  return DealRow(shape, random, [&](int32_t) { return AnyBits(random); });
}

Row OneScore(const RowShape& shape, Random& random) {
  const uint32_t score = Below(random, 2) == 0 ? 0u : Normal(random);
  return DealRow(shape, random, [&](int32_t) { return score; });
}

Row TwoScores(const RowShape& shape, Random& random) {
  return DealRow(shape, random,
                 [&](int32_t) { return Below(random, 3) == 0 ? kOne : Bits(-1.0f); });
}

// A few winners, then ties far beyond the cutoff, on all ranks.
Row TiesAtCutoff(const RowShape& shape, Random& random) {
  const uint64_t total = static_cast<uint64_t>(shape.total());
  const uint64_t winners = std::min<uint64_t>(static_cast<uint64_t>(shape.k) / 2, total / 3);
  return DealRow(shape, random, [&](int32_t) {
    const uint64_t draw = random() % total;
    if (draw < winners) return Bits(2.0f) + Below(random, 1000);
    return draw < winners + total / 2 ? kOne : Normal(random) | kMinusZero;
  });
}

// Groups of four equal scores, so that the cutoff splits one.
Row TiesOfFour(const RowShape& shape, Random& random) {
  const int32_t shift = static_cast<int32_t>(Below(random, 4));
  return DealRow(shape, random,
                 [&](int32_t id) { return kOne + static_cast<uint32_t>((id + shift) / 4); });
}

// All scores within one coarse bin, and close to each other.
Row NarrowBand(const RowShape& shape, Random& random) {
  return DealRow(shape, random, [&](int32_t) { return kOne + Below(random, 64); });
}

Row LowBitsOnly(const RowShape& shape, Random& random) {
  return DealRow(shape, random, [&](int32_t) { return kOne + Below(random, 1u << 12); });
}

Row Infinities(const RowShape& shape, Random& random) {
  return DealRow(shape, random, [&](int32_t) {
    const uint32_t draw = Below(random, 8);
    return draw == 0 ? kInfinity : draw < 6 ? kMinusInfinity : Normal(random);
  });
}

Row InfinitiesAtTheEnd(const RowShape& shape, Random& random) {
  Row row = Gaussian(shape, random);
  int32_t left = shape.k;
  for (oracle::List& list : row) {
    for (size_t i = list.ids.size(); i-- > list.ids.size() / 2 && left > 0; --left) {
      list.score_bits[i] = kInfinity;
    }
  }
  return row;
}

Row Nans(const RowShape& shape, Random& random) {
  return DealRow(shape, random,
                 [&](int32_t) { return Below(random, 4) == 0 ? AnyBits(random) : AnyNan(random); });
}

Row OnlyNans(const RowShape& shape, Random& random) {
  return DealRow(shape, random, [&](int32_t) { return AnyNan(random); });
}

Row Zeros(const RowShape& shape, Random& random) {
  const uint64_t winners = std::max<uint64_t>(1, static_cast<uint64_t>(shape.k) / 2);
  const uint64_t total = static_cast<uint64_t>(shape.total());
  return DealRow(shape, random, [&](int32_t) {
    if (random() % total < winners) return kOne;
    return Below(random, 2) == 0 ? kMinusZero : 0u;
  });
}

Row Subnormals(const RowShape& shape, Random& random) {
  return DealRow(shape, random, [&](int32_t) {
    return Below(random, 0x00800002u) | (Below(random, 2) == 0 ? kMinusZero : 0u);
  });
}

Row AllAbsent(const RowShape& shape, Random& random) {
  Row row = Gaussian(shape, random);
  for (oracle::List& list : row) {
    if (Below(random, 2) == 0) {
      list.count = 0;
    } else {
      for (int32_t& id : list.ids) id = Below(random, 2) == 0 ? -1 : INT32_MIN;
    }
  }
  return row;
}

Row FewPresent(const RowShape& shape, Random& random) {
  Row row = Gaussian(shape, random);
  for (oracle::List& list : row) {
    for (size_t i = 0; i < list.ids.size(); ++i) {
      if (Below(random, 16) == 0) continue;
      list.ids[i] = -1;
      list.score_bits[i] = Below(random, 2) == 0 ? kInfinity : list.score_bits[i];
    }
  }
  return row;
}

// Half of each list absent, in runs, with scores that would win.
Row AbsencesInRuns(const RowShape& shape, Random& random) {
  Row row = TiesAtCutoff(shape, random);
  for (oracle::List& list : row) {
    bool absent = false;
    for (size_t i = 0; i < list.ids.size(); ++i) {
      if (Below(random, 20) == 0) absent = !absent;
      if (!absent) continue;
      list.ids[i] = -1 - static_cast<int32_t>(Below(random, 0x7fffffff));
      list.score_bits[i] = kInfinity;
    }
    list.count = static_cast<int64_t>(Below(random, list.ids.size() + 1));
  }
  return row;
}

Row DuplicateIds(const RowShape& shape, Random& random) {
  Row row = DealRow(shape, random, [&](int32_t) { return kOne + Below(random, 40); });
  const uint64_t distinct = 1 + static_cast<uint64_t>(shape.total()) / 5;
  for (oracle::List& list : row) {
    for (int32_t& id : list.ids) id = static_cast<int32_t>(Below(random, distinct));
  }
  return row;
}

// The same list on every rank, as far as it is long enough.
Row OneListEverywhere(const RowShape& shape, Random& random) {
  const int32_t longest = *std::max_element(shape.lengths.begin(), shape.lengths.end());
  const Row one = Gaussian({{longest}, shape.k}, random);
  Row row;
  for (int32_t length : shape.lengths) {
    oracle::List list = one[0];
    list.ids.resize(static_cast<size_t>(length));
    list.score_bits.resize(static_cast<size_t>(length));
    list.count = length;
    row.push_back(list);
  }
  return row;
}

Row ExtremeIds(const RowShape& shape, Random& random) {
  Row row = DealRow(shape, random, [&](int32_t) { return kOne + Below(random, 3); });
  for (oracle::List& list : row) {
    for (int32_t& id : list.ids) {
      const uint32_t draw = Below(random, 4);
      id = draw == 0 ? 0 : draw == 1 ? INT32_MAX : draw == 2 ? INT32_MAX - id : id;
    }
  }
  return row;
}

Row OneRankOnly(const RowShape& shape, Random& random) {
  Row row = Gaussian(shape, random);
  const size_t chosen = Below(random, row.size());
  for (size_t rank = 0; rank < row.size(); ++rank) {
    if (rank != chosen) row[rank].count = 0;
  }
  return row;
}

Row ContiguousShards(const RowShape& shape, Random& random) {
  Row row = Gaussian(shape, random);
  for (size_t rank = 0; rank < row.size(); ++rank) {
    const uint32_t height = static_cast<uint32_t>((rank * 7 + 3) % row.size());
    for (uint32_t& score : row[rank].score_bits) score = kOne + (height << 16) + (score & 0xffff);
  }
  return row;
}

bool IsBefore(uint32_t a_bits, int32_t a_id, uint32_t b_bits, int32_t b_id) {
  if ((a_id < 0) != (b_id < 0)) return b_id < 0;
  const float a = std::bit_cast<float>(a_bits);
  const float b = std::bit_cast<float>(b_bits);
  if (std::isnan(a) != std::isnan(b)) return std::isnan(b);
  if (!std::isnan(a) && a != b) return a > b;
  return a_id < b_id;
}

Row SortLists(Row row) {
  for (oracle::List& list : row) {
    std::vector<size_t> order(list.ids.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return IsBefore(list.score_bits[a], list.ids[a], list.score_bits[b], list.ids[b]);
    });
    const oracle::List before = list;
    for (size_t i = 0; i < order.size(); ++i) {
      list.ids[i] = before.ids[order[i]];
      list.score_bits[i] = before.score_bits[order[i]];
    }
  }
  return row;
}

Row Sorted(const RowShape& shape, Random& random) {
  Row row = Below(random, 2) == 0 ? AllPatterns(shape, random) : TiesAtCutoff(shape, random);
  for (oracle::List& list : row) {
    for (int32_t& id : list.ids) {
      if (Below(random, 10) == 0) id = -1;
    }
  }
  return SortLists(row);
}

Row ReverseSorted(const RowShape& shape, Random& random) {
  Row row = Sorted(shape, random);
  for (oracle::List& list : row) {
    std::reverse(list.ids.begin(), list.ids.end());
    std::reverse(list.score_bits.begin(), list.score_bits.end());
  }
  return row;
}

constexpr RowKind kRowKinds[] = {
    {"gaussian", Gaussian},
    {"all patterns", AllPatterns},
    {"one score", OneScore},
    {"two scores", TwoScores},
    {"ties at the cutoff", TiesAtCutoff},
    {"ties of four", TiesOfFour},
    {"narrow band", NarrowBand},
    {"low bits only", LowBitsOnly},
    {"infinities", Infinities},
    {"infinities at the end", InfinitiesAtTheEnd},
    {"NaNs", Nans},
    {"only NaNs", OnlyNans},
    {"zeros", Zeros},
    {"subnormals", Subnormals},
    {"all absent", AllAbsent},
    {"few present", FewPresent},
    {"absences in runs", AbsencesInRuns},
    {"duplicate ids", DuplicateIds},
    {"one list everywhere", OneListEverywhere},
    {"extreme ids", ExtremeIds},
    {"one rank only", OneRankOnly},
    {"contiguous shards", ContiguousShards},
    {"sorted", Sorted},
    {"reverse sorted", ReverseSorted},
};

}  // namespace

int32_t RowShape::total() const { return std::accumulate(lengths.begin(), lengths.end(), 0); }

RowShape ShapeOf(const Job& job) {
  RowShape shape;
  shape.k = job.problems[0].k == 0 ? 2048 : job.problems[0].k;
  for (const sparsesel_problem& problem : job.problems) {
    shape.lengths.push_back(problem.candidates == 0 ? 2048 : problem.candidates);
  }
  return shape;
}

Row InFullOrder(Row row) {
  for (oracle::List& list : row) {
    const auto length = static_cast<int64_t>(list.ids.size());
    for (int64_t i = std::clamp<int64_t>(list.count, 0, length); i < length; ++i) {
      list.ids[static_cast<size_t>(i)] = -1;
    }
    list.count = length;
  }
  return SortLists(std::move(row));
}

std::span<const RowKind> RowKinds() { return kRowKinds; }

std::vector<int32_t> ShuffledIds(int32_t total, Random& random) {
  std::vector<int32_t> ids(static_cast<size_t>(total));
  std::iota(ids.begin(), ids.end(), 0);
  for (size_t i = ids.size(); i > 1; --i) std::swap(ids[i - 1], ids[random() % i]);
  return ids;
}

void SetRow(const Job& job, int32_t row, const Row& lists, Batch* batch) {
  for (int32_t rank = 0; rank < job.world(); ++rank) {
    SetList(job, rank, row, lists[static_cast<size_t>(rank)], batch);
  }
}

Batch BatchOfKinds(const Job& job, int32_t rows, uint64_t seed, size_t first) {
  Batch batch = MakeBatch(job, rows);
  Random random(seed);
  const RowShape shape = ShapeOf(job);
  for (int32_t row = 0; row < rows; ++row) {
    const RowKind& kind = kRowKinds[(first + static_cast<size_t>(row)) % std::size(kRowKinds)];
    SetRow(job, row, kind.make(shape, random), &batch);
  }
  return batch;
}

}  // namespace contract
