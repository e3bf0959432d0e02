// The instructions that CUDA C++ has no spelling for: addressing and synchronizing the shared memory
// of a thread-block cluster. Everything else in kernels/ is plain CUDA.
#ifndef SPARSESEL_KERNELS_PTX_CUH_
#define SPARSESEL_KERNELS_PTX_CUH_

#include <cstdint>

namespace sparsesel::kernels {
namespace {

__device__ __forceinline__ uint32_t SharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// The blocks that share one row. With kCluster they form a hardware cluster and can store into each
// other's shared memory; without, the team is the one block and every operation is a local one.
//
// A remote store is visible to its owner after the next Sync, or Arrive and Wait, of both. No block
// may leave while another may still touch its memory.
template <bool kCluster>
struct Team;

template <>
struct Team<false> {
  __device__ __forceinline__ explicit Team(uint32_t) {}
  __device__ __forceinline__ uint32_t Rank() const { return 0; }
  __device__ __forceinline__ uint32_t Log2() const { return 0; }
  __device__ __forceinline__ uint32_t Size() const { return 1; }
  __device__ __forceinline__ void Arrive() const {}
  __device__ __forceinline__ void Wait() const { __syncthreads(); }
  __device__ __forceinline__ void Sync() const { __syncthreads(); }
  __device__ __forceinline__ void Store(uint64_t* at, uint32_t, uint64_t value) const {
    *at = value;
  }
  __device__ __forceinline__ void Store(uint4* at, uint32_t, uint4 value) const { *at = value; }
  __device__ __forceinline__ uint32_t FetchAdd(uint32_t* at, uint32_t, uint32_t value) const {
    return atomicAdd(at, value);
  }
  __device__ __forceinline__ void Add(uint32_t* at, uint32_t, uint32_t value) const {
    atomicAdd(at, value);
  }
  __device__ __forceinline__ uint64_t Load(const uint64_t* at, uint32_t) const { return *at; }
};

template <>
struct Team<true> {
  uint32_t log2_;
  __device__ __forceinline__ explicit Team(uint32_t log2_size) : log2_(log2_size) {}
  __device__ __forceinline__ uint32_t Log2() const { return log2_; }
  __device__ __forceinline__ uint32_t Size() const { return 1u << log2_; }
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  // Clusters are one-dimensional and the grid is a multiple of their size.
  __device__ __forceinline__ uint32_t Rank() const { return blockIdx.x & (Size() - 1); }
  __device__ __forceinline__ void Arrive() const {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  }
  __device__ __forceinline__ void Wait() const {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  }
  __device__ __forceinline__ void Sync() const {
    Arrive();
    Wait();
  }
  __device__ __forceinline__ void Store(uint64_t* at, uint32_t block, uint64_t value) const {
    asm volatile("st.shared::cluster.u64 [%0], %1;" ::"r"(Map(at, block)), "l"(value) : "memory");
  }
  __device__ __forceinline__ void Store(uint4* at, uint32_t block, uint4 value) const {
    asm volatile("st.shared::cluster.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(Map(at, block)),
                 "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w)
                 : "memory");
  }
  __device__ __forceinline__ uint32_t FetchAdd(uint32_t* at, uint32_t block, uint32_t value) const {
    uint32_t old;
    asm volatile("atom.shared::cluster.add.u32 %0, [%1], %2;"
                 : "=r"(old)
                 : "r"(Map(at, block)), "r"(value)
                 : "memory");
    return old;
  }
  __device__ __forceinline__ void Add(uint32_t* at, uint32_t block, uint32_t value) const {
    asm volatile("red.shared::cluster.add.u32 [%0], %1;" ::"r"(Map(at, block)), "r"(value)
                 : "memory");
  }
  __device__ __forceinline__ uint64_t Load(const uint64_t* at, uint32_t block) const {
    uint64_t value;
    asm volatile("ld.shared::cluster.u64 %0, [%1];" : "=l"(value) : "r"(Map(at, block)) : "memory");
    return value;
  }

 private:
  __device__ __forceinline__ static uint32_t Map(const void* at, uint32_t block) {
    uint32_t mapped;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(mapped)
                 : "r"(SharedAddress(at)), "r"(block));
    return mapped;
  }
#endif
};

}  // namespace
}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_PTX_CUH_
