#include "stages/host/restore.h"

#include <algorithm>
#include <array>
#include <limits>

#include "stages/host/select_filter.h"
#include "stages/host/select_sort.h"

namespace sparsesel {
namespace {

// Records whose keys are made at once: 4 KiB of keys, a few per cent of them wanted.
constexpr size_t kChunk = 512;

// The first place of `key` in descending keys that hold it: bisection without a branch to guess.
size_t FirstPlace(std::span<const uint64_t> keys, uint64_t key) {
  const uint64_t* first = keys.data();
  size_t length = keys.size();
  while (length > 1) {
    const size_t half = length / 2;
    first += (first[half - 1] > key) ? half : 0;
    length -= half;
  }
  return static_cast<size_t>(first - keys.data());
}

// Writes the indices of the keys >= lowest and returns how many.
size_t IndicesAtLeast(const uint64_t* keys, size_t length, uint64_t lowest, uint16_t* indices) {
  size_t count = 0;
  for (size_t i = 0; i < length; ++i) {
    indices[count] = static_cast<uint16_t>(i);
    count += keys[i] >= lowest;
  }
  return count;
}

}  // namespace

size_t RestoreScratchBytes(int32_t k) {
  const auto slots = static_cast<size_t>(std::max(k, 0));
  // OrderById: two arrays to sort in, and a copy of the input. RestoreRecords takes less.
  return (2 * MergeSortRoom(slots) + 2 * slots) * sizeof(uint64_t);
}

void RestoreRecords(std::span<const RecordList> lists, std::span<const uint64_t> keys,
                    std::span<std::byte> scratch, Record* records, uint64_t* sources) {
  if (keys.empty()) return;
  // taken[first place of a group of equal keys]: how many of its places are filled.
  auto* const taken = reinterpret_cast<uint32_t*>(scratch.data());
  std::fill_n(taken, keys.size(), 0u);
  std::array<uint64_t, kChunk> chunk;
  std::array<uint16_t, kChunk> wanted;
  for (size_t l = 0; l < lists.size(); ++l) {
    const auto length = static_cast<size_t>(lists[l].length);
    for (size_t begin = 0; begin < length; begin += kChunk) {
      const Record* const data = lists[l].data + begin;
      const size_t size = std::min(kChunk, length - begin);
      KeysOfRecords(data, size, chunk.data());
      const size_t count = IndicesAtLeast(chunk.data(), size, keys.back(), wanted.data());
      for (size_t i = 0; i < count; ++i) {
        const size_t index = wanted[i];
        const size_t first = FirstPlace(keys, chunk[index]);
        const size_t place = first + taken[first];
        // Only the last group can be full: the cutoff had more records than were selected, and
        // those that come later in source order are not among them.
        if (place == keys.size()) continue;
        ++taken[first];
        records[place] = data[index];
        sources[place] = (static_cast<uint64_t>(l) << 32) | (begin + index);
      }
    }
  }
}

void OrderById(std::span<Record> records, std::span<uint64_t> sources,
               std::span<std::byte> scratch) {
  constexpr uint64_t kLow = 0xffffffffu;
  const size_t count = records.size();
  auto* const codes = reinterpret_cast<uint64_t*>(scratch.data());
  auto* const other = codes + MergeSortRoom(count);
  auto* const old_sources = other + MergeSortRoom(count);
  auto* const old_records = reinterpret_cast<Record*>(old_sources + count);
  std::copy(records.begin(), records.end(), old_records);
  std::copy(sources.begin(), sources.end(), old_sources);

  // Complements of (id, slot), because the sort is descending and takes no 0.
  for (size_t slot = 0; slot < count; ++slot) {
    const auto id = static_cast<uint64_t>(std::numeric_limits<int32_t>::max() - records[slot].id);
    codes[slot] = (id << 32) | (kLow - slot);
  }
  uint64_t* const sorted = SortDescending(codes, count, other);
  const auto source = [&](uint64_t code) { return old_sources[kLow - (code & kLow)]; };
  for (size_t begin = 0, end = 0; begin < count; begin = end) {
    for (end = begin + 1; end < count && sorted[end] >> 32 == sorted[begin] >> 32;) ++end;
    if (end - begin == 1) continue;
    std::sort(sorted + begin, sorted + end,
              [&](uint64_t a, uint64_t b) { return source(a) < source(b); });
  }
  for (size_t i = 0; i < count; ++i) {
    const size_t slot = kLow - (sorted[i] & kLow);
    records[i] = old_records[slot];
    sources[i] = old_sources[slot];
  }
}

}  // namespace sparsesel
