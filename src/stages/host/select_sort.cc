#include "stages/host/select_sort.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace sparsesel {
namespace {

// Below this, counters cost more than merging.
constexpr size_t kFewKeys = 384;
// Passes come in pairs, so that one scan counts for two and the result is back where it began.
// A table of 2^10 counters is 4 KiB: both stay in the first-level cache beside the keys.
constexpr int kDigitBits = 10;
constexpr int kPairBits = 2 * kDigitBits;
// Scores with no more changing bits than this repeat too often to be sorted without their ids.
constexpr int kFewScoreBits = 17;
// Up to this many keys, the first kPairBits of their scores tell nearly all of them apart.
constexpr size_t kTellsApart = size_t{1} << 13;
// How many moves a key, on average, may take to repair what those bits left out of order.
constexpr size_t kMovesPerKey = 1;

// The score bits that are not the same in all keys: (key - base) >> shift has `bits` bits.
struct Field {
  uint64_t base = 0;
  int shift = 0;
  int bits = 0;
};

Field ChangingScoreBits(const uint64_t* keys, size_t length) {
  const uint64_t first = keys[0];
  uint64_t least = first;
  uint64_t greatest = first;
  uint64_t changes = 0;
  for (size_t i = 0; i < length; ++i) {
    least = std::min(least, keys[i]);
    greatest = std::max(greatest, keys[i]);
    changes |= keys[i] ^ first;
  }
  const uint64_t score = changes >> 32;
  if (score == 0) return {};
  // Relative to the least: 1.9 and 2.1 differ in every bit of the exponent, their distance does
  // not.
  const int shift = 32 + std::countr_zero(score);
  const uint64_t base = least >> 32 << 32;
  return {base, shift, static_cast<int>(std::bit_width((greatest - base) >> shift))};
}

void Scatter(const uint64_t* from, size_t length, uint64_t base, int shift, uint64_t mask,
             uint32_t* next, uint64_t* to) {
  for (size_t i = 0; i < length; ++i) {
    const uint64_t key = from[i];
    to[next[((key - base) >> shift) & mask]++] = key;
  }
}

// Stable and descending by the field's bits, from the low ones up, two digits at a time.
void SortByField(uint64_t* keys, size_t length, Field field, uint64_t* other) {
  for (int pairs = (field.bits + kPairBits - 1) / kPairBits; pairs > 0; --pairs) {
    const int width = (field.bits + 2 * pairs - 1) / (2 * pairs);
    const size_t digits = size_t{1} << width;
    const uint64_t mask = digits - 1;
    uint32_t low_next[size_t{1} << kDigitBits];
    uint32_t high_next[size_t{1} << kDigitBits];
    std::fill_n(low_next, digits, 0u);
    std::fill_n(high_next, digits, 0u);
    for (size_t i = 0; i < length; ++i) {
      const uint64_t rest = (keys[i] - field.base) >> field.shift;
      ++low_next[rest & mask];
      ++high_next[(rest >> width) & mask];
    }
    uint32_t low_sum = 0;
    uint32_t high_sum = 0;
    for (size_t digit = digits; digit-- > 0;) {
      low_sum += std::exchange(low_next[digit], low_sum);
      high_sum += std::exchange(high_next[digit], high_sum);
    }
    Scatter(keys, length, field.base, field.shift, mask, low_next, other);
    Scatter(other, length, field.base, field.shift + width, mask, high_next, keys);
    field.shift += 2 * width;
    field.bits = std::max(0, field.bits - 2 * width);
  }
}

// Insertion sort, for keys that are nearly in order. Gives up, and returns false with the keys
// permuted, when it has moved too many.
bool SortNearlySorted(uint64_t* keys, size_t length) {
  size_t moves = kMovesPerKey * length;
  for (size_t i = 1; i < length; ++i) {
    const uint64_t key = keys[i];
    if (keys[i - 1] >= key) continue;
    size_t at = i;
    do {
      keys[at] = keys[at - 1];
      --at;
    } while (at > 0 && keys[at - 1] < key && --moves > 0);
    keys[at] = key;
    if (moves == 0) return false;
  }
  return true;
}

}  // namespace

uint64_t* SortDescending(uint64_t* keys, size_t length, uint64_t* other) {
  if (length >= kFewKeys) {
    Field field = ChangingScoreBits(keys, length);
    if (field.bits > kFewScoreBits) {
      if (length <= kTellsApart && field.bits > kPairBits) {
        field.shift += field.bits - kPairBits;
        field.bits = kPairBits;
      }
      SortByField(keys, length, field, other);
      if (SortNearlySorted(keys, length)) return keys;
    }
  }
  return MergeSortDescending(keys, length, other);
}

}  // namespace sparsesel
