#include <utility>

#include "transport/group_state.h"
#include "transport/peer_group.h"

namespace sparsesel {
namespace {

PeerRank& Self(void* self) { return *static_cast<PeerRank*>(self); }
const PeerRank& Self(const void* self) { return *static_cast<const PeerRank*>(self); }

// So that the other processes need not find out by their limits.
void TellProcesses(const PeerRank& rank, const Status& status) {
  if (rank.board == nullptr) return;
  rank.board->Fail(
      kernels::PeerFailure(SPARSESEL_PEER_FAILED, status.rank() >= 0 ? status.rank() : rank.rank));
}

Status ControlAllGather(void* self, const void* send, void* receive, size_t bytes,
                        int64_t deadline) {
  PeerRank& rank = Self(self);
  void* const control = rank.control.get();
  // A rank whose kernels have failed comes to no exchange: who waits for it there must hear.
  if (const Status failure = PeerFailureOf(rank); !failure.ok()) {
    rank.control_table->fail(control, failure);
    return failure;
  }
  const Status status =
      rank.control_table->control_all_gather(control, send, receive, bytes, deadline);
  if (!status.ok() && !rank.control_table->state(control).ok()) TellProcesses(rank, status);
  return status;
}

void Abort(void* self) {
  // Waits of every rank end, whether or not this one has a kernel running that could tell them.
  PeerRank& rank = Self(self);
  for (const std::shared_ptr<PeerWords>& words : *rank.local_words) words->get()->abort = 1;
  if (rank.board != nullptr) rank.board->Abort();
  rank.control_table->abort(rank.control.get());
}

Status State(const void* self) {
  const PeerRank& rank = Self(self);
  SPARSESEL_RETURN_IF_ERROR(PeerFailureOf(rank));
  return rank.control_table->state(rank.control.get());
}

void Fail(void* self, const Status& status) {
  PeerRank& rank = Self(self);
  rank.control_table->fail(rank.control.get(), status);
  TellProcesses(rank, status);
}

void SetSteadyTimeout(void* self, uint64_t timeout) { Self(self).words->get()->limit_ns = timeout; }

Status DeviceWaitFailed(sparsesel_status status, int32_t rank) {
  return Status::Error(status, "a device wait failed, by rank %d", rank).WithRank(rank);
}

}  // namespace

Status PeerFailureOf(const PeerRank& rank) {
  // Of this rank's own kernels, which have the reason; then of other ranks' in this process.
  const volatile kernels::PeerHostWords* const own = rank.words->get();
  if (const auto failure = static_cast<sparsesel_status>(own->failure); failure != SPARSESEL_OK) {
    const Status status = DeviceWaitFailed(failure, own->failed_rank);
    TellProcesses(rank, status);
    return status;
  }
  for (const std::shared_ptr<PeerWords>& words : *rank.local_words) {
    const volatile kernels::PeerHostWords* const other = words->get();
    const auto failure = static_cast<sparsesel_status>(other->failure);
    if (failure == SPARSESEL_OK) continue;
    return DeviceWaitFailed(failure == SPARSESEL_ABORTED ? failure : SPARSESEL_PEER_FAILED,
                            other->failed_rank);
  }
  if (rank.board == nullptr) return {};
  if (rank.board->aborted()) return AbortedStatus();
  const uint32_t failure = rank.board->failure();
  if (failure == 0) return {};
  const int32_t at_fault = kernels::FailureRank(failure);
  return Status::Error(kernels::FailureStatus(failure),
                       "the group has failed in another process, by rank %d", at_fault)
      .WithRank(at_fault);
}

Status CudaStatus(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return {};
  (void)cudaGetLastError();  // reported here; later checks must not find it again
  const sparsesel_status code =
      error == cudaErrorMemoryAllocation ? SPARSESEL_OUT_OF_MEMORY : SPARSESEL_INTERNAL;
  return Status::Error(code, "%s: %s", what, cudaGetErrorString(error)).WithBackendCode(error);
}

PeerRank::~PeerRank() {
  if (stream != nullptr) (void)cudaStreamDestroy(stream);
  PeerMemory::FreeReturned();
}

Status PeerWords::Make(uint64_t limit, std::shared_ptr<PeerWords>* words) {
  auto made = std::make_shared<PeerWords>();
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(
      cudaHostAlloc(reinterpret_cast<void**>(&made->words_), sizeof(kernels::PeerHostWords),
                    cudaHostAllocPortable | cudaHostAllocMapped),
      "cudaHostAlloc"));
  *made->words_ = {};
  made->words_->limit_ns = limit;
  *words = std::move(made);
  return {};
}

PeerWords::~PeerWords() {
  if (words_ != nullptr) (void)cudaFreeHost(words_);
}

Status SetUpRank(PeerRank* rank) {
  const OnDevice on(rank->device);
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(on.error(), "cudaSetDevice"));
  SPARSESEL_RETURN_IF_ERROR(
      CudaStatus(cudaStreamCreateWithFlags(&rank->stream, cudaStreamNonBlocking),
                 "cudaStreamCreateWithFlags"));
  return CudaStatus(kernels::PreparePeer(), "loading kernels");
}

const GroupTable* PeerGroupTable() {
  static constexpr GroupTable table = {
      SPARSESEL_TRANSPORT_PEER, ControlAllGather, nullptr, nullptr, Abort, State, Fail,
      SetSteadyTimeout,
  };
  return &table;
}

}  // namespace sparsesel
