// A library with NCCL's interface that moves nothing. FAKE_VERSION is what it says it is;
// FAKE_LACKS_SEND leaves a function out.
#include "fakes/fake_nccl.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT FakeNccl fake_nccl;
FakeNccl fake_nccl;

namespace {

struct Communicator {
  int32_t ranks;
  int32_t rank;
  Communicator* next = nullptr;
};

std::atomic<Communicator*> aborted_communicators;

struct Id {
  char internal[128];
};

void Hang() {
  while (!fake_nccl.let_go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

EXPORT int ncclGetVersion(int* version) {
  *version = FAKE_VERSION;
  return 0;
}
EXPORT int ncclGetUniqueId(Id* id) {
  *id = {};
  return 0;
}
EXPORT int ncclCommInitRank(Communicator** comm, int ranks, Id, int rank) {
  if (fake_nccl.hang_init == rank) Hang();
  if (fake_nccl.fail_init == rank) return 2;
  *comm = new Communicator{.ranks = ranks, .rank = rank};
  ++fake_nccl.made;
  return 0;
}
EXPORT int ncclCommDestroy(Communicator* comm) {
  if (fake_nccl.hang_destroy) Hang();
  delete comm;
  ++fake_nccl.destroyed;
  return 0;
}
// Ends what hangs in the communicator, as NCCL's does. It is kept, for a call that is inside.
EXPORT int ncclCommAbort(Communicator* comm) {
  comm->next = aborted_communicators;
  while (!aborted_communicators.compare_exchange_weak(comm->next, comm)) {
  }
  ++fake_nccl.aborted;
  fake_nccl.let_go = true;
  return 0;
}
EXPORT int ncclCommGetAsyncError(Communicator*, int* error) {
  *error = fake_nccl.async_error;
  return 0;
}
EXPORT int ncclCommCount(Communicator* comm, int* count) {
  *count = comm->ranks;
  return 0;
}
EXPORT int ncclCommUserRank(Communicator* comm, int* rank) {
  *rank = comm->rank;
  return 0;
}
EXPORT int ncclCommCuDevice(Communicator*, int* device) {
  *device = 0;
  return 0;
}
EXPORT int ncclGroupStart() { return 0; }
EXPORT int ncclGroupEnd() { return 0; }
EXPORT int ncclAllGather(const void*, void*, size_t, int, Communicator*, void*) {
  if (fake_nccl.hang_all_gather) {
    Hang();
    return 3;
  }
  return fake_nccl.fail_all_gather;
}
EXPORT int ncclAllReduce(const void*, void*, size_t, int, int, Communicator*, void*) { return 0; }
#if !defined(FAKE_LACKS_SEND)
EXPORT int ncclSend(const void*, size_t, int, int, Communicator*, void*) { return 0; }
#endif
EXPORT int ncclRecv(void*, size_t, int, int, Communicator*, void*) { return 0; }
EXPORT const char* ncclGetErrorString(int) { return "a fake error"; }
EXPORT const char* ncclGetLastError(Communicator*) { return "said the fake"; }
