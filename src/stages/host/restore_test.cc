#include "stages/host/restore.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <random>
#include <tuple>
#include <vector>

#include "stages/host/prefix_proof.h"

namespace sparsesel {
namespace {

using Lists = std::vector<std::vector<Record>>;

struct Sourced {
  Record record;
  uint64_t source;
  auto Fields() const { return std::tuple(source, record.score_bits, record.id); }
  bool operator==(const Sourced& other) const { return Fields() == other.Fields(); }
};

std::vector<RecordList> Views(const Lists& lists) {
  std::vector<RecordList> views;
  for (const auto& list : lists) views.push_back({list.data(), static_cast<int32_t>(list.size())});
  return views;
}

// The contract, as a stable sort of everything present in source order.
std::vector<Sourced> Expected(const Lists& lists, int32_t k) {
  std::vector<Sourced> all;
  for (size_t l = 0; l < lists.size(); ++l) {
    for (size_t i = 0; i < lists[l].size(); ++i) {
      if (lists[l][i].id >= 0) all.push_back({lists[l][i], (uint64_t{l} << 32) | i});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Sourced& a, const Sourced& b) {
    return CandidateKey(a.record) > CandidateKey(b.record);
  });
  all.resize(std::min(all.size(), static_cast<size_t>(k)));
  return all;
}

struct Restored {
  std::vector<Record> records;
  std::vector<uint64_t> sources;
  std::vector<Sourced> Joined() const {
    std::vector<Sourced> joined;
    for (size_t i = 0; i < records.size(); ++i) joined.push_back({records[i], sources[i]});
    return joined;
  }
};

// Scratch of exactly the size asked for, as memory checkers see it.
struct Scratch {
  explicit Scratch(size_t size)
      : bytes(size), data(static_cast<std::byte*>(::operator new (size, std::align_val_t{64}))) {
    std::fill_n(data, size, std::byte{0x5a});
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { ::operator delete (data, std::align_val_t{64}); }
  std::span<std::byte> span() const { return {data, bytes}; }
  size_t bytes;
  std::byte* data;
};

void Check(const Lists& lists, int32_t k) {
  std::vector<Sourced> expected = Expected(lists, k);
  std::vector<uint64_t> keys;
  for (const Sourced& one : expected) keys.push_back(CandidateKey(one.record));
  Restored restored{std::vector<Record>(keys.size()), std::vector<uint64_t>(keys.size())};
  const Scratch scratch(RestoreScratchBytes(k));
  INFO(lists.size() << " lists, k = " << k);
  RestoreRecords(Views(lists), keys, scratch.span(), restored.records.data(),
                 restored.sources.data());
  REQUIRE((restored.Joined() == expected));

  OrderById(restored.records, restored.sources, scratch.span());
  std::sort(expected.begin(), expected.end(), [](const Sourced& a, const Sourced& b) {
    return std::pair(a.record.id, a.source) < std::pair(b.record.id, b.source);
  });
  REQUIRE((restored.Joined() == expected));
}

Lists Make(size_t lists, size_t length, const std::function<Record(size_t, size_t)>& record) {
  Lists made(lists);
  for (size_t l = 0; l < lists; ++l) {
    for (size_t i = 0; i < length; ++i) made[l].push_back(record(l, i));
  }
  return made;
}

TEST_CASE("Restore: random, ties, duplicates, absences") {
  std::mt19937 random(1);
  for (const uint32_t scores : {1u, 3u, 100u, 100000u}) {
    for (const uint32_t ids : {1u, 50u, 100000u}) {
      const Lists lists = Make(9, 700, [&](size_t, size_t) {
        const auto score = static_cast<float>(random() % scores);
        const auto id = static_cast<int32_t>(random() % ids);
        return Record{std::bit_cast<uint32_t>(score), random() % 5 == 0 ? -1 - id : id};
      });
      for (const int32_t k : {1, 2, 63, 512, 2048, 5000, 65536}) Check(lists, k);
    }
  }
}

TEST_CASE("Restore: bug_B01 bug_B09 the original bits of zeros and NaNs") {
  const uint32_t bits[] = {0u, kSignBit, 0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xffffffffu};
  std::mt19937 random(2);
  const Lists lists = Make(5, 300, [&](size_t, size_t) {
    return Record{bits[random() % 6], static_cast<int32_t>(random() % 20)};
  });
  for (const int32_t k : {1, 100, 700, 750, 751, 1500}) Check(lists, k);
}

TEST_CASE("Restore: nothing selected") {
  Check({}, 4);
  Check({{}, {{0, -1}}}, 4);
}

TEST_CASE("Restore: the longest lists and the extreme ids") {
  std::mt19937 random(3);
  const Lists lists = Make(2, 65536, [&](size_t, size_t) {
    const auto id = static_cast<int32_t>(random() >> 1);
    return Record{static_cast<uint32_t>(random() % 1000) << 16, random() % 4 == 0   ? 0x7fffffff
                                                                : random() % 4 == 0 ? 0
                                                                                    : id};
  });
  for (const int32_t k : {2048, 65535, 65536}) Check(lists, k);
}

// All records of all lists in order, each list cut to its first `sent`.
struct Cut {
  Lists prefixes;
  std::unique_ptr<bool[]> cut;
};

Cut CutTo(const Lists& lists, size_t sent) {
  Cut result{lists, std::make_unique<bool[]>(lists.size())};
  for (size_t l = 0; l < lists.size(); ++l) {
    result.cut[l] = lists[l].size() > sent;
    if (result.cut[l]) result.prefixes[l].resize(sent);
  }
  return result;
}

bool IsEnough(const Cut& cut, int32_t k, bool needs_source) {
  std::vector<uint64_t> keys;
  for (const Sourced& one : Expected(cut.prefixes, k)) keys.push_back(CandidateKey(one.record));
  return PrefixIsEnough(Views(cut.prefixes), {cut.cut.get(), cut.prefixes.size()}, keys, k,
                        needs_source);
}

// A positive answer must be right. A negative one must be needed: some continuation of the lists,
// the one that repeats each last record, gives another result.
TEST_CASE("Prefix proof: right, and no stricter than needed") {
  std::mt19937 random(4);
  int enough = 0;
  int rejected = 0;
  for (int round = 0; round < 4000; ++round) {
    Lists lists(1 + random() % 5);
    const auto scores = static_cast<uint32_t>(1 + random() % 12);
    for (auto& list : lists) {
      const size_t length = random() % 9;
      for (size_t i = 0; i < length; ++i) {
        list.push_back({std::bit_cast<uint32_t>(static_cast<float>(random() % scores)),
                        random() % 4 == 0 ? -1 : static_cast<int32_t>(random() % 3)});
      }
      std::stable_sort(list.begin(), list.end(),
                       [](Record a, Record b) { return CandidateKey(a) > CandidateKey(b); });
    }
    const size_t sent = 1 + random() % 5;
    const auto k = static_cast<int32_t>(1 + random() % 20);
    const Cut cut = CutTo(lists, sent);
    Lists worst = cut.prefixes;
    for (size_t l = 0; l < worst.size(); ++l) {
      if (!cut.cut[l]) continue;
      for (int32_t i = 0; i < k; ++i) worst[l].push_back(worst[l].back());
    }
    const auto keys_of = [&](const Lists& all) {
      std::vector<uint64_t> keys;
      for (const Sourced& one : Expected(all, k)) keys.push_back(CandidateKey(one.record));
      return keys;
    };
    CAPTURE(round, sent, k);
    if (IsEnough(cut, k, true)) {
      REQUIRE((Expected(cut.prefixes, k) == Expected(lists, k)));
      REQUIRE((Expected(cut.prefixes, k) == Expected(worst, k)));
      REQUIRE(IsEnough(cut, k, false));
    }
    const bool same = keys_of(cut.prefixes) == keys_of(worst);
    REQUIRE(IsEnough(cut, k, false) == same);
    if (same) REQUIRE((keys_of(cut.prefixes) == keys_of(lists)));
    ++(same ? enough : rejected);
  }
  CHECK(enough > 400);
  CHECK(rejected > 400);
}

TEST_CASE("Prefix proof: an equal key of a lower rank that was not sent") {
  // Rank 0 has the same pair twice and sent one; rank 1's takes the place of the other.
  const Lists lists = {{{0, 7}, {0, 7}}, {{kSignBit, 7}}};
  const Cut cut = CutTo(lists, 1);
  CHECK(IsEnough(cut, 2, false));
  CHECK_FALSE(IsEnough(cut, 2, true));
  CHECK_FALSE((Expected(cut.prefixes, 2) == Expected(lists, 2)));
}

TEST_CASE("Prefix proof: fewer than k selected") {
  const Record present = {0, 3};
  const Record absent = {0, -1};
  CHECK_FALSE(IsEnough(CutTo({{present, present}}, 1), 5, false));
  CHECK(IsEnough(CutTo({{absent, absent}}, 1), 5, true));
  CHECK(IsEnough(CutTo({{present}}, 1), 5, true));  // not cut
}

}  // namespace
}  // namespace sparsesel
