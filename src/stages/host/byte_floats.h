// bytes-as-bf16: each byte becomes the bfloat16 integer 0 .. 255, which is exact, so a sum in which
// one rank contributes a row and all others +0 is exact in any order of summation.
#ifndef SPARSESEL_STAGES_HOST_BYTE_FLOATS_H_
#define SPARSESEL_STAGES_HOST_BYTE_FLOATS_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "contract/status.h"

namespace sparsesel {

constexpr uint16_t ByteToBf16(uint8_t byte) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(byte)) >> 16);
}

// bf16[4 * i + b] = byte b (little-endian) of words[i].
void EncodeBytes(std::span<const int32_t> words, uint16_t* bf16);

// The inverse. INTERNAL if a value is not an integer 0 .. 255: the transport is not lossless.
Status DecodeBytes(std::span<const uint16_t> bf16, int32_t* words);

}  // namespace sparsesel

#endif  // SPARSESEL_STAGES_HOST_BYTE_FLOATS_H_
