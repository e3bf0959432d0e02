// Where keys come from. An input gives a view of one row; a view fetches two neighbouring records
// at an even position and turns what it fetched into keys. The two steps are apart so that a kernel
// can have many fetches in flight, and so that one whose input is still being written by peers can
// fetch again what IsLate, until it has arrived or the view GivesUp. Such an input `kWaits`; it
// also sends, in Begin, and counts itself done in End.
#ifndef SPARSESEL_KERNELS_INPUT_CUH_
#define SPARSESEL_KERNELS_INPUT_CUH_

#include <cstdint>

#include "contract/order.h"
#include "kernels/select.h"

namespace sparsesel::kernels {
namespace {

inline constexpr int32_t kAbsentId = -1;

// Fetches two neighbouring records, waiting for them if need be.
template <class View>
__device__ __forceinline__ void FetchKeys(const View& view, uint32_t list, int32_t at,
                                          int32_t limit, uint64_t& first, uint64_t& second) {
  auto raw = view.Fetch(list, at, limit);
  if constexpr (View::kWaits) {
    uint64_t begin = 0;
    for (uint32_t poll = 1; view.IsLate(list, at, limit, raw); ++poll) {
      if (view.GivesUp(poll, list, &begin)) break;
      raw = view.Fetch(list, at, limit);
    }
  }
  view.Resolve(list, at, limit, raw, first, second);
}

// `wide`: two records may be fetched with one access.
struct RecordInput {
  static constexpr bool kWaits = false;
  bool wide;
  int32_t uniform_length;  // -1: lists.length[] differ
  RecordLists lists;

  using Raw = uint4;  // bits, id, bits, id

  __device__ __forceinline__ Raw None() const {
    return make_uint4(0, static_cast<uint32_t>(kAbsentId), 0, static_cast<uint32_t>(kAbsentId));
  }

  struct View {
    static constexpr bool kWaits = RecordInput::kWaits;
    const RecordInput& input;
    const Record* row;

    __device__ __forceinline__ int32_t Length(uint32_t list) const {
      return input.uniform_length >= 0 ? input.uniform_length : input.lists.length[list];
    }
    // Both records are known to exist and one access may fetch them.
    __device__ __forceinline__ Raw FetchWhole(uint32_t list, int32_t at) const {
      const Record* record = row + static_cast<int64_t>(list) * input.lists.list_stride + at;
      return *reinterpret_cast<const uint4*>(record);
    }
    __device__ __forceinline__ Raw Fetch(uint32_t list, int32_t at, int32_t limit) const {
      const int32_t end = min(limit, Length(list));
      const Record* record = row + static_cast<int64_t>(list) * input.lists.list_stride + at;
      Raw raw = input.None();
      if (input.wide && at + 1 < end) {
        raw = *reinterpret_cast<const uint4*>(record);
      } else {
        if (at < end) {
          const uint2 one = *reinterpret_cast<const uint2*>(record);
          raw.x = one.x;
          raw.y = one.y;
        }
        if (at + 1 < end) {
          const uint2 one = *reinterpret_cast<const uint2*>(record + 1);
          raw.z = one.x;
          raw.w = one.y;
        }
      }
      return raw;
    }
    __device__ __forceinline__ void Resolve(uint32_t, int32_t, int32_t, const Raw& raw,
                                            uint64_t& first, uint64_t& second) const {
      first = CandidateKey(raw.x, static_cast<int32_t>(raw.y));
      second = CandidateKey(raw.z, static_cast<int32_t>(raw.w));
    }
  };
  __device__ __forceinline__ View Row(int64_t row, uint32_t*) const {
    return {*this, lists.base + row * lists.row_stride};
  }
};

struct SplitInput {
  static constexpr bool kWaits = false;
  SplitRows rows;
  bool wide;

  using Raw = uint4;  // bits, bits, id, id

  __device__ __forceinline__ Raw None() const {
    return make_uint4(0, 0, static_cast<uint32_t>(kAbsentId), static_cast<uint32_t>(kAbsentId));
  }

  struct View {
    static constexpr bool kWaits = SplitInput::kWaits;
    const uint32_t* scores;
    const int32_t* ids;
    int32_t length;
    bool wide;

    __device__ __forceinline__ int32_t Length(uint32_t) const { return length; }
    __device__ __forceinline__ Raw FetchWhole(uint32_t, int32_t at) const {
      const uint2 bits = *reinterpret_cast<const uint2*>(scores + at);
      const uint2 id = *reinterpret_cast<const uint2*>(ids + at);
      return make_uint4(bits.x, bits.y, id.x, id.y);
    }
    __device__ __forceinline__ Raw Fetch(uint32_t, int32_t at, int32_t limit) const {
      const int32_t end = min(limit, length);
      Raw raw =
          make_uint4(0, 0, static_cast<uint32_t>(kAbsentId), static_cast<uint32_t>(kAbsentId));
      if (wide && at + 1 < end) {
        const uint2 bits = *reinterpret_cast<const uint2*>(scores + at);
        const uint2 id = *reinterpret_cast<const uint2*>(ids + at);
        raw = make_uint4(bits.x, bits.y, id.x, id.y);
      } else {
        if (at < end) {
          raw.x = scores[at];
          raw.z = static_cast<uint32_t>(ids[at]);
        }
        if (at + 1 < end) {
          raw.y = scores[at + 1];
          raw.w = static_cast<uint32_t>(ids[at + 1]);
        }
      }
      return raw;
    }
    __device__ __forceinline__ void Resolve(uint32_t, int32_t, int32_t, const Raw& raw,
                                            uint64_t& first, uint64_t& second) const {
      first = CandidateKey(raw.x, static_cast<int32_t>(raw.z));
      second = CandidateKey(raw.y, static_cast<int32_t>(raw.w));
    }
  };
  __device__ __forceinline__ View Row(int64_t row, uint32_t*) const {
    int32_t length = rows.length;
    if (rows.counts != nullptr) length = max(0, min(length, rows.counts[row]));
    return {rows.scores + row * rows.score_stride, rows.ids + row * rows.id_stride, length, wide};
  }
};

}  // namespace
}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_INPUT_CUH_
