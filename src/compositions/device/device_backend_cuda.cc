#include <utility>

#include "compositions/device/device_backend.h"
#include "compositions/device/device_executors.h"
#include "compositions/device/device_slot.h"
#include "compositions/device/nccl_slot.h"

namespace sparsesel {
namespace {

Topology DeviceTopology(const Comm& comm) {
  const bool sums = comm.transport() == SPARSESEL_TRANSPORT_NCCL;
  return {SPARSESEL_MEMORY_DEVICE, sums, sums, comm.transport()};
}

cudaStream_t StreamOf(const Comm& comm) {
  void* const self = comm.self().get();
  return static_cast<cudaStream_t>(comm.transport() == SPARSESEL_TRANSPORT_NCCL
                                       ? static_cast<NcclRank*>(self)->stream
                                       : static_cast<PeerRank*>(self)->stream);
}

// In the rank's own stream. cudaMemcpy's, the legacy one, waits for blocking streams of the
// caller's, and returns when pageable memory has been read, not when it has arrived; another stream
// could share a hardware queue with that of a rank which waits for this one.
Status Copy(const Comm& comm, void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const cudaStream_t stream = StreamOf(comm);
  // Another thread may be capturing a trial of another plan.
  const std::lock_guard lock(TrialStreamUse(comm));
  SPARSESEL_RETURN_IF_ERROR(
      CudaStatus(cudaMemcpyAsync(to, from, bytes, kind, stream), "cudaMemcpyAsync"));
  return CudaStatus(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

Status CopyIn(const Comm& comm, void* to, const void* from, size_t bytes) {
  return Copy(comm, to, from, bytes, cudaMemcpyHostToDevice);
}

Status CopyOut(const Comm& comm, void* to, const void* from, size_t bytes) {
  return Copy(comm, to, from, bytes, cudaMemcpyDeviceToHost);
}

Status MakePeerCounters(const Comm& comm, ExecuteCounters* counters) {
  static constexpr kernels::PeerCounters kZero = {};
  const OnDevice on(comm.device());
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(on.error(), "cudaSetDevice"));
  auto memory = std::make_shared<Buffer>();
  SPARSESEL_RETURN_IF_ERROR(Buffer::Take(comm.environment(), SPARSESEL_MEMORY_DEVICE, sizeof(kZero),
                                         "counters", memory.get()));
  SPARSESEL_RETURN_IF_ERROR(CopyIn(comm, memory->data(), &kZero, sizeof(kZero)));
  counters->on_device = std::move(memory);
  return {};
}

// Replays are counted by the kernels alone, so executes are those that have begun there.
Status ReadPeerCounters(const Comm& comm, const ExecuteCounters& counters, sparsesel_stats* stats) {
  kernels::PeerCounters counted{};
  const OnDevice on(comm.device());
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(on.error(), "cudaSetDevice"));
  // The caller may be capturing a stream, which this has nothing to do with.
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(cudaThreadExchangeStreamCaptureMode(&mode),
                                       "cudaThreadExchangeStreamCaptureMode"));
  const Status copied = CopyOut(comm, &counted, counters.on_device->data(), sizeof(counted));
  (void)cudaThreadExchangeStreamCaptureMode(&mode);
  SPARSESEL_RETURN_IF_ERROR(copied);
  stats->executes = counted.executes;
  stats->prefix_refetches += counted.prefix_refetches;
  stats->timeouts += counted.timeouts;
  for (int32_t r = 0; r < comm.world(); ++r) stats->wait[r] += counted.wait_ns[r];
  return {};
}

// NCCL's kernels tell nothing.
Status NoCounters(const Comm&, ExecuteCounters*) { return {}; }
Status NothingCounted(const Comm&, const ExecuteCounters&, sparsesel_stats*) { return {}; }

void* TrialStream(const Slot& slot) { return DeviceOf(slot).stream; }

Status Finish(const Slot& slot) {
  return CudaStatus(cudaStreamSynchronize(DeviceOf(slot).stream), "cudaStreamSynchronize");
}

// Peers hold shares of what they store into, or mappings that are waited for without anybody
// waiting (transport/peer_memory.h): there is nothing to do here.
Status Drain(const Slot&, int64_t) { return {}; }

}  // namespace

const Backend& DeviceBackend(const Comm& comm) {
  static constexpr Backend peer = {
      SPARSESEL_MEMORY_DEVICE, DeviceTopology,   MakeDeviceSlot, ReserveDeviceSlot,
      ConnectDeviceSlot,       TrialStream,      Finish,         MakePeerExecutor,
      MakePeerCounters,        ReadPeerCounters, CopyIn,         CopyOut,
      TimeDeviceTrain,         TimeDeviceSpans,  Drain,
  };
  static constexpr Backend nccl = {
      SPARSESEL_MEMORY_DEVICE,
      DeviceTopology,
      MakeNcclSlot,
      ReserveNcclSlot,
      ConnectNcclSlot,
      TrialStream,
      FinishNccl,
      MakeNcclExecutor,
      NoCounters,
      NothingCounted,
      CopyIn,
      CopyOut,
      TimeDeviceTrain,
      TimeDeviceSpans,
      DrainNccl,
  };
  return comm.transport() == SPARSESEL_TRANSPORT_NCCL ? nccl : peer;
}

}  // namespace sparsesel
