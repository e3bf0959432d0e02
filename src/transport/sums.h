// The arithmetic of sums over ranks.
#ifndef SPARSESEL_TRANSPORT_SUMS_H_
#define SPARSESEL_TRANSPORT_SUMS_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace sparsesel {

// sums[i] = terms[0][i] + terms[1][i] + ..., in that order, so that all ranks get the same bits.
// bfloat16: each step is an fp32 addition, rounded to nearest, ties to even.
void SumBf16(std::span<const uint16_t* const> terms, size_t count, uint16_t* sums);
// int32: wraps.
void SumInt32(std::span<const int32_t* const> terms, size_t count, int32_t* sums);

}  // namespace sparsesel

#endif  // SPARSESEL_TRANSPORT_SUMS_H_
