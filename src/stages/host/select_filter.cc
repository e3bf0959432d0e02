// Compiled once for each instruction set: Highway includes this file again from foreach_target.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "stages/host/select_filter.cc"
#include "stages/host/select_filter.h"

#include <bit>

#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway demands.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace sparsesel {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

// Highway's scalar lanes cannot be seen as two halves; plain code serves there.
size_t KeysAtLeast(const Record* records, size_t length, uint64_t pivot, uint64_t* keys) {
  size_t count = 0;
  for (size_t i = 0; i < length; ++i) {
    const uint64_t key = CandidateKey(records[i]);
    keys[count] = key;
    count += key >= pivot;
  }
  return count;
}

size_t KeepAtLeast(const uint64_t* keys, size_t length, uint64_t pivot, uint64_t* kept) {
  size_t count = 0;
  for (size_t i = 0; i < length; ++i) {
    const uint64_t key = keys[i];
    kept[count] = key;
    count += key >= pivot;
  }
  return count;
}

void KeysOfRecords(const Record* records, size_t length, uint64_t* keys) {
  for (size_t i = 0; i < length; ++i) keys[i] = CandidateKey(records[i]);
}

#else  // HWY_TARGET

// A record is read as one 64-bit lane: score bits in the low half, id in the high half.
static_assert(std::endian::native == std::endian::little);

// At most kFilterSlack lanes, also where vectors could be longer.
using Lanes = hn::CappedTag<uint64_t, kFilterSlack>;
using Vector = hn::Vec<Lanes>;
constexpr Lanes kLanes;

// Stores the lanes of `values` whose mask is set, one after the other, and returns how many.
#if HWY_HAVE_SCALABLE || HWY_TARGET <= HWY_AVX3
template <class Mask>
HWY_INLINE size_t Compact(Vector values, Mask mask, uint64_t* out) {
  return hn::CompressStore(values, mask, kLanes, out);
}
#else
// Highway's own CompressStore (1.0.3) keeps its table of permutations in a local array, which GCC
// 12 copies to the stack at every call: ten times the work.
constexpr size_t kLaneCount = hn::MaxLanes(kLanes);

struct Permutations {
  // For every mask, 32-bit halves: those of the set lanes first.
  alignas(32) uint32_t halves[size_t{1} << kLaneCount][2 * kLaneCount] = {};

  constexpr Permutations() {
    for (size_t mask = 0; mask < size_t{1} << kLaneCount; ++mask) {
      size_t next = 0;
      for (size_t lane = 0; lane < kLaneCount; ++lane) {
        if ((mask >> lane & 1) == 0) continue;
        halves[mask][next++] = static_cast<uint32_t>(2 * lane);
        halves[mask][next++] = static_cast<uint32_t>(2 * lane + 1);
      }
    }
  }
};
constexpr Permutations kPermutations;

template <class Mask>
HWY_INLINE size_t Compact(Vector values, Mask mask, uint64_t* out) {
  const hn::Repartition<uint32_t, Lanes> halves;
  uint8_t bits[8];
  hn::StoreMaskBits(kLanes, mask, bits);
  const auto order = hn::SetTableIndices(halves, kPermutations.halves[bits[0]]);
  const auto compacted = hn::TableLookupLanes(hn::BitCast(halves, values), order);
  hn::StoreU(hn::BitCast(kLanes, compacted), kLanes, out);
  return hwy::PopCount(uint64_t{bits[0]});
}
#endif

HWY_INLINE Vector LoadRecords(const Record* records) {
  return hn::LoadU(kLanes, reinterpret_cast<const uint64_t*>(records));
}

// CandidateKey, a lane at a time.
HWY_INLINE Vector KeysOf(Vector records) {
  const hn::Repartition<uint32_t, Lanes> words;
  const hn::RebindToSigned<decltype(words)> signed_words;
  const hn::RebindToSigned<Lanes> signed_lanes;
  const auto sign_bit = hn::Set(words, kSignBit);

  const auto bits = hn::BitCast(words, records);  // the ids' words are computed and ignored
  const auto sign = hn::BitCast(words, hn::BroadcastSignBit(hn::BitCast(signed_words, bits)));
  const auto magnitude = hn::AndNot(sign_bit, bits);
  const auto above_infinity = hn::Gt(hn::BitCast(signed_words, magnitude),
                                     hn::Set(signed_words, static_cast<int32_t>(kInfinityBits)));
  const auto is_nan = hn::BitCast(words, hn::VecFromMask(signed_words, above_infinity));
  const auto is_zero = hn::Eq(magnitude, hn::Zero(words));
  auto order = hn::Xor(bits, hn::Or(sign, sign_bit));
  order = hn::IfThenElse(is_zero, hn::Set(words, kZeroOrder), order);
  order = hn::AndNot(is_nan, order);  // kNanOrder is 0

  const auto id_word = hn::BitCast(kLanes, hn::Sub(sign_bit, bits));
  const auto key =
      hn::Or(hn::ShiftLeft<32>(hn::BitCast(kLanes, order)), hn::ShiftRight<32>(id_word));
  const auto absent = hn::BroadcastSignBit(hn::BitCast(signed_lanes, records));  // id < 0
  return hn::AndNot(hn::BitCast(kLanes, absent), key);                           // kAbsentKey is 0
}

