// select.merge_tree: finds how much of each list can be needed, without comparing single records,
// then merges those heads in pairs.
//
// The lists are cut into blocks of equal length. Blocks are taken in the order of their last keys
// until they hold k records. Let t be the last key of the block taken last. Every taken record is
// at or above t and they are enough, so whatever else is needed is above t. It stands in the next
// block of its list, because that block's last key is at most t. So at most (lists + 1) blocks too
// much are taken, whatever ties there are: keys equal to t need not be told apart.
#include <algorithm>
#include <bit>
#include <utility>

#include "contract/order.h"
#include "stages/host/select_filter.h"
#include "stages/host/select_merge.h"
#include "stages/host/select_tournament.h"
#include "stages/host/select_variants.h"

namespace sparsesel {
namespace {

constexpr size_t kCacheLine = 64;
constexpr size_t kGreatestBlock = 64;

// The surplus of (lists + 1) blocks stays near a quarter of k.
size_t BlockLength(size_t lists, size_t k) {
  return std::clamp(std::bit_floor(k / (4 * lists)), size_t{1}, kGreatestBlock);
}

size_t MostTaken(size_t lists, size_t records, size_t k) {
  return std::min(records, k + (lists + 1) * BlockLength(lists, k));
}

constexpr size_t Aligned(size_t bytes) {
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

// Where the heads of the lists end, and where the lists do.
struct Head {
  size_t taken;
  size_t present;
};

// The parts of scratch, in this order; after them the tournament's.
struct Parts {
  size_t keys;  // bytes of one of two arrays, in which each run has two guards
  size_t runs;
  size_t heads;

  Parts(size_t lists, size_t records, size_t k)
      : keys(Aligned((MostTaken(lists, records, k) + 2 * lists) * sizeof(uint64_t))),
        runs(Aligned(lists * sizeof(Run))),
        heads(Aligned(lists * sizeof(Head))) {}
  size_t total() const { return 2 * keys + runs + heads; }
};

size_t ScratchBytes(int32_t lists, int64_t total_records, int32_t k) {
  const auto count = static_cast<size_t>(std::max(lists, 1));
  return Parts(count, static_cast<size_t>(total_records), static_cast<size_t>(k)).total() +
         Tournament::ScratchBytes(count);
}

void PrefetchToRead(const Record* records) {
#if defined(__GNUC__)
  __builtin_prefetch(records);
#else
  static_cast<void>(records);
#endif
}

// Absent records are last.
size_t PresentLength(const RecordList& list) {
  const auto length = static_cast<size_t>(list.length);
  if (length == 0 || list.data[length - 1].id >= 0) return length;
  return static_cast<size_t>(
      std::partition_point(list.data, list.data + length, [](Record r) { return r.id >= 0; }) -
      list.data);
}

// Decides how many records of each list to merge: all that are needed, among at least
// min(k, present).
void TakeHeads(std::span<const RecordList> lists, size_t k, std::span<std::byte> scratch,
               Head* heads) {
  const size_t block = BlockLength(lists.size(), k);
  const auto block_end = [&](size_t list, size_t blocks) {
    return std::min(heads[list].taken + blocks * block, heads[list].present);
  };
  const auto last_key = [&](size_t list) {
    const size_t end = block_end(list, 1);
    return end == heads[list].taken ? kAbsentKey : CandidateKey(lists[list].data[end - 1]);
  };
  for (size_t list = 0; list < lists.size(); ++list) heads[list] = {0, PresentLength(lists[list])};
  Tournament tournament(lists.size(), scratch, last_key);
  size_t total = 0;
  uint64_t cutoff = ~uint64_t{0};
  while (total < k && tournament.key() != kAbsentKey) {
    const size_t list = tournament.list();
    cutoff = tournament.key();
    const size_t end = block_end(list, 1);
    total += end - heads[list].taken;
    heads[list].taken = end;
    PrefetchToRead(lists[list].data + block_end(list, 3));
    tournament.Replace(last_key(list));
  }
  for (size_t list = 0; list < lists.size(); ++list) {
    const Record* const next = lists[list].data + heads[list].taken;
    const Record* const end = lists[list].data + block_end(list, 1);
    const auto is_above = [&](Record record) { return CandidateKey(record) > cutoff; };
    heads[list].taken += static_cast<size_t>(std::partition_point(next, end, is_above) - next);
  }
}

// Puts a run with its guards at `out` and returns where the next one may begin.
uint64_t* Guard(uint64_t* out, size_t length, Run* run) {
  out[0] = kBeforeRun;
  out[1 + length] = kAfterRun;
  *run = {out + 1, length};
  return out + length + 2;
}

// Merges neighbours until at most two runs are left; the runs move between the arrays.
size_t MergeDownToTwo(Run* runs, size_t count, size_t k, uint64_t* to, uint64_t* from) {
  for (; count > 2; std::swap(to, from)) {
    uint64_t* out = to;
    size_t merged = 0;
    for (size_t i = 0; i < count; i += 2) {
      Run run;
      if (i + 1 == count) {
        const Run last = runs[i];
        out = Guard(out, last.length, &run);
        std::copy_n(last.keys, last.length, run.keys);
      } else {
        const size_t length = std::min(k, runs[i].length + runs[i + 1].length);
        out = Guard(out, length, &run);
        MergeRuns(runs[i], runs[i + 1], length, run.keys);
      }
      runs[merged++] = run;
    }
    count = merged;
  }
  return count;
}

int32_t Select(std::span<const RecordList> lists, int32_t k, std::span<std::byte> scratch,
               uint64_t* keys) {
  if (lists.empty()) return 0;
  const auto wanted = static_cast<size_t>(k);
  const Parts parts(lists.size(), static_cast<size_t>(TotalRecords(lists)), wanted);
  auto* const first = reinterpret_cast<uint64_t*>(scratch.data());
  auto* const second = reinterpret_cast<uint64_t*>(scratch.data() + parts.keys);
  auto* const runs = reinterpret_cast<Run*>(scratch.data() + 2 * parts.keys);
  auto* const heads = reinterpret_cast<Head*>(scratch.data() + 2 * parts.keys + parts.runs);
  TakeHeads(lists, wanted, scratch.subspan(parts.total()), heads);

  uint64_t* out = first;
  size_t count = 0;
  for (size_t list = 0; list < lists.size(); ++list) {
    const size_t length = heads[list].taken;
    if (length == 0) continue;
    out = Guard(out, length, &runs[count]);
    KeysOfRecords(lists[list].data, length, runs[count++].keys);
  }
  count = MergeDownToTwo(runs, count, wanted, second, first);
  if (count == 0) return 0;
  if (count == 1) {
    const size_t selected = std::min(wanted, runs[0].length);
    std::copy_n(runs[0].keys, selected, keys);
    return static_cast<int32_t>(selected);
  }
  const size_t selected = std::min(wanted, runs[0].length + runs[1].length);
  MergeRuns(runs[0], runs[1], selected, keys);
  return static_cast<int32_t>(selected);
}

}  // namespace

constinit const HostSelectVariant kSelectMergeTree = {"select.merge_tree", 1, true, ScratchBytes,
                                                      Select};

}  // namespace sparsesel
