#include <algorithm>
#include <utility>
#include <vector>

#include "contract/guard.h"
#include "transport/device_group.h"
#include "transport/peer_group.h"

namespace sparsesel {
namespace {

// Long enough for a busy GPU to bring W small kernels together.
constexpr uint64_t kMeetLimit = 200'000'000;

PeerRank& Self(void* self) { return *static_cast<PeerRank*>(self); }
const PeerRank& Self(const void* self) { return *static_cast<const PeerRank*>(self); }

Status ControlAllGather(void* self, const void* send, void* receive, size_t bytes,
                        int64_t deadline) {
  return ThreadGroupTable()->control_all_gather(Self(self).thread.get(), send, receive, bytes,
                                                deadline);
}

void Abort(void* self) {
  // Waits of every rank end, whether or not this one has a kernel running that could tell them.
  PeerRank& rank = Self(self);
  for (const std::shared_ptr<PeerWords>& words : *rank.all_words) words->get()->abort = 1;
  ThreadGroupTable()->abort(rank.thread.get());
}

Status State(const void* self) {
  const PeerRank& rank = Self(self);
  const auto failure = static_cast<sparsesel_status>(rank.words->get()->failure);
  if (failure == SPARSESEL_OK) return ThreadGroupTable()->state(rank.thread.get());
  return Status::Error(failure, "a device wait failed, by rank %d",
                       static_cast<int32_t>(rank.words->get()->failed_rank))
      .WithRank(rank.words->get()->failed_rank);
}

void Fail(void* self, const Status& status) {
  ThreadGroupTable()->fail(Self(self).thread.get(), status);
}

void SetSteadyTimeout(void* self, uint64_t timeout) { Self(self).words->get()->limit_ns = timeout; }

Status EnablePeers(const std::vector<int32_t>& devices) {
  for (const int32_t from : devices) {
    const OnDevice on(from);
    SPARSESEL_RETURN_IF_ERROR(CudaStatus(on.error(), "cudaSetDevice"));
    for (const int32_t to : devices) {
      if (to == from) continue;
      int can = 0;
      SPARSESEL_RETURN_IF_ERROR(
          CudaStatus(cudaDeviceCanAccessPeer(&can, from, to), "cudaDeviceCanAccessPeer"));
      if (can == 0) {
        return Status::Error(SPARSESEL_UNAVAILABLE, "device %d cannot store into device %d", from,
                             to);
      }
      const cudaError_t error = cudaDeviceEnablePeerAccess(to, 0);
      if (error == cudaErrorPeerAccessAlreadyEnabled) {
        (void)cudaGetLastError();
        continue;
      }
      SPARSESEL_RETURN_IF_ERROR(CudaStatus(error, "cudaDeviceEnablePeerAccess"));
    }
  }
  return {};
}

// A word of device memory that the probe writes.
struct Met {
  uint32_t* word = nullptr;
  ~Met() {
    if (word != nullptr) (void)cudaFree(word);
  }
};

// Ranks wait for each other inside kernels, so all of them must be able to run at once. That is
// shown, not assumed: one kernel per rank, each on the stream of that rank's trials, must meet.
Status ProveCoResidency(const std::vector<std::shared_ptr<PeerRank>>& ranks) {
  const auto world = ranks.size();
  std::vector<std::shared_ptr<PeerMemory>> memory(world);
  std::vector<Met> met_words(world);
  kernels::PeerEnd end;
  end.world = static_cast<int32_t>(world);
  end.shape.world = end.world;
  for (size_t r = 0; r < world; ++r) {
    const int32_t device = ranks[r]->device;
    const OnDevice on(device);
    SPARSESEL_RETURN_IF_ERROR(
        PeerMemory::Make(device, end.shape.packets(), ranks[r]->words, &memory[r]));
    SPARSESEL_RETURN_IF_ERROR(CudaStatus(
        cudaMalloc(reinterpret_cast<void**>(&met_words[r].word), sizeof(uint32_t)), "cudaMalloc"));
    SPARSESEL_RETURN_IF_ERROR(CudaStatus(
        cudaMemsetAsync(met_words[r].word, 0, sizeof(uint32_t), ranks[r]->stream), "cudaMemset"));
    SPARSESEL_RETURN_IF_ERROR(
        CudaStatus(cudaStreamSynchronize(ranks[r]->stream), "cudaStreamSynchronize"));
    end.inbox[r] = memory[r]->inbox();
    end.state[r] = memory[r]->state();
  }
  for (size_t r = 0; r < world; ++r) {
    const OnDevice on(ranks[r]->device);
    end.rank = static_cast<int32_t>(r);
    SPARSESEL_RETURN_IF_ERROR(CudaStatus(
        kernels::LaunchMeet(end, kMeetLimit, met_words[r].word, ranks[r]->stream), "the probe"));
  }
  Status met;
  for (size_t r = 0; r < world; ++r) {
    uint32_t came = 0;
    KeepFirst(CudaStatus(cudaMemcpyAsync(&came, met_words[r].word, sizeof(came),
                                         cudaMemcpyDeviceToHost, ranks[r]->stream),
                         "cudaMemcpyAsync"),
              &met);
    KeepFirst(CudaStatus(cudaStreamSynchronize(ranks[r]->stream), "the probe"), &met);
    if (met.ok() && came == 0) {
      met = Status::Error(SPARSESEL_UNAVAILABLE,
                          "%d ranks cannot run at once: rank %d waited for a kernel that did not "
                          "start; CUDA_DEVICE_MAX_CONNECTIONS, set before CUDA starts, must be at "
                          "least the ranks on a device",
                          world, r)
                .WithRank(static_cast<int32_t>(r));
    }
  }
  return met;
}

Status ChooseDevices(int32_t world, const CommOptions& options, std::vector<int32_t>* devices) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    (void)cudaGetLastError();
    return Status::Error(SPARSESEL_UNAVAILABLE, "there is no CUDA device: %s",
                         cudaGetErrorString(error))
        .WithBackendCode(error);
  }
  *devices = options.devices;
  if (devices->empty()) {
    int current = 0;
    SPARSESEL_RETURN_IF_ERROR(CudaStatus(cudaGetDevice(&current), "cudaGetDevice"));
    devices->push_back(current);
  }
  if (devices->size() == 1) devices->resize(static_cast<size_t>(world), devices->front());
  for (const int32_t device : *devices) {
    if (device < 0 || device >= count) {
      return Status::Error(SPARSESEL_INVALID_ARGUMENT, "device %d is not one of the %d there are",
                           device, count);
    }
  }
  return {};
}

}  // namespace

