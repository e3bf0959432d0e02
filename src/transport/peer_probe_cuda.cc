// Proof that all ranks of a group can run at once.
#include <algorithm>
#include <utility>

#include "contract/guard.h"
#include "transport/peer_group.h"

namespace sparsesel {
namespace {

// Long enough for a busy GPU to bring a few small kernels together; where ranks are in several
// processes, also for these to come from an exchange at different times and, on one GPU, for it to
// serve one after the other.
constexpr uint64_t kMeetLimit = 200'000'000;
constexpr uint64_t kMeetLimitElsewhere = 5'000'000'000;

// A rank's own memory: its state, then the inbox of the probe.
constexpr size_t kStateBytes = 256;
static_assert(sizeof(kernels::PeerRankState) <= kStateBytes);

kernels::PeerInboxShape ProbeShape(int32_t world) {
  kernels::PeerInboxShape shape;
  shape.world = world;
  return shape;
}

Status Launch(const PeerRank& rank, int32_t world, const PeerMemory& met) {
  kernels::PeerEnd end;
  end.rank = rank.rank;
  end.world = world;
  end.shape = ProbeShape(world);
  end.half = end.shape.packets();
  for (size_t r = 0; r < static_cast<size_t>(world); ++r) {
    end.ranks[r] = rank.memory->state(r);
    end.inbox[r] = reinterpret_cast<uint4*>(rank.memory->ranks[r]->data() + kStateBytes);
  }
  const OnDevice on(rank.device);
  return CudaStatus(
      kernels::LaunchMeetings(end, rank.elsewhere == 0 ? kMeetLimit : kMeetLimitElsewhere,
                              reinterpret_cast<uint32_t*>(met.data()), rank.stream),
      "the probe");
}

Status Await(const PeerRank& rank, int32_t world, const PeerMemory& met) {
  const OnDevice on(rank.device);
  uint32_t came = 0;
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(
      cudaMemcpyAsync(&came, met.data(), sizeof(came), cudaMemcpyDeviceToHost, rank.stream),
      "cudaMemcpyAsync"));
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(cudaStreamSynchronize(rank.stream), "the probe"));
  if (came == kernels::kMeetings) return {};
  return Status::Error(SPARSESEL_UNAVAILABLE,
                       "%d ranks cannot run at once: rank %d waited for a kernel that did not "
                       "start; CUDA_DEVICE_MAX_CONNECTIONS, set before CUDA starts, must be at "
                       "least the ranks on a device",
                       world, rank.rank)
      .WithRank(rank.rank);
}

}  // namespace

Status MakeRankMemory(const PeerRank& rank, int32_t world, const uint32_t* abort,
                      std::shared_ptr<PeerMemory>* memory) {
  const size_t inbox = 2 * static_cast<size_t>(ProbeShape(world).packets()) * sizeof(uint4);
  std::shared_ptr<PeerMemory> made;
  SPARSESEL_RETURN_IF_ERROR(
      PeerMemory::Make(rank.device, kStateBytes + inbox, rank.elsewhere != 0, &made));
  kernels::PeerRankState state{};
  state.host = rank.words->device();
  state.abort = abort;
  const OnDevice on(rank.device);
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(
      cudaMemcpy(made->data(), &state, sizeof(state), cudaMemcpyHostToDevice), "cudaMemcpy"));
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(cudaDeviceSynchronize(), "cudaDeviceSynchronize"));
  *memory = std::move(made);
  return {};
}

Status ProveCoResidency(int32_t world, std::span<const PeerRank* const> ranks) {
  std::array<std::shared_ptr<PeerMemory>, kMaxWorld> met;
  for (size_t i = 0; i < ranks.size(); ++i) {
    SPARSESEL_RETURN_IF_ERROR(PeerMemory::Make(ranks[i]->device, sizeof(uint32_t), false, &met[i]));
  }
  // From here on every rank that has been launched is waited for, whatever goes wrong.
  Status proved;
  size_t launched = 0;
  while (launched < ranks.size() && proved.ok()) {
    proved = Launch(*ranks[launched], world, *met[launched]);
    ++launched;
  }
  for (size_t i = 0; i < launched; ++i) KeepFirst(Await(*ranks[i], world, *met[i]), &proved);
  return proved;
}

}  // namespace sparsesel
