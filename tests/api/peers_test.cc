// One rank passes something wrong to a collective call: all hear of it, at once, from that rank;
// and what they have stays usable.
#include <catch2/catch.hpp>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "contract/group_fixture.h"
#include "sparsesel.h"

namespace contract {
namespace {

constexpr int32_t kWorld = 3;
constexpr int32_t kBad = 1;

void CheckAllHear(const Outcomes& outcomes, sparsesel_status status, const char* text) {
  INFO(Describe(outcomes));
  for (const Outcome& outcome : outcomes) {
    CHECK(outcome.status == status);
    CHECK(outcome.error.rank == kBad);
    CHECK(outcome.text().find(text) != std::string::npos);
  }
}

TEST_CASE("api: bad options of one rank are told to all, in prepare, race and bind") {
  const Group group(kWorld);
  std::vector<sparsesel_plan*> plans;
  REQUIRE(AllOk(CreatePlans(group, MakeJob(kWorld, 4, 8, {1, 4}), &plans)));

  CheckAllHear(OnEveryRank(kWorld,
                           [&](int32_t rank, sparsesel_error* error) {
                             sparsesel_prepare_options options = SPARSESEL_PREPARE_OPTIONS_INIT;
                             if (rank == kBad) options.cache_directory = "/somewhere";
                             return sparsesel_plan_prepare(plans[rank], &options, error);
                           }),
               SPARSESEL_UNSUPPORTED, "cache_directory");
  CheckAllHear(OnEveryRank(kWorld,
                           [&](int32_t rank, sparsesel_error* error) {
                             sparsesel_prepare_options options = SPARSESEL_PREPARE_OPTIONS_INIT;
                             if (rank == kBad) options.struct_size = 3;
                             return sparsesel_plan_prepare(plans[rank], &options, error);
                           }),
               SPARSESEL_INVALID_ARGUMENT, "struct_size is 3");
  REQUIRE(AllOk(Prepare(plans)));

  std::vector<sparsesel_report*> reports(kWorld);
  CheckAllHear(OnEveryRank(kWorld,
                           [&](int32_t rank, sparsesel_error* error) {
                             sparsesel_race_options options = SPARSESEL_RACE_OPTIONS_INIT;
                             if (rank == kBad) options.max_pairs = 17;
                             return sparsesel_plan_race(plans[rank], &options, &reports[rank],
                                                        error);
                           }),
               SPARSESEL_INVALID_ARGUMENT, "max_pairs is 17");
  CheckAllHear(OnEveryRank(kWorld,
                           [&](int32_t rank, sparsesel_error* error) {
                             return sparsesel_plan_race(plans[rank], nullptr,
                                                        rank == kBad ? nullptr : &reports[rank],
                                                        error);
                           }),
               SPARSESEL_INVALID_ARGUMENT, "report is NULL");
  for (const sparsesel_report* report : reports) CHECK(report == nullptr);
  REQUIRE(AllOk(Race(plans, &reports)));

  std::vector<sparsesel_binding*> bindings(kWorld);
  const auto bind = [&](int32_t rank, sparsesel_workspace* workspace, int32_t composition,
                        sparsesel_binding** binding, sparsesel_error* error) {
    return sparsesel_plan_bind(plans[rank], workspace, composition, binding, error);
  };
  CheckAllHear(OnEveryRank(kWorld,
                           [&](int32_t rank, sparsesel_error* error) {
                             return bind(rank, nullptr, rank == kBad ? 7 : 1, &bindings[rank],
                                         error);
                           }),
               SPARSESEL_INVALID_ARGUMENT, "composition is 7");
  CheckAllHear(
      OnEveryRank(kWorld,
                  [&](int32_t rank, sparsesel_error* error) {
                    auto* const forged = reinterpret_cast<sparsesel_workspace*>(uintptr_t{4096});
                    return bind(rank, rank == kBad ? forged : nullptr, 0, &bindings[rank], error);
                  }),
      SPARSESEL_INVALID_ARGUMENT, "workspace is 0x1000");
  CheckAllHear(OnEveryRank(kWorld,
                           [&](int32_t rank, sparsesel_error* error) {
                             return bind(rank, nullptr, 0, rank == kBad ? nullptr : &bindings[rank],
                                         error);
                           }),
               SPARSESEL_INVALID_ARGUMENT, "binding is NULL");
  for (const sparsesel_binding* binding : bindings) CHECK(binding == nullptr);
  REQUIRE(AllOk(Bind(plans, SPARSESEL_COMPOSITION_AUTO, &bindings)));

  CheckAllHear(OnEveryRank(kWorld,
                           [&](int32_t rank, sparsesel_error* error) {
                             const sparsesel_io io = SPARSESEL_IO_INIT;
                             return sparsesel_execute(bindings[rank], rank == kBad ? nullptr : &io,
                                                      nullptr, error);
                           }),
               SPARSESEL_INVALID_ARGUMENT, "io is NULL");
  CheckAllHear(OnEveryRank(kWorld,
                           [&](int32_t rank, sparsesel_error* error) {
                             sparsesel_io io = SPARSESEL_IO_INIT;
                             if (rank == kBad) io.struct_size = 5000;
                             return sparsesel_execute(bindings[rank], &io, nullptr, error);
                           }),
               SPARSESEL_INVALID_ARGUMENT, "io.struct_size is 5000");
  CHECK(AllOk(OnEveryRank(kWorld, [&](int32_t rank, sparsesel_error* error) {
    const sparsesel_io io = SPARSESEL_IO_INIT;
    return sparsesel_execute(bindings[rank], &io, nullptr, error);
  })));
  Release(&bindings);
  Release(&reports);
  Release(&plans);
}

TEST_CASE("api: bad options of one rank are told to all when a workspace is made") {
  const Group group(kWorld);
  std::vector<sparsesel_workspace*> made(kWorld);
  CheckAllHear(OnEveryRank(kWorld,
                           [&](int32_t rank, sparsesel_error* error) {
                             sparsesel_workspace_options options = SPARSESEL_WORKSPACE_OPTIONS_INIT;
                             if (rank == kBad) options.slots = -1;
                             return sparsesel_workspace_create(group.comm(rank), &options,
                                                               &made[rank], error);
                           }),
               SPARSESEL_INVALID_ARGUMENT, "slots is -1");
  const auto make = [&](int32_t rank, sparsesel_error* error) {
    return sparsesel_workspace_create(group.comm(rank), nullptr, &made[rank], error);
  };
  CHECK(AllOk(OnEveryRank(kWorld, make)));
  for (sparsesel_workspace* workspace : made) {
    CHECK(sparsesel_workspace_release(workspace, nullptr) == SPARSESEL_OK);
    CHECK(sparsesel_workspace_release(workspace, nullptr) == SPARSESEL_INVALID_ARGUMENT);
  }
}

// A bootstrap among threads: a message a rank and round, kept until the group is gone.
struct Board {
  std::mutex mutex;
  std::vector<std::vector<std::string>> rounds;  // [round][rank]
};

struct Member {
  Board* board = nullptr;
  size_t rank = 0;
  size_t round = 0;
  void* receive = nullptr;
};

sparsesel_status Start(void* context, const void* send, void* receive, size_t bytes,
                       void** request) {
  auto* const self = static_cast<Member*>(context);
  const std::lock_guard lock(self->board->mutex);
  auto& rounds = self->board->rounds;
  if (rounds.size() == self->round) rounds.emplace_back(kWorld);
  rounds[self->round][self->rank].assign(static_cast<const char*>(send), bytes);
  self->receive = receive;
  *request = self;
  return SPARSESEL_OK;
}

sparsesel_status Test(void*, void* request) {
  auto* const self = static_cast<Member*>(request);
  const std::lock_guard lock(self->board->mutex);
  const std::vector<std::string>& messages = self->board->rounds[self->round];
  for (const std::string& message : messages) {
    if (message.empty()) return SPARSESEL_IN_PROGRESS;
  }
  auto* out = static_cast<char*>(self->receive);
  for (const std::string& message : messages) out += message.copy(out, message.size());
  ++self->round;
  return SPARSESEL_OK;
}

void Free(void*, void*) {}

TEST_CASE("api: bad options of one rank are told to all when they join") {
  for (const auto& [transport, borrowed, status, text] :
       {std::tuple{99, false, SPARSESEL_INVALID_ARGUMENT, "transport is 99"},
        {int{SPARSESEL_TRANSPORT_NCCL}, false, SPARSESEL_INVALID_ARGUMENT, "nccl"},
        {0, true, SPARSESEL_INVALID_ARGUMENT, "borrowed_communicator"}}) {
    CAPTURE(text);
    Board board;
    Member members[kWorld];
    std::vector<sparsesel_comm*> comms(kWorld);
    const Outcomes outcomes = OnEveryRank(kWorld, [&](int32_t rank, sparsesel_error* error) {
      members[rank].board = &board;
      members[rank].rank = static_cast<size_t>(rank);
      sparsesel_comm_options options = ShortLimits();
      options.rank = rank;
      options.world_size = kWorld;
      options.bootstrap = {&members[rank], Start, Test, Free};
      if (rank == kBad) options.transport = transport;
      if (rank == kBad && borrowed) options.borrowed_communicator = &board;
      return sparsesel_comm_create(&options, &comms[rank], error);
    });
    CheckAllHear(outcomes, status, text);
    for (const sparsesel_comm* comm : comms) CHECK(comm == nullptr);
  }
}

}  // namespace
}  // namespace contract
