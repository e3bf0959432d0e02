#include "stages/host/select.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "hwy/targets.h"

namespace sparsesel {
namespace {

using Lists = std::vector<std::vector<Record>>;
using Generator = std::mt19937_64;

constexpr uint64_t kCanary = 0xa5a5a5a5a5a5a5a5u;

Record Candidate(float score, int32_t id) { return {std::bit_cast<uint32_t>(score), id}; }

// What every variant must give: all present keys, sorted.
std::vector<uint64_t> Expected(const Lists& lists, int32_t k) {
  std::vector<uint64_t> keys;
  for (const auto& list : lists) {
    for (const Record record : list) {
      if (record.id >= 0) keys.push_back(CandidateKey(record));
    }
  }
  std::sort(keys.begin(), keys.end(), std::greater<>());
  keys.resize(std::min(keys.size(), static_cast<size_t>(k)));
  return keys;
}

// Runs a variant in exactly the scratch it asks for, with other bytes in it each time; canaries
// stand behind scratch and output.
std::vector<uint64_t> Run(const HostSelectVariant& variant, const Lists& lists, int32_t k) {
  static unsigned char filling = 0;
  filling = static_cast<unsigned char>(filling + 37);
  std::vector<RecordList> views;
  int64_t records = 0;
  for (const auto& list : lists) {
    views.push_back({list.data(), static_cast<int32_t>(list.size())});
    records += static_cast<int64_t>(list.size());
  }
  const size_t bytes = variant.scratch_bytes(static_cast<int32_t>(lists.size()), records, k);
  std::vector<std::byte> storage(bytes + 128, std::byte{filling});
  const size_t skew = reinterpret_cast<uintptr_t>(storage.data()) % 64;
  const size_t begin = skew == 0 ? 0 : 64 - skew;
  const size_t room = static_cast<size_t>(std::min<int64_t>(k, records));
  std::vector<uint64_t> keys(room + 1, kCanary);

  const int32_t count =
      variant.run(views, k, std::span(storage).subspan(begin, bytes), keys.data());

  REQUIRE(count >= 0);
  REQUIRE(static_cast<size_t>(count) <= room);
  for (size_t i = static_cast<size_t>(count) + 1; i <= room; ++i) REQUIRE(keys[i] == kCanary);
  const auto behind = std::span(storage).subspan(begin + bytes);
  REQUIRE(std::all_of(behind.begin(), behind.end(),
                      [](std::byte b) { return b == std::byte{filling}; }));
  keys.resize(static_cast<size_t>(count));
  return keys;
}

Lists Sorted(Lists lists) {
  for (auto& list : lists) {
    std::sort(list.begin(), list.end(),
              [](Record a, Record b) { return CandidateKey(a) > CandidateKey(b); });
  }
  return lists;
}

// Not one assertion a key: the vectors are compared as wholes, and only a difference is explained.
void CheckAll(const Lists& lists, int32_t k) {
  const std::vector<uint64_t> expected = Expected(lists, k);
  const Lists sorted = Sorted(lists);
  for (const HostSelectVariant& variant : HostSelectVariants()) {
    INFO(variant.name << ", " << lists.size() << " lists, k = " << k);
    if (!variant.needs_sorted_lists) REQUIRE((Run(variant, lists, k) == expected));
    REQUIRE((Run(variant, sorted, k) == expected));
  }
}

Lists Make(size_t lists, size_t length, const std::function<Record(size_t, size_t)>& record) {
  Lists made(lists);
  for (size_t l = 0; l < lists; ++l) {
    for (size_t i = 0; i < length; ++i) made[l].push_back(record(l, i));
  }
  return made;
}

Lists Random(size_t lists, size_t length, uint64_t seed) {
  Generator random(seed);
  std::normal_distribution<float> score;
  return Make(lists, length, [&](size_t l, size_t i) {
    return Candidate(score(random), static_cast<int32_t>(i * lists + l));
  });
}

const int32_t kSomeK[] = {1, 2, 7, 64, 500, 2047, 2048, 2049, 8191, 65536};

TEST_CASE("Host select: table") {
  int unsorted = 0;
  int sorted = 0;
  std::vector<std::string> names;
  for (const HostSelectVariant& variant : HostSelectVariants()) {
    ++(variant.needs_sorted_lists ? sorted : unsorted);
    names.emplace_back(variant.name);
    CHECK(variant.revision > 0);
  }
  CHECK(unsorted >= 2);
  CHECK(sorted >= 2);
  std::sort(names.begin(), names.end());
  CHECK(std::adjacent_find(names.begin(), names.end()) == names.end());
}

TEST_CASE("Host select: random scores, all shapes") {
  for (const size_t lists : {1, 2, 3, 7, 8, 16, 33, 64, 128}) {
    for (const size_t length : {0, 1, 2, 5, 63, 257, 2048}) {
      const Lists input = Random(lists, length, lists * 10000 + length);
      for (const int32_t k : {1, 3, 100, 2048, 65536}) CheckAll(input, k);
    }
  }
}

TEST_CASE("Host select: the longest lists") {
  const Lists input = Random(3, 65536, 5);
  for (const int32_t k : kSomeK) CheckAll(input, k);
  CheckAll(Random(64, 8192, 6), 2048);
}

TEST_CASE("Host select: no list at all") { CheckAll({}, 5); }

TEST_CASE("Host select: uneven and empty lists") {
  Generator random(11);
  for (int round = 0; round < 40; ++round) {
    Lists lists(1 + random() % 64);
    for (auto& list : lists) {
      const size_t length = random() % 4 == 0 ? 0 : random() % (1 + random() % 3000);
      for (size_t i = 0; i < length; ++i) {
        list.push_back(Candidate(static_cast<float>(random() % 1000), static_cast<int32_t>(i)));
      }
    }
    CheckAll(lists, static_cast<int32_t>(1 + random() % 4096));
  }
}

TEST_CASE("Host select: bug_A11 bug_A13 thousands of ties at the cutoff") {
  for (const int values : {1, 2, 3, 40}) {
    Generator random(static_cast<uint64_t>(values));
    const Lists input = Make(16, 2048, [&](size_t l, size_t i) {
      const auto value = static_cast<float>(random() % static_cast<uint64_t>(values));
      return Candidate(0.1f * value, static_cast<int32_t>((i * 16 + l) * 7919 % 32768));
    });
    for (const int32_t k : kSomeK) CheckAll(input, k);
  }
}

TEST_CASE("Host select: bug_A07 bug_A09 groups of four, every shift of the cutoff") {
  const Lists input = Make(8, 1024, [](size_t l, size_t i) {
    return Candidate(static_cast<float>(i / 4), static_cast<int32_t>(l * 1024 + i));
  });
  for (int32_t k = 2044; k <= 2052; ++k) CheckAll(input, k);
}

TEST_CASE("Host select: bug_A15 all scores equal") {
  const Lists input = Make(16, 2048, [](size_t l, size_t i) {
    return Candidate(0.0f, static_cast<int32_t>(l * 2048 + i));
  });
  for (const int32_t k : kSomeK) CheckAll(input, k);
}

TEST_CASE("Host select: duplicate pairs across and within lists") {
  Generator random(3);
  std::vector<Record> one(2048);
  for (size_t i = 0; i < one.size(); ++i) {
    one[i] = Candidate(static_cast<float>(random() % 500), static_cast<int32_t>(i));
  }
  const Lists same_lists(16, one);
  const Lists one_pair = Make(16, 2048, [](size_t, size_t) { return Candidate(1.5f, 3); });
  const Lists few_pairs = Make(16, 2048, [&](size_t, size_t) {
    const auto pair = static_cast<int32_t>(random() % 5);
    return Candidate(static_cast<float>(pair / 2), pair);
  });
  // One better pair among copies of another, so that a cutoff equal to the sample's pivot matters.
  Lists nearly_one_pair = one_pair;
  for (size_t l = 0; l < 16; ++l) nearly_one_pair[l][l * 100] = Candidate(2.0f, 1);
  for (const int32_t k : kSomeK) {
    CheckAll(same_lists, k);
    CheckAll(one_pair, k);
    CheckAll(few_pairs, k);
    CheckAll(nearly_one_pair, k);
  }
}

TEST_CASE("Host select: bug_A17 bug_B01 absence is not a score") {
  const float minus_infinity = -std::numeric_limits<float>::infinity();
  Generator random(4);
  for (const uint64_t share : {2, 20, 1000}) {
    const Lists input = Make(16, 2048, [&](size_t l, size_t i) {
      const auto id = static_cast<int32_t>(i * 16 + l);
      const bool present = random() % share == 0;
      // Absent records carry the best scores, present ones the worst.
      if (!present) return Candidate(1e30f, random() % 2 == 0 ? -1 : -1 - id);
      return Candidate(random() % 3 == 0 ? 1.0f : minus_infinity, id);
    });
    for (const int32_t k : kSomeK) CheckAll(input, k);
  }
  const Lists absent = Make(16, 300, [](size_t, size_t) { return Candidate(1.0f, -1); });
  CheckAll(absent, 2048);
}

TEST_CASE("Host select: bug_B05 bug_B07 bug_B09 special scores") {
  const uint32_t special[] = {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xffffffffu, 0x7fffffffu,
                              0x7f800000u, 0xff800000u, 0x00000000u, 0x80000000u, 0x00000001u,
                              0x80000001u, 0x007fffffu, 0x3f800000u, 0xbf800000u, 0x7f7fffffu};
  Generator random(5);
  for (size_t used = 1; used <= std::size(special); used += 2) {
    const Lists input = Make(16, 1024, [&](size_t l, size_t i) {
      return Record{special[random() % used], static_cast<int32_t>(i * 16 + l)};
    });
    for (const int32_t k : kSomeK) CheckAll(input, k);
  }
  // Only zeros of either sign: a pivot of zero must let both through.
  const Lists zeros = Make(16, 1024, [&](size_t l, size_t i) {
    return Record{random() % 2 == 0 ? kSignBit : 0u, static_cast<int32_t>(i * 16 + l)};
  });
  for (const int32_t k : kSomeK) CheckAll(zeros, k);
  // All bit patterns, and the extreme ids.
  const Lists anything = Make(16, 1024, [&](size_t, size_t) {
    const auto bits = static_cast<uint32_t>(random());
    const auto id = static_cast<int32_t>(random() >> 32);
    const uint64_t choice = random() % 8;
    return Record{bits, choice == 0   ? 0
                        : choice == 1 ? std::numeric_limits<int32_t>::max()
                        : choice == 2 ? std::numeric_limits<int32_t>::min()
                                      : id};
  });
  for (const int32_t k : kSomeK) CheckAll(anything, k);
}

TEST_CASE("Host select: bug_B03 all winners in one place") {
  Lists input = Random(16, 2048, 6);
  for (size_t i = 0; i < 2048; ++i) input[15][i].score_bits = kInfinityBits;
  CheckAll(input, 2048);
  CheckAll(input, 3000);
  // A stride of the sample meets none of them, or only them.
  for (const size_t step : {2, 8, 16, 17, 32, 33}) {
    const Lists stepped = Make(16, 2048, [&](size_t l, size_t i) {
      const bool good = (l * 2048 + i) % step == step / 2;
      return Candidate(good ? 1.0f : -1.0f, static_cast<int32_t>(i * 16 + l));
    });
    for (const int32_t k : kSomeK) CheckAll(stepped, k);
  }
}

TEST_CASE("Host select: sorted and reverse sorted lists") {
  const Lists sorted = Sorted(Random(16, 2048, 7));
  Lists reversed = sorted;
  for (auto& list : reversed) std::reverse(list.begin(), list.end());
  for (const int32_t k : kSomeK) {
    CheckAll(sorted, k);
    CheckAll(reversed, k);
  }
}

TEST_CASE("Host select: bug_A21 lengths around inner limits") {
  for (const size_t limit : {8, 16, 96, 192, 384, 512, 1024, 8192}) {
    for (size_t length = limit - 1; length <= limit + 1; ++length) {
      const Lists one = Random(1, length, length);
      Lists two = Random(2, length, length + 1);
      for (Record& record : two[1]) record.score_bits = two[0][0].score_bits;  // and many ties
      for (const int32_t k : {static_cast<int32_t>(limit) - 1, static_cast<int32_t>(limit),
                              static_cast<int32_t>(limit) + 1, 1 << 14}) {
        CheckAll(one, k);
        CheckAll(two, k);
      }
    }
  }
}

TEST_CASE("Host select: scores that agree in their high bits") {
  Generator random(8);
  for (const int bits : {1, 10, 17, 18, 20, 21, 26}) {
    const Lists input = Make(16, 2048, [&](size_t l, size_t i) {
      return Record{0x3f800000u + static_cast<uint32_t>(random() & ((uint64_t{1} << bits) - 1)),
                    static_cast<int32_t>((i * 16 + l) * 7919 % 32768)};
    });
    for (const int32_t k : {100, 2048, 20000}) CheckAll(input, k);
  }
}

TEST_CASE("Host select: every instruction set of this CPU") {
  const int64_t supported = hwy::SupportedTargets();
  const Lists random = Random(16, 2048, 9);
  Lists mixed = Random(5, 1001, 10);
  for (size_t i = 0; i < 1001; i += 3) {
    mixed[0][i].id = -1;
    mixed[1][i].score_bits = kSignBit;
    mixed[2][i].score_bits = 0;
    mixed[3][i].score_bits = 0xffc00001u;
    mixed[4][i].score_bits = 0x7fc00001u;
  }
  for (int64_t rest = supported; rest != 0; rest &= rest - 1) {
    hwy::SetSupportedTargetsForTest(rest & -rest);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    INFO(hwy::TargetName(rest & -rest));
    for (const int32_t k : {1, 100, 2048, 4500, 65536}) {
      CheckAll(random, k);
      CheckAll(mixed, k);
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace
}  // namespace sparsesel
