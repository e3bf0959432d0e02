#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/byte_floats.cuh"
#include "kernels/byte_floats.h"

namespace sparsesel::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 1 << 14;

unsigned Grid(int64_t items) {
  return static_cast<unsigned>(
      std::clamp<int64_t>((items + kThreads - 1) / kThreads, 1, kMaxBlocks));
}

__device__ __forceinline__ int64_t FirstItem() {
  return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
}
__device__ __forceinline__ int64_t ItemStep() { return static_cast<int64_t>(gridDim.x) * kThreads; }

__global__ void __launch_bounds__(kThreads)
    EncodeBytesKernel(const int32_t* words, int64_t begin, int64_t end, int64_t total,
                      uint2* floats) {
  for (int64_t w = FirstItem(); w < total; w += ItemStep()) {
    const bool mine = begin <= w && w < end;
    floats[w] = mine ? EncodeWord(static_cast<uint32_t>(words[w])) : make_uint2(0, 0);
  }
}

// What the ranks together contribute to element e, in the bits of its type.
__device__ __forceinline__ uint32_t ProbeElement(const ProbeMessage& message, int64_t e) {
  const auto turn = static_cast<uint32_t>(e / message.world);
  if (message.floats) return ByteToFloatBits(turn);
  const uint32_t byte = turn * 4 & 0xff;
  return byte | (byte + 1) << 8 | (byte + 2) << 16 | (byte + 3) << 24;
}

__global__ void __launch_bounds__(kThreads)
    FillProbeKernel(const ProbeMessage message, void* elements) {
  for (int64_t i = FirstItem(); i < message.count; i += ItemStep()) {
    const int64_t e = message.first + i;
    const uint32_t bits = e % message.world == message.rank ? ProbeElement(message, e) : 0;
    if (message.floats) {
      static_cast<uint16_t*>(elements)[i] = static_cast<uint16_t>(bits);
    } else {
      static_cast<uint32_t*>(elements)[i] = bits;
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    CheckProbeKernel(const ProbeMessage message, const void* elements, int32_t* wrong) {
  for (int64_t i = FirstItem(); i < message.count; i += ItemStep()) {
    const uint32_t found = message.floats ? static_cast<const uint16_t*>(elements)[i]
                                          : static_cast<const uint32_t*>(elements)[i];
    if (found != ProbeElement(message, message.first + i)) *wrong = 1;
  }
}

}  // namespace

cudaError_t LaunchEncodeBytes(const int32_t* words, int64_t begin, int64_t end, int64_t total,
                              uint16_t* floats, cudaStream_t stream) {
  EncodeBytesKernel<<<Grid(total), kThreads, 0, stream>>>(words, begin, end, total,
                                                          reinterpret_cast<uint2*>(floats));
  return cudaPeekAtLastError();
}

cudaError_t LaunchFillProbe(const ProbeMessage& message, void* elements, cudaStream_t stream) {
  FillProbeKernel<<<Grid(message.count), kThreads, 0, stream>>>(message, elements);
  return cudaPeekAtLastError();
}

cudaError_t LaunchCheckProbe(const ProbeMessage& message, const void* elements, int32_t* wrong,
                             cudaStream_t stream) {
  CheckProbeKernel<<<Grid(message.count), kThreads, 0, stream>>>(message, elements, wrong);
  return cudaPeekAtLastError();
}

cudaError_t PrepareByteFloats() {
  cudaFuncAttributes attributes;
  cudaError_t error = cudaFuncGetAttributes(&attributes, EncodeBytesKernel);
  if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, FillProbeKernel);
  if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, CheckProbeKernel);
  return error;
}

}  // namespace sparsesel::kernels
