// What a device group refuses: on the rank that asks for it, which leaves the group as it was.
#include <catch2/catch.hpp>
#include <climits>
#include <functional>

#include "contract/combinations.h"
#include "contract/device/cuda_check.h"
#include "contract/device/graphs.h"
#include "contract/rows.h"

namespace contract {
namespace {

constexpr uint32_t kEverything = SPARSESEL_OUTPUT_SCORES | SPARSESEL_OUTPUT_COUNTS;

template <typename Change>
void ChangeAll(Job* job, Change change) {
  for (sparsesel_problem& problem : job->problems) change(&problem);
}

struct BadIo {
  const char* name;
  std::function<void(sparsesel_io*)> spoil;
};

TEST_CASE("device refusals: every field of an io, by name", "[device]") {
  const std::vector<BadIo> bad_ios = {
      {"rows", [](sparsesel_io* io) { io->rows = 5; }},
      {"rows", [](sparsesel_io* io) { io->rows = -1; }},
      {"scores", [](sparsesel_io* io) { io->scores = nullptr; }},
      {"ids", [](sparsesel_io* io) { io->ids = nullptr; }},
      {"out_ids", [](sparsesel_io* io) { io->out_ids = nullptr; }},
      {"out_scores", [](sparsesel_io* io) { io->out_scores = nullptr; }},
      {"out_counts", [](sparsesel_io* io) { io->out_counts = nullptr; }},
      {"row_starts", [](sparsesel_io* io) { io->row_starts = io->ids; }},
      {"score_stride", [](sparsesel_io* io) { io->score_stride = 8; }},
      {"id_stride", [](sparsesel_io* io) { io->id_stride = -32; }},
      {"out_id_stride", [](sparsesel_io* io) { io->out_id_stride = 4; }},
      {"out_score_stride", [](sparsesel_io* io) { io->out_score_stride = 4; }},
      {"scores", [](sparsesel_io* io) { io->scores += 1; }},  // alignment 16
      {"ids", [](sparsesel_io* io) { io->ids += 2; }},
      {"ids", [](sparsesel_io* io) { io->id_stride = 19; }},
      {"out_ids", [](sparsesel_io* io) { io->out_ids += 1; }},
      {"out_ids", [](sparsesel_io* io) { io->out_ids = const_cast<int32_t*>(io->ids) + 4; }},
      {"out_counts", [](sparsesel_io* io) { io->out_counts = const_cast<int32_t*>(io->ids); }},
      {"struct_size", [](sparsesel_io* io) { io->struct_size = 2; }},
  };
  Job job = MakeJob(2, 8, 16, {4});
  ChangeAll(&job, [](sparsesel_problem* p) { p->alignment = 16, p->outputs = kEverything; });
  const Batch batch = BatchOfKinds(job, 4, 1);
  for (int32_t composition : {SPARSESEL_COMPOSITION_REPLICATED, SPARSESEL_COMPOSITION_OWNER}) {
    job.composition = composition;
    const Group group(2);
    const Bound bound(group, job);
    REQUIRE(bound.ok());
    const std::vector<RankArrays> arrays = MakeArrays(job, batch);
    for (const BadIo& bad : bad_ios) {
      for (int32_t rank : {1, 0}) {
        sparsesel_io io = arrays[static_cast<size_t>(rank)].io;
        bad.spoil(&io);
        sparsesel_error error = SPARSESEL_ERROR_INIT;
        INFO(bad.name << " on rank " << rank);
        CHECK(sparsesel_execute(bound.binding(rank), &io, group.stream(rank), &error) ==
              SPARSESEL_INVALID_ARGUMENT);
        INFO(error.text);
        CHECK(std::string(error.text).find(bad.name) != std::string::npos);
        CHECK(sparsesel_comm_status(group.comm(rank), nullptr, nullptr) == SPARSESEL_OK);
      }
    }
    // Nothing of this was enqueued.
    CHECK(Check(bound, job, batch) == "");
  }
}

// On a device nobody is told at the call: what is out of range is absent, and the status word says
// so.
TEST_CASE("device refusals: positions and mapped ids out of range are absent", "[device]") {
  for (const char* child_plans : {"peer.push", "peer.fused"}) {
    for (int32_t composition : {SPARSESEL_COMPOSITION_REPLICATED, SPARSESEL_COMPOSITION_OWNER}) {
      if (std::string(child_plans) == "peer.fused" && composition == SPARSESEL_COMPOSITION_OWNER) {
        continue;
      }
      INFO(child_plans << ", composition " << composition);
      Job job = MakeJob(2, 8, 16, {4});
      job.problems[1].input_kind = SPARSESEL_INPUT_POSITIONS;
      job.problems[1].score_row_length = 100;
      job.problems[0].id_map = SPARSESEL_ID_OFFSET;
      job.problems[0].id_offset = 1000;
      job.composition = composition;
      job.child_plans = child_plans;
      const Group group(2);
      const Bound bound(group, job);
      INFO(Describe(bound.outcomes()));
      REQUIRE(bound.ok());
      const auto with = [&](size_t rank, int32_t id, int32_t row_start) {
        Batch batch = MakeBatch(job, 4);
        for (RankInput& input : batch.ranks) {
          for (int32_t& value : input.ids) value = 5;
          for (int32_t& count : input.counts) count = 16;
        }
        batch.ranks[1].row_starts.assign(4, 0);
        batch.ranks[1].row_starts[2] = row_start;
        batch.ranks[rank].ids[2 * 16 + 15] = id;
        return batch;
      };
      CHECK(Check(bound, job, with(1, 99, 0)) == "");
      CHECK(Check(bound, job, with(1, 49, 50)) == "");
      CHECK(Check(bound, job, with(0, INT32_MAX - 1000, 0)) == "");
      const std::vector<std::tuple<size_t, int32_t, int32_t>> bad = {
          {1, 100, 0}, {1, 50, 50}, {1, INT32_MAX, 50}, {0, INT32_MAX - 999, 0}, {0, INT32_MAX, 0},
      };
      for (const auto& [rank, id, row_start] : bad) {
        INFO("rank " << rank << ", id " << id << ", row start " << row_start);
        const Batch batch = with(rank, id, row_start);
        const Batch without = with(rank, -1, row_start);
        std::vector<RankArrays> arrays = MakeArrays(job, batch);
        EnqueueAll(BindingsOf(bound), arrays, group.streams());
        Results results = Finish(arrays, group.streams());
        CHECK(results.outcomes[rank].status == SPARSESEL_INVALID_ARGUMENT);
        CHECK(results.outcomes[1 - rank].status == SPARSESEL_OK);
        results.outcomes[rank].status = SPARSESEL_OK;
        CHECK(Compare(job, ExpectRows(job, without), results) == "");
        // The word is never cleared: not by an execute that is right.
        const Batch right = with(1, 7, 0);
        for (int32_t r = 0; r < 2; ++r) {
          CopyIn(const_cast<int32_t*>(arrays[static_cast<size_t>(r)].io.ids),
                 right.ranks[static_cast<size_t>(r)].ids.data(), 4 * 16 * sizeof(int32_t));
          CopyIn(const_cast<int32_t*>(arrays[1].io.row_starts), right.ranks[1].row_starts.data(),
                 4 * sizeof(int32_t));
        }
        EnqueueAll(BindingsOf(bound), arrays, group.streams());
        SynchronizeAll(group.streams());
        CHECK(arrays[rank].device_status() == SPARSESEL_INVALID_ARGUMENT);
        CHECK(sparsesel_comm_status(group.comm(0), nullptr, nullptr) == SPARSESEL_OK);
      }
      CHECK(Check(bound, job, with(1, 7, 0)) == "");
    }
  }
}

TEST_CASE("device refusals: executes go on without optional arrays", "[device]") {
  Job job = MakeJob(3, 40, 60, {6});
  const Group group(3);
  Batch batch = BatchOfKinds(job, 6, 2);
  for (RankInput& input : batch.ranks) input.counts.clear();
  for (const Combination& combination : CoveringCombinations(job)) {
    INFO(combination.text());
    const Job run = With(job, combination);
    const Bound bound(group, run);
    REQUIRE(bound.ok());
    std::vector<RankArrays> arrays = MakeArrays(run, batch);
    for (RankArrays& rank : arrays) rank.io.status_word = nullptr;
    EnqueueAll(BindingsOf(bound), arrays, group.streams());
    CHECK(Compare(run, ExpectRows(run, batch), Finish(arrays, group.streams())) == "");
  }
}

TEST_CASE("device refusals: variants of host memory, and what the fused kernel cannot do",
          "[device]") {
  const Group group(2);
  struct Bad {
    const char* child_plans;
    uint32_t outputs;
    int32_t output_order;
    int32_t scope;
  };
  for (const Bad& bad :
       {Bad{"pack.plain", 0, 0, 0}, Bad{"exchange.full", 0, 0, 0}, Bad{"select.threshold", 0, 0, 0},
        Bad{"peer.fused:1", 0, 0, 0}, Bad{"peer.fused", SPARSESEL_OUTPUT_SCORES, 0, 0},
        Bad{"peer.fused", 0, SPARSESEL_OUTPUT_BY_ID, 0},
        Bad{"peer.fused", 0, 0, SPARSESEL_SCOPE_OWNED_ROWS}}) {
    Job job = MakeJob(2, 8, 16, {4});
    ChangeAll(&job, [&](sparsesel_problem* p) {
      p->outputs = bad.outputs;
      p->output_order = bad.output_order;
      p->output_scope = bad.scope;
    });
    job.child_plans = bad.child_plans;
    const Bound bound(group, job);
    INFO(bad.child_plans << ", outputs " << bad.outputs << ", order " << bad.output_order << "\n"
                         << Describe(bound.outcomes()));
    CHECK(AllAre(bound.outcomes(), SPARSESEL_UNSUPPORTED));
    for (const Outcome& outcome : bound.outcomes()) CHECK(outcome.text() != "");
  }
}

TEST_CASE("device refusals: groups", "[device]") {
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  sparsesel_comm* comms[2] = {};
  const auto make = [&](const sparsesel_comm_options& options) {
    error = SPARSESEL_ERROR_INIT;
    const sparsesel_status status = sparsesel_comm_create_local(2, &options, comms, &error);
    for (sparsesel_comm*& comm : comms)
      sparsesel_comm_release(std::exchange(comm, nullptr), nullptr);
    return status;
  };
  int count = 0;
  CHECK_CUDA(cudaGetDeviceCount(&count));
  sparsesel_comm_options options = ShortLimits();
  const int32_t right[] = {0, 0};
  options.devices = right;
  options.device_count = 1;
  CHECK(make(options) == SPARSESEL_OK);
  options.device_count = 2;
  CHECK(make(options) == SPARSESEL_OK);
  options.device_count = 3;
  CHECK(make(options) == SPARSESEL_INVALID_ARGUMENT);
  CHECK(std::string(error.text) != "");
  for (int32_t wrong : {count, -1, INT_MAX}) {
    const int32_t devices[] = {0, wrong};
    options.devices = devices;
    options.device_count = 2;
    CHECK(make(options) == SPARSESEL_INVALID_ARGUMENT);
    CHECK(std::string(error.text).find(std::to_string(wrong)) != std::string::npos);
  }
  options = ShortLimits();
  options.transport = SPARSESEL_TRANSPORT_NCCL;
  CHECK(make(options) == SPARSESEL_UNAVAILABLE);  // no NCCL, or ranks that share a device
  options.transport = SPARSESEL_TRANSPORT_PEER;
  CHECK(make(options) == SPARSESEL_OK);

  // Joining, alone.
  options = ShortLimits();
  options.world_size = 1;
  sparsesel_comm* comm = nullptr;
  CHECK(sparsesel_comm_create(&options, &comm, &error) == SPARSESEL_OK);
  CHECK(sparsesel_comm_release(comm, &error) == SPARSESEL_OK);
  options.devices = &count;
  options.device_count = 1;
  CHECK(sparsesel_comm_create(&options, &comm, &error) == SPARSESEL_INVALID_ARGUMENT);
  CHECK(comm == nullptr);
}

// Far apart rows: offsets in bytes beyond 2^32.
TEST_CASE("bug_C05_offsets_beyond_31_bits_on_a_device", "[device]") {
  constexpr int64_t kStride = 1 << 20;
  constexpr int32_t kRows = 1100;
  const size_t bytes = (static_cast<size_t>(kStride) * (kRows - 1) + 64) * sizeof(int32_t);
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  CHECK_CUDA(cudaMemGetInfo(&free_bytes, &total_bytes));
  if (free_bytes < 7 * bytes) {
    WARN("not run: too little memory");
    return;
  }
  for (bool outputs_far : {false, true}) {
    for (int32_t composition : {SPARSESEL_COMPOSITION_REPLICATED, SPARSESEL_COMPOSITION_OWNER}) {
      INFO((outputs_far ? "outputs" : "inputs") << ", composition " << composition);
      Job job = MakeJob(2, 8, 16, {kRows});
      job.composition = composition;
      const Group group(2);
      const Bound bound(group, job);
      REQUIRE(bound.ok());
      const int64_t stride = outputs_far ? 16 : kStride;
      const int64_t out_stride = outputs_far ? kStride : 8;
      std::vector<sparsesel_io> ios;
      std::vector<void*> memory;
      for (int32_t rank = 0; rank < 2; ++rank) {
        for (int i = 0; i < 3; ++i) {
          memory.push_back(TakeMemory(bytes));
          if (i == 0) CHECK_CUDA(cudaMemset(memory.back(), 0, bytes));
        }
        sparsesel_io io = SPARSESEL_IO_INIT;
        io.rows = kRows;
        io.scores = static_cast<float*>(memory[memory.size() - 3]);
        io.ids = static_cast<int32_t*>(memory[memory.size() - 2]);
        io.out_ids = static_cast<int32_t*>(memory[memory.size() - 1]);
        io.score_stride = io.id_stride = stride;
        io.out_id_stride = out_stride;
        for (int64_t row = 0; row < kRows; ++row) {
          std::vector<int32_t> ids;
          for (int64_t i = 0; i < 16; ++i) {
            ids.push_back(static_cast<int32_t>(row * 32 + 2 * i + rank));
          }
          CHECK_CUDA(cudaMemcpy(const_cast<int32_t*>(io.ids) + row * stride, ids.data(),
                                ids.size() * sizeof(int32_t), cudaMemcpyHostToDevice));
        }
        ios.push_back(io);
      }
      CHECK_CUDA(cudaDeviceSynchronize());
      for (int32_t rank = 0; rank < 2; ++rank) {
        sparsesel_error error = SPARSESEL_ERROR_INIT;
        CHECK(sparsesel_execute(bound.binding(rank), &ios[static_cast<size_t>(rank)],
                                group.stream(rank), &error) == SPARSESEL_OK);
      }
      SynchronizeAll(group.streams());
      int wrong = 0;
      for (const sparsesel_io& io : ios) {
        for (int64_t row = 0; row < kRows; ++row) {
          int32_t out[8];
          CopyOut(out, io.out_ids + row * out_stride, sizeof(out));
          for (int64_t i = 0; i < 8; ++i) wrong += out[i] != row * 32 + i;
        }
      }
      CHECK(wrong == 0);
      for (void* block : memory) FreeMemory(block);
    }
  }
}

}  // namespace
}  // namespace contract
