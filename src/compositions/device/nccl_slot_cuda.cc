#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "compositions/device/nccl_slot.h"

namespace sparsesel {
namespace {

constexpr int kEagerPolls = 2000;
constexpr int kPollsPerLook = 64;  // at the clock and the group
constexpr std::chrono::microseconds kSleep{20};

// Sizes at which operations are tried, from bytes per rank on, each so many times the last.
constexpr size_t kFirstWarmed = 256;
constexpr size_t kWarmedStep = 8;

std::shared_ptr<NcclRank> RankOf(const Comm& comm) {
  return std::static_pointer_cast<NcclRank>(comm.self());
}

// What a call of WarmUp needs, which may outlive the one who waits for it.
struct Warming {
  std::shared_ptr<NcclCommunicator> communicator;
  std::shared_ptr<Buffer> memory;
  int32_t rank = 0;
  int32_t world = 1;
  void* stream = nullptr;

  // Every operation that executors use, with `bytes`, a multiple of 8, from each rank. What the
  // memory holds does not matter.
  Status Try(size_t bytes) const {
    std::byte* const base = memory->data();
    const auto block = [&](int32_t r) { return base + static_cast<size_t>(r) * bytes; };
    const size_t all = static_cast<size_t>(world) * bytes;
    SPARSESEL_RETURN_IF_ERROR(
        communicator->Use("ncclAllGather", [&](const NcclLibrary& nccl, NcclHandle handle) {
          return nccl.all_gather(block(rank), base, bytes / 8, kNcclUint64, handle, stream);
        }));
    SPARSESEL_RETURN_IF_ERROR(
        communicator->Use("ncclAllReduce", [&](const NcclLibrary& nccl, NcclHandle handle) {
          return nccl.all_reduce(base, base, all / 4, kNcclInt32, kNcclSum, handle, stream);
        }));
    SPARSESEL_RETURN_IF_ERROR(
        communicator->Use("ncclAllReduce", [&](const NcclLibrary& nccl, NcclHandle handle) {
          return nccl.all_reduce(base, base, all / 2, kNcclBfloat16, kNcclSum, handle, stream);
        }));
    return communicator->Use(
        "ncclSend and ncclRecv", [&](const NcclLibrary& nccl, NcclHandle handle) {
          NcclResult result = nccl.group_start();
          for (int32_t r = 0; r < world && result == kNcclSuccess; ++r) {
            if (r == rank) continue;
            result = nccl.send(block(rank), bytes / 8, kNcclUint64, r, handle, stream);
            if (result != kNcclSuccess) break;
            result = nccl.receive(block(r), bytes / 8, kNcclUint64, r, handle, stream);
          }
          const NcclResult ended = nccl.group_end();
          return result == kNcclSuccess ? ended : result;
        });
  }
};

Status WarmUp(NcclRank& rank, const Warming& warming, size_t bytes, int64_t deadline) {
  const Status called =
      CallBounded(rank, deadline, "connecting over NCCL",
                  [warming, bytes, device = rank.device, enter = rank.enter_device]() -> Status {
                    SPARSESEL_RETURN_IF_ERROR(enter(device));
                    for (size_t size = std::min(kFirstWarmed, bytes);;
                         size = std::min(kWarmedStep * size, bytes)) {
                      SPARSESEL_RETURN_IF_ERROR(warming.Try(size));
                      if (size == bytes) return {};
                    }
                  });
  if (!called.ok()) {
    FailNccl(rank, called);
    rank.family->Abort(true);  // the call may hang in NCCL, which ends it
    return called;
  }
  return AwaitNccl(rank, deadline, [&warming] {
    return cudaStreamQuery(static_cast<cudaStream_t>(warming.stream));
  });
}

// The ranks meet on the device: an all-reduce ends on all at about the same time.
Status Meet(const Comm&, const Slot& slot, int64_t) {
  NcclSlot& nccl = NcclOf(slot);
  std::byte* const word = slot.memory->data();  // holds nothing between executes
  return UseNccl(*nccl.rank, *nccl.communicator, "ncclAllReduce",
                 [&](const NcclLibrary& library, NcclHandle handle) {
                   return library.all_reduce(word, word, 1, kNcclInt32, kNcclSum, handle,
                                             nccl.stream);
                 });
}

Status AwaitStream(const Slot& slot, int64_t deadline) {
  const NcclSlot& nccl = NcclOf(slot);
  return AwaitNccl(*nccl.rank, deadline, [&nccl] { return cudaStreamQuery(nccl.stream); });
}

}  // namespace

Status AwaitNccl(NcclRank& rank, int64_t deadline, absl::FunctionRef<cudaError_t()> query) {
  for (int polls = 0;; ++polls) {
    const cudaError_t error = query();
    if (error == cudaSuccess) return {};
    if (error != cudaErrorNotReady) return CudaStatus(error, "waiting for the device");
    (void)cudaGetLastError();  // launches look for errors there
    if (polls % kPollsPerLook == 0 || polls > kEagerPolls) {
      SPARSESEL_RETURN_IF_ERROR(NcclGroupTable()->state(&rank));
      if (rank.environment.Now() >= deadline) {
        const Status why =
            Status::Error(SPARSESEL_TIMEOUT, "operations of NCCL did not end within the limit");
        FailNccl(rank, why);
        return why;
      }
    }
    if (polls < kEagerPolls) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(kSleep);
    }
  }
}

