// The oracles before they judge anything: against answers worked out by hand, and each other.
#include <catch2/catch.hpp>
#include <random>

#include "oracle/answer.h"

namespace oracle {
namespace {

constexpr uint32_t kOne = 0x3f800000u;
constexpr uint32_t kTwo = 0x40000000u;
constexpr uint32_t kMinusInfinity = 0xff800000u;
constexpr uint32_t kNan = 0x7fc00000u;
constexpr uint32_t kNegativeNan = 0xffffffffu;
constexpr uint32_t kMinusZero = 0x80000000u;

TEST_CASE("oracles: greater scores first, then smaller ids, then the lower rank and position") {
  const std::vector<List> lists = {{{kOne, kTwo, kMinusZero}, {7, 3, 9}, 3},
                                   {{kOne, 0, kNegativeNan}, {5, 9, 0}, 3},
                                   {{kNan, kMinusInfinity}, {1, 4}, 2}};
  const Answer answer = Expect(lists, 10);
  CHECK(answer.count == 8);
  CHECK(answer.ids == std::vector<int32_t>{3, 5, 7, 9, 9, 4, 0, 1, -1, -1});
  CHECK(answer.score_bits == std::vector<uint32_t>{kTwo, kOne, kOne, kMinusZero, 0, kMinusInfinity,
                                                   kNegativeNan, kNan, kMinusInfinity,
                                                   kMinusInfinity});
}

TEST_CASE("oracles: a candidate is absent by its position or its id, never by its score") {
  const std::vector<List> lists = {{{kTwo, kNan, kOne}, {-1, 4, 2}, 2},
                                   {{kTwo, kTwo}, {6, 8}, -4},
                                   {{kMinusInfinity}, {0}, 1000}};
  const Answer answer = Expect(lists, 3);
  CHECK(answer.count == 2);
  CHECK(answer.ids == std::vector<int32_t>{0, 4, -1});
}

TEST_CASE("oracles: by id, the same set with ties by source") {
  const std::vector<List> lists = {{{kOne, kTwo, kOne}, {7, 3, 2}, 3}, {{kOne, kTwo}, {3, 7}, 2}};
  const Answer answer = Expect(lists, 4, true);
  CHECK(answer.ids == std::vector<int32_t>{2, 3, 3, 7});
  CHECK(answer.score_bits == std::vector<uint32_t>{kOne, kTwo, kOne, kTwo});
}

TEST_CASE("oracles: agree on random rows, short and long, with ties, duplicates and absences") {
  std::mt19937 random(20240601);
  constexpr uint32_t kScores[] = {kOne, kTwo,         kMinusZero, 0,           kMinusInfinity,
                                  kNan, kNegativeNan, 1,          0x80000001u, 0x7f800000u};
  for (int round = 0; round < 300; ++round) {
    const int length = round < 290 ? static_cast<int>(random() % 40) : 1200;
    const int32_t id_limit = round % 3 == 0 ? 4 : 100000;
    std::vector<List> lists(1 + random() % 5);
    for (List& list : lists) {
      for (int i = 0; i < length; ++i) {
        const uint32_t any = static_cast<uint32_t>(random());
        list.score_bits.push_back(round % 2 == 0 ? kScores[any % 10] : any);
        list.ids.push_back(static_cast<int32_t>(random() % id_limit) -
                           (random() % 8 == 0 ? id_limit : 0));
      }
      list.count = static_cast<int64_t>(random() % (length + 3)) - 1;
    }
    const auto k = static_cast<int32_t>(1 + random() % (length + 5));
    REQUIRE_NOTHROW(Expect(lists, k, false));
    REQUIRE_NOTHROW(Expect(lists, k, true));
  }
}

}  // namespace
}  // namespace oracle
