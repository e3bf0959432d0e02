#include "api/options.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "api/structs.h"
#include "api/text.h"

namespace sparsesel {
namespace {

using Catch::Contains;

void* Allocate(void*, int32_t, size_t, size_t, const char*) { return nullptr; }
sparsesel_status Start(void*, const void*, void*, size_t, void**) { return SPARSESEL_OK; }
sparsesel_status Test(void*, void*) { return SPARSESEL_OK; }
void Free(void*, void*) {}
sparsesel_status AllGather(void*, const void*, void*, uint64_t, void*, uint64_t) {
  return SPARSESEL_OK;
}

Status Local(const sparsesel_comm_options& options, int32_t world = 4) {
  CommOptions parsed;
  return ParseLocalOptions(&options, world, &parsed);
}

Status Joined(const sparsesel_comm_options& options) {
  JoinOptions parsed;
  const Status status = ParseJoinOptions(&options, &parsed);
  return status.ok() ? parsed.comm.invalid : status;
}

// A struct with `extra` bytes behind what this version knows.
template <typename Struct>
std::vector<uint64_t> Longer(const Struct& known, uint32_t size) {
  std::vector<uint64_t> bytes(size / 8);
  std::memcpy(bytes.data(), &known, std::min<size_t>(size, sizeof(known)));
  std::memcpy(bytes.data(), &size, sizeof(size));
  return bytes;
}

}  // namespace

TEST_CASE("struct sizes: impossible ones are refused, and named") {
  sparsesel_problem problem = SPARSESEL_PROBLEM_INIT;
  sparsesel_problem out;
  for (const uint32_t size : {0u, 4u, 12u, 4104u, 0xffffffffu}) {
    problem.struct_size = size;
    const Status status = ReadStruct("problem", &problem, &out);
    REQUIRE(status.code() == SPARSESEL_INVALID_ARGUMENT);
    REQUIRE_THAT(status.text(), Contains("problem.struct_size is " + std::to_string(size)));
  }
  REQUIRE_THAT(ReadStruct<sparsesel_problem>("problem", nullptr, &out).text(),
               Contains("problem is NULL"));
}

TEST_CASE("struct sizes: fields beyond a smaller struct are default") {
  sparsesel_problem problem = SPARSESEL_PROBLEM_INIT;
  problem.k = 5;
  problem.race_policy = SPARSESEL_RACE_OFF;
  problem.struct_size = 8;
  sparsesel_problem out;
  REQUIRE(ReadStruct("problem", &problem, &out).ok());
  REQUIRE(out.k == 5);
  REQUIRE(out.race_policy == 0);
  REQUIRE(out.struct_size == sizeof(sparsesel_problem));
}

TEST_CASE("struct sizes: a newer struct passes if what is unknown is zero") {
  sparsesel_problem problem = SPARSESEL_PROBLEM_INIT;
  problem.k = 5;
  std::vector<uint64_t> bytes = Longer(problem, sizeof(problem) + 32);
  const auto* newer = reinterpret_cast<const sparsesel_problem*>(bytes.data());
  sparsesel_problem out;
  REQUIRE(ReadStruct("problem", newer, &out).ok());
  REQUIRE(out.k == 5);
  bytes.back() = uint64_t{1} << 56;  // the very last byte
  const Status status = ReadStruct("problem", newer, &out);
  REQUIRE(status.code() == SPARSESEL_UNSUPPORTED);
  REQUIRE_THAT(status.text(), Contains("is not zero"));
}

TEST_CASE("struct sizes: outputs fill what there is room for") {
  sparsesel_stats full = SPARSESEL_STATS_INIT;
  full.executes = 7;
  full.wait[63] = 9;
  sparsesel_stats small;
  std::memset(&small, 0x5a, sizeof(small));
  small.struct_size = 16;
  REQUIRE(CheckStructOut("stats", &small).ok());
  CopyStructOut(&full, sizeof(full), &small);
  REQUIRE(small.struct_size == 16);
  REQUIRE(small.executes == 7);
  REQUIRE(small.failures == 0x5a5a5a5a5a5a5a5au);
  REQUIRE(CheckStructOut("stats", nullptr).code() == SPARSESEL_INVALID_ARGUMENT);
}

TEST_CASE("comm options: defaults") {
  CommOptions parsed;
  REQUIRE(ParseLocalOptions(nullptr, 64, &parsed).ok());
  REQUIRE(parsed.transport == SPARSESEL_TRANSPORT_AUTO);
  REQUIRE(parsed.memory == SPARSESEL_MEMORY_HOST);
  REQUIRE(parsed.startup_timeout == 120'000'000'000u);
  REQUIRE(parsed.steady_timeout == 30'000'000'000u);
  sparsesel_comm_options options = SPARSESEL_COMM_OPTIONS_INIT;
  options.startup_timeout = UINT64_MAX;  // a deadline must not overflow
  REQUIRE(ParseLocalOptions(&options, 1, &parsed).ok());
  REQUIRE(parsed.startup_timeout < uint64_t{INT64_MAX} / 2);
}

TEST_CASE("comm options: what is wrong is named") {
  CommOptions parsed;
  REQUIRE(ParseLocalOptions(nullptr, 0, &parsed).code() == SPARSESEL_INVALID_ARGUMENT);
  REQUIRE(ParseLocalOptions(nullptr, 65, &parsed).code() == SPARSESEL_INVALID_ARGUMENT);

  const auto check = [](auto change, sparsesel_status code, const char* text) {
    sparsesel_comm_options options = SPARSESEL_COMM_OPTIONS_INIT;
    change(options);
    const Status status = Local(options);
    CHECK(status.code() == code);
    CHECK_THAT(status.text(), Contains(text));
  };
  const int32_t negative = -1;
  using Options = sparsesel_comm_options;
  check([](Options& o) { o.transport = 7; }, SPARSESEL_INVALID_ARGUMENT, "transport is 7");
  check([](Options& o) { o.transport = -1; }, SPARSESEL_INVALID_ARGUMENT, "transport is -1");
  check([](Options& o) { o.memory = SPARSESEL_MEMORY_PINNED; }, SPARSESEL_INVALID_ARGUMENT,
        "memory is 2");
  check([](Options& o) { o.transport = SPARSESEL_TRANSPORT_MPI; }, SPARSESEL_UNSUPPORTED, "MPI");
  check([](Options& o) { o.transport = SPARSESEL_TRANSPORT_NCCL; }, SPARSESEL_INVALID_ARGUMENT,
        "nccl transport is for device memory");
  check([](Options& o) { o.transport = SPARSESEL_TRANSPORT_PEER; }, SPARSESEL_INVALID_ARGUMENT,
        "device memory");
  check([](Options& o) { o.transport = SPARSESEL_TRANSPORT_CUSTOM; }, SPARSESEL_UNSUPPORTED,
        "comm_create");
  check([](Options& o) { o.borrowed_communicator = &o; }, SPARSESEL_INVALID_ARGUMENT,
        "borrowed_communicator is given");
  check([](Options& o) { o.nccl_library = &o; }, SPARSESEL_INVALID_ARGUMENT,
        "nccl_library is given");
  check([](Options& o) { o.device_count = 3; }, SPARSESEL_INVALID_ARGUMENT, "device_count is 3");
  check([](Options& o) { o.device_count = 1; }, SPARSESEL_INVALID_ARGUMENT, "host memory");
  check(
      [&](Options& o) {
        o.memory = SPARSESEL_MEMORY_DEVICE;
        o.device_count = 1;
        o.devices = &negative;
      },
      SPARSESEL_INVALID_ARGUMENT, "a device is -1");
  check([](Options& o) { o.allocator.allocate = Allocate; }, SPARSESEL_INVALID_ARGUMENT,
        "allocator");
  check([](Options& o) { o.bootstrap.start = Start; }, SPARSESEL_INVALID_ARGUMENT, "bootstrap");
  check([](Options& o) { o.rank = 1; }, SPARSESEL_INVALID_ARGUMENT, "rank");
}

TEST_CASE("join options") {
  sparsesel_comm_options options = SPARSESEL_COMM_OPTIONS_INIT;
  REQUIRE_THAT(Joined(options).text(), Contains("world_size is 0"));
  options.world_size = 2;
  options.rank = 2;
  REQUIRE_THAT(Joined(options).text(), Contains("rank is 2"));
  options.rank = 1;
  REQUIRE_THAT(Joined(options).text(), Contains("bootstrap is required"));
  options.bootstrap = {nullptr, Start, Test, Free};
  REQUIRE(Joined(options).ok());
  options.transport = SPARSESEL_TRANSPORT_CUSTOM;
  REQUIRE_THAT(Joined(options).text(), Contains("custom is NULL"));

  sparsesel_transport custom = SPARSESEL_TRANSPORT_INIT;
  options.custom = &custom;
  REQUIRE_THAT(Joined(options).text(), Contains("custom.all_gather is NULL"));
  custom.all_gather = AllGather;
  REQUIRE(Joined(options).ok());
  custom.memory = SPARSESEL_MEMORY_DEVICE;
  REQUIRE_THAT(Joined(options).text(), Contains("custom.memory is 1"));
  custom.memory = SPARSESEL_MEMORY_HOST;
  options.transport = SPARSESEL_TRANSPORT_BOOTSTRAP;
  REQUIRE_THAT(Joined(options).text(), Contains("another transport"));
  options.custom = nullptr;
  REQUIRE(Joined(options).ok());
  options.transport = SPARSESEL_TRANSPORT_THREADS;
  REQUIRE(Joined(options).code() == SPARSESEL_UNSUPPORTED);
}

TEST_CASE("prepare options: what is wrong travels into the call") {
  REQUIRE(ParsePrepareOptions(nullptr).invalid.ok());
  REQUIRE(ParsePrepareOptions(nullptr).time_budget == 1'000'000'000u);
  sparsesel_prepare_options options = SPARSESEL_PREPARE_OPTIONS_INIT;
  options.child_plans = "pack.plain";
  options.seed = 3;
  options.time_budget = 5;
  const PrepareOptions parsed = ParsePrepareOptions(&options);
  REQUIRE(parsed.invalid.ok());
  REQUIRE(parsed.child_plans == "pack.plain");
  REQUIRE(parsed.seed == 3);
  REQUIRE(parsed.time_budget == 5);
  options.cache_directory = "/nowhere";
  REQUIRE(ParsePrepareOptions(&options).invalid.code() == SPARSESEL_UNSUPPORTED);
  options.cache_directory = nullptr;
  options.reserved = 1;
  REQUIRE(ParsePrepareOptions(&options).invalid.code() == SPARSESEL_INVALID_ARGUMENT);
}

TEST_CASE("race options: defaults, conversions, refusals") {
  const RaceOptions defaults = ParseRaceOptions(nullptr);
  REQUIRE(defaults.invalid.ok());
  REQUIRE(defaults.margin == 0.02);
  REQUIRE(defaults.error_level == 0.05);
  REQUIRE(defaults.max_pairs == 128);
  REQUIRE(!defaults.has_trial_io);

  sparsesel_race_options options = SPARSESEL_RACE_OPTIONS_INIT;
  options.margin_ppm = 50000;
  options.confidence_ppm = 10000;
  options.max_pairs = 64;
  sparsesel_io io = SPARSESEL_IO_INIT;
  io.rows = 3;
  options.trial_io = &io;
  const RaceOptions parsed = ParseRaceOptions(&options);
  REQUIRE(parsed.invalid.ok());
  REQUIRE(parsed.margin == Approx(0.05));
  REQUIRE(parsed.error_level == Approx(0.01));
  REQUIRE(parsed.max_pairs == 64);
  REQUIRE(parsed.has_trial_io);
  REQUIRE(parsed.trial_io.rows == 3);

  options.max_pairs = 17;
  REQUIRE_THAT(ParseRaceOptions(&options).invalid.text(), Contains("max_pairs is 17"));
  options.max_pairs = 0;
  options.confidence_ppm = -1;
  REQUIRE_THAT(ParseRaceOptions(&options).invalid.text(), Contains("confidence_ppm is -1"));
  options.confidence_ppm = 0;
  options.margin_ppm = 1000001;
  REQUIRE_THAT(ParseRaceOptions(&options).invalid.text(), Contains("margin_ppm is 1000001"));
  options.margin_ppm = 0;
  io.struct_size = 3;
  REQUIRE_THAT(ParseRaceOptions(&options).invalid.text(), Contains("trial_io.struct_size is 3"));
}

TEST_CASE("workspace options and compositions") {
  int32_t slots = 0;
  REQUIRE(ParseWorkspaceOptions(nullptr, &slots).ok());
  REQUIRE(slots == 1);
  sparsesel_workspace_options options = SPARSESEL_WORKSPACE_OPTIONS_INIT;
  options.slots = 16;
  REQUIRE(ParseWorkspaceOptions(&options, &slots).ok());
  REQUIRE(slots == 16);
  options.slots = 17;
  REQUIRE(ParseWorkspaceOptions(&options, &slots).code() == SPARSESEL_INVALID_ARGUMENT);
  REQUIRE(CheckComposition(SPARSESEL_COMPOSITION_OWNER).ok());
  REQUIRE(CheckComposition(3).code() == SPARSESEL_INVALID_ARGUMENT);
  REQUIRE(CheckComposition(-1).code() == SPARSESEL_INVALID_ARGUMENT);
}

TEST_CASE("a progress callback that throws is not called again") {
  int calls = 0;
  const sparsesel_progress progress{&calls, [](void* context, double, const char*) {
                                      ++*static_cast<int*>(context);
                                      throw 1;
                                    }};
  ProgressGuard guard(progress);
  const sparsesel_progress guarded = guard.Guarded();
  guarded.step(guarded.context, 0.0, "a");
  guarded.step(guarded.context, 0.5, "b");
  REQUIRE(calls == 1);
  ProgressGuard silent(sparsesel_progress{nullptr, nullptr});
  REQUIRE(silent.Guarded().step == nullptr);
}

TEST_CASE("texts are copied whole or not at all") {
  const std::string source = "four";
  char text[8];
  std::memset(text, 'x', sizeof(text));
  size_t needed = 0;
  REQUIRE(CopyTextOut(source, nullptr, 0, &needed).ok());
  REQUIRE(needed == 5);
  REQUIRE(CopyTextOut(source, text, 4, &needed).code() == SPARSESEL_INVALID_ARGUMENT);
  REQUIRE(text[0] == 'x');
  REQUIRE(CopyTextOut(source, text, 5, nullptr).ok());
  REQUIRE(std::string(text) == "four");
  REQUIRE(text[5] == 'x');
  REQUIRE(!CheckTextOut(nullptr, 5, &needed).ok());
  REQUIRE(!CheckTextOut(nullptr, 0, nullptr).ok());
}

}  // namespace sparsesel