Status MakeNcclSlot(Comm& comm, bool overlaps, Slot* slot) {
  FreeWhatGraphsLetGo();
  auto made = std::make_shared<NcclSlot>();
  made->rank = RankOf(comm);
  if (overlaps && made->rank->borrowed) {
    return Status::Error(SPARSESEL_UNAVAILABLE,
                         "executes cannot overlap on a borrowed communicator, which has one order");
  }
  made->device = comm.device();
  made->stream = static_cast<cudaStream_t>(made->rank->stream);
  if (!overlaps) made->communicator = made->rank->communicator;
  slot->memory = std::make_shared<Buffer>();
  slot->device = std::static_pointer_cast<DeviceSlot>(made);
  return {};
}

Status ReserveNcclSlot(Comm& comm, size_t bytes, size_t, Slot* slot) {
  FreeWhatGraphsLetGo();
  const OnDevice on(comm.device());
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(on.error(), "cudaSetDevice"));
  auto memory = std::make_shared<Buffer>();
  SPARSESEL_RETURN_IF_ERROR(
      Buffer::Take(comm.environment(), SPARSESEL_MEMORY_DEVICE, bytes, "workspace", memory.get()));
  // A slot that has been used stays as it is for the bindings and graphs that use it.
  const NcclSlot& before = NcclOf(*slot);
  auto made = std::make_shared<NcclSlot>();
  made->rank = before.rank;
  made->device = before.device;
  made->stream = before.stream;
  made->communicator = before.communicator;
  slot->memory = std::move(memory);
  slot->device = std::static_pointer_cast<DeviceSlot>(made);
  return {};
}

Status ConnectNcclSlot(Comm& comm, Slot* slot) {
  NcclSlot& nccl = NcclOf(*slot);
  NcclRank& rank = *nccl.rank;
  if (nccl.communicator == nullptr) {
    SPARSESEL_RETURN_IF_ERROR(MakeNcclCommunicator(comm, &nccl.communicator));
  }
  nccl.kept = nccl.communicator;
  // Connections and algorithms are set up by their first use, which a capture is no place for.
  // Ranks with other devices may have other workspaces: all try what all can.
  const uint64_t own = slot->memory->size() / static_cast<size_t>(rank.world) / 8 * 8;
  std::array<uint64_t, kMaxWorld> sizes{};
  SPARSESEL_RETURN_IF_ERROR(comm.AllGatherOrFail(Status(), &own, sizes.data(), sizeof(own)));
  const uint64_t bytes = *std::min_element(sizes.begin(), sizes.begin() + rank.world);
  if (bytes <= nccl.communicator->warmed) return {};
  const Warming warming{nccl.communicator, slot->memory, rank.rank, rank.world, nccl.stream};
  const Status warmed = WarmUp(rank, warming, bytes, comm.StartupDeadline());
  SPARSESEL_RETURN_IF_ERROR(comm.AllGatherOrFail(warmed, nullptr, nullptr, 0));
  nccl.communicator->warmed = bytes;
  return {};
}

Status FinishNccl(const Slot& slot) {
  const NcclRank& rank = *NcclOf(slot).rank;
  return AwaitStream(slot, DeadlineAfter(rank.environment.Now(), rank.steady_timeout));
}

const TrainMeeting& NcclMeeting() {
  static constexpr TrainMeeting meeting = {Meet, AwaitStream};
  return meeting;
}

// Peers reach no memory of this rank's but through NCCL. But kernels that hang in a borrowed
// communicator, until its owner aborts it, still write to what would be freed.
Status DrainNccl(const Slot& slot, int64_t deadline) {
  const NcclSlot& nccl = NcclOf(slot);
  const NcclRank& rank = *nccl.rank;
  for (;;) {
    const cudaError_t error = cudaStreamQuery(nccl.stream);
    if (error != cudaErrorNotReady) return CudaStatus(error, "waiting for the device");
    (void)cudaGetLastError();
    if (rank.environment.Now() >= deadline) {
      return Status::Error(SPARSESEL_TIMEOUT, "operations of NCCL still use memory of this rank");
    }
    std::this_thread::sleep_for(kSleep);
  }
}

}  // namespace sparsesel
