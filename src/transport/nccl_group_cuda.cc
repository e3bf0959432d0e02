// Making and joining groups, where there is CUDA.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "contract/guard.h"
#include "transport/custom_group.h"
#include "transport/nccl_group.h"
#include "transport/peer_group.h"
#include "transport/thread_group.h"

namespace sparsesel {
namespace {

NcclRank& RankOf(Comm& comm) { return *static_cast<NcclRank*>(comm.self().get()); }

Status EnterDevice(int32_t device) { return CudaStatus(cudaSetDevice(device), "cudaSetDevice"); }

void DestroyStream(void* stream) {
  if (stream != nullptr) (void)cudaStreamDestroy(static_cast<cudaStream_t>(stream));
}

// A rank without its control plane and communicator.
Status MakeRank(int32_t rank, int32_t world, int32_t device, const CommOptions& options,
                const NcclLibrary& library, std::shared_ptr<NcclRank>* out) {
  auto made = std::make_shared<NcclRank>();
  made->rank = rank;
  made->world = world;
  made->device = device;
  made->borrowed = options.borrowed_communicator != nullptr;
  made->environment = options.environment;
  made->environment.rank = rank;
  made->steady_timeout = options.steady_timeout;
  made->library = library;
  made->enter_device = EnterDevice;
  made->destroy_stream = DestroyStream;
  const OnDevice on(device);
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(on.error(), "cudaSetDevice"));
  cudaStream_t stream = nullptr;
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                                       "cudaStreamCreateWithFlags"));
  made->stream = stream;
  *out = std::move(made);
  return {};
}

std::shared_ptr<Comm> MakeComm(const std::shared_ptr<NcclRank>& rank, const CommOptions& options) {
  return std::make_shared<Comm>(rank->rank, rank->world, SPARSESEL_MEMORY_DEVICE, rank->device,
                                rank->environment, options.startup_timeout, options.steady_timeout,
                                NcclGroupTable(), rank);
}

Status TwoRanksOnOneDevice(int32_t first, int32_t second) {
  return Status::Error(SPARSESEL_UNAVAILABLE,
                       "ranks %d and %d have one device, which NCCL refuses: each rank needs its "
                       "own",
                       first, second)
      .WithRank(second);
}

Status CheckBorrowed(const NcclLibrary& library, NcclHandle handle, int32_t rank, int32_t world,
                     int32_t device) {
  const auto check = [&](const char* name, NcclResult asked, int32_t found, const char* option,
                         int32_t expected) -> Status {
    SPARSESEL_RETURN_IF_ERROR(
        NcclStatus(library, asked, SPARSESEL_INVALID_ARGUMENT, "the borrowed communicator"));
    if (found == expected) return {};
    return Status::Error(SPARSESEL_INVALID_ARGUMENT,
                         "the borrowed communicator's %s is %d, but %s is %d", name, found, option,
                         expected);
  };
  int32_t found = 0;
  NcclResult asked = library.comm_user_rank(handle, &found);
  SPARSESEL_RETURN_IF_ERROR(check("rank", asked, found, "rank", rank));
  asked = library.comm_count(handle, &found);
  SPARSESEL_RETURN_IF_ERROR(check("number of ranks", asked, found, "world_size", world));
  asked = library.comm_cu_device(handle, &found);
  return check("device", asked, found, "the group's device", device);
}

// What ranks compare before NCCL hangs for it, or says "invalid usage".
struct Facts {
  int32_t version = 0;
  int32_t reserved = 0;
  cudaUUID_t device{};
};

Status CompareFacts(const std::array<Facts, kMaxWorld>& facts, int32_t world) {
  for (int32_t r = 1; r < world; ++r) {
    const Facts& theirs = facts[static_cast<size_t>(r)];
    if (theirs.version != facts[0].version) {
      return Status::Error(SPARSESEL_MISMATCH,
                           "ranks have different versions of NCCL: rank 0 %s, rank %d %s",
                           NcclVersionText(facts[0].version), r, NcclVersionText(theirs.version))
          .WithRank(r);
    }
    for (int32_t other = 0; other < r; ++other) {
      if (std::memcmp(&facts[static_cast<size_t>(other)].device, &theirs.device,
                      sizeof(theirs.device)) == 0) {
        return TwoRanksOnOneDevice(other, r);
      }
    }
  }
  return {};
}

