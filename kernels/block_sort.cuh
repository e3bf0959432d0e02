// A sort by one block, in place, in shared or global memory: bitonic, so the same for every input.
#ifndef SPARSESEL_KERNELS_BLOCK_SORT_CUH_
#define SPARSESEL_KERNELS_BLOCK_SORT_CUH_

#include <cstdint>

namespace sparsesel::kernels {
namespace {

// The power of two that holds `size` elements; the caller fills the rest with elements that come
// last.
__host__ __device__ __forceinline__ uint32_t SortSlots(uint32_t size) {
  uint32_t slots = 1;
  while (slots < size) slots *= 2;
  return slots;
}

// Whole block. Begins and ends with a barrier. `before` is a strict total order, or the order of
// equal elements does not matter.
template <class T, class Before>
__device__ void BlockSort(T* data, uint32_t slots, Before before) {
  for (uint32_t run = 2; run <= slots; run *= 2) {
    for (uint32_t step = run / 2; step > 0; step /= 2) {
      __syncthreads();
      for (uint32_t i = threadIdx.x; i < slots / 2; i += blockDim.x) {
        const uint32_t a = 2 * i - (i & (step - 1));
        const uint32_t b = a + step;
        const T x = data[a];
        const T y = data[b];
        const bool ascending = (a & run) == 0;
        if (ascending ? before(y, x) : before(x, y)) {
          data[a] = y;
          data[b] = x;
        }
      }
    }
  }
  __syncthreads();
}

}  // namespace
}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_BLOCK_SORT_CUH_
