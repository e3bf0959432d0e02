#include "transport/custom_group.h"

#include "transport/channel_checks.h"
#include "transport/fake_network.h"

namespace sparsesel {
namespace {

using Fault = FakeRank::Fault;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

enum class Plane { kBootstrap, kAllGatherOnly, kFull };

Comms Join(FakeNetwork& network, int32_t world, Plane plane, int64_t limit = 20'000'000'000) {
  Comms comms(static_cast<size_t>(world));
  RequireOk(OnEachRank(world, [&](int32_t rank) {
    CommOptions options = network.Options(rank, plane != Plane::kBootstrap, plane == Plane::kFull);
    options.startup_timeout = static_cast<uint64_t>(limit);
    options.steady_timeout = static_cast<uint64_t>(limit);
    return JoinGroup(rank, world, options, &comms[static_cast<size_t>(rank)]);
  }));
  return comms;
}

Status Barrier(const HostChannel& channel, const Comm& comm, int32_t rows = 1) {
  BeginExecute(channel, comm, 0, rows);
  return channel.table->barrier(channel.self.get());
}

TEST_CASE("custom and bootstrap: every operation gives every rank its data") {
  const int32_t world = GENERATE(1, 2, 3, 5, 16);
  const Plane plane = GENERATE(Plane::kBootstrap, Plane::kAllGatherOnly, Plane::kFull);
  CAPTURE(world, static_cast<int>(plane));
  FakeNetwork network(world);
  const Comms comms = Join(network, world, plane);
  REQUIRE(At(comms, 0).transport() == (plane == Plane::kBootstrap ? SPARSESEL_TRANSPORT_BOOTSTRAP
                                                                  : SPARSESEL_TRANSPORT_CUSTOM));
  CheckChannels(comms, MakeChannels(comms), 5);
  REQUIRE(At(comms, world - 1).State().ok());
}

TEST_CASE("a group of 64 over the bootstrap") {
  FakeNetwork network(64);
  const Comms comms = Join(network, 64, Plane::kBootstrap);
  CheckChannels(comms, MakeChannels(comms), 1);
}

TEST_CASE("what is made of all-gathers may be longer than a chunk") {
  constexpr int32_t kWorld = 3;
  constexpr size_t kWords = 500'000;  // 2 MB: several chunks
  FakeNetwork network(kWorld);
  const Comms comms = Join(network, kWorld, Plane::kBootstrap);
  const std::vector<HostChannel> channels = MakeChannels(comms);
  RequireOk(OnEachRank(kWorld, [&](int32_t rank) {
    const HostChannel& channel = channels[static_cast<size_t>(rank)];
    BeginExecute(channel, At(comms, rank), 0);
    std::vector<int32_t> send(kWords), sums(kWords);
    for (size_t i = 0; i < kWords; ++i) send[i] = static_cast<int32_t>(i) * (rank + 1);
    SPARSESEL_RETURN_IF_ERROR(
        channel.table->sum_int32(channel.self.get(), send.data(), sums.data(), kWords));
    for (size_t i = 0; i < kWords; ++i) {
      if (sums[i] != static_cast<int32_t>(i) * 6) return Wrong("sum_int32");
    }
    // Rank 0 sends everything to rank 2, and the others nothing at all.
    std::vector<uint64_t> none(kWorld), sends(kWorld), receives(kWorld);
    if (rank == 0) sends[2] = kWords * 4;
    if (rank == 2) receives[0] = kWords * 4;
    std::vector<int32_t> receive(rank == 2 ? kWords : 0);
    Blocks blocks;
    SPARSESEL_RETURN_IF_ERROR(channel.table->all_to_all(
        channel.self.get(), reinterpret_cast<const std::byte*>(send.data()), sends.data(),
        none.data(), reinterpret_cast<std::byte*>(receive.data()), receives.data(), none.data(),
        &blocks));
    for (size_t i = 0; i < receive.size(); ++i) {
      if (receive[i] != static_cast<int32_t>(i)) return Wrong("all_to_all");
    }
    return Status();
  }));
}

TEST_CASE("custom: messages are compared before data of differing sizes moves") {
  FakeNetwork network(3);
  const Comms comms = Join(network, 3, Plane::kFull);
  const std::vector<HostChannel> channels = MakeChannels(comms);
  const auto results = OnEachRank(3, [&](int32_t rank) {
    const HostChannel& channel = channels[static_cast<size_t>(rank)];
    BeginExecute(channel, At(comms, rank), 0, rank == 1 ? 2 : 1);
    std::vector<std::byte> send(rank == 1 ? 200 : 100), receive(3 * send.size());
    Blocks blocks;
    return channel.table->all_gather(channel.self.get(), send.data(), send.size(), receive.data(),
                                     &blocks);
  });
  RequireAll(results, SPARSESEL_MISMATCH, 1);
  // Nothing is lost by that.
  RequireOk(OnEachRank(3, [&](int32_t rank) {
    return Barrier(channels[static_cast<size_t>(rank)], At(comms, rank));
  }));
}

TEST_CASE("bootstrap: all_to_all sizes that do not match are a mismatch on all") {
  FakeNetwork network(3);
  const Comms comms = Join(network, 3, Plane::kBootstrap);
  const std::vector<HostChannel> channels = MakeChannels(comms);
  RequireAll(OnEachRank(3,
                        [&](int32_t rank) {
                          const HostChannel& channel = channels[static_cast<size_t>(rank)];
                          std::vector<uint64_t> none(3), receives(3);
                          if (rank == 2) receives[1] = 4;
                          std::byte bytes[4];
                          Blocks blocks;
                          return channel.table->all_to_all(channel.self.get(), bytes, none.data(),
                                                           none.data(), bytes, receives.data(),
                                                           none.data(), &blocks);
                        }),
             SPARSESEL_MISMATCH, 1);
}

TEST_CASE("a transport's failure is the group's, with its code", "[bug_H01]") {
  const Fault fault = GENERATE(Fault::kStatus, Fault::kThrow);
  FakeNetwork network(2);
  const Comms comms = Join(network, 2, Plane::kFull, 300 * kMillisecond);
  const std::vector<HostChannel> channels = MakeChannels(comms);
  network.rank(1).transport = fault;
  const auto results = OnEachRank(2, [&](int32_t rank) {
    return Barrier(channels[static_cast<size_t>(rank)], At(comms, rank));
  });
  REQUIRE(results[1].code() == SPARSESEL_INTERNAL);
  REQUIRE(results[1].backend_code() == (fault == Fault::kStatus ? 77 : 0));
  REQUIRE(results[0].code() == SPARSESEL_TIMEOUT);  // it cannot be told
  REQUIRE(At(comms, 1).State().code() == SPARSESEL_INTERNAL);
  const auto begin = steady_clock::now();
  REQUIRE(Barrier(channels[1], At(comms, 1)).code() == SPARSESEL_PEER_FAILED);
  REQUIRE(At(comms, 1).Enter(CallKind::kBind, 0, Status()).code() == SPARSESEL_PEER_FAILED);
  REQUIRE(steady_clock::now() - begin < milliseconds(250));
}

TEST_CASE("a bootstrap that fails, throws or never ends", "[bug_G05]") {
  const auto member = GENERATE(&FakeRank::start, &FakeRank::test, &FakeRank::free);
  const Fault fault = GENERATE(Fault::kStatus, Fault::kThrow, Fault::kNever);
  FakeNetwork network(2);
  const Comms comms = Join(network, 2, Plane::kBootstrap, 100 * kMillisecond);
  network.rank(0).*member = fault;
  const Status status = OnEachRank(
      2, [&](int32_t rank) { return At(comms, rank).Enter(CallKind::kPrepare, 0, Status()); })[0];
  INFO(status.text());
  if (member == &FakeRank::free) {
    // It has no status to fail with, but it may throw.
    REQUIRE(status.code() == (fault == Fault::kThrow ? SPARSESEL_INTERNAL : SPARSESEL_OK));
  } else if (member == &FakeRank::test && fault == Fault::kNever) {
    REQUIRE(status.code() == SPARSESEL_TIMEOUT);
  } else {
    REQUIRE(status.code() == SPARSESEL_INTERNAL);
    REQUIRE(At(comms, 0).State().code() == SPARSESEL_INTERNAL);
  }
}

TEST_CASE("abort ends polling and calls in flight") {
  const Plane plane = GENERATE(Plane::kBootstrap, Plane::kFull);
  FakeNetwork network(2);
  const Comms comms = Join(network, 2, plane);
  const std::vector<HostChannel> channels = MakeChannels(comms);
  const auto begin = steady_clock::now();
  const auto results = OnEachRank(2, [&](int32_t rank) {
    if (rank == 0) return Barrier(channels[0], At(comms, 0));
    std::this_thread::sleep_for(milliseconds(50));
    At(comms, 0).Abort();
    return At(comms, 0).State();
  });
  REQUIRE(steady_clock::now() - begin < milliseconds(10000));
  for (const Status& status : results) REQUIRE(status.code() == SPARSESEL_ABORTED);
}

// The large sizes never move: the transport only looks at the numbers it is given.
TEST_CASE("custom: 64-bit sizes reach the transport whole", "[bug_C15]") {
  struct Seen {
    uint64_t bytes = 0;
    uint64_t to_peer = 0;
    uint64_t offset = 0;
  } seen;
  FakeNetwork network(2);
  constexpr uint64_t kLarge = (uint64_t{1} << 33) + 4;
  RequireOk(OnEachRank(2, [&](int32_t rank) {
    CommOptions options = network.Options(rank, true, true);
    Seen unused;
    options.custom.context = rank == 0 ? &seen : &unused;
    options.custom.all_gather = [](void* context, const void*, void*, uint64_t bytes, void*,
                                   uint64_t) {
      static_cast<Seen*>(context)->bytes = bytes;
      return sparsesel_status{SPARSESEL_OK};
    };
    options.custom.all_to_all = [](void* context, const void*, const uint64_t* send_bytes,
                                   const uint64_t*, void*, const uint64_t*,
                                   const uint64_t* receive_offsets, void*, uint64_t) {
      static_cast<Seen*>(context)->to_peer = send_bytes[1];
      static_cast<Seen*>(context)->offset = receive_offsets[1];
      return sparsesel_status{SPARSESEL_OK};
    };
    std::shared_ptr<Comm> comm;
    SPARSESEL_RETURN_IF_ERROR(JoinGroup(rank, 2, options, &comm));
    HostChannel channel;
    SPARSESEL_RETURN_IF_ERROR(comm->MakeHostChannel(&channel));
    std::byte byte{};
    Blocks blocks;
    SPARSESEL_RETURN_IF_ERROR(
        channel.table->all_gather(channel.self.get(), &byte, kLarge, &byte, &blocks));
    const uint64_t sizes[] = {0, kLarge};
    const uint64_t zeros[] = {0, 0};
    return channel.table->all_to_all(channel.self.get(), &byte, sizes, zeros, &byte, zeros, sizes,
                                     &blocks);
  }));
  REQUIRE(seen.bytes == kLarge);
  REQUIRE(seen.to_peer == kLarge);
  REQUIRE(seen.offset == kLarge);
}

TEST_CASE("one order of calls: overlapping channels are not to be had, nor two calls at once") {
  FakeNetwork network(2);
  const Comms comms = Join(network, 2, Plane::kBootstrap, 300 * kMillisecond);
  HostChannel channel;
  REQUIRE(At(comms, 0).MakeHostChannel(&channel, true).code() == SPARSESEL_UNAVAILABLE);
  const auto results = OnEachRank(2, [&](int32_t thread) {
    if (thread == 1) std::this_thread::sleep_for(milliseconds(50));
    return At(comms, 0).Enter(CallKind::kBind, 0, Status());
  });
  REQUIRE(results[0].code() == SPARSESEL_TIMEOUT);
  REQUIRE(results[1].code() == SPARSESEL_INVALID_STATE);
}

TEST_CASE("what ends a group elsewhere ends a wait in the bootstrap") {
  FakeNetwork network(2);
  const std::shared_ptr<CustomRank> rank =
      MakeCustomRank(0, 2, network.Options(0, false, false), false);
  int asked = 0;
  rank->ended = [&asked] {
    if (++asked < 5) return Status();
    return Status::Error(SPARSESEL_PEER_FAILED, "elsewhere").WithRank(1);
  };
  // Rank 1 never comes.
  int32_t send = 1;
  int32_t receive[2] = {};
  const GroupTable& table = *CustomGroupTable(false);
  Status status = table.control_all_gather(rank.get(), &send, receive, sizeof(send), INT64_MAX);
  REQUIRE(status.code() == SPARSESEL_PEER_FAILED);
  REQUIRE(status.rank() == 1);
  REQUIRE(table.state(rank.get()).rank() == 1);
}

}  // namespace
}  // namespace sparsesel