Status CudaStatus(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return {};
  (void)cudaGetLastError();  // reported here; later checks must not find it again
  const sparsesel_status code =
      error == cudaErrorMemoryAllocation ? SPARSESEL_OUT_OF_MEMORY : SPARSESEL_INTERNAL;
  return Status::Error(code, "%s: %s", what, cudaGetErrorString(error)).WithBackendCode(error);
}

PeerRank::~PeerRank() {
  if (stream != nullptr) (void)cudaStreamDestroy(stream);
}

Status PeerWords::Make(std::shared_ptr<PeerWords>* words) {
  auto made = std::make_shared<PeerWords>();
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(
      cudaHostAlloc(reinterpret_cast<void**>(&made->words_), sizeof(kernels::PeerHostWords),
                    cudaHostAllocPortable | cudaHostAllocMapped),
      "cudaHostAlloc"));
  *made->words_ = {};
  *words = std::move(made);
  return {};
}

PeerWords::~PeerWords() {
  if (words_ != nullptr) (void)cudaFreeHost(words_);
}

Status PeerMemory::Make(int32_t device, int64_t half_packets, std::shared_ptr<PeerWords> words,
                        std::shared_ptr<PeerMemory>* memory) {
  auto made = std::make_shared<PeerMemory>();
  made->device_ = device;
  made->half_ = half_packets;
  made->words_ = std::move(words);
  const OnDevice on(device);
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(on.error(), "cudaSetDevice"));
  SPARSESEL_RETURN_IF_ERROR(
      CudaStatus(cudaMalloc(reinterpret_cast<void**>(&made->inbox_),
                            2 * static_cast<size_t>(half_packets) * sizeof(uint4)),
                 "cudaMalloc of an inbox"));
  SPARSESEL_RETURN_IF_ERROR(
      CudaStatus(cudaMalloc(reinterpret_cast<void**>(&made->state_), sizeof(kernels::PeerState)),
                 "cudaMalloc"));
  // Before any peer learns the address: nobody can signal into memory that is yet to be cleared.
  SPARSESEL_RETURN_IF_ERROR(
      CudaStatus(cudaMemset(made->inbox_, 0, 2 * static_cast<size_t>(half_packets) * sizeof(uint4)),
                 "cudaMemset"));
  kernels::PeerState state{};
  state.host = made->words_->device();
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(
      cudaMemcpy(made->state_, &state, sizeof(state), cudaMemcpyHostToDevice), "cudaMemcpy"));
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(cudaDeviceSynchronize(), "cudaDeviceSynchronize"));
  *memory = std::move(made);
  return {};
}

PeerMemory::~PeerMemory() {
  const OnDevice on(device_);
  if (inbox_ != nullptr) (void)cudaFree(inbox_);
  if (state_ != nullptr) (void)cudaFree(state_);
}

size_t PeerMemory::bytes() const {
  return 2 * static_cast<size_t>(half_) * sizeof(uint4) + sizeof(kernels::PeerState);
}

const GroupTable* PeerGroupTable() {
  static constexpr GroupTable table = {
      SPARSESEL_TRANSPORT_PEER, ControlAllGather, nullptr, nullptr, Abort, State, Fail,
      SetSteadyTimeout,
  };
  return &table;
}

