#include "api/options.h"

#include <algorithm>

#include "api/structs.h"
#include "contract/guard.h"

namespace sparsesel {
namespace {

template <typename Struct>
constexpr bool kHasPlausibleSize = IsPlausibleSize(sizeof(Struct));
static_assert(kHasPlausibleSize<sparsesel_error> && kHasPlausibleSize<sparsesel_transport> &&
              kHasPlausibleSize<sparsesel_comm_options> && kHasPlausibleSize<sparsesel_comm_info> &&
              kHasPlausibleSize<sparsesel_problem> && kHasPlausibleSize<sparsesel_memory> &&
              kHasPlausibleSize<sparsesel_io> && kHasPlausibleSize<sparsesel_prepare_options> &&
              kHasPlausibleSize<sparsesel_race_options> && kHasPlausibleSize<sparsesel_outcome> &&
              kHasPlausibleSize<sparsesel_workspace_options> && kHasPlausibleSize<sparsesel_stats>);

constexpr uint64_t kCentury = 100ull * 365 * 24 * 3600 * 1'000'000'000;
constexpr uint32_t kMillion = 1'000'000;
constexpr int32_t kMaxSlots = 16;

Status Invalid(const char* sentence) {
  return Status::Error(SPARSESEL_INVALID_ARGUMENT, "%s", sentence);
}

Status Unsupported(const char* sentence) {
  return Status::Error(SPARSESEL_UNSUPPORTED, "%s", sentence);
}

Status InRange(const char* field, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return {};
  return Status::Error(SPARSESEL_INVALID_ARGUMENT, "%s is %d, not in %d .. %d", field, value, low,
                       high);
}

Status CheckTransportAndMemory(const sparsesel_comm_options& options) {
  SPARSESEL_RETURN_IF_ERROR(
      InRange("transport", options.transport, SPARSESEL_TRANSPORT_AUTO, SPARSESEL_TRANSPORT_NCCL));
  SPARSESEL_RETURN_IF_ERROR(
      InRange("memory", options.memory, SPARSESEL_MEMORY_HOST, SPARSESEL_MEMORY_DEVICE));
  const bool device = options.memory == SPARSESEL_MEMORY_DEVICE;
  switch (options.transport) {
    case SPARSESEL_TRANSPORT_MPI:
      return Unsupported("the MPI transport is not offered by this version");
    case SPARSESEL_TRANSPORT_THREADS:
      return device ? Invalid("the threads transport is for host memory") : Status();
    case SPARSESEL_TRANSPORT_BOOTSTRAP:
      return device ? Invalid("the bootstrap transport is for host memory") : Status();
    case SPARSESEL_TRANSPORT_PEER:
      return device ? Status() : Invalid("the peer transport is for device memory");
    case SPARSESEL_TRANSPORT_NCCL:
      return device ? Status() : Invalid("the nccl transport is for device memory");
    default:
      return {};
  }
}

Status CheckDevices(const sparsesel_comm_options& options, int32_t most,
                    std::vector<int32_t>* devices) {
  const int32_t count = options.device_count;
  if (count != 0 && count != 1 && count != most) {
    return Status::Error(SPARSESEL_INVALID_ARGUMENT, "device_count is %d, not 0, 1 or %d", count,
                         most);
  }
  if (count == 0) return {};
  if (options.memory != SPARSESEL_MEMORY_DEVICE) {
    return Invalid("devices are given, but the memory is host memory");
  }
  if (options.devices == nullptr) return Invalid("devices is NULL with a device_count above 0");
  devices->assign(options.devices, options.devices + count);
  for (const int32_t device : *devices) {
    SPARSESEL_RETURN_IF_ERROR(InRange("a device", device, 0, INT32_MAX));
  }
  return {};
}

Status CheckCallbacks(const sparsesel_comm_options& options, CommOptions* out) {
  const sparsesel_allocator& allocator = options.allocator;
  if ((allocator.allocate == nullptr) != (allocator.deallocate == nullptr)) {
    return Invalid("allocator has one of allocate and deallocate: give both or neither");
  }
  const sparsesel_bootstrap& bootstrap = options.bootstrap;
  const int given =
      (bootstrap.start != nullptr) + (bootstrap.test != nullptr) + (bootstrap.free != nullptr);
  if (given != 0 && given != 3) {
    return Invalid("bootstrap needs all of start, test and free, or none");
  }
  out->environment.allocator = allocator;
  out->environment.logger = options.logger;
  out->environment.clock = options.clock;
  out->bootstrap = bootstrap;
  return {};
}

Status CheckCustom(const sparsesel_comm_options& options, CommOptions* out) {
  const bool wanted = options.transport == SPARSESEL_TRANSPORT_CUSTOM;
  if (options.custom == nullptr) {
    return wanted ? Invalid("the transport is custom, but custom is NULL") : Status();
  }
  if (!wanted && options.transport != SPARSESEL_TRANSPORT_AUTO) {
    return Invalid("custom is given, but another transport is asked for");
  }
  SPARSESEL_RETURN_IF_ERROR(ReadStruct("custom", options.custom, &out->custom));
  const sparsesel_transport& custom = out->custom;
  if (custom.memory != options.memory) {
    return Status::Error(SPARSESEL_INVALID_ARGUMENT,
                         "custom.memory is %d, but the group's memory is %d", custom.memory,
                         options.memory);
  }
  SPARSESEL_RETURN_IF_ERROR(InRange("custom.reserved", custom.reserved, 0, 0));
  if (custom.all_gather == nullptr) return Invalid("custom.all_gather is NULL, but required");
  out->has_custom = true;
  return {};
}

Status CheckNccl(const sparsesel_comm_options& options) {
  if (options.transport == SPARSESEL_TRANSPORT_NCCL) return {};
  if (options.borrowed_communicator != nullptr) {
    return Invalid("borrowed_communicator is given, but the transport is not nccl");
  }
  if (options.nccl_library != nullptr) {
    return Invalid("nccl_library is given, but the transport is not nccl");
  }
  return {};
}

// What local and joined groups have in common.
Status ParseCommOptions(const sparsesel_comm_options& options, int32_t most_devices,
                        CommOptions* out) {
  if (options.startup_timeout != 0) out->startup_timeout = ClampTimeout(options.startup_timeout);
  if (options.steady_timeout != 0) out->steady_timeout = ClampTimeout(options.steady_timeout);
  SPARSESEL_RETURN_IF_ERROR(CheckTransportAndMemory(options));
  SPARSESEL_RETURN_IF_ERROR(CheckNccl(options));
  out->borrowed_communicator = options.borrowed_communicator;
  out->nccl_library = options.nccl_library;
  SPARSESEL_RETURN_IF_ERROR(CheckDevices(options, most_devices, &out->devices));
  SPARSESEL_RETURN_IF_ERROR(CheckCallbacks(options, out));
  SPARSESEL_RETURN_IF_ERROR(CheckCustom(options, out));
  out->transport = options.transport;
  out->memory = options.memory;
  return {};
}

Status FillJoinOptions(const sparsesel_comm_options& given, CommOptions* out) {
  if (given.transport == SPARSESEL_TRANSPORT_THREADS) {
    return Unsupported("the threads transport is for groups of comm_create_local");
  }
  return ParseCommOptions(given, 1, out);
}

Status FillRaceOptions(const sparsesel_race_options* options, RaceOptions* out) {
  sparsesel_race_options given;
  SPARSESEL_RETURN_IF_ERROR(ReadOptionalStruct("race options", options, &given));
  out->progress = given.progress;
  SPARSESEL_RETURN_IF_ERROR(InRange("margin_ppm", given.margin_ppm, 0, kMillion));
  SPARSESEL_RETURN_IF_ERROR(InRange("confidence_ppm", given.confidence_ppm, 0, kMillion - 1));
  if (given.margin_ppm != 0) out->margin = given.margin_ppm / double{kMillion};
  if (given.confidence_ppm != 0) out->error_level = given.confidence_ppm / double{kMillion};
  out->seed = given.seed;
  if (given.time_budget != 0) out->time_budget = ClampTimeout(given.time_budget);
  if (given.sample_duration != 0) out->sample_duration = ClampTimeout(given.sample_duration);
  switch (given.max_pairs) {
    case 0:
      break;
    case 16:
    case 32:
    case 64:
    case 128:
      out->max_pairs = given.max_pairs;
      break;
    default:
      return Status::Error(SPARSESEL_INVALID_ARGUMENT, "max_pairs is %d, not 0, 16, 32, 64 or 128",
                           given.max_pairs);
  }
  if (given.trial_io != nullptr) {
    SPARSESEL_RETURN_IF_ERROR(ReadStruct("trial_io", given.trial_io, &out->trial_io));
    out->has_trial_io = true;
  }
  return {};
}

Status FillPrepareOptions(const sparsesel_prepare_options* options, PrepareOptions* out) {
  sparsesel_prepare_options given;
  SPARSESEL_RETURN_IF_ERROR(ReadOptionalStruct("prepare options", options, &given));
  out->progress = given.progress;
  SPARSESEL_RETURN_IF_ERROR(InRange("prepare options' reserved", given.reserved, 0, 0));
  if (given.cache_directory != nullptr) {
    return Unsupported("cache_directory is not offered by this version: leave it NULL");
  }
  out->seed = given.seed;
  if (given.time_budget != 0) out->time_budget = ClampTimeout(given.time_budget);
  if (given.child_plans != nullptr) out->child_plans = given.child_plans;
  return {};
}

}  // namespace

uint64_t ClampTimeout(uint64_t timeout) { return std::min(timeout, kCentury); }

Status ParseLocalOptions(const sparsesel_comm_options* options, int32_t world, CommOptions* out) {
  SPARSESEL_RETURN_IF_ERROR(InRange("world", world, 1, kMaxWorldSize));
  sparsesel_comm_options given;
  SPARSESEL_RETURN_IF_ERROR(ReadOptionalStruct("comm options", options, &given));
  if (given.rank != 0 || (given.world_size != 0 && given.world_size != world)) {
    return Invalid("rank and world_size are for comm_create; a local group has all ranks");
  }
  if (given.transport == SPARSESEL_TRANSPORT_CUSTOM ||
      given.transport == SPARSESEL_TRANSPORT_BOOTSTRAP || given.custom != nullptr) {
    return Unsupported("local groups have no custom and no bootstrap transport: use comm_create");
  }
  return ParseCommOptions(given, world, out);
}

Status ParseJoinOptions(const sparsesel_comm_options* options, JoinOptions* out) {
  sparsesel_comm_options given;
  SPARSESEL_RETURN_IF_ERROR(ReadStruct("comm options", options, &given));
  SPARSESEL_RETURN_IF_ERROR(InRange("world_size", given.world_size, 1, kMaxWorldSize));
  SPARSESEL_RETURN_IF_ERROR(InRange("rank", given.rank, 0, given.world_size - 1));
  SPARSESEL_RETURN_IF_ERROR(CheckCallbacks(given, &out->comm));
  if (given.world_size > 1 && given.bootstrap.start == nullptr) {
    return Invalid("bootstrap is required when world_size is more than 1");
  }
  out->rank = given.rank;
  out->world = given.world_size;
  // From here on there is a way to tell the peers.
  out->comm.invalid = Guarded([&] { return FillJoinOptions(given, &out->comm); });
  return {};
}

Status ParseProblemStruct(const sparsesel_problem* options, Problem* out) {
  sparsesel_problem given;
  SPARSESEL_RETURN_IF_ERROR(ReadStruct("problem", options, &given));
  return ParseProblem(given, out);
}

PrepareOptions ParsePrepareOptions(const sparsesel_prepare_options* options) {
  PrepareOptions parsed;
  // The copy of child_plans may find no memory: to be told like anything else.
  parsed.invalid = Guarded([&] { return FillPrepareOptions(options, &parsed); });
  return parsed;
}

RaceOptions ParseRaceOptions(const sparsesel_race_options* options) {
  RaceOptions parsed;
  parsed.invalid = FillRaceOptions(options, &parsed);
  return parsed;
}

Status ParseWorkspaceOptions(const sparsesel_workspace_options* options, int32_t* slots) {
  *slots = 1;
  sparsesel_workspace_options given;
  SPARSESEL_RETURN_IF_ERROR(ReadOptionalStruct("workspace options", options, &given));
  SPARSESEL_RETURN_IF_ERROR(InRange("slots", given.slots, 0, kMaxSlots));
  if (given.slots != 0) *slots = given.slots;
  return {};
}

Status CheckComposition(int32_t composition) {
  return InRange("composition", composition, SPARSESEL_COMPOSITION_AUTO,
                 SPARSESEL_COMPOSITION_OWNER);
}

sparsesel_progress ProgressGuard::Guarded() {
  if (progress_.step == nullptr) return {nullptr, nullptr};
  return {this, &ProgressGuard::Step};
}

void ProgressGuard::Step(void* context, double fraction, const char* text) {
  sparsesel_progress& progress = static_cast<ProgressGuard*>(context)->progress_;
  if (progress.step == nullptr) return;
  try {
    progress.step(progress.context, fraction, text);
  } catch (...) {
    progress.step = nullptr;
  }
}

}  // namespace sparsesel
