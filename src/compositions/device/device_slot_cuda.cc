#include <mutex>
#include <utility>
#include <vector>

#include "compositions/device/device_slot.h"

namespace sparsesel {
namespace {

const PeerRank& RankOf(const Comm& comm) { return *static_cast<PeerRank*>(comm.self().get()); }

// What a captured graph keeps alive. CUDA runs the destructors of user objects where no CUDA call
// is allowed, so what they let go of waits here until the library is next called.
class Graveyard {
 public:
  void Bury(std::shared_ptr<void> dead) {
    const std::lock_guard lock(mutex_);
    dead_.push_back(std::move(dead));
  }
  void Clear() {
    std::vector<std::shared_ptr<void>> dead;
    const std::lock_guard lock(mutex_);
    dead.swap(dead_);
  }
  static Graveyard& Get() {
    // Never destroyed: at exit the driver may be gone before us.
    static auto& graveyard = *new Graveyard;
    return graveyard;
  }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<void>> dead_;
};

// What the kernels of a peer slot address. The state goes first, as in ~DeviceSlot.
struct KeptMemory {
  std::array<std::shared_ptr<PeerMemory>, kMaxWorld> inboxes;
  std::shared_ptr<PeerMemory> own;
  std::shared_ptr<const PeerGroupMemory> group;
  std::shared_ptr<PeerMemory> state;
};

struct Kept {
  std::shared_ptr<void> device;  // DeviceSlot::kept; not the slot, which holds graphs itself
  std::shared_ptr<Buffer> memory;
  std::shared_ptr<Buffer> counters;  // may be null
};

void CUDART_CB LetGo(void* object) {
  auto* const kept = static_cast<Kept*>(object);
  try {
    Graveyard::Get().Bury(std::move(kept->device));
    Graveyard::Get().Bury(std::move(kept->memory));
    Graveyard::Get().Bury(std::move(kept->counters));
  } catch (...) {
    return;  // without memory to remember it, it is kept for ever
  }
  delete kept;
}

// By a step of the exchange that has headers and nothing else. Ranks of one process come together
// on the host before: a rank that captures its train may wait for the device to be idle, and must
// not find another's kernel there that waits for it.
Status MeetOnDevice(const Comm& comm, const Slot& slot, int64_t deadline) {
  const PeerRank& rank = RankOf(comm);
  if (rank.elsewhere == 0) {
    SPARSESEL_RETURN_IF_ERROR(
        rank.control_table->control_all_gather(rank.control.get(), nullptr, nullptr, 0, deadline));
  }
  static constexpr int32_t kNoCandidates[kMaxWorld] = {};
  const DeviceSlot& device = DeviceOf(slot);
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(
      kernels::LaunchPushRecords(device.end, {}, {}, {}, false, false, nullptr, 1, device.stream),
      "the meeting before a train"));
  return CudaStatus(kernels::LaunchCollectRecords(device.end, {}, {}, kNoCandidates, false, nullptr,
                                                  nullptr, 1, device.stream),
                    "the meeting before a train");
}

// Waits in peers' kernels are bounded, so this one is.
Status Synchronize(const Slot& slot, int64_t) {
  return CudaStatus(cudaStreamSynchronize(DeviceOf(slot).stream), "cudaStreamSynchronize");
}

}  // namespace

void FreeWhatGraphsLetGo() { Graveyard::Get().Clear(); }

DeviceSlot::~DeviceSlot() {
  const OnDevice on(device);
  for (const auto& [key, train] : trains) DestroyTrain(train);
  kept.reset();
  // First what is freed: that waits for the kernels in flight, which closing a mapping need not.
  state.reset();
}

Status MakeDeviceSlot(Comm& comm, bool, Slot* slot) {
  Graveyard::Get().Clear();
  auto device = std::make_shared<DeviceSlot>();
  device->device = comm.device();
  device->stream = RankOf(comm).stream;
  slot->memory = std::make_shared<Buffer>();
  slot->device = std::move(device);
  return {};
}

Status ReserveDeviceSlot(Comm& comm, size_t bytes, size_t peer_visible, Slot* slot) {
  Graveyard::Get().Clear();
  const OnDevice on(comm.device());
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(on.error(), "cudaSetDevice"));
  auto memory = std::make_shared<Buffer>();
  SPARSESEL_RETURN_IF_ERROR(
      Buffer::Take(comm.environment(), SPARSESEL_MEMORY_DEVICE, bytes, "workspace", memory.get()));
  // A slot that has been used stays as it is for the bindings and graphs that use it.
  const DeviceSlot& before = DeviceOf(*slot);
  auto device = std::make_shared<DeviceSlot>();
  device->device = before.device;
  device->stream = before.stream;
  device->group = RankOf(comm).memory;
  device->end.half = static_cast<int64_t>(peer_visible / sizeof(uint4) / 2);
  SPARSESEL_RETURN_IF_ERROR(
      PeerMemory::Make(comm.device(), sizeof(kernels::PeerState), false, &device->state));
  SPARSESEL_RETURN_IF_ERROR(
      PeerMemory::Make(comm.device(), peer_visible, RankOf(comm).elsewhere != 0, &device->own));
  slot->memory = std::move(memory);
  slot->device = std::move(device);
  return {};
}

Status ConnectDeviceSlot(Comm& comm, Slot* slot) {
  DeviceSlot& device = DeviceOf(*slot);
  SPARSESEL_RETURN_IF_ERROR(SharePeerMemory(comm, device.own, Status(), &device.inboxes));
  device.end.rank = comm.rank();
  device.end.world = comm.world();
  device.end.shape.world = comm.world();
  device.end.state = reinterpret_cast<kernels::PeerState*>(device.state->data());
  for (size_t r = 0; r < static_cast<size_t>(comm.world()); ++r) {
    device.end.inbox[r] = reinterpret_cast<uint4*>(device.inboxes[r]->data());
    device.end.ranks[r] = device.group->state(r);
  }
  device.kept = std::make_shared<KeptMemory>(
      KeptMemory{device.inboxes, device.own, device.group, device.state});
  return {};
}

const TrainMeeting& PeerMeeting() {
  static constexpr TrainMeeting meeting = {MeetOnDevice, Synchronize};
  return meeting;
}

Status KeepForCapture(const Slot& slot, const ExecuteCounters& counters, cudaStream_t stream) {
  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  cudaGraph_t graph = nullptr;
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(
      cudaStreamGetCaptureInfo(stream, &capturing, nullptr, &graph, nullptr, nullptr, nullptr),
      "cudaStreamGetCaptureInfo"));
  if (capturing == cudaStreamCaptureStatusInvalidated) {
    return Status::Error(SPARSESEL_INVALID_STATE, "the stream's capture has been invalidated");
  }
  if (capturing == cudaStreamCaptureStatusNone) return {};
  auto kept = std::make_unique<Kept>(Kept{DeviceOf(slot).kept, slot.memory, counters.on_device});
  cudaUserObject_t object = nullptr;
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(
      cudaUserObjectCreate(&object, kept.get(), LetGo, 1, cudaUserObjectNoDestructorSync),
      "cudaUserObjectCreate"));
  (void)kept.release();
  return CudaStatus(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove),
                    "cudaGraphRetainUserObject");
}

}  // namespace sparsesel