Status SharePeerMemory(Comm& comm, const std::shared_ptr<PeerMemory>& own, const Status& local,
                       std::array<std::shared_ptr<PeerMemory>, kMaxWorld>* all) {
  // One process: ranks hand each other the addresses of their handles, and stay until all have
  // taken a share.
  const std::shared_ptr<PeerMemory>* address = &own;
  std::array<const std::shared_ptr<PeerMemory>*, kMaxWorld> addresses{};
  SPARSESEL_RETURN_IF_ERROR(
      comm.AllGatherOrFail(local, &address, addresses.data(), sizeof(address)));
  for (int32_t r = 0; r < comm.world(); ++r) {
    (*all)[static_cast<size_t>(r)] = *addresses[static_cast<size_t>(r)];
  }
  return comm.AllGatherOrFail(Status(), nullptr, nullptr, 0);
}

std::vector<DeviceDescription> DescribeDevices(std::string* reason) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess || count == 0) {
    (void)cudaGetLastError();
    *reason = error == cudaSuccess ? "there is no CUDA device" : cudaGetErrorString(error);
    return {};
  }
  std::vector<DeviceDescription> devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, ordinal) != cudaSuccess) {
      (void)cudaGetLastError();
      continue;
    }
    DeviceDescription& device = devices.emplace_back();
    device.ordinal = ordinal;
    device.name = properties.name;
    device.compute_capability = 10 * properties.major + properties.minor;
    device.processors = properties.multiProcessorCount;
    device.memory = properties.totalGlobalMem;
    for (int other = 0; other < count; ++other) {
      int can = 0;
      if (other != ordinal && cudaDeviceCanAccessPeer(&can, ordinal, other) == cudaSuccess &&
          can != 0) {
        device.stores_into.push_back(other);
      }
    }
  }
  return devices;
}

Status DeviceGroupSupport(const CommOptions&) {
  return Status::Error(SPARSESEL_UNSUPPORTED,
                       "groups on device memory are made by comm_create_local in this version");
}

Status CreateLocalDeviceGroup(int32_t world, const CommOptions& options,
                              std::vector<std::shared_ptr<Comm>>* comms) {
  std::vector<int32_t> devices;
  SPARSESEL_RETURN_IF_ERROR(ChooseDevices(world, options, &devices));
  SPARSESEL_RETURN_IF_ERROR(EnablePeers(devices));
  const std::vector<std::shared_ptr<void>> threads = MakeThreadGroup(world, options.environment);
  std::vector<std::shared_ptr<PeerRank>> ranks;
  for (size_t r = 0; r < static_cast<size_t>(world); ++r) {
    auto rank = std::make_shared<PeerRank>();
    rank->thread = std::static_pointer_cast<ThreadRank>(threads[r]);
    rank->device = devices[r];
    rank->ranks_on_device =
        static_cast<int32_t>(std::count(devices.begin(), devices.end(), devices[r]));
    SPARSESEL_RETURN_IF_ERROR(PeerWords::Make(&rank->words));
    rank->words->get()->limit_ns = options.steady_timeout;
    const OnDevice on(rank->device);
    SPARSESEL_RETURN_IF_ERROR(CudaStatus(on.error(), "cudaSetDevice"));
    SPARSESEL_RETURN_IF_ERROR(
        CudaStatus(cudaStreamCreateWithFlags(&rank->stream, cudaStreamNonBlocking),
                   "cudaStreamCreateWithFlags"));
    SPARSESEL_RETURN_IF_ERROR(CudaStatus(kernels::PreparePeer(), "loading kernels"));
    ranks.push_back(std::move(rank));
  }
  const auto all_words = std::make_shared<std::vector<std::shared_ptr<PeerWords>>>();
  for (const std::shared_ptr<PeerRank>& rank : ranks) all_words->push_back(rank->words);
  for (const std::shared_ptr<PeerRank>& rank : ranks) rank->all_words = all_words;
  SPARSESEL_RETURN_IF_ERROR(ProveCoResidency(ranks));
  std::vector<std::shared_ptr<Comm>> made;
  for (int32_t r = 0; r < world; ++r) {
    Environment environment = options.environment;
    environment.rank = r;
    made.push_back(std::make_shared<Comm>(r, world, SPARSESEL_MEMORY_DEVICE,
                                          devices[static_cast<size_t>(r)], environment,
                                          options.startup_timeout, options.steady_timeout,
                                          PeerGroupTable(), ranks[static_cast<size_t>(r)]));
  }
  *comms = std::move(made);
  return {};
}

Status JoinDeviceGroup(int32_t, int32_t, const CommOptions& options, std::shared_ptr<Comm>*) {
  return DeviceGroupSupport(options);
}

}  // namespace sparsesel
