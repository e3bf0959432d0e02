// What a rank contributes to a sum over ranks that is to move words unchanged: as int32, or each
// byte as the bfloat16 integer 0 .. 255, which is exact. One rank contributes a word, all others 0
// (+0), so the sum is exact in any order; the probe shows that the transport keeps it so.
#ifndef SPARSESEL_KERNELS_BYTE_FLOATS_H_
#define SPARSESEL_KERNELS_BYTE_FLOATS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace sparsesel::kernels {

// floats[4 * w + b], for each w of [0, total): byte b of words[w] if begin <= w < end, else +0.
// `floats` is aligned to 8 bytes.
cudaError_t LaunchEncodeBytes(const int32_t* words, int64_t begin, int64_t end, int64_t total,
                              uint16_t* floats, cudaStream_t stream);

// A message of the probe: element e of all messages, of which this one begins at `first`, is the
// contribution of rank e % world. Elements are bytes as bfloat16, and byte e / world of them, or
// words of four such bytes. After 256 * world elements every rank has sent every byte.
struct ProbeMessage {
  int32_t rank = 0;
  int32_t world = 1;
  bool floats = false;
  int64_t first = 0;
  int64_t count = 0;  // elements
};
// Writes this rank's contribution.
cudaError_t LaunchFillProbe(const ProbeMessage& message, void* elements, cudaStream_t stream);
// Sets *wrong, device memory, to 1 if the sums are not what the ranks have contributed.
cudaError_t LaunchCheckProbe(const ProbeMessage& message, const void* elements, int32_t* wrong,
                             cudaStream_t stream);

// Loads the kernels on the current device.
cudaError_t PrepareByteFloats();

}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_BYTE_FLOATS_H_
