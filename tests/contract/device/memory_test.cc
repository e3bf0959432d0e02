// What is taken of a device's memory, and given back.
#include <catch2/catch.hpp>
#include <chrono>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

#include "contract/device/cuda_check.h"
#include "contract/device/graphs.h"
#include "contract/rows.h"

namespace contract {
namespace {

size_t FreeBytes() {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  CHECK_CUDA(cudaDeviceSynchronize());
  TrimMemory();
  CHECK_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
  return free_bytes;
}

// What graphs kept is let go by CUDA's own thread, and freed when the library is called next.
void LetGoOfGraphs(const Group& group) {
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  std::vector<sparsesel_workspace*> workspaces(static_cast<size_t>(group.world()), nullptr);
  const Outcomes outcomes = OnEveryRank(group.world(), [&](int32_t rank, sparsesel_error* error) {
    return sparsesel_workspace_create(group.comm(rank), nullptr,
                                      &workspaces[static_cast<size_t>(rank)], error);
  });
  INFO(Describe(outcomes));
  CHECK(AllOk(outcomes));
  for (sparsesel_workspace* workspace : workspaces) sparsesel_workspace_release(workspace, nullptr);
}

TEST_CASE("device memory: a race gives back all that it took", "[device]") {
  const Job job = MakeJob(4, 2048, 2048, {1, 2, 4, 8, 64});
  const Group group(4);
  size_t before = 0;
  for (int round = 0; round < 4; ++round) {
    std::vector<sparsesel_plan*> plans;
    std::vector<sparsesel_report*> reports;
    REQUIRE(AllOk(CreatePlans(group, job, &plans)));
    REQUIRE(AllOk(Prepare(plans)));
    const Outcomes raced = Race(plans, &reports);
    INFO(Describe(raced));
    REQUIRE(AllOk(raced));
    LetGoOfGraphs(group);
    const size_t after_race = FreeBytes();
    Release(&reports);
    Release(&plans);
    LetGoOfGraphs(group);
    const size_t after_release = FreeBytes();
    INFO("round " << round << ": free before " << before << ", after the race " << after_race
                  << ", after the release " << after_release);
    // The first warms up what CUDA keeps.
    if (round > 0) {
      CHECK(after_race == before);
      CHECK(after_release == before);
    }
    before = after_release;
  }
}

TEST_CASE("device memory: many lives, graphs among them, leave nothing behind", "[device]") {
  const Job job = MakeJob(3, 512, 700, {4});
  const Batch batch = BatchOfKinds(job, 4, 1);
  const std::vector<oracle::Answer> expected = ExpectRows(job, batch);
  size_t before = 0;
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 10; ++i) {
      const Group group(3);
      std::vector<RankArrays> arrays = MakeArrays(job, batch);
      std::vector<GroupGraph> graphs;
      {
        const Bound bound(group, job);
        REQUIRE(bound.ok());
        for (int n = 0; n < 3; ++n) graphs.emplace_back(bound, arrays, group.streams());
      }
      CHECK(ReplayAndCompare(graphs[1], job, expected, &arrays, group.streams()) == "");
    }
    {
      const Group group(1);
      LetGoOfGraphs(group);
    }
    const size_t after = FreeBytes();
    INFO("round " << round << ": free before " << before << ", after " << after);
    if (round > 0) CHECK(after == before);
    before = after;
  }
}

// Allocator callbacks are asked for device memory, and told the same when it is given back.
TEST_CASE("device memory: comes from the caller's allocator, and what fails there is told",
          "[device]") {
  struct Blocks {
    std::mutex mutex;
    int64_t live = 0;
    int64_t calls = 0;
    int64_t fail_at = -1;
  };
  // An allocator is borrowed until the last graph that captured its memory is gone, trials' own
  // among them, which the caller does not see: so these stay.
  static std::deque<Blocks> all_blocks;
  const auto live_after_all = [](const Blocks& blocks) {
    const Group other(1);
    LetGoOfGraphs(other);
    return blocks.live;
  };
  const auto options_of = [](Blocks* blocks) {
    sparsesel_comm_options options = ShortLimits();
    options.allocator.context = blocks;
    options.allocator.allocate = [](void* context, int32_t memory, size_t bytes, size_t,
                                    const char*) -> void* {
      auto& self = *static_cast<Blocks*>(context);
      const std::lock_guard lock(self.mutex);
      if (memory != SPARSESEL_MEMORY_DEVICE || self.calls++ == self.fail_at) return nullptr;
      void* block = nullptr;
      if (cudaMalloc(&block, bytes) != cudaSuccess) return nullptr;
      self.live += static_cast<int64_t>(bytes);
      return block;
    };
    options.allocator.deallocate = [](void* context, int32_t, void* pointer, size_t bytes, size_t,
                                      const char*) {
      auto& self = *static_cast<Blocks*>(context);
      const std::lock_guard lock(self.mutex);
      self.live -= static_cast<int64_t>(bytes);
      (void)cudaFree(pointer);
    };
    return options;
  };
  const Job job = MakeJob(2, 100, 150, {1, 4});
  Blocks& blocks = all_blocks.emplace_back();
  {
    const Group group(2, options_of(&blocks));
    const Bound bound(group, job);
    INFO(Describe(bound.outcomes()));
    REQUIRE(bound.ok());
    CHECK(blocks.live > 0);
    CHECK(Check(bound, job, BatchOfKinds(job, 4, 1)) == "");
  }
  CHECK(live_after_all(blocks) == 0);
  CHECK(blocks.calls > 0);
  for (int64_t nth = 0; nth < blocks.calls; ++nth) {
    Blocks& failing = all_blocks.emplace_back();
    failing.fail_at = nth;
    {
      const Group group(2, options_of(&failing));
      const Bound bound(group, job);
      INFO("call " << nth << "\n" << Describe(bound.outcomes()));
      for (const Outcome& outcome : bound.outcomes()) {
        CHECK((outcome.status == SPARSESEL_OUT_OF_MEMORY || outcome.status == SPARSESEL_OK));
        CHECK(outcome.status == bound.outcomes()[0].status);
      }
    }
    CHECK(live_after_all(failing) == 0);
  }
}

}  // namespace
}  // namespace contract
