#include "stages/host/select_merge.h"

#include <algorithm>
#include <cassert>

namespace sparsesel {
namespace {

// Each step of a merge waits for the one before it, for about eight cycles. Two or four steps that
// do not depend on each other fill that time: a merge is begun from both ends, and a long one is
// also split in its middle.
constexpr size_t kSplitAbove = 192;

// How many of the first `rank` merged keys come from `a`: the merge path's crossing, by bisection
// (Odeh et al., Merge Path, 2012).
size_t TakenFromA(Run a, Run b, size_t rank) {
  size_t low = rank > b.length ? rank - b.length : 0;
  size_t high = std::min(rank, a.length);
  while (low < high) {
    const size_t middle = (low + high) / 2;
    // Whichever way ties go, the same keys are taken.
    if (a.keys[middle] > b.keys[rank - 1 - middle]) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Forward: from `a` and `b` the greater key is next. The guards end the runs.
struct Head {
  const uint64_t* a;
  const uint64_t* b;
  uint64_t* out;
  void Step() {
    const uint64_t x = *a;
    const uint64_t y = *b;
    const bool from_b = x < y;
    *out++ = from_b ? y : x;
    b += from_b;
    a += !from_b;
  }
};

// Backward: a, b and out are one past what is next, the lesser key.
struct Tail {
  const uint64_t* a;
  const uint64_t* b;
  uint64_t* out;
  void Step() {
    const uint64_t x = a[-1];
    const uint64_t y = b[-1];
    const bool from_a = x < y;
    *--out = from_a ? x : y;
    a -= from_a;
    b -= !from_a;
  }
};

// Merges `count` keys between two points of the merge path.
void MergeOnce(Head head, Tail tail, size_t count) {
  for (size_t i = 0; i < count / 2; ++i) {
    head.Step();
    tail.Step();
  }
  if (count % 2 != 0) head.Step();
}

}  // namespace

void MergeRuns(Run a, Run b, size_t count, uint64_t* out) {
  assert(count <= a.length + b.length);
  const size_t end_a = count == a.length + b.length ? a.length : TakenFromA(a, b, count);
  const uint64_t* const a_end = a.keys + end_a;
  const uint64_t* const b_end = b.keys + (count - end_a);
  if (count < kSplitAbove) {
    MergeOnce({a.keys, b.keys, out}, {a_end, b_end, out + count}, count);
    return;
  }
  const size_t half = count / 4 * 2;
  const size_t half_a = TakenFromA(a, b, half);
  const uint64_t* const a_half = a.keys + half_a;
  const uint64_t* const b_half = b.keys + (half - half_a);
  Head head_1{a.keys, b.keys, out};
  Tail tail_1{a_half, b_half, out + half};
  Head head_2{a_half, b_half, out + half};
  Tail tail_2{a_end, b_end, out + count};
  for (size_t i = 0; i < half / 2; ++i) {
    head_1.Step();
    tail_1.Step();
    head_2.Step();
    tail_2.Step();
  }
  for (size_t i = 0; i < count - 2 * half; ++i) head_2.Step();
}

}  // namespace sparsesel
