// select.threshold: a sample gives a pivot that a little more than k keys should reach, one pass
// keeps those, and only they are sorted. The sample decides how long it takes, never the result.
#include <algorithm>
#include <cmath>
#include <functional>

#include "contract/order.h"
#include "stages/host/select_filter.h"
#include "stages/host/select_variants.h"

namespace sparsesel {
namespace {

constexpr size_t kLeastSample = 256;
constexpr size_t kGreatestSample = 4096;
constexpr size_t kRecordsPerSample = 32;
// Rounds of narrowing before std::nth_element, which no input can delay, takes over.
constexpr int kNarrowings = 4;

size_t SampleSize(size_t population) {
  return std::clamp(population / kRecordsPerSample, kLeastSample, kGreatestSample);
}

// The rank in the sample whose key at least `k` of the population reach, but for one case in
// hundreds: three standard deviations beyond the expected rank.
size_t PivotRank(size_t sample, size_t k, size_t population) {
  const double share = static_cast<double>(k) / static_cast<double>(population);
  const double expected = static_cast<double>(sample) * share;
  const double deviation = std::sqrt(expected * (1 - share));
  return std::min(sample - 1, static_cast<size_t>(expected + 3 * deviation + 1));
}

uint64_t SampleKey(uint64_t* sample, size_t size, size_t rank) {
  std::nth_element(sample, sample + rank, sample + size, std::greater<>());
  return sample[rank];
}

// Every stride-th record of the lists laid end to end. The stride is odd so that it does not fall
// in step with absences or layouts that repeat with a power of two. The keys are made afterwards,
// all at once: by themselves the scattered loads overlap.
size_t TakeSample(std::span<const RecordList> lists, size_t stride, uint64_t* sample) {
  auto* const records = reinterpret_cast<Record*>(sample);
  size_t count = 0;
  size_t position = stride / 2;
  for (const RecordList& list : lists) {
    const auto length = static_cast<size_t>(list.length);
    for (; position < length; position += stride) {
      records[count++] = list.data[position];
    }
    position -= length;
  }
  KeysOfRecords(records, count, sample);
  return count;
}

// Reduces `count` > k keys to fewer, among them the greatest k, until there are at most 2k.
size_t Narrow(KeyArrays& arrays, size_t count, size_t k) {
  for (int round = 0; round < kNarrowings && count > 2 * k; ++round) {
    const size_t stride = (count / SampleSize(count)) | 1;
    size_t sample = 0;
    for (size_t i = stride / 2; i < count; i += stride) arrays.other[sample++] = arrays.keys[i];
    const uint64_t pivot = SampleKey(arrays.other, sample, PivotRank(sample, k, count));
    size_t kept = KeepAtLeast(arrays.keys, count, pivot, arrays.other);
    if (kept > 2 * k) {
      // Perhaps because the pivot itself repeats; if it is the cutoff, the rest are copies of it.
      const size_t above = KeepAtLeast(arrays.keys, count, pivot + 1, arrays.other);
      if (above < k) std::fill(arrays.other + above, arrays.other + k, pivot);
      kept = std::max(above, k);
    }
    if (kept < k) continue;  // an unlucky sample; the keys are still there
    std::swap(arrays.keys, arrays.other);
    count = kept;
  }
  if (count <= 2 * k) return count;
  std::nth_element(arrays.keys, arrays.keys + k, arrays.keys + count, std::greater<>());
  return k;
}

size_t ScratchBytes(int32_t, int64_t total_records, int32_t) {
  return KeyArraysBytes(total_records);
}

int32_t Select(std::span<const RecordList> lists, int32_t k, std::span<std::byte> scratch,
               uint64_t* keys) {
  const int64_t records = TotalRecords(lists);
  const auto population = static_cast<size_t>(records);
  const auto wanted = static_cast<size_t>(k);
  KeyArrays arrays = KeyArraysIn(scratch, records);

  uint64_t pivot = kAbsentKey + 1;
  size_t sample = 0;
  size_t rank = 0;
  if (population > 2 * wanted && population > 2 * kLeastSample) {
    const size_t stride = (population / SampleSize(population)) | 1;
    sample = TakeSample(lists, stride, arrays.other);
    rank = PivotRank(sample, wanted, population);
    pivot = std::max(pivot, SampleKey(arrays.other, sample, rank));
  }
  size_t count = KeysAtLeast(lists, pivot, arrays.keys);
  if (count < wanted && pivot > kAbsentKey + 1) {
    // Once more with a generous pivot, then with everything.
    rank = std::min(sample - 1, 2 * rank + 8);
    pivot = std::max(kAbsentKey + 1, SampleKey(arrays.other, sample, rank));
    count = KeysAtLeast(lists, pivot, arrays.keys);
    if (count < wanted && pivot > kAbsentKey + 1) {
      count = KeysAtLeast(lists, kAbsentKey + 1, arrays.keys);
    }
  }
  if (count > 2 * wanted) count = Narrow(arrays, count, wanted);
  return SortAndEmit(arrays, count, k, keys);
}

}  // namespace

constinit const HostSelectVariant kSelectThreshold = {"select.threshold", 1, false, ScratchBytes,
                                                      Select};

}  // namespace sparsesel
