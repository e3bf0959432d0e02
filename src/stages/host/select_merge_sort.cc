#include "stages/host/select_merge_sort.h"

#include <algorithm>
#include <utility>

namespace sparsesel {
namespace {

constexpr size_t kLeaf = 8;

// Written with a mask because compilers make branches of min and max here.
void Order(uint64_t& first, uint64_t& second) {
  const uint64_t change = (first ^ second) & (uint64_t{0} - (first < second));
  first ^= change;
  second ^= change;
}

// Batcher's odd-even merge network: 19 comparators, none of them a branch.
void SortEight(uint64_t (&k)[kLeaf]) {
  Order(k[0], k[1]), Order(k[2], k[3]), Order(k[4], k[5]), Order(k[6], k[7]);
  Order(k[0], k[2]), Order(k[1], k[3]), Order(k[4], k[6]), Order(k[5], k[7]);
  Order(k[1], k[2]), Order(k[5], k[6]);
  Order(k[0], k[4]), Order(k[1], k[5]), Order(k[2], k[6]), Order(k[3], k[7]);
  Order(k[2], k[4]), Order(k[3], k[5]);
  Order(k[1], k[2]), Order(k[3], k[4]), Order(k[5], k[6]);
}

// Two neighbouring runs of equal length, merged from both ends at once. Neither end can leave its
// run: each takes as many keys as one run has. The places in `b` follow from those in `a` and the
// number of steps, which saves registers for a second merge beside this one.
struct Merge {
  const uint64_t* runs;
  uint64_t* out;
  size_t head_a = 0;
  size_t tail_a = 0;

  void Step(size_t run, size_t step) {
    const uint64_t* const b = runs + run + step;
    const uint64_t x = runs[head_a];
    const uint64_t y = b[-static_cast<ptrdiff_t>(head_a)];
    out[step] = x < y ? y : x;
    head_a += x >= y;
    const uint64_t* const a_last = runs + run - 1;
    const uint64_t* const b_last = a_last + run - step;
    const uint64_t u = a_last[-static_cast<ptrdiff_t>(tail_a)];
    const uint64_t v = b_last[tail_a];
    out[2 * run - 1 - step] = u < v ? u : v;
    tail_a += u < v;
  }
};

}  // namespace

uint64_t* MergeSortDescending(uint64_t* keys, size_t length, uint64_t* other) {
  // 2^n leaves of equal length: all runs of a level then have one length, and two merges can be
  // interleaved, so that four steps that do not wait for each other are in flight.
  size_t leaves = 1;
  while (leaves * kLeaf < length) leaves *= 2;
  const size_t leaf = (length + leaves - 1) / leaves;
  const size_t padded = leaf * leaves;
  std::fill(keys + length, keys + padded, uint64_t{0});
  for (size_t begin = 0; begin < padded; begin += leaf) {
    uint64_t few[kLeaf] = {};
    for (size_t i = 0; i < leaf; ++i) few[i] = keys[begin + i];
    SortEight(few);
    for (size_t i = 0; i < leaf; ++i) keys[begin + i] = few[i];
  }
  for (size_t run = leaf; run < padded; run *= 2) {
    size_t begin = 0;
    for (; begin + 4 * run <= padded; begin += 4 * run) {
      Merge left{keys + begin, other + begin};
      Merge right{keys + begin + 2 * run, other + begin + 2 * run};
      for (size_t step = 0; step < run; ++step) {
        left.Step(run, step);
        right.Step(run, step);
      }
    }
    if (begin < padded) {
      Merge last{keys + begin, other + begin};
      for (size_t step = 0; step < run; ++step) last.Step(run, step);
    }
    std::swap(keys, other);
  }
  return keys;
}

}  // namespace sparsesel
