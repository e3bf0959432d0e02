#include "contract/reference.h"

#include <algorithm>
#include <bit>

namespace sparsesel {
namespace {

constexpr uint32_t kSign = 0x80000000u;
constexpr uint32_t kInfinity = 0x7f800000u;
constexpr uint32_t kEmptyScore = 0xff800000u;  // -inf

struct Candidate {
  uint32_t score_bits;
  int32_t id;
  int64_t source;  // greater for a higher rank, then for a later position
};

bool IsNan(uint32_t bits) { return (bits & ~kSign) > kInfinity; }
bool IsZero(uint32_t bits) { return (bits & ~kSign) == 0; }
bool IsNegative(uint32_t bits) { return (bits & kSign) != 0; }

// IEEE a > b for two numbers. On bits, since a comparison of floats takes subnormals for zero when
// the thread's denormals-are-zero mode is on.
bool IsGreater(uint32_t a, uint32_t b) {
  if (IsZero(a) && IsZero(b)) return false;
  if (IsNegative(a) != IsNegative(b)) return IsNegative(b);
  return IsNegative(a) ? (a & ~kSign) < (b & ~kSign) : a > b;
}

// The four rules of the contract's order, one after the other. No two candidates share a source, so
// none are equal, and any sort will do.
bool ComesBefore(const Candidate& a, const Candidate& b) {
  if (IsNan(a.score_bits) != IsNan(b.score_bits)) return IsNan(b.score_bits);
  if (!IsNan(a.score_bits)) {
    if (IsGreater(a.score_bits, b.score_bits)) return true;
    if (IsGreater(b.score_bits, a.score_bits)) return false;
  }
  if (a.id != b.id) return a.id < b.id;
  return a.source < b.source;
}

bool HasLowerId(const Candidate& a, const Candidate& b) {
  return a.id != b.id ? a.id < b.id : a.source < b.source;
}

std::vector<Candidate> PresentCandidates(std::span<const ReferenceList> lists) {
  std::vector<Candidate> present;
  int64_t source = 0;
  for (const ReferenceList& list : lists) {
    const int32_t length = static_cast<int32_t>(list.ids.size());
    const int32_t count = std::clamp(list.count, 0, length);
    for (int32_t i = 0; i < count; ++i) {
      if (list.ids[i] < 0) continue;
      present.push_back({std::bit_cast<uint32_t>(list.scores[i]), list.ids[i], source + i});
    }
    source += length;
  }
  return present;
}

}  // namespace

ReferenceRow SelectReference(std::span<const ReferenceList> lists, int32_t k, bool by_id) {
  std::vector<Candidate> candidates = PresentCandidates(lists);
  if (candidates.size() > static_cast<size_t>(k)) {
    // Only to spare time: what is cut off here would come after the k-th.
    std::nth_element(candidates.begin(), candidates.begin() + k, candidates.end(), ComesBefore);
    candidates.resize(static_cast<size_t>(k));
  }
  std::sort(candidates.begin(), candidates.end(), by_id ? HasLowerId : ComesBefore);

  ReferenceRow row;
  row.count = static_cast<int32_t>(candidates.size());
  row.ids.assign(static_cast<size_t>(k), -1);
  row.score_bits.assign(static_cast<size_t>(k), kEmptyScore);
  for (size_t i = 0; i < candidates.size(); ++i) {
    row.ids[i] = candidates[i].id;
    row.score_bits[i] = candidates[i].score_bits;
  }
  return row;
}

}  // namespace sparsesel
