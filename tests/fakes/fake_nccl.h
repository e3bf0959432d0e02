/* How a test drives a fake NCCL: the library exports one of these as `fake_nccl`. */
#ifndef SPARSESEL_TESTS_FAKES_FAKE_NCCL_H_
#define SPARSESEL_TESTS_FAKES_FAKE_NCCL_H_

#include <atomic>
#include <cstdint>

struct FakeNccl {
  std::atomic<int32_t> hang_init{-1};  /* the rank whose ncclCommInitRank waits until `let_go` */
  std::atomic<int32_t> fail_init{-1};  /* the rank whose ncclCommInitRank fails */
  std::atomic<int32_t> async_error{0}; /* what ncclCommGetAsyncError tells */
  std::atomic<int32_t> fail_all_gather{0}; /* what ncclAllGather returns */
  std::atomic<bool> hang_all_gather{false};
  std::atomic<bool> hang_destroy{false};
  std::atomic<bool> let_go{false};
  std::atomic<int32_t> made{0};
  std::atomic<int32_t> destroyed{0};
  std::atomic<int32_t> aborted{0};
};

#endif /* SPARSESEL_TESTS_FAKES_FAKE_NCCL_H_ */
