// select.radix: counts leading digits of the keys until at most 2k keys reach the digit in which
// the k-th lies. Unlike a sample's, its time hardly depends on the data.
#include <algorithm>

#include "contract/order.h"
#include "stages/host/select_filter.h"
#include "stages/host/select_variants.h"

namespace sparsesel {
namespace {

constexpr int kDigitBits = 11;
constexpr size_t kDigits = size_t{1} << kDigitBits;
constexpr int kKeyBits = 64;

// Counts the digits at `shift` of the keys that agree with `prefix` above them. Neighbouring keys
// count in different tables: an increment would wait for one of the same counter just before it.
void CountDigits(const uint64_t* keys, size_t count, uint64_t prefix, int shift, int bits,
                 uint32_t (&counts)[kDigits]) {
  uint32_t odd[kDigits] = {};
  std::fill_n(counts, kDigits, 0u);
  const uint64_t digits = uint64_t{1} << bits;
  uint32_t ignored[2] = {};  // keys above the prefix, whose difference to it is no digit
  size_t i = 0;
  for (; i + 2 <= count; i += 2) {
    const uint64_t first = (keys[i] >> shift) - prefix;
    const uint64_t second = (keys[i + 1] >> shift) - prefix;
    ++*(first < digits ? &counts[first] : &ignored[0]);
    ++*(second < digits ? &odd[second] : &ignored[1]);
  }
  if (i < count) {
    const uint64_t last = (keys[i] >> shift) - prefix;
    if (last < digits) ++counts[last];
  }
  for (size_t digit = 0; digit < kDigits; ++digit) counts[digit] += odd[digit];
}

size_t ScratchBytes(int32_t, int64_t total_records, int32_t) {
  return KeyArraysBytes(total_records);
}

int32_t Select(std::span<const RecordList> lists, int32_t k, std::span<std::byte> scratch,
               uint64_t* keys) {
  const KeyArrays arrays = KeyArraysIn(scratch, TotalRecords(lists));
  const auto wanted = static_cast<size_t>(k);
  size_t count = KeysAtLeast(lists, kAbsentKey + 1, arrays.keys);
  // All kept keys are at or above `prefix` << shift; `above` of them exceed every key with that
  // prefix, and these are fewer than wanted.
  uint64_t prefix = 0;
  size_t above = 0;
  int shift = kKeyBits;
  while (count > 2 * wanted && shift > 0) {
    const int bits = std::min(kDigitBits, shift);
    shift -= bits;
    prefix <<= bits;
    uint32_t counts[kDigits];
    CountDigits(arrays.keys, count, prefix, shift, bits, counts);
    uint64_t digit = (uint64_t{1} << bits) - 1;
    while (above + counts[digit] < wanted) above += counts[digit--];
    prefix += digit;
    count = KeepAtLeast(arrays.keys, count, std::max(prefix << shift, kAbsentKey + 1), arrays.keys);
  }
  if (count > 2 * wanted) {
    // All bits are used up: what is not above the cutoff equals it.
    above = KeepAtLeast(arrays.keys, count, prefix + 1, arrays.keys);
    std::fill(arrays.keys + above, arrays.keys + wanted, prefix);
    count = wanted;
  }
  return SortAndEmit(arrays, count, k, keys);
}

}  // namespace

constinit const HostSelectVariant kSelectRadix = {"select.radix", 1, false, ScratchBytes, Select};

}  // namespace sparsesel
