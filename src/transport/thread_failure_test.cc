#include <atomic>
#include <chrono>

#include "transport/channel_checks.h"
#include "transport/group_state.h"

namespace sparsesel {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

CommOptions WithLimit(int64_t limit) {
  CommOptions options;
  options.startup_timeout = static_cast<uint64_t>(limit);
  options.steady_timeout = static_cast<uint64_t>(limit);
  return options;
}

Status Barrier(const HostChannel& channel, const Comm& comm) {
  BeginExecute(channel, comm, 0);
  return channel.table->barrier(channel.self.get());
}

TEST_CASE("threads: a rank that does not come is named on all within the limit", "[bug_G03]") {
  const int32_t world = GENERATE(2, 5, 16);
  const Comms comms = LocalGroup(world, WithLimit(200 * kMillisecond));
  const std::vector<HostChannel> channels = MakeChannels(comms);
  const int32_t missing = world / 2;
  const auto begin = steady_clock::now();
  const auto results = OnEachRank(world, [&](int32_t rank) {
    if (rank == missing) return Status::Error(SPARSESEL_TIMEOUT, "absent").WithRank(missing);
    return Barrier(channels[static_cast<size_t>(rank)], At(comms, rank));
  });
  const auto took = steady_clock::now() - begin;
  RequireAll(results, SPARSESEL_TIMEOUT, missing);
  REQUIRE(took >= milliseconds(200));
  REQUIRE(took < milliseconds(10000));
  // What comes later fails at once, everywhere, and tells why.
  RequireAll(OnEachRank(world,
                        [&](int32_t rank) {
                          return Barrier(channels[static_cast<size_t>(rank)], At(comms, rank));
                        }),
             SPARSESEL_PEER_FAILED, missing);
  REQUIRE(At(comms, missing).State().code() == SPARSESEL_TIMEOUT);
  REQUIRE(At(comms, 0).Enter(CallKind::kBind, 0, Status()).code() == SPARSESEL_PEER_FAILED);
}

TEST_CASE("threads: the limit is on the caller's clock") {
  std::atomic<int64_t> now{-1'000'000};  // clocks may begin anywhere
  CommOptions options = WithLimit(3'600'000'000'000);
  options.environment.clock = {
      &now, [](void* context) { return static_cast<std::atomic<int64_t>*>(context)->load(); }};
  const Comms comms = LocalGroup(3, options);
  const auto begin = steady_clock::now();
  const auto results = OnEachRank(3, [&](int32_t rank) {
    if (rank == 0) {
      std::this_thread::sleep_for(milliseconds(100));
      now += 3'600'000'000'001;
      return Status::Error(SPARSESEL_TIMEOUT, "absent").WithRank(0);
    }
    return At(comms, rank).Enter(CallKind::kPrepare, 0, Status());
  });
  const auto took = steady_clock::now() - begin;
  RequireAll(results, SPARSESEL_TIMEOUT, 0);
  REQUIRE(took >= milliseconds(100));
  REQUIRE(took < milliseconds(10000));
}

TEST_CASE("threads: a clock that stands still does not keep those who are all there") {
  CommOptions options;
  options.environment.clock = {nullptr, [](void*) { return int64_t{7}; }};
  const Comms comms = LocalGroup(3, options);
  CheckChannels(comms, MakeChannels(comms), 10);
}

TEST_CASE("threads: drain is bounded when a peer never finishes reading") {
  const Comms comms = LocalGroup(2, WithLimit(100 * kMillisecond));
  const std::vector<HostChannel> channels = MakeChannels(comms);
  const std::byte byte{};
  const auto results = OnEachRank(2, [&](int32_t rank) {
    const HostChannel& channel = channels[static_cast<size_t>(rank)];
    BeginExecute(channel, At(comms, rank), 0);
    Blocks blocks;
    SPARSESEL_RETURN_IF_ERROR(
        channel.table->all_gather(channel.self.get(), &byte, 1, nullptr, &blocks));
    if (rank == 1) return Status::Error(SPARSESEL_TIMEOUT, "reads for ever").WithRank(1);
    return channel.table->drain(channel.self.get());
  });
  RequireAll(results, SPARSESEL_TIMEOUT, 1);
}

TEST_CASE("threads: abort frees every waiter, from any thread") {
  const Comms comms = LocalGroup(5);
  const std::vector<HostChannel> channels = MakeChannels(comms);
  const auto begin = steady_clock::now();
  const auto results = OnEachRank(5, [&](int32_t rank) {
    if (rank == 4) {
      std::this_thread::sleep_for(milliseconds(50));
      At(comms, 2).Abort();
      At(comms, 3).Abort();  // idempotent
      return AbortedStatus();
    }
    return rank % 2 == 0 ? Barrier(channels[static_cast<size_t>(rank)], At(comms, rank))
                         : At(comms, rank).Enter(CallKind::kRace, 0, Status());
  });
  REQUIRE(steady_clock::now() - begin < milliseconds(10000));
  for (const Status& status : results) REQUIRE(status.code() == SPARSESEL_ABORTED);
  REQUIRE(At(comms, 0).State().code() == SPARSESEL_ABORTED);
  REQUIRE(Barrier(channels[4], At(comms, 4)).code() == SPARSESEL_ABORTED);
}

TEST_CASE("threads: a failure of one rank is every waiter's") {
  const Comms comms = LocalGroup(3);
  RequireAll(OnEachRank(3,
                        [&](int32_t rank) {
                          if (rank != 1) return At(comms, rank).Enter(CallKind::kBind, 0, Status());
                          const Status why = Status::Error(SPARSESEL_INTERNAL, "no").WithRank(1);
                          std::this_thread::sleep_for(milliseconds(20));
                          At(comms, 1).Fail(why);
                          return why;
                        }),
             SPARSESEL_INTERNAL, 1);
}

TEST_CASE("threads: ranks in different calls are told, when nobody else can come", "[bug_E21]") {
  const Comms comms = LocalGroup(4);
  const std::vector<HostChannel> first = MakeChannels(comms);
  const std::vector<HostChannel> second = MakeChannels(comms);
  const auto begin = steady_clock::now();
  const auto results = OnEachRank(4, [&](int32_t rank) {
    if (rank == 2) return Barrier(second[2], At(comms, 2));
    if (rank == 3) return At(comms, 3).Enter(CallKind::kRace, 0, Status());
    return Barrier(first[static_cast<size_t>(rank)], At(comms, rank));
  });
  REQUIRE(steady_clock::now() - begin < milliseconds(10000));
  RequireAll(results, SPARSESEL_MISMATCH, 2);
  REQUIRE_THAT(results[0].text(), Catch::Contains("rank 0 in execute on channel 0, rank 2 in "
                                                  "execute on channel 1"));
}

TEST_CASE("threads: overlapping channels wait for their own threads") {
  const Comms comms = LocalGroup(2);
  const std::vector<HostChannel> first = MakeChannels(comms, true);
  const std::vector<HostChannel> second = MakeChannels(comms, true);
  // Each rank's one thread is in another channel for a while; then the others come.
  RequireOk(OnEachRank(4, [&](int32_t thread) {
    const int32_t rank = thread % 2;
    if (thread >= 2) std::this_thread::sleep_for(milliseconds(300));
    const auto& channels = (thread == 0 || thread == 3) ? first : second;
    return Barrier(channels[static_cast<size_t>(rank)], At(comms, rank));
  }));
}

TEST_CASE("threads: whoever waits for a rank that has gone is told at once") {
  SECTION("its channel has gone") {
    const Comms comms = LocalGroup(2);
    std::vector<HostChannel> channels = MakeChannels(comms);
    const auto results = OnEachRank(2, [&](int32_t rank) {
      if (rank == 0) return Barrier(channels[0], At(comms, 0));
      std::this_thread::sleep_for(milliseconds(30));
      channels[1] = {};
      return Status::Error(SPARSESEL_PEER_FAILED, "gone").WithRank(1);
    });
    RequireAll(results, SPARSESEL_PEER_FAILED, 1);
  }
  SECTION("it has left the group before") {
    Comms comms = LocalGroup(2);
    comms[1].reset();
    const Status status = comms[0]->Enter(CallKind::kPrepare, 0, Status());
    REQUIRE(status.code() == SPARSESEL_PEER_FAILED);
    REQUIRE(status.rank() == 1);
  }
}

// With a deadline of its own, as a release gives it.
Status PatientDrain(const HostChannel& channel) {
  channel.table->begin(channel.self.get(), CallMessage{}, INT64_MAX);
  return channel.table->drain(channel.self.get());
}

// One rank frees what it sent as soon as drain lets it, while a slower one still reads: the
// sanitizers see what goes wrong.
TEST_CASE("threads: drained buffers may be freed, whoever is slow") {
  constexpr int32_t kWorld = 3;
  constexpr size_t kWords = 20000;
  const bool fails = GENERATE(false, true);
  const Comms comms = LocalGroup(kWorld, WithLimit(fails ? 100 * kMillisecond : 30'000'000'000));
  std::vector<HostChannel> channels = MakeChannels(comms);
  RequireOk(OnEachRank(kWorld, [&](int32_t rank) {
    HostChannel& channel = channels[static_cast<size_t>(rank)];
    for (uint64_t round = 0; round < 20; ++round) {
      auto send = std::make_unique<std::vector<int32_t>>(kWords, rank);
      BeginExecute(channel, At(comms, rank), round);
      Blocks blocks;
      SPARSESEL_RETURN_IF_ERROR(channel.table->all_gather(
          channel.self.get(), reinterpret_cast<const std::byte*>(send->data()),
          kWords * sizeof(int32_t), nullptr, &blocks));
      // In the last round nobody waits for the slow rank's arrival any more, and the group fails.
      const bool last = fails && round == 19;
      if (last && rank != 1) {
        if (channel.table->barrier(channel.self.get()).ok()) return Wrong("the barrier");
        SPARSESEL_RETURN_IF_ERROR(PatientDrain(channel));
        continue;
      }
      if (static_cast<int32_t>(round % kWorld) == rank || last) {
        std::this_thread::sleep_for(milliseconds(last ? 300 : 2));
      }
      for (int32_t from = 0; from < kWorld; ++from) {
        const auto* words = reinterpret_cast<const int32_t*>(blocks.from[from]);
        for (size_t i = 0; i < kWords; ++i) {
          if (words[i] != from) return Wrong("all_gather");
        }
      }
      channel.table->consumed(channel.self.get());
      SPARSESEL_RETURN_IF_ERROR(PatientDrain(channel));
    }
    channel = {};
    return Status();
  }));
}

}  // namespace
}  // namespace sparsesel
