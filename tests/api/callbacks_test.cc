// Callbacks that break their promises: nothing gets through the interface but a status.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "contract/group_fixture.h"
#include "sparsesel.h"

namespace contract {
namespace {

constexpr int32_t kWorld = 2;

// Counts calls; from the n-th on they throw, each time something else.
struct Thrower {
  std::atomic<int> calls{0};
  int limit = 0;

  void Count() {
    const int call = calls++;
    if (call < limit) return;
    if (call % 3 == 0) throw 7;
    if (call % 3 == 1) throw std::runtime_error("from a callback");
    throw std::bad_alloc();
  }
};

void* Allocate(void* context, int32_t, size_t bytes, size_t alignment, const char*) {
  static_cast<Thrower*>(context)->Count();
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void Deallocate(void*, int32_t, void* pointer, size_t, size_t, const char*) {
  std::free(pointer);
  throw 8;
}

int64_t Now(void* context) {
  static_cast<Thrower*>(context)->Count();
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

void Log(void*, int32_t, int32_t, const char*) { throw 9; }

// The whole life of a job on a group with these options; the worst status of each rank.
Outcomes LiveAll(const sparsesel_comm_options& options) {
  sparsesel_comm* comms[kWorld] = {};
  sparsesel_error created = SPARSESEL_ERROR_INIT;
  const sparsesel_status status = sparsesel_comm_create_local(kWorld, &options, comms, &created);
  if (status != SPARSESEL_OK) return Outcomes(kWorld, Outcome{status, created});
  const Outcomes outcomes = OnEveryRank(kWorld, [&](int32_t rank, sparsesel_error* error) {
    sparsesel_problem problem = SPARSESEL_PROBLEM_INIT;
    problem.k = 4;
    problem.candidates = 8;
    sparsesel_plan* plan = nullptr;
    sparsesel_report* report = nullptr;
    sparsesel_binding* binding = nullptr;
    sparsesel_prepare_options prepare = SPARSESEL_PREPARE_OPTIONS_INIT;
    prepare.time_budget = 10 * kMillisecond;
    sparsesel_race_options race = SPARSESEL_RACE_OPTIONS_INIT;
    race.time_budget = 10 * kMillisecond;
    std::vector<float> scores(8, 1.0f);
    std::vector<int32_t> ids = {0, 1, 2, 3, 4, 5, 6, 7};
    std::vector<int32_t> out(4);
    sparsesel_io io = SPARSESEL_IO_INIT;
    io.rows = 1;
    io.scores = scores.data();
    io.ids = ids.data();
    io.out_ids = out.data();
    sparsesel_status worst = sparsesel_plan_create(comms[rank], &problem, &plan, error);
    if (worst == SPARSESEL_OK) worst = sparsesel_plan_prepare(plan, &prepare, error);
    if (worst == SPARSESEL_OK) worst = sparsesel_plan_race(plan, &race, &report, error);
    if (worst == SPARSESEL_OK) worst = sparsesel_plan_bind(plan, nullptr, 0, &binding, error);
    for (int i = 0; i < 3 && worst == SPARSESEL_OK; ++i) {
      worst = sparsesel_execute(binding, &io, nullptr, error);
    }
    sparsesel_binding_release(binding, nullptr);
    sparsesel_report_release(report, nullptr);
    sparsesel_plan_release(plan, nullptr);
    return worst;
  });
  for (sparsesel_comm* comm : comms) sparsesel_comm_release(comm, nullptr);
  return outcomes;
}

TEST_CASE("bug_H01: an allocator that throws at the n-th call") {
  int limit = 0;
  bool failed = true;
  for (; failed && limit < 200; ++limit) {
    CAPTURE(limit);
    Thrower thrower;
    thrower.limit = limit;
    sparsesel_comm_options options = ShortLimits();
    options.allocator = {&thrower, Allocate, Deallocate};
    options.logger = {nullptr, Log};
    const Outcomes outcomes = LiveAll(options);
    INFO(Describe(outcomes));
    failed = thrower.calls > limit;
    if (!failed) {
      CHECK(AllOk(outcomes));
      continue;
    }
    for (const Outcome& outcome : outcomes) CHECK(outcome.status != SPARSESEL_OK);
  }
  CHECK(limit > 1);
  CHECK(!failed);
}

TEST_CASE("bug_H01: a clock that throws ends waits and disqualifies timings") {
  for (const int limit : {0, 1, 5, 50, 500}) {
    CAPTURE(limit);
    Thrower thrower;
    thrower.limit = limit;
    sparsesel_comm_options options = ShortLimits();
    options.clock = {&thrower, Now};
    options.logger = {nullptr, Log};
    const Outcomes outcomes = LiveAll(options);
    INFO(Describe(outcomes));
    // Any outcome but a crash or a hang; the ranks that fail say so.
    for (const Outcome& outcome : outcomes) CHECK(outcome.status == outcome.error.status);
  }
}

TEST_CASE("bug_H01: a progress callback that throws is not called again, and changes nothing") {
  const Group group(kWorld);
  std::vector<sparsesel_plan*> plans;
  std::vector<sparsesel_report*> reports(kWorld);
  REQUIRE(AllOk(CreatePlans(group, MakeJob(kWorld, 4, 8, {1}), &plans)));
  Thrower throwers[kWorld];
  const auto step = [](void* context, double fraction, const char* text) {
    auto* const thrower = static_cast<Thrower*>(context);
    if (!(fraction >= 0 && fraction <= 1) || text == nullptr) thrower->calls = 1000;
    thrower->Count();
  };
  CHECK(AllOk(OnEveryRank(kWorld, [&](int32_t rank, sparsesel_error* error) {
    sparsesel_prepare_options options = SPARSESEL_PREPARE_OPTIONS_INIT;
    options.time_budget = 10 * kMillisecond;
    options.progress = {&throwers[rank], step};
    return sparsesel_plan_prepare(plans[rank], &options, error);
  })));
  for (Thrower& thrower : throwers) CHECK(thrower.calls.exchange(0) == 1);
  CHECK(AllOk(OnEveryRank(kWorld, [&](int32_t rank, sparsesel_error* error) {
    sparsesel_race_options options = SPARSESEL_RACE_OPTIONS_INIT;
    options.time_budget = 10 * kMillisecond;
    options.progress = {&throwers[rank], step};
    return sparsesel_plan_race(plans[rank], &options, &reports[rank], error);
  })));
  for (const Thrower& thrower : throwers) CHECK(thrower.calls == 1);
  Release(&reports);
  Release(&plans);
}

}  // namespace
}  // namespace contract
