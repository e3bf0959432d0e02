#include "transport/custom_group.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

namespace sparsesel {
namespace {

// Polls without sleeping first, since peers of an exchange mostly come together.
constexpr int kEagerPolls = 64;
constexpr std::chrono::microseconds kShortestSleep{10};
constexpr std::chrono::microseconds kLongestSleep{1000};

CustomRank& Self(void* self) { return *static_cast<CustomRank*>(self); }

// Not a status: what a callback that threw stands for.
constexpr sparsesel_status kThrew = -1;

template <typename Call>
sparsesel_status Caught(Call call) {
  try {
    return call();
  } catch (...) {
    return kThrew;
  }
}

// A failed callback's status is passed on where it says what happened to the group. Others would
// read as if they spoke of the library's own arguments.
sparsesel_status Translated(sparsesel_status status) {
  switch (status) {
    case SPARSESEL_UNAVAILABLE:
    case SPARSESEL_OUT_OF_MEMORY:
    case SPARSESEL_TIMEOUT:
    case SPARSESEL_PEER_FAILED:
    case SPARSESEL_ABORTED:
    case SPARSESEL_MISMATCH:
    case SPARSESEL_IO:
      return status;
    default:
      return SPARSESEL_INTERNAL;
  }
}

// Ends the group on this rank. The rank at fault is not known: the callback may have failed because
// of any.
Status FailBy(CustomRank& rank, const char* name, sparsesel_status status) {
  const Status why =
      status == kThrew
          ? Status::Error(SPARSESEL_INTERNAL, "the callback %s threw an exception", name)
          : Status::Error(Translated(status), "the callback %s returned %d", name, status)
                .WithBackendCode(status);
  // Aborting makes callbacks fail: then ABORTED is the truth.
  return rank.state.Fail(why) ? why : rank.state.Get();
}

Status FailByLimit(CustomRank& rank, const char* name) {
  const Status why = Status::Error(SPARSESEL_TIMEOUT, "%s did not end within the limit", name);
  return rank.state.Fail(why) ? why : rank.state.Get();
}

// Marks a plane as in use for as long as it lives.
class Use {
 public:
  explicit Use(std::atomic<bool>* busy)
      : busy_(busy->exchange(true, std::memory_order_acquire) ? nullptr : busy) {}
  ~Use() {
    if (busy_ != nullptr) busy_->store(false, std::memory_order_release);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  Status status() const {
    if (busy_ != nullptr) return {};
    return Status::Error(SPARSESEL_INVALID_STATE,
                         "two calls on one group at once, on a transport that has one order");
  }

 private:
  std::atomic<bool>* const busy_;
};

// Polls an open request until it ends; does not free it.
Status Poll(CustomRank& rank, void* request, int64_t deadline) {
  const sparsesel_bootstrap& bootstrap = rank.bootstrap;
  std::chrono::microseconds sleep = kShortestSleep;
  for (int polls = 0;; ++polls) {
    const sparsesel_status status =
        Caught([&] { return bootstrap.test(bootstrap.context, request); });
    if (status == SPARSESEL_OK) return {};
    if (status != SPARSESEL_IN_PROGRESS) return FailBy(rank, "bootstrap.test", status);
    if (rank.state.failed()) return rank.state.Get();
    if (rank.environment.Now() >= deadline) {
      return FailByLimit(rank, "an all-gather over the bootstrap");
    }
    if (rank.ended != nullptr) {
      if (const Status why = rank.ended(); !why.ok()) {
        return rank.state.Fail(why) ? why : rank.state.Get();
      }
    }
    if (polls < kEagerPolls) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(sleep);
      sleep = std::min(2 * sleep, kLongestSleep);
    }
  }
}

Status ControlAllGather(void* self, const void* send, void* receive, size_t bytes,
                        int64_t deadline) {
  CustomRank& rank = Self(self);
  if (rank.state.failed()) return rank.state.Earlier();
  if (rank.world == 1) {
    if (bytes > 0) std::memcpy(receive, send, bytes);
    return {};
  }
  return BootstrapAllGather(rank, send, receive, bytes, deadline);
}

Status MakeHostChannel(void* self, int32_t, bool overlaps, HostChannel* channel) {
  CustomRank& rank = Self(self);
  if (overlaps && rank.world > 1) {
    return Status::Error(SPARSESEL_UNAVAILABLE,
                         "this transport has one order of calls: executes cannot overlap");
  }
  return MakeCustomChannel(rank.shared_from_this(), channel);
}

const HostChannelTable* ChannelTable(const void* self) {
  return &static_cast<const CustomRank*>(self)->channel_table;
}

void Abort(void* self) {
  CustomRank& rank = Self(self);
  if (!rank.state.Fail(AbortedStatus())) return;
  if (rank.custom_data && rank.custom.abort != nullptr) {
    (void)Caught([&] {
      rank.custom.abort(rank.custom.context);
      return SPARSESEL_OK;
    });
  }
}

Status State(const void* self) { return static_cast<const CustomRank*>(self)->state.Get(); }

void Fail(void* self, const Status& status) {
  CustomRank& rank = Self(self);
  (void)rank.state.Fail(status.rank() >= 0 ? status : Status(status).WithRank(rank.rank));
}

sparsesel_transport WithIdentity(sparsesel_transport custom, const char* identity) {
  custom.identity = identity;
  return custom;
}

}  // namespace

CustomRank::CustomRank(int32_t rank_in, int32_t world_in, const CommOptions& options,
                       bool custom_data_in)
    : rank(rank_in),
      world(world_in),
      environment(options.environment),
      bootstrap(options.bootstrap),
      custom_data(custom_data_in),
      identity(options.custom.identity == nullptr ? "custom" : options.custom.identity),
      custom(WithIdentity(options.custom, identity.c_str())),
      channel_table(CustomChannelTable(custom_data_in, options.custom)) {}

std::shared_ptr<CustomRank> MakeCustomRank(int32_t rank, int32_t world, const CommOptions& options,
                                           bool custom_data) {
  return std::make_shared<CustomRank>(rank, world, options, custom_data);
}

const GroupTable* CustomGroupTable(bool custom_data) {
  static constexpr GroupTable custom = {
      SPARSESEL_TRANSPORT_CUSTOM,
      ControlAllGather,
      MakeHostChannel,
      ChannelTable,
      Abort,
      State,
      Fail,
      nullptr,
  };
  static constexpr GroupTable bootstrap = {
      SPARSESEL_TRANSPORT_BOOTSTRAP,
      ControlAllGather,
      MakeHostChannel,
      ChannelTable,
      Abort,
      State,
      Fail,
      nullptr,
  };
  return custom_data ? &custom : &bootstrap;
}

Status BootstrapAllGather(CustomRank& rank, const void* send, void* receive, size_t bytes,
                          int64_t deadline) {
  const Use use(&rank.control_busy);
  SPARSESEL_RETURN_IF_ERROR(use.status());
  const sparsesel_bootstrap& bootstrap = rank.bootstrap;
  void* request = nullptr;
  const sparsesel_status started =
      Caught([&] { return bootstrap.start(bootstrap.context, send, receive, bytes, &request); });
  if (started != SPARSESEL_OK) return FailBy(rank, "bootstrap.start", started);
  const Status result = Poll(rank, request, deadline);
  const sparsesel_status freed = Caught([&] {
    bootstrap.free(bootstrap.context, request);
    return SPARSESEL_OK;
  });
  if (result.ok() && freed != SPARSESEL_OK) return FailBy(rank, "bootstrap.free", freed);
  return result;
}

Status TellPeers(int32_t rank, int32_t world, const CommOptions& options, const Status& why) {
  if (world == 1) return why;
  CommOptions bare;
  bare.bootstrap = options.bootstrap;
  bare.environment = options.environment;
  CustomRank member(rank, world, bare, false);
  CallMessage message;
  message.abi_version = sparsesel_version();
  SetStatus(why, rank, &message);
  std::array<CallMessage, kMaxWorld> messages;
  const int64_t deadline = DeadlineAfter(options.environment.Now(), options.startup_timeout);
  SPARSESEL_RETURN_IF_ERROR(
      BootstrapAllGather(member, &message, messages.data(), sizeof(message), deadline));
  return CompareCalls({messages.data(), static_cast<size_t>(world)});
}

Status CallTransport(CustomRank& rank, const char* name, int64_t deadline,
                     absl::FunctionRef<sparsesel_status(uint64_t timeout)> call) {
  const Use use(&rank.data_busy);
  SPARSESEL_RETURN_IF_ERROR(use.status());
  if (rank.state.failed()) return rank.state.Earlier();
  const int64_t now = rank.environment.Now();
  if (now >= deadline) return FailByLimit(rank, name);
  const uint64_t timeout = static_cast<uint64_t>(deadline) - static_cast<uint64_t>(now);
  const sparsesel_status status = Caught([&] { return call(timeout); });
  return status == SPARSESEL_OK ? Status() : FailBy(rank, name, status);
}

}  // namespace sparsesel
