#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "contract/guard.h"
#include "transport/peer_group.h"
#include "transport/peer_memory.h"

namespace sparsesel {
namespace {

// What is lent is an allocation in itself: a handle exposes the whole block that the driver took,
// which smaller allocations would share.
constexpr size_t kLentGranularity = size_t{2} << 20;

uint64_t BitOf(int32_t rank) { return uint64_t{1} << static_cast<uint32_t>(rank); }

// Memory of this process that is nobody's any more, but may still be mapped elsewhere.
struct Unreturned {
  int32_t device;
  std::byte* data;
  std::shared_ptr<GroupBoard> board;
  int32_t number;
  uint64_t borrowers;

  bool Returned() const { return board->Returned(number, borrowers); }
  void Free() const {
    const OnDevice on(device);
    (void)cudaFree(data);
    board->FreeNumber(number);
  }
};

class UnreturnedList {
 public:
  void FreeOrKeep(const Unreturned& memory) {
    if (memory.Returned()) {
      memory.Free();
      return;
    }
    try {
      const std::lock_guard lock(mutex_);
      kept_.push_back(memory);
    } catch (...) {
      return;  // without memory to remember it, it is kept for ever
    }
  }
  void FreeReturned() {
    for (;;) {
      Unreturned found{};
      {
        const std::lock_guard lock(mutex_);
        const auto it = std::find_if(kept_.begin(), kept_.end(),
                                     [](const Unreturned& memory) { return memory.Returned(); });
        if (it == kept_.end()) return;
        found = *it;
        kept_.erase(it);
      }
      found.Free();  // not under the lock: it waits for the device
    }
  }
  // Never destroyed: at exit the driver may be gone before us.
  static UnreturnedList& Get() {
    static auto& list = *new UnreturnedList;
    return list;
  }

 private:
  std::mutex mutex_;
  std::vector<Unreturned> kept_;
};

// What a rank says of its memory.
struct Offer {
  cudaIpcMemHandle_t handle{};                           // for other processes
  const std::shared_ptr<PeerMemory>* address = nullptr;  // for this one
  int32_t number = -1;
  int32_t reserved = 0;
};

}  // namespace

// Lending and borrowing, as one rank does it.
class PeerLoan {
 public:
  explicit PeerLoan(const PeerRank& rank) : rank_(rank) {}

  Status Lend(PeerMemory& memory, Offer* offer) const {
    const int32_t number = rank_.board->TakeNumber();
    if (number < 0) {
      return Status::Error(SPARSESEL_OUT_OF_MEMORY,
                           "a rank can have %d memories that other processes store into",
                           GroupBoard::kMemories);
    }
    const OnDevice on(memory.device_);
    const cudaError_t error = cudaIpcGetMemHandle(&offer->handle, memory.data_);
    if (error != cudaSuccess) {
      (void)cudaGetLastError();
      rank_.board->FreeNumber(number);
      return Status::Error(SPARSESEL_UNAVAILABLE,
                           "rank %d cannot share device memory with other processes: %s",
                           rank_.rank, cudaGetErrorString(error))
          .WithRank(rank_.rank)
          .WithBackendCode(error);
    }
    offer->number = number;
    memory.board_ = rank_.board;
    memory.number_ = number;
    memory.borrowers_ = rank_.elsewhere;
    return {};
  }

  // Nobody has heard the offer.
  static void TakeBack(PeerMemory& memory) {
    if (memory.board_ == nullptr) return;
    memory.board_->FreeNumber(memory.number_);
    memory.board_.reset();
  }

