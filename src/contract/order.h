// The total order of candidates, as one unsigned comparison.
//
// A candidate is a (score, id) pair; its *key* is a 64-bit integer such that the greater key comes
// first in the contract's order:
//
//   bits 63..32  the score: 0 for every NaN, else the IEEE order with -0.0 and +0.0 made equal
//   bits 31..0   2^31 - id, so the smaller id has the greater word; 1 .. 2^31 for ids that exist
//
// An absent candidate has key 0, below every present one (the greatest id, with a NaN, has key 1).
// Keys are made from bits alone: flush-to-zero and denormals-are-zero modes change nothing.
//
// Keys are not distinct. Two candidates with one key have the same id, so they are interchangeable
// in an output of ids; where original score bits are wanted, the source (rank, position) decides,
// see stages/host/restore.h. Shared by host and device code.
#ifndef SPARSESEL_CONTRACT_ORDER_H_
#define SPARSESEL_CONTRACT_ORDER_H_

#include <cstdint>

#if defined(__CUDACC__)
#define SPARSESEL_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define SPARSESEL_HOST_DEVICE inline
#endif

namespace sparsesel {

// What travels between ranks: the candidate's original 64 bits. A negative id marks it absent.
struct alignas(8) Record {
  uint32_t score_bits;
  int32_t id;
};
static_assert(sizeof(Record) == 8);

inline constexpr uint64_t kAbsentKey = 0;
inline constexpr uint32_t kSignBit = 0x80000000u;
inline constexpr uint32_t kInfinityBits = 0x7f800000u;
inline constexpr uint32_t kMinusInfinityBits = 0xff800000u;
// What ScoreOrder returns for either zero, and for any NaN: the only values that stand for more
// than one bit pattern.
inline constexpr uint32_t kZeroOrder = kSignBit;
inline constexpr uint32_t kNanOrder = 0;

// A 32-bit integer whose unsigned order is the contract's order of scores.
SPARSESEL_HOST_DEVICE constexpr uint32_t ScoreOrder(uint32_t bits) {
  const uint32_t magnitude = bits & ~kSignBit;
  if (magnitude > kInfinityBits) return kNanOrder;
  if (magnitude == 0) return kZeroOrder;
  return (bits & kSignBit) != 0 ? ~bits : bits | kSignBit;
}

// A score with the given order: the original bits, except that zeros come back as +0.0 and NaNs as
// the quiet NaN 0x7fc00000.
SPARSESEL_HOST_DEVICE constexpr uint32_t ScoreFromOrder(uint32_t order) {
  if (order == kNanOrder) return 0x7fc00000u;
  return (order & kSignBit) != 0 ? order & ~kSignBit : ~order;
}

SPARSESEL_HOST_DEVICE constexpr uint64_t CandidateKey(uint32_t score_bits, int32_t id) {
  if (id < 0) return kAbsentKey;
  return (static_cast<uint64_t>(ScoreOrder(score_bits)) << 32) |
         (kSignBit - static_cast<uint32_t>(id));
}

SPARSESEL_HOST_DEVICE constexpr uint64_t CandidateKey(Record record) {
  return CandidateKey(record.score_bits, record.id);
}

// The id of a present candidate; -1 for kAbsentKey.
SPARSESEL_HOST_DEVICE constexpr int32_t KeyId(uint64_t key) {
  return key == kAbsentKey
             ? -1
             : static_cast<int32_t>(kSignBit - static_cast<uint32_t>(key & 0xffffffffu));
}

SPARSESEL_HOST_DEVICE constexpr uint32_t KeyScoreOrder(uint64_t key) {
  return static_cast<uint32_t>(key >> 32);
}

}  // namespace sparsesel

#endif  // SPARSESEL_CONTRACT_ORDER_H_
