// Which kind of group serves a request, and the ranks' first meeting.
#include "comm/comm.h"
#include "contract/guard.h"
#include "transport/custom_group.h"
#include "transport/device_group.h"
#include "transport/nccl_group.h"
#include "transport/thread_group.h"

namespace sparsesel {
namespace {

Status CheckWorld(int32_t world) {
  if (world >= 1 && world <= kMaxWorld) return {};
  return Status::Error(SPARSESEL_INVALID_ARGUMENT, "a group has 1 to %d ranks, not %d", kMaxWorld,
                       world);
}

bool WantsNccl(const CommOptions& options) { return options.transport == SPARSESEL_TRANSPORT_NCCL; }

Status CheckMemory(const CommOptions& options) {
  if (options.memory != SPARSESEL_MEMORY_HOST && options.memory != SPARSESEL_MEMORY_DEVICE) {
    return Status::Error(SPARSESEL_INVALID_ARGUMENT, "a group's memory is host or device, not %d",
                         options.memory);
  }
  const bool for_devices = options.transport == SPARSESEL_TRANSPORT_PEER || WantsNccl(options);
  if (for_devices && options.memory != SPARSESEL_MEMORY_DEVICE) {
    return Status::Error(SPARSESEL_INVALID_ARGUMENT,
                         "the transport %s moves device memory, and the group's is host",
                         WantsNccl(options) ? "nccl" : "peer");
  }
  return {};
}

Status HostOnly(const char* transport, int32_t memory) {
  if (memory == SPARSESEL_MEMORY_HOST) return {};
  return Status::Error(SPARSESEL_UNSUPPORTED, "the transport %s moves host memory only", transport);
}

// For transports that both kinds of group refuse alike, and values that are none.
Status RefuseTransport(int32_t transport) {
  switch (transport) {
    case SPARSESEL_TRANSPORT_MPI:
      return Status::Error(SPARSESEL_UNSUPPORTED, "the transport mpi is not in this version");
    default:
      return Status::Error(SPARSESEL_INVALID_ARGUMENT, "there is no transport %d", transport);
  }
}

bool WantsDevice(const CommOptions& options) {
  return options.transport == SPARSESEL_TRANSPORT_PEER ||
         (options.transport == SPARSESEL_TRANSPORT_AUTO &&
          options.memory == SPARSESEL_MEMORY_DEVICE && !options.has_custom);
}

Status CheckLocal(const CommOptions& options) {
  switch (options.transport) {
    case SPARSESEL_TRANSPORT_AUTO:
    case SPARSESEL_TRANSPORT_THREADS:
      return HostOnly("threads", options.memory);
    case SPARSESEL_TRANSPORT_CUSTOM:
    case SPARSESEL_TRANSPORT_BOOTSTRAP:
      return Status::Error(SPARSESEL_UNSUPPORTED,
                           "local groups have no custom or bootstrap transport: see comm_create");
    default:
      return RefuseTransport(options.transport);
  }
}

bool HasBootstrap(const CommOptions& options) {
  return options.bootstrap.start != nullptr && options.bootstrap.test != nullptr &&
         options.bootstrap.free != nullptr;
}

bool WantsCustom(const CommOptions& options) {
  return options.transport == SPARSESEL_TRANSPORT_CUSTOM ||
         (options.transport == SPARSESEL_TRANSPORT_AUTO && options.has_custom);
}

Status CheckCustom(const CommOptions& options) {
  if (!options.has_custom || options.custom.all_gather == nullptr) {
    return Status::Error(SPARSESEL_INVALID_ARGUMENT,
                         "the transport custom needs a sparsesel_transport with an all_gather");
  }
  if (options.custom.memory != options.memory) {
    return Status::Error(SPARSESEL_INVALID_ARGUMENT,
                         "the custom transport's memory is %d, the group's is %d",
                         options.custom.memory, options.memory);
  }
  return HostOnly("custom", options.memory);
}

Status CheckJoin(int32_t rank, int32_t world, const CommOptions& options) {
  if (rank < 0 || rank >= world) {
    return Status::Error(SPARSESEL_INVALID_ARGUMENT, "rank %d is not in a group of %d", rank,
                         world);
  }
  SPARSESEL_RETURN_IF_ERROR(CheckMemory(options));
  if (WantsNccl(options)) return NcclGroupSupport();
  if (WantsDevice(options)) return DeviceGroupSupport(options);
  if (WantsCustom(options)) return CheckCustom(options);
  switch (options.transport) {
    case SPARSESEL_TRANSPORT_AUTO:
    case SPARSESEL_TRANSPORT_BOOTSTRAP:
      return HostOnly("bootstrap", options.memory);
    case SPARSESEL_TRANSPORT_THREADS:
      return Status::Error(SPARSESEL_UNSUPPORTED,
                           "the transport threads is for local groups: see comm_create_local");
    default:
      return RefuseTransport(options.transport);
  }
}

// Beside the digests of host groups, which are less.
constexpr uint64_t kJoinNccl = 0x100;

// Ranks that differ in how they move data would misread each other.
uint64_t JoinDigest(const CommOptions& options, bool custom_data) {
  if (!custom_data) return 0;
  return 1u | (options.custom.all_to_all != nullptr ? 2u : 0u) |
         (options.custom.sum_bf16 != nullptr ? 4u : 0u) |
         (options.custom.sum_int32 != nullptr ? 8u : 0u);
}

Status JoinHostGroup(int32_t rank, int32_t world, const CommOptions& options, const Status& local,
                     std::shared_ptr<Comm>* comm) {
  const bool custom_data = local.ok() && WantsCustom(options);
  std::shared_ptr<Comm> made;
  const Status created = Guarded([&] {
    made = std::make_shared<Comm>(rank, world, options.memory, -1, options.environment,
                                  options.startup_timeout, options.steady_timeout,
                                  CustomGroupTable(custom_data),
                                  MakeCustomRank(rank, world, options, custom_data));
    return Status();
  });
  if (!created.ok()) return TellPeers(rank, world, options, created);
  SPARSESEL_RETURN_IF_ERROR(made->Enter(CallKind::kJoin, JoinDigest(options, custom_data), local));
  *comm = std::move(made);
  return {};
}

// What this rank lacks alone is told in place of the entry, which has the same form.
Status JoinNcclGroup(int32_t rank, int32_t world, const CommOptions& options,
                     std::shared_ptr<Comm>* comm) {
  std::shared_ptr<Comm> made;
  const Status local = Guarded([&] { return MakeNcclMember(rank, world, options, &made); });
  if (!local.ok()) return TellPeers(rank, world, options, local);
  const uint64_t digest = kJoinNccl | (options.borrowed_communicator != nullptr ? 1u : 0u);
  SPARSESEL_RETURN_IF_ERROR(made->Enter(CallKind::kJoin, digest, Status()));
  SPARSESEL_RETURN_IF_ERROR(ConnectNcclMember(*made, options));
  *comm = std::move(made);
  return {};
}

}  // namespace

Status CreateLocalGroup(int32_t world, const CommOptions& options,
                        std::vector<std::shared_ptr<Comm>>* comms) {
  SPARSESEL_RETURN_IF_ERROR(CheckWorld(world));
  SPARSESEL_RETURN_IF_ERROR(CheckMemory(options));
  if (WantsNccl(options)) return CreateLocalNcclGroup(world, options, comms);
  if (WantsDevice(options)) return CreateLocalDeviceGroup(world, options, comms);
  SPARSESEL_RETURN_IF_ERROR(CheckLocal(options));
  const std::vector<std::shared_ptr<void>> members = MakeThreadGroup(world, options.environment);
  std::vector<std::shared_ptr<Comm>> made;
  for (int32_t rank = 0; rank < world; ++rank) {
    Environment environment = options.environment;
    environment.rank = rank;
    made.push_back(std::make_shared<Comm>(rank, world, options.memory, -1, environment,
                                          options.startup_timeout, options.steady_timeout,
                                          ThreadGroupTable(), members[static_cast<size_t>(rank)]));
  }
  *comms = std::move(made);
  return {};
}

Status JoinGroup(int32_t rank, int32_t world, const CommOptions& options,
                 std::shared_ptr<Comm>* comm) {
  SPARSESEL_RETURN_IF_ERROR(CheckWorld(world));
  if (world > 1 && !HasBootstrap(options)) {
    return Status::Error(SPARSESEL_INVALID_ARGUMENT,
                         "a group of %d ranks needs a bootstrap with start, test and free", world);
  }
  const Status local = options.invalid.ok() ? CheckJoin(rank, world, options) : options.invalid;
  CommOptions own = options;
  own.environment.rank = rank;
  if (local.ok() && WantsNccl(options)) return JoinNcclGroup(rank, world, own, comm);
  if (local.ok() && WantsDevice(options)) return JoinDeviceGroup(rank, world, own, comm);
  // What is wrong here is still told to the others, who would wait for this rank.
  return JoinHostGroup(rank, world, own, local, comm);
}

}  // namespace sparsesel
