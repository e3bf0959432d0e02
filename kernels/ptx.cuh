// The instructions that CUDA C++ has no spelling for: addressing and synchronizing the shared
// memory of a thread-block cluster. Everything else in kernels/ is plain CUDA.
#ifndef SPARSESEL_KERNELS_PTX_CUH_
#define SPARSESEL_KERNELS_PTX_CUH_

#include <cstdint>

namespace sparsesel::kernels {
namespace {

__device__ __forceinline__ uint32_t SharedAddress(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// For a launch that may begin before the kernel in front of it has ended: wait for its end, with
// its writes visible; and let the next such launch begin. Both do nothing in an ordinary launch.
__device__ __forceinline__ void AwaitPreviousKernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ __forceinline__ void AdmitNextKernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// The blocks that share one row. With kCluster they form a hardware cluster and can store into each
// other's shared memory; without, the team is the one block and every operation is a local one.
//
// Two ways to exchange. Send and Wait: a store that counts its bytes on a mailbox of the receiver,
// who waits until what it expects has come; one-way latency, no fence. Store, Add, Load and Sync:
// the cluster barrier with its fences, two to three times slower, for the rare path. No block may
// leave while another may still touch its memory.
template <bool kCluster>
struct Team;

using Mailbox = uint64_t;  // an mbarrier object, used for one phase

template <>
struct Team<false> {
  __device__ __forceinline__ explicit Team(uint32_t) {}
  __device__ __forceinline__ uint32_t Rank() const { return 0; }
  __device__ __forceinline__ uint32_t Log2() const { return 0; }
  __device__ __forceinline__ uint32_t Size() const { return 1; }
  __device__ __forceinline__ void OpenMailboxes(Mailbox*, int) const {}
  __device__ __forceinline__ void AwaitStart() const {}
  __device__ __forceinline__ void Expect(Mailbox*, uint32_t) const {}
  __device__ __forceinline__ void Await(Mailbox*) const { __syncthreads(); }
  __device__ __forceinline__ void Send(uint64_t* at, uint32_t, uint64_t value, Mailbox*) const {
    *at = value;
  }
  __device__ __forceinline__ void Send(uint4* at, uint32_t, uint4 value, Mailbox*) const {
    *at = value;
  }
  __device__ __forceinline__ void Sync() const { __syncthreads(); }
  __device__ __forceinline__ void Store(uint64_t* at, uint32_t, uint64_t value) const {
    *at = value;
  }
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

  // All threads call both, and may do anything local in between. After AwaitStart every block runs
  // and has its mailboxes open.
  __device__ __forceinline__ void OpenMailboxes(Mailbox* mailboxes, int count) const {
    if (threadIdx.x == 0) {
      for (int i = 0; i < count; ++i) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(SharedAddress(mailboxes + i))
                     : "memory");
      }
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncwarp();
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  }
  __device__ __forceinline__ void AwaitStart() const {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  }
  // One thread, once per mailbox: how many bytes will come. Some may have come already.
  __device__ __forceinline__ void Expect(Mailbox* mailbox, uint32_t bytes) const {
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SharedAddress(mailbox)),
        "r"(bytes)
        : "memory");
  }
  __device__ __forceinline__ void Await(Mailbox* mailbox) const {
    uint32_t done = 0;
    while (done == 0) {
      asm volatile(
          "{\n"
          ".reg .pred p;\n"
          "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0;\n"
          "selp.u32 %0, 1, 0, p;\n"
          "}"
          : "=r"(done)
          : "r"(SharedAddress(mailbox))
          : "memory");
    }
  }
  __device__ __forceinline__ void Send(uint64_t* at, uint32_t block, uint64_t value,
                                       Mailbox* mailbox) const {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u64 [%0], %1, [%2];" ::"r"(
                     Map(at, block)),
                 "l"(value), "r"(Map(mailbox, block))
                 : "memory");
  }
  __device__ __forceinline__ void Send(uint4* at, uint32_t block, uint4 value,
                                       Mailbox* mailbox) const {
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.u32 [%0], {%1, %2, %3, %4}, "
        "[%5];" ::"r"(Map(at, block)),
        "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w), "r"(Map(mailbox, block))
        : "memory");
  }

  __device__ __forceinline__ void Sync() const {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  }
  __device__ __forceinline__ void Store(uint64_t* at, uint32_t block, uint64_t value) const {
    asm volatile("st.shared::cluster.u64 [%0], %1;" ::"r"(Map(at, block)), "l"(value) : "memory");
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
