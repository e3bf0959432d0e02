// Bytes as bfloat16 integers, on the device: see kernels/byte_floats.h.
#ifndef SPARSESEL_KERNELS_BYTE_FLOATS_CUH_
#define SPARSESEL_KERNELS_BYTE_FLOATS_CUH_

#include <cstdint>

namespace sparsesel::kernels {
namespace {

// The upper half of a float that is an integer 0 .. 255 has all its bits.
__device__ __forceinline__ uint32_t ByteToFloatBits(uint32_t byte) {
  return __float_as_uint(static_cast<float>(byte & 0xff)) >> 16;
}

// Four bytes of a word, lowest first, as four bfloat16.
__device__ __forceinline__ uint2 EncodeWord(uint32_t word) {
  return make_uint2(ByteToFloatBits(word) | ByteToFloatBits(word >> 8) << 16,
                    ByteToFloatBits(word >> 16) | ByteToFloatBits(word >> 24) << 16);
}

__device__ __forceinline__ uint32_t FloatBitsToByte(uint32_t bits) {
  return static_cast<uint32_t>(__uint_as_float(bits << 16)) & 0xff;
}

// The inverse. `*bad` is set, never cleared, if a value was no byte.
__device__ __forceinline__ uint32_t DecodeWord(uint2 floats, bool* bad) {
  const uint32_t word = FloatBitsToByte(floats.x & 0xffff) | FloatBitsToByte(floats.x >> 16) << 8 |
                        FloatBitsToByte(floats.y & 0xffff) << 16 |
                        FloatBitsToByte(floats.y >> 16) << 24;
  const uint2 again = EncodeWord(word);
  *bad |= again.x != floats.x || again.y != floats.y;
  return word;
}

}  // namespace
}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_BYTE_FLOATS_CUH_