  Status Borrow(const Offer& offer, int32_t lender, std::shared_ptr<PeerMemory>* memory) const {
    Status status = Guarded([&]() -> Status {
      std::shared_ptr<PeerMemory> made(new PeerMemory(rank_.device));
      const OnDevice on(rank_.device);
      SPARSESEL_RETURN_IF_ERROR(CudaStatus(on.error(), "cudaSetDevice"));
      void* mapped = nullptr;
      const cudaError_t error =
          cudaIpcOpenMemHandle(&mapped, offer.handle, cudaIpcMemLazyEnablePeerAccess);
      if (error != cudaSuccess) {
        (void)cudaGetLastError();
        return Status::Error(SPARSESEL_UNAVAILABLE,
                             "rank %d cannot map device memory of rank %d: %s", rank_.rank, lender,
                             cudaGetErrorString(error))
            .WithRank(lender)
            .WithBackendCode(error);
      }
      made->data_ = static_cast<std::byte*>(mapped);
      made->board_ = rank_.board;
      made->lender_ = lender;
      made->number_ = offer.number;
      *memory = std::move(made);
      return {};
    });
    if (!status.ok()) rank_.board->Return(lender, offer.number);  // as if it had been mapped
    return status;
  }

 private:
  const PeerRank& rank_;
};

Status PeerMemory::Make(int32_t device, size_t bytes, bool lent,
                        std::shared_ptr<PeerMemory>* memory) {
  FreeReturned();
  std::shared_ptr<PeerMemory> made(new PeerMemory(device));
  if (lent) bytes = (bytes + kLentGranularity - 1) / kLentGranularity * kLentGranularity;
  const OnDevice on(device);
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(on.error(), "cudaSetDevice"));
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(cudaMalloc(reinterpret_cast<void**>(&made->data_), bytes),
                                       "cudaMalloc of memory that peers store into"));
  // Before any peer learns the address: nobody can signal into memory that is yet to be cleared.
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(cudaMemset(made->data_, 0, bytes), "cudaMemset"));
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(cudaDeviceSynchronize(), "cudaDeviceSynchronize"));
  *memory = std::move(made);
  return {};
}

void PeerMemory::FreeReturned() { UnreturnedList::Get().FreeReturned(); }

PeerMemory::~PeerMemory() {
  if (data_ == nullptr) return;
  const OnDevice on(device_);
  if (board_ == nullptr) {
    (void)cudaFree(data_);
  } else if (lender_ >= 0) {
    (void)cudaIpcCloseMemHandle(data_);
    board_->Return(lender_, number_);
  } else {
    UnreturnedList::Get().FreeOrKeep({device_, data_, board_, number_, borrowers_});
  }
}

Status SharePeerMemory(Comm& comm, const std::shared_ptr<PeerMemory>& own, const Status& local,
                       std::array<std::shared_ptr<PeerMemory>, kMaxWorld>* all) {
  const PeerRank& rank = *static_cast<PeerRank*>(comm.self().get());
  const PeerLoan loan(rank);
  Offer offer;
  offer.address = &own;
  Status lent = local;
  if (lent.ok() && rank.elsewhere != 0) lent = loan.Lend(*own, &offer);
  std::array<Offer, kMaxWorld> offers;
  const Status told = comm.AllGatherOrFail(lent, &offer, offers.data(), sizeof(offer));
  if (!told.ok()) {
    // A rank has refused, and all heard so; or the exchange itself has failed, and who knows what
    // others have read.
    if (local.ok() && comm.State().ok()) PeerLoan::TakeBack(*own);
    return told;
  }
  // Ranks of one process take shares of each other's handles, and so must stay until all have.
  Status taken;
  for (int32_t r = 0; r < comm.world(); ++r) {
    const Offer& offered = offers[static_cast<size_t>(r)];
    std::shared_ptr<PeerMemory>& memory = (*all)[static_cast<size_t>(r)];
    if ((rank.elsewhere & BitOf(r)) == 0) {
      memory = *offered.address;
    } else {
      KeepFirst(loan.Borrow(offered, r, &memory), &taken);
    }
  }
  const Status shared = comm.AllGatherOrFail(taken, nullptr, nullptr, 0);
  if (!shared.ok()) all->fill(nullptr);
  return shared;
}

}  // namespace sparsesel