// Every rank's communicator, made in one thread.
Status InitAll(const std::vector<std::shared_ptr<NcclRank>>& ranks, const CommOptions& options) {
  const int64_t deadline = DeadlineAfter(options.environment.Now(), options.startup_timeout);
  return CallBounded(*ranks[0], deadline, "ncclCommInitRank", [ranks]() -> Status {
    const NcclLibrary& library = ranks[0]->library;
    NcclUniqueId id{};
    SPARSESEL_RETURN_IF_ERROR(
        NcclStatus(library, library.get_unique_id(&id), SPARSESEL_UNAVAILABLE, "ncclGetUniqueId"));
    std::vector<NcclHandle> handles(ranks.size());
    NcclResult result = library.group_start();
    for (size_t r = 0; r < ranks.size() && result == kNcclSuccess; ++r) {
      SPARSESEL_RETURN_IF_ERROR(EnterDevice(ranks[r]->device));
      result = library.comm_init_rank(&handles[r], ranks[r]->world, id, ranks[r]->rank);
    }
    const NcclResult ended = library.group_end();
    SPARSESEL_RETURN_IF_ERROR(NcclStatus(library, result == kNcclSuccess ? ended : result,
                                         SPARSESEL_UNAVAILABLE, "ncclCommInitRank"));
    for (size_t r = 0; r < ranks.size(); ++r) {
      NcclRank& rank = *ranks[r];
      rank.communicator =
          std::make_shared<NcclCommunicator>(library, handles[r], true, rank.steady_timeout);
      rank.family->Add(rank.communicator);
    }
    return {};
  });
}

}  // namespace

Status NcclGroupSupport() { return {}; }

Status CreateLocalNcclGroup(int32_t world, const CommOptions& options,
                            std::vector<std::shared_ptr<Comm>>* comms) {
  if (options.borrowed_communicator != nullptr) {
    return Status::Error(SPARSESEL_INVALID_ARGUMENT,
                         "borrowed_communicator is one rank's, for comm_create");
  }
  NcclLibrary library;
  SPARSESEL_RETURN_IF_ERROR(LoadNccl(options.nccl_library, &library));
  std::vector<int32_t> devices;
  SPARSESEL_RETURN_IF_ERROR(ChooseDevices(world, options, &devices));
  for (size_t r = 0; r < devices.size(); ++r) {
    const auto first = std::find(devices.begin(), devices.end(), devices[r]) - devices.begin();
    if (static_cast<size_t>(first) != r) {
      return TwoRanksOnOneDevice(static_cast<int32_t>(first), static_cast<int32_t>(r));
    }
  }
  const std::vector<std::shared_ptr<void>> threads = MakeThreadGroup(world, options.environment);
  const auto family = std::make_shared<NcclFamily>();
  std::vector<std::shared_ptr<NcclRank>> ranks(static_cast<size_t>(world));
  for (size_t r = 0; r < ranks.size(); ++r) {
    SPARSESEL_RETURN_IF_ERROR(
        MakeRank(static_cast<int32_t>(r), world, devices[r], options, library, &ranks[r]));
    ranks[r]->control = ThreadGroupTable();
    ranks[r]->control_self = threads[r];
    ranks[r]->family = family;
  }
  SPARSESEL_RETURN_IF_ERROR(InitAll(ranks, options));
  std::vector<std::shared_ptr<Comm>> made;
  for (const std::shared_ptr<NcclRank>& rank : ranks) made.push_back(MakeComm(rank, options));
  *comms = std::move(made);
  return {};
}

Status MakeNcclMember(int32_t rank, int32_t world, const CommOptions& options,
                      std::shared_ptr<Comm>* comm) {
  NcclLibrary library;
  SPARSESEL_RETURN_IF_ERROR(LoadNccl(options.nccl_library, &library));
  std::vector<int32_t> devices;
  SPARSESEL_RETURN_IF_ERROR(ChooseDevices(1, options, &devices));
  const auto handle = static_cast<NcclHandle>(options.borrowed_communicator);
  if (handle != nullptr) {
    SPARSESEL_RETURN_IF_ERROR(CheckBorrowed(library, handle, rank, world, devices[0]));
  }
  std::shared_ptr<NcclRank> made;
  SPARSESEL_RETURN_IF_ERROR(MakeRank(rank, world, devices[0], options, library, &made));
  made->control = CustomGroupTable(false);
  made->family = std::make_shared<NcclFamily>();
  const auto control = MakeCustomRank(rank, world, options, false);
  control->ended = [family = made->family] { return family->AsyncError(); };
  made->control_self = control;
  if (handle != nullptr) {
    made->communicator =
        std::make_shared<NcclCommunicator>(library, handle, false, options.steady_timeout);
    made->family->Add(made->communicator);
  }
  *comm = MakeComm(made, options);
  return {};
}

Status ConnectNcclMember(Comm& comm, const CommOptions& options) {
  NcclRank& rank = RankOf(comm);
  Facts own;
  own.version = rank.library.version;
  const Status local = Guarded([&]() -> Status {
    cudaDeviceProp properties;
    SPARSESEL_RETURN_IF_ERROR(
        CudaStatus(cudaGetDeviceProperties(&properties, rank.device), "cudaGetDeviceProperties"));
    own.device = properties.uuid;
    return {};
  });
  std::array<Facts, kMaxWorld> facts;
  SPARSESEL_RETURN_IF_ERROR(comm.AllGatherOrFail(local, &own, facts.data(), sizeof(own)));
  if (options.borrowed_communicator != nullptr) return {};
  SPARSESEL_RETURN_IF_ERROR(CompareFacts(facts, comm.world()));
  return MakeNcclCommunicator(comm, &rank.communicator);
}

}  // namespace sparsesel
