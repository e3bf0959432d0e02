// What the library takes, gives back, and does when there is none.
#include <algorithm>
#include <catch2/catch.hpp>

#include "contract/allocation_probe.h"
#include "contract/batch.h"
#include "contract/combinations.h"
#include "contract/rows.h"

namespace contract {
namespace {

Group GroupWith(int32_t world, CountingAllocator* allocator) {
  sparsesel_comm_options options = ShortLimits();
  options.allocator = allocator->callbacks();
  return Group(world, options);
}

TEST_CASE("allocation: the probe sees what is allocated, and fails it", "[host]") {
  const AllocationCount count;
  std::vector<int> values(100);
  values.shrink_to_fit();
  values.reserve(1000);
  CHECK(count.value() >= 2);
  const AllocationFailure failure(1);
  bool failed = false;
  try {
    values.resize(100'000);
  } catch (const std::bad_alloc&) {
    failed = true;
  }
  CHECK(failed);
  CHECK(failure.has_happened());
}

TEST_CASE("allocation: execute allocates nothing, the first time and later", "[host]") {
  CountingAllocator allocator;
  const Group group = GroupWith(3, &allocator);
  for (uint32_t outputs : {0, SPARSESEL_OUTPUT_SCORES | SPARSESEL_OUTPUT_COUNTS}) {
    Job job = MakeJob(3, 700, 1100, {1, 9});
    for (sparsesel_problem& problem : job.problems) problem.outputs = outputs;
    const Batch batch = BatchOfKinds(job, 9, 1);
    for (const Combination& combination : CoveringCombinations(job)) {
      INFO(combination.text());
      const Bound bound(group, With(job, combination));
      REQUIRE(bound.ok());
      const int64_t calls = allocator.calls();
      for (int i = 0; i < 3; ++i) {
        Batch part = batch;
        part.rows = i == 1 ? 1 : 9;
        for (const RankOutput& output : Execute(bound, job, part).ranks) {
          CHECK(output.allocations == 0);
        }
      }
      CHECK(allocator.calls() == calls);
    }
  }
}

TEST_CASE("allocation: trials are given back by race or by bind, and everything in the end",
          "[host]") {
  for (bool race : {true, false}) {
    CountingAllocator allocator;
    {
      const Group group = GroupWith(3, &allocator);
      const Job job = MakeJob(3, 500, 600, {1, 4, 16});
      std::vector<sparsesel_plan*> plans;
      std::vector<sparsesel_report*> reports;
      std::vector<sparsesel_binding*> bindings;
      const int64_t group_bytes = allocator.live_bytes();
      REQUIRE(AllOk(CreatePlans(group, job, &plans)));
      CHECK(allocator.live_bytes() == group_bytes);  // nothing that depends on the problem
      REQUIRE(AllOk(Prepare(plans)));
      CHECK(allocator.live_bytes() > group_bytes);
      sparsesel_memory memory = SPARSESEL_MEMORY_INIT;
      REQUIRE(sparsesel_plan_memory(plans[0], &memory, nullptr) == SPARSESEL_OK);
      if (race) {
        REQUIRE(AllOk(Race(plans, &reports)));
        CHECK(allocator.live_bytes() == group_bytes);
        const std::string text = TextOf(sparsesel_report_json, reports[0]);
        CHECK(text.find("\"trial_bytes_freed\": 0") == std::string::npos);
        CHECK(text.find("\"trial_bytes_freed\"") != std::string::npos);
      }
      CHECK(allocator.peak_bytes() - group_bytes <= 3 * static_cast<int64_t>(memory.trial_peak));
      REQUIRE(AllOk(Bind(plans, SPARSESEL_COMPOSITION_OWNER, &bindings)));
      CHECK(allocator.live_bytes() - group_bytes <= 3 * static_cast<int64_t>(memory.persistent));
      Release(&plans);
      Release(&bindings);
      CHECK(allocator.live_bytes() == group_bytes);
      Release(&reports);
    }
    CHECK(allocator.live_bytes() == 0);
    CHECK(allocator.wrong_frees() == 0);
  }
}

TEST_CASE("allocation: many lives leave nothing behind", "[host]") {
  CountingAllocator allocator;
  int64_t live = 0;
  for (int i = 0; i < 12; ++i) {
    {
      const Group group = GroupWith(2, &allocator);
      const Job job = MakeJob(2, 50, 60 + 10 * i, {4});
      const Bound bound(group, job);
      REQUIRE(bound.ok());
    }
    // The first lives may fill tables that stay.
    if (i == 3) live = LiveAllocations();
  }
  CHECK(allocator.live_bytes() == 0);
  CHECK(LiveAllocations() <= live);
}

// One rank's life, which ends with its first failure; then the group is told.
class Life {
 public:
  static constexpr size_t kSteps = 6;
  static constexpr const char* kNames[kSteps] = {"plan_create", "plan_prepare", "plan_race",
                                                 "plan_bind",   "execute",      "report_json"};
  static bool IsCollective(size_t step) { return step >= 1 && step <= 4; }

  // Before anything fails: the test's own memory.
  Life() { statuses_.reserve(kSteps); }

  void Run(sparsesel_comm* comm, bool race) {
    Live(comm, race);
    if (last_ != SPARSESEL_OK) sparsesel_comm_abort(comm, nullptr);
    sparsesel_binding_release(binding_, nullptr);
    sparsesel_report_release(report_, nullptr);
    sparsesel_plan_release(plan_, nullptr);
  }
  // By step, as far as it came; -1 beyond.
  const std::vector<sparsesel_status>& statuses() const { return statuses_; }
  const sparsesel_error& error() const { return error_; }

 private:
  bool Step(sparsesel_status status) {
    statuses_.push_back(status);
    last_ = status;
    return status == SPARSESEL_OK;
  }

  void Live(sparsesel_comm* comm, bool race) {
    sparsesel_problem problem = SPARSESEL_PROBLEM_INIT;
    problem.k = 4;
    problem.candidates = 8;
    if (!Step(sparsesel_plan_create(comm, &problem, &plan_, &error_))) return;
    sparsesel_prepare_options prepare = SPARSESEL_PREPARE_OPTIONS_INIT;
    prepare.time_budget = kMillisecond;
    if (!Step(sparsesel_plan_prepare(plan_, &prepare, &error_))) return;
    sparsesel_race_options quick = SPARSESEL_RACE_OPTIONS_INIT;
    quick.time_budget = kMillisecond;
    quick.sample_duration = 1000;
    quick.max_pairs = 16;
    if (!Step(race ? sparsesel_plan_race(plan_, &quick, &report_, &error_)
                   : sparsesel_status{SPARSESEL_OK})) {
      return;
    }
    if (!Step(
            sparsesel_plan_bind(plan_, nullptr, SPARSESEL_COMPOSITION_OWNER, &binding_, &error_))) {
      return;
    }
    const float scores[8] = {};
    const int32_t ids[8] = {7, 6, 5, 4, 3, 2, 1, 0};
    int32_t out[4] = {};
    sparsesel_io io = SPARSESEL_IO_INIT;
    io.rows = 1;
    io.scores = scores;
    io.ids = ids;
    io.out_ids = out;
    if (!Step(sparsesel_execute(binding_, &io, nullptr, &error_))) return;
    size_t needed = 0;
    Step(race ? sparsesel_report_json(report_, nullptr, 0, &needed, &error_)
              : sparsesel_binding_json(binding_, nullptr, 0, &needed, &error_));
  }

  sparsesel_plan* plan_ = nullptr;
  sparsesel_report* report_ = nullptr;
  sparsesel_binding* binding_ = nullptr;
  sparsesel_status last_ = SPARSESEL_OK;
  std::vector<sparsesel_status> statuses_;
  sparsesel_error error_ = SPARSESEL_ERROR_INIT;
};

// What may not be, of lives in which one allocation failed on rank `failed` (or on any, if -1).
std::string Judge(const std::vector<Life>& lives, int32_t failed) {
  for (size_t step = 0; step < Life::kSteps; ++step) {
    size_t ok = 0;
    size_t there = 0;
    for (size_t rank = 0; rank < lives.size(); ++rank) {
      const auto& statuses = lives[rank].statuses();
      if (statuses.size() <= step) continue;
      ++there;
      ok += statuses[step] == SPARSESEL_OK;
      if (statuses[step] == SPARSESEL_OK || statuses[step] == SPARSESEL_OUT_OF_MEMORY) continue;
      const bool told =
          statuses[step] == SPARSESEL_PEER_FAILED || statuses[step] == SPARSESEL_ABORTED;
      if (told && (failed < 0 || failed != static_cast<int32_t>(rank))) continue;
      return std::string(Life::kNames[step]) + " on rank " + std::to_string(rank) + ": " +
             sparsesel_status_name(statuses[step]) + ": " + lives[rank].error().text;
    }
    if (Life::IsCollective(step) && there == lives.size() && ok != 0 && ok != lives.size()) {
      return std::string(Life::kNames[step]) + " succeeded on some ranks only";
    }
  }
  return "";
}

// Whether rank `failed`'s `nth` allocation came; `difference` says what went wrong then.
bool LiveWithFailure(int32_t failed, int64_t nth, bool race, std::string* difference) {
  const Group group(2);
  std::vector<Life> lives(2);
  bool happened = false;
  OnEveryRank(2, [&](int32_t rank, sparsesel_error*) {
    if (rank == failed) {
      const AllocationFailure failure(nth);
      lives[static_cast<size_t>(rank)].Run(group.comm(rank), race);
      happened = failure.has_happened();
    } else {
      lives[static_cast<size_t>(rank)].Run(group.comm(rank), race);
    }
    return sparsesel_status{SPARSESEL_OK};
  });
  *difference = Judge(lives, failed);
  return happened;
}

void CheckEveryFailure(bool race, int64_t all_up_to) {
  for (int32_t failed : {0, 1}) {
    int64_t nth = 1;
    int64_t live = 0;
    std::string difference;
    while (LiveWithFailure(failed, nth, race, &difference)) {
      INFO("rank " << failed << ", allocation " << nth);
      CHECK(difference == "");
      if (nth == 20) live = LiveAllocations();
      if (nth > 20) CHECK(LiveAllocations() <= live + 8);
      nth += nth < all_up_to ? 1 : std::max<int64_t>(1, nth / 30);
      REQUIRE(nth < 1'000'000);
    }
    CHECK(difference == "");
    CHECK(nth > 20);
  }
}

TEST_CASE("allocation: each one fails, on each rank, from plan to execute", "[host]") {
  CheckEveryFailure(false, kSanitized ? 30 : 1'000'000);
}

TEST_CASE("allocation: each one fails, on each rank, in a life with a race", "[host]") {
  CheckEveryFailure(true, kSanitized ? 10 : 1'000'000);
}

TEST_CASE("allocation: each callback fails, whichever rank it is called by", "[host]") {
  CountingAllocator allocator;
  bool failed = true;
  for (int64_t nth = 1; failed; ++nth) {
    INFO("callback " << nth);
    sparsesel_comm_options options = ShortLimits();
    options.allocator = allocator.callbacks();
    allocator.FailCall(nth);
    const int64_t before = allocator.calls();
    std::vector<sparsesel_comm*> comms(3, nullptr);
    const sparsesel_status made = sparsesel_comm_create_local(3, &options, comms.data(), nullptr);
    const Group group(comms);
    if (made != SPARSESEL_OK) {
      CHECK(made == SPARSESEL_OUT_OF_MEMORY);
      continue;
    }
    std::vector<Life> lives(3);
    OnEveryRank(3, [&](int32_t rank, sparsesel_error*) {
      lives[static_cast<size_t>(rank)].Run(group.comm(rank), true);
      return sparsesel_status{SPARSESEL_OK};
    });
    failed = allocator.calls() - before >= nth;
    CHECK(Judge(lives, -1) == "");
    if (failed) {
      // Told through a completed exchange: one status for all.
      for (const Life& life : lives) CHECK(life.statuses().back() == SPARSESEL_OUT_OF_MEMORY);
      CHECK(std::string(lives[0].error().text) == lives[2].error().text);
    }
    CHECK(nth < 1000);
  }
  allocator.FailCall(0);
  CHECK(allocator.live_bytes() == 0);
}

TEST_CASE("allocation: the system's description fails cleanly at each allocation", "[host]") {
  for (int64_t nth = 1;; ++nth) {
    size_t needed = 0;
    sparsesel_status status = SPARSESEL_OK;
    bool happened = false;
    {
      const AllocationFailure failure(nth);
      status = sparsesel_system_json(nullptr, 0, &needed, nullptr);
      happened = failure.has_happened();
    }
    INFO("allocation " << nth);
    if (!happened) {
      CHECK(status == SPARSESEL_OK);
      break;
    }
    CHECK((status == SPARSESEL_OK || status == SPARSESEL_OUT_OF_MEMORY));
    REQUIRE(nth < 10'000);
  }
}

TEST_CASE("allocation: making a group fails cleanly at each allocation", "[host]") {
  for (int64_t nth = 1;; ++nth) {
    std::vector<sparsesel_comm*> comms(3, nullptr);
    sparsesel_error error = SPARSESEL_ERROR_INIT;
    const sparsesel_comm_options options = ShortLimits();
    sparsesel_status status = SPARSESEL_OK;
    bool happened = false;
    {
      const AllocationFailure failure(nth);
      status = sparsesel_comm_create_local(3, &options, comms.data(), &error);
      happened = failure.has_happened();
    }
    INFO("allocation " << nth);
    if (!happened) {
      CHECK(status == SPARSESEL_OK);
      const Group group(comms);
      break;
    }
    if (status == SPARSESEL_OK) {
      const Group group(comms);  // it was not needed after all
      continue;
    }
    CHECK(status == SPARSESEL_OUT_OF_MEMORY);
    CHECK(comms == std::vector<sparsesel_comm*>(3, nullptr));
    CHECK(error.status == SPARSESEL_OUT_OF_MEMORY);
    REQUIRE(nth < 10'000);
  }
}

}  // namespace
}  // namespace contract
