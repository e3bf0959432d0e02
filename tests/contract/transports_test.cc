// Groups over the caller's own callbacks give the same answers.
#include <catch2/catch.hpp>

#include "contract/batch.h"
#include "contract/combinations.h"
#include "contract/custom_group.h"
#include "contract/rows.h"

namespace contract {
namespace {

void CheckTransport(int32_t world, const CustomOptions& options) {
  CustomGroup custom(world, options);
  INFO(Describe(custom.outcomes()));
  REQUIRE(custom.ok());
  Job job = MakeJob(world, 300, 200, {1, 9});
  for (sparsesel_problem& problem : job.problems) {
    problem.outputs = SPARSESEL_OUTPUT_SCORES | SPARSESEL_OUTPUT_COUNTS;
  }
  const Batch batch = BatchOfKinds(job, 9, static_cast<uint64_t>(world));
  const std::vector<oracle::Answer> expected = ExpectRows(job, batch);
  size_t ran = 0;
  for (const Combination& combination : CoveringCombinations(job)) {
    INFO(combination.text());
    const Job run = With(job, combination);
    const Bound bound(custom.group(), run);
    if (!bound.ok()) {
      // Sums that the transport does not have.
      CHECK(AllAre(bound.outcomes(), SPARSESEL_UNSUPPORTED));
      CHECK((!options.sums || options.transport == SPARSESEL_TRANSPORT_BOOTSTRAP));
      continue;
    }
    ++ran;
    CHECK(Compare(run, expected, Execute(bound, run, batch)) == "");
    Batch few = batch;
    few.rows = 1;
    CHECK(Compare(run, expected, Execute(bound, run, few)) == "");
  }
  CHECK(ran >= 4);
}

TEST_CASE("transports: a data plane of the caller's own", "[host]") {
  for (int32_t world : {1, 2, 5}) CheckTransport(world, {});
}

TEST_CASE("transports: one that has nothing but an all-gather", "[host]") {
  for (int32_t world : {2, 5}) CheckTransport(world, {.all_to_all = false, .sums = false});
}

TEST_CASE("transports: the bootstrap itself", "[host]") {
  for (int32_t world : {1, 2, 5})
    CheckTransport(world, {.transport = SPARSESEL_TRANSPORT_BOOTSTRAP});
}

TEST_CASE("transports: 64 ranks over callbacks", "[host]") {
  CustomGroup custom(64);
  REQUIRE(custom.ok());
  Job job = MakeJob(64, 100, 20, {3});
  job.composition = SPARSESEL_COMPOSITION_OWNER;
  const Bound bound(custom.group(), job);
  REQUIRE(bound.ok());
  CHECK(Check(bound, job, BatchOfKinds(job, 3, 1)) == "");
}

TEST_CASE("transports: joining without a peer ends by the limit", "[host]") {
  // A group of three of which one rank never comes: made by hand, since the fixture brings all.
  sparsesel_comm_options options = ShortLimits(200 * kMillisecond);
  options.transport = SPARSESEL_TRANSPORT_BOOTSTRAP;
  options.world_size = 3;
  options.bootstrap.start = [](void*, const void*, void*, size_t, void** request) {
    *request = nullptr;
    return sparsesel_status{SPARSESEL_OK};
  };
  options.bootstrap.test = [](void*, void*) { return sparsesel_status{SPARSESEL_IN_PROGRESS}; };
  options.bootstrap.free = [](void*, void*) {};
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  auto* comm = reinterpret_cast<sparsesel_comm*>(1);
  CHECK(sparsesel_comm_create(&options, &comm, &error) == SPARSESEL_TIMEOUT);
  CHECK(comm == nullptr);
  options.bootstrap.test = [](void*, void*) { return sparsesel_status{SPARSESEL_IO}; };
  CHECK(sparsesel_comm_create(&options, &comm, &error) != SPARSESEL_OK);
  options.bootstrap.start = nullptr;
  CHECK(sparsesel_comm_create(&options, &comm, &error) == SPARSESEL_INVALID_ARGUMENT);
  options.bootstrap = {};
  options.world_size = 1;
  CHECK(sparsesel_comm_create(&options, &comm, &error) == SPARSESEL_OK);
  sparsesel_comm_release(comm, nullptr);
}

}  // namespace
}  // namespace contract
