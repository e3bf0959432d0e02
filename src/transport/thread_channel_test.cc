#include "transport/channel_checks.h"

namespace sparsesel {
namespace {

TEST_CASE("threads: every operation gives every rank its data") {
  const int32_t world = GENERATE(1, 2, 3, 5, 16, 64);
  CAPTURE(world);
  const Comms comms = LocalGroup(world);
  CheckChannels(comms, MakeChannels(comms), world == 64 ? 5 : 40);
}

TEST_CASE("threads: channels of several slots run at once") {
  constexpr int32_t kWorld = 3;
  constexpr int32_t kSlots = 4;
  const Comms comms = LocalGroup(kWorld);
  std::vector<std::vector<HostChannel>> slots;
  for (int32_t slot = 0; slot < kSlots; ++slot) slots.push_back(MakeChannels(comms, true));
  RequireOk(OnEachRank(kWorld * kSlots, [&](int32_t thread) {
    const int32_t rank = thread % kWorld;
    HostChannel& channel = slots[static_cast<size_t>(thread / kWorld)][static_cast<size_t>(rank)];
    ChannelCheck check(At(comms, rank), channel);
    for (uint64_t round = 0; round < 50; ++round) SPARSESEL_RETURN_IF_ERROR(check.Run(round));
    BeginExecute(channel, At(comms, rank), 50);
    return channel.table->drain(channel.self.get());
  }));
  REQUIRE(At(comms, 0).State().ok());
}

// The verdict of one barrier whose messages rank 1 has changed.
Status VerdictOf(void (*change)(CallMessage*)) {
  constexpr int32_t kWorld = 3;
  const Comms comms = LocalGroup(kWorld);
  const std::vector<HostChannel> channels = MakeChannels(comms);
  const auto barrier = [&](int32_t rank, bool changed) {
    const HostChannel& channel = channels[static_cast<size_t>(rank)];
    CallMessage message;
    message.kind = CallKind::kExecute;
    message.rows = 8;
    if (changed) change(&message);
    channel.table->begin(channel.self.get(), message, At(comms, rank).SteadyDeadline());
    return channel.table->barrier(channel.self.get());
  };
  const auto results = OnEachRank(kWorld, [&](int32_t rank) { return barrier(rank, rank == 1); });
  for (const Status& status : results) {
    REQUIRE(status.code() == results[0].code());
    REQUIRE(status.rank() == 1);
    REQUIRE(std::string(status.text()) == results[0].text());
  }
  // The group stays usable.
  RequireOk(OnEachRank(kWorld, [&](int32_t rank) { return barrier(rank, false); }));
  return results[0];
}

TEST_CASE("threads: an execute that ranks disagree about is a mismatch on all, and no more") {
  const Status rows = VerdictOf([](CallMessage* message) { message->rows = 9; });
  REQUIRE(rows.code() == SPARSESEL_MISMATCH);
  REQUIRE_THAT(rows.text(), Catch::Contains("rows is 8 on rank 0, 9 on rank 1"));
  REQUIRE(VerdictOf([](CallMessage* message) { message->sequence = 5; }).code() ==
          SPARSESEL_MISMATCH);
  REQUIRE(VerdictOf([](CallMessage* message) { message->digest = 5; }).code() ==
          SPARSESEL_MISMATCH);
  REQUIRE(VerdictOf([](CallMessage* message) { message->tag = 5; }).code() == SPARSESEL_MISMATCH);
  REQUIRE(VerdictOf([](CallMessage* message) { message->active_rows = 5; }).code() ==
          SPARSESEL_MISMATCH);
  const Status failed = VerdictOf([](CallMessage* message) {
    SetStatus(Status::Error(SPARSESEL_INVALID_ARGUMENT, "a bad stride"), 1, message);
  });
  REQUIRE(failed.code() == SPARSESEL_INVALID_ARGUMENT);
  REQUIRE(std::string(failed.text()) == "a bad stride");
}

// A failed rank cannot do the exchange, and says why in a barrier.
TEST_CASE("threads: a rank's own failure is told in whichever operation comes first") {
  const Comms comms = LocalGroup(2);
  const std::vector<HostChannel> channels = MakeChannels(comms);
  RequireAll(OnEachRank(2,
                        [&](int32_t rank) {
                          const HostChannel& channel = channels[static_cast<size_t>(rank)];
                          CallMessage message;
                          if (rank == 1) {
                            SetStatus(Status::Error(SPARSESEL_INTERNAL, "no"), rank, &message);
                          }
                          channel.table->begin(channel.self.get(), message, INT64_MAX);
                          if (rank == 1) return channel.table->barrier(channel.self.get());
                          Blocks blocks;
                          const std::byte byte{};
                          return channel.table->all_gather(channel.self.get(), &byte, 1, nullptr,
                                                           &blocks);
                        }),
             SPARSESEL_INTERNAL, 1);
}

// Direct reading touches nothing, so that sizes beyond any memory can be compared.
TEST_CASE("threads: 64-bit sizes are compared whole", "[bug_C15]") {
  constexpr uint64_t kLarge = (uint64_t{1} << 32) + 8;
  const Comms comms = LocalGroup(2);
  const std::vector<HostChannel> channels = MakeChannels(comms);
  const std::byte byte{};
  const auto gather = [&](int32_t rank, uint64_t bytes) {
    const HostChannel& channel = channels[static_cast<size_t>(rank)];
    Blocks blocks;
    return channel.table->all_gather(channel.self.get(), &byte, bytes, nullptr, &blocks);
  };
  RequireOk(OnEachRank(2, [&](int32_t rank) { return gather(rank, kLarge); }));
  RequireAll(OnEachRank(2, [&](int32_t rank) { return gather(rank, rank == 0 ? 8 : kLarge); }),
             SPARSESEL_MISMATCH, 1);
  const auto exchange = [&](int32_t rank, uint64_t to_one) {
    const HostChannel& channel = channels[static_cast<size_t>(rank)];
    const std::vector<uint64_t> send =
        rank == 0 ? std::vector<uint64_t>{0, to_one} : std::vector<uint64_t>{0, 0};
    const std::vector<uint64_t> receive =
        rank == 0 ? std::vector<uint64_t>{0, 0} : std::vector<uint64_t>{kLarge, 0};
    const std::vector<uint64_t> none{0, 0};
    Blocks blocks;
    return channel.table->all_to_all(channel.self.get(), &byte, send.data(), none.data(), nullptr,
                                     receive.data(), none.data(), &blocks);
  };
  RequireOk(OnEachRank(2, [&](int32_t rank) { return exchange(rank, kLarge); }));
  RequireAll(OnEachRank(2, [&](int32_t rank) { return exchange(rank, 8); }), SPARSESEL_MISMATCH, 0);
}

TEST_CASE("threads: different operations in one place are a mismatch on all") {
  const Comms comms = LocalGroup(3);
  const std::vector<HostChannel> channels = MakeChannels(comms);
  RequireAll(OnEachRank(3,
                        [&](int32_t rank) {
                          const HostChannel& channel = channels[static_cast<size_t>(rank)];
                          if (rank != 2) return channel.table->barrier(channel.self.get());
                          int32_t word = 0;
                          int32_t sum = 0;
                          return channel.table->sum_int32(channel.self.get(), &word, &sum, 0);
                        }),
             SPARSESEL_MISMATCH, 2);
}

TEST_CASE("threads: the time waited is counted for the rank that came last") {
  const Comms comms = LocalGroup(2);
  const std::vector<HostChannel> channels = MakeChannels(comms);
  RequireOk(OnEachRank(2, [&](int32_t rank) {
    if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(30));
    const HostChannel& channel = channels[static_cast<size_t>(rank)];
    return channel.table->barrier(channel.self.get());
  }));
  std::array<uint64_t, kMaxWorld> waits;
  channels[0].table->waits(channels[0].self.get(), waits.data());
  REQUIRE(waits[1] > 10 * kMillisecond);
  REQUIRE(waits[0] == 0);
}

}  // namespace
}  // namespace sparsesel
