#include "comm/comm.h"

#include <array>
#include <cstring>

#include "transport/fake_network.h"
#include "transport/rank_threads.h"

namespace sparsesel {
namespace {

Comms Group(FakeNetwork& network, int32_t world, bool threads) {
  if (threads) return LocalGroup(world);
  Comms comms(static_cast<size_t>(world));
  RequireOk(OnEachRank(world, [&](int32_t rank) {
    return JoinGroup(rank, world, network.Options(rank, false, false),
                     &comms[static_cast<size_t>(rank)]);
  }));
  return comms;
}

TEST_CASE("a collective call is entered by all or by none") {
  const bool threads = GENERATE(true, false);
  FakeNetwork network(3);
  const Comms comms = Group(network, 3, threads);
  const uint64_t joined = At(comms, 0).control_calls();
  const auto enter = [&](auto kind, auto digest, auto local) {
    return OnEachRank(3, [&](int32_t rank) {
      return At(comms, rank).Enter(kind(rank), digest(rank), local(rank));
    });
  };
  const auto prepare = [](int32_t) { return CallKind::kPrepare; };
  const auto same = [](int32_t) { return uint64_t{1}; };
  const auto fine = [](int32_t) { return Status(); };
  RequireOk(enter(prepare, same, fine));
  RequireAll(enter([](int32_t rank) { return rank == 1 ? CallKind::kRace : CallKind::kPrepare; },
                   same, fine),
             SPARSESEL_MISMATCH, 1);
  RequireAll(enter(
                 prepare, [](int32_t rank) { return uint64_t{rank == 2}; }, fine),
             SPARSESEL_MISMATCH, 2);
  const auto fails = [](int32_t rank) {
    return rank == 0 ? Status() : Status::Error(SPARSESEL_OUT_OF_MEMORY, "rank %d", rank);
  };
  const auto failed = enter(prepare, same, fails);
  RequireAll(failed, SPARSESEL_OUT_OF_MEMORY, 1);
  REQUIRE(std::string(failed[0].text()) == "rank 1");
  RequireOk(enter(prepare, same, fine));  // none of that ended the group
  REQUIRE(At(comms, 0).control_calls() == joined + 5);
}

TEST_CASE("all-gathers inside a call, with and without a status, short and long") {
  const bool threads = GENERATE(true, false);
  const size_t bytes = GENERATE(size_t{0}, size_t{1}, size_t{1000}, Comm::kJointBytes,
                                Comm::kJointBytes + 1, size_t{300000});
  CAPTURE(threads, bytes);
  FakeNetwork network(5);
  const Comms comms = Group(network, 5, threads);
  const uint64_t before = At(comms, 0).control_calls();
  RequireOk(OnEachRank(5, [&](int32_t rank) {
    std::vector<unsigned char> send(bytes), receive(5 * bytes);
    const auto byte = [](int32_t from, size_t i) {
      return static_cast<unsigned char>(from * 31 + static_cast<int32_t>(i % 251));
    };
    for (size_t i = 0; i < bytes; ++i) send[i] = byte(rank, i);
    for (int32_t round = 0; round < 3; ++round) {
      std::fill(receive.begin(), receive.end(), 0);
      SPARSESEL_RETURN_IF_ERROR(
          round == 0 ? At(comms, rank).AllGather(send.data(), receive.data(), bytes)
                     : At(comms, rank).AllGatherOrFail({}, send.data(), receive.data(), bytes));
      for (int32_t from = 0; from < 5; ++from) {
        for (size_t i = 0; i < bytes; ++i) {
          if (receive[static_cast<size_t>(from) * bytes + i] != byte(from, i)) {
            return Wrong("all-gather");
          }
        }
      }
    }
    return Status();
  }));
  REQUIRE(At(comms, 0).control_calls() - before == (bytes <= Comm::kJointBytes ? 3 : 5));
  // A failed rank has nothing to send.
  RequireAll(OnEachRank(5,
                        [&](int32_t rank) {
                          std::vector<unsigned char> send(bytes), receive(5 * bytes);
                          const Status local =
                              rank < 3 ? Status() : Status::Error(SPARSESEL_IO, "rank %d", rank);
                          return At(comms, rank)
                              .AllGatherOrFail(local, rank < 3 ? send.data() : nullptr,
                                               receive.data(), bytes);
                        }),
             SPARSESEL_IO, 3);
}

TEST_CASE("threads: control messages of differing sizes are a mismatch on all") {
  const Comms comms = LocalGroup(3);
  RequireAll(
      OnEachRank(
          3,
          [&](int32_t rank) {
            std::array<char, 16> send{};
            std::array<char, 48> receive{};
            return At(comms, rank).AllGather(send.data(), receive.data(), rank == 2 ? 16 : 8);
          }),
      SPARSESEL_MISMATCH, 2);
}

TEST_CASE("limits can be changed, and saturate") {
  const Comms comms = LocalGroup(1);
  Comm& comm = At(comms, 0);
  comm.SetTimeouts(UINT64_MAX, 0);
  REQUIRE(comm.StartupDeadline() == INT64_MAX);
  REQUIRE(comm.SteadyDeadline() < comm.environment().Now() + 31'000'000'000);
  REQUIRE(DeadlineAfter(-5, 10) == 5);
  REQUIRE(DeadlineAfter(INT64_MAX, 1) == INT64_MAX);
  REQUIRE(DeadlineAfter(INT64_MIN, UINT64_MAX) == INT64_MAX);
}

sparsesel_status LocalCode(int32_t world, int32_t transport, int32_t memory) {
  CommOptions options;
  options.transport = transport;
  options.memory = memory;
  Comms comms;
  return CreateLocalGroup(world, options, &comms).code();
}

TEST_CASE("local groups refuse what they do not have") {
  REQUIRE(LocalCode(0, SPARSESEL_TRANSPORT_AUTO, 0) == SPARSESEL_INVALID_ARGUMENT);
  REQUIRE(LocalCode(65, SPARSESEL_TRANSPORT_AUTO, 0) == SPARSESEL_INVALID_ARGUMENT);
  REQUIRE(LocalCode(64, SPARSESEL_TRANSPORT_THREADS, 0) == SPARSESEL_OK);
  REQUIRE(LocalCode(2, 99, 0) == SPARSESEL_INVALID_ARGUMENT);
  REQUIRE(LocalCode(2, SPARSESEL_TRANSPORT_AUTO, 7) == SPARSESEL_INVALID_ARGUMENT);
  REQUIRE(LocalCode(2, SPARSESEL_TRANSPORT_PEER, SPARSESEL_MEMORY_HOST) ==
          SPARSESEL_INVALID_ARGUMENT);
  REQUIRE(LocalCode(2, SPARSESEL_TRANSPORT_THREADS, SPARSESEL_MEMORY_DEVICE) ==
          SPARSESEL_UNSUPPORTED);
  for (const int32_t transport :
       {SPARSESEL_TRANSPORT_CUSTOM, SPARSESEL_TRANSPORT_BOOTSTRAP, SPARSESEL_TRANSPORT_MPI}) {
    REQUIRE(LocalCode(2, transport, 0) == SPARSESEL_UNSUPPORTED);
  }
  REQUIRE(LocalCode(2, SPARSESEL_TRANSPORT_NCCL, SPARSESEL_MEMORY_HOST) ==
          SPARSESEL_INVALID_ARGUMENT);
}

// What every rank gets when rank 1's options are changed.
std::vector<Status> JoinWith(void (*change)(CommOptions*, int32_t* rank, int32_t* world)) {
  FakeNetwork network(3);
  return OnEachRank(3, [&](int32_t rank) {
    CommOptions options = network.Options(rank, true, true);
    options.startup_timeout = 500 * kMillisecond;
    int32_t world = 3;
    int32_t told = rank;
    if (rank == 1) change(&options, &told, &world);
    std::shared_ptr<Comm> comm;
    return JoinGroup(told, world, options, &comm);
  });
}

TEST_CASE("a rank that joins wrongly is told of by all", "[bug_D19]") {
  RequireOk(JoinWith([](CommOptions*, int32_t*, int32_t*) {}));
  RequireAll(JoinWith([](CommOptions*, int32_t* rank, int32_t*) { *rank = 2; }), SPARSESEL_MISMATCH,
             1);
  RequireAll(JoinWith([](CommOptions*, int32_t* rank, int32_t*) { *rank = 3; }),
             SPARSESEL_INVALID_ARGUMENT, 1);
  for (const Status& status :
       JoinWith([](CommOptions*, int32_t*, int32_t* world) { *world = 2; })) {
    REQUIRE(status.code() == SPARSESEL_MISMATCH);
  }
  RequireAll(JoinWith([](CommOptions* options, int32_t*, int32_t*) {
               options->transport = SPARSESEL_TRANSPORT_NCCL;
             }),
             SPARSESEL_INVALID_ARGUMENT, 1);
  RequireAll(JoinWith([](CommOptions* options, int32_t*, int32_t*) {
               options->transport = SPARSESEL_TRANSPORT_BOOTSTRAP;
             }),
             SPARSESEL_MISMATCH, 1);
  RequireAll(JoinWith([](CommOptions* options, int32_t*, int32_t*) {
               options->custom.all_to_all = nullptr;
             }),
             SPARSESEL_MISMATCH, 1);
  RequireAll(JoinWith([](CommOptions* options, int32_t*, int32_t*) {
               options->custom.all_gather = nullptr;
             }),
             SPARSESEL_INVALID_ARGUMENT, 1);
}

TEST_CASE("a group needs a bootstrap unless it is of one rank") {
  std::shared_ptr<Comm> comm;
  REQUIRE(JoinGroup(0, 2, {}, &comm).code() == SPARSESEL_INVALID_ARGUMENT);
  REQUIRE(comm == nullptr);
  REQUIRE(JoinGroup(0, 1, {}, &comm).ok());
  REQUIRE(comm->Enter(CallKind::kPrepare, 1, Status()).ok());
}

TEST_CASE("threads: many calls of all kinds, from many ranks", "[stress]") {
  const int32_t world = GENERATE(2, 7, 64);
  const Comms comms = LocalGroup(world);
  RequireOk(OnEachRank(world, [&](int32_t rank) {
    Comm& comm = At(comms, rank);
    for (int32_t round = 0; round < (world == 64 ? 20 : 300); ++round) {
      SPARSESEL_RETURN_IF_ERROR(comm.Enter(CallKind::kBind, 5, Status()));
      HostChannel channel;
      SPARSESEL_RETURN_IF_ERROR(comm.MakeHostChannel(&channel));
      BeginExecute(channel, comm, 0);
      const std::vector<int32_t> send(100, rank * 1000 + round);
      Blocks blocks;
      SPARSESEL_RETURN_IF_ERROR(channel.table->all_gather(
          channel.self.get(), reinterpret_cast<const std::byte*>(send.data()), 400, nullptr,
          &blocks));
      for (int32_t from = 0; from < world; ++from) {
        if (std::memcmp(blocks.from[from], blocks.from[from] + 396, 4) != 0) return Wrong("data");
        if (*reinterpret_cast<const int32_t*>(blocks.from[from]) != from * 1000 + round) {
          return Wrong("all_gather");
        }
      }
      SPARSESEL_RETURN_IF_ERROR(channel.table->drain(channel.self.get()));
    }
    return Status();
  }));
}

}  // namespace
}  // namespace sparsesel