// Compacts those that may be at or above the pivot by their score alone: every one that is, and
// some that are not (lower ids of the pivot's own score, positive NaNs). It costs half of KeysOf.
// The pivot is not a NaN's.
HWY_INLINE size_t KeepByScore(const Record* records, size_t length, uint64_t pivot,
                              uint64_t* kept) {
  const hn::Repartition<uint32_t, Lanes> words;
  const hn::RebindToSigned<decltype(words)> signed_words;

  // Flipping the magnitude of negative numbers makes their bits ordered as signed integers; -0.0
  // becomes -1, just below +0.0, so that a pivot of zero must let -1 through.
  const uint32_t order = KeyScoreOrder(pivot);
  const int32_t lowest = order == kZeroOrder ? -1 : static_cast<int32_t>(order ^ kSignBit);
  // Ids are not changed by the flip unless negative, and must be above -1.
  const uint64_t below = (uint64_t{0xffffffffu} << 32) | static_cast<uint32_t>(lowest - 1);
  const auto limit = hn::BitCast(signed_words, hn::Set(kLanes, below));

  const size_t step = hn::Lanes(kLanes);
  size_t count = 0;
  size_t i = 0;
  for (; i + step <= length; i += step) {
    const auto record = LoadRecords(records + i);
    const auto bits = hn::BitCast(signed_words, record);
    const auto flip = hn::ShiftRight<1>(hn::BitCast(words, hn::BroadcastSignBit(bits)));
    const auto ordered = hn::Xor(bits, hn::BitCast(signed_words, flip));
    const auto above = hn::VecFromMask(signed_words, hn::Gt(ordered, limit));
    const auto both = hn::And(above, hn::Shuffle2301(above));
    const auto mask = hn::MaskFromVec(hn::BitCast(kLanes, both));
    count += Compact(record, mask, kept + count);
  }
  for (; i < length; ++i) {
    kept[count] =
        (static_cast<uint64_t>(static_cast<uint32_t>(records[i].id)) << 32) | records[i].score_bits;
    count += CandidateKey(records[i]) >= pivot;
  }
  return count;
}

size_t KeepAtLeast(const uint64_t* keys, size_t length, uint64_t pivot, uint64_t* kept) {
  const auto below = hn::Set(kLanes, pivot - 1);
  const size_t step = hn::Lanes(kLanes);
  size_t count = 0;
  size_t i = 0;
  for (; i + step <= length; i += step) {
    const auto key = hn::LoadU(kLanes, keys + i);
    count += Compact(key, hn::Gt(key, below), kept + count);
  }
  for (; i < length; ++i) {
    const uint64_t key = keys[i];
    kept[count] = key;
    count += key >= pivot;
  }
  return count;
}

size_t KeysAtLeast(const Record* records, size_t length, uint64_t pivot, uint64_t* keys) {
  const size_t step = hn::Lanes(kLanes);
  const auto below = hn::Set(kLanes, pivot - 1);
  // Survivors of the first pass, still records, are replaced by their keys in place.
  const bool by_score = KeyScoreOrder(pivot) != kNanOrder;
  if (by_score) length = KeepByScore(records, length, pivot, keys);
  size_t count = 0;
  size_t i = 0;
  for (; i + step <= length; i += step) {
    const auto record = by_score ? hn::LoadU(kLanes, keys + i) : LoadRecords(records + i);
    const auto key = KeysOf(record);
    count += Compact(key, hn::Gt(key, below), keys + count);
  }
  for (; i < length; ++i) {
    const uint64_t key =
        by_score ? CandidateKey(static_cast<uint32_t>(keys[i]), static_cast<int32_t>(keys[i] >> 32))
                 : CandidateKey(records[i]);
    keys[count] = key;
    count += key >= pivot;
  }
  return count;
}

void KeysOfRecords(const Record* records, size_t length, uint64_t* keys) {
  const size_t step = hn::Lanes(kLanes);
  size_t i = 0;
  for (; i + step <= length; i += step) {
    hn::StoreU(KeysOf(LoadRecords(records + i)), kLanes, keys + i);
  }
  for (; i < length; ++i) keys[i] = CandidateKey(records[i]);
}

#endif  // HWY_TARGET

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace sparsesel
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sparsesel {

HWY_EXPORT(KeysAtLeast);
HWY_EXPORT(KeepAtLeast);
HWY_EXPORT(KeysOfRecords);

size_t KeysAtLeast(const Record* records, size_t length, uint64_t pivot, uint64_t* keys) {
  return HWY_DYNAMIC_DISPATCH(KeysAtLeast)(records, length, pivot, keys);
}

size_t KeepAtLeast(const uint64_t* keys, size_t length, uint64_t pivot, uint64_t* kept) {
  return HWY_DYNAMIC_DISPATCH(KeepAtLeast)(keys, length, pivot, kept);
}

void KeysOfRecords(const Record* records, size_t length, uint64_t* keys) {
  HWY_DYNAMIC_DISPATCH(KeysOfRecords)(records, length, keys);
}

}  // namespace sparsesel
#endif  // HWY_ONCE
