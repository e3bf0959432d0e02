// What is refused, with a sentence that names the field and its value.
#include <catch2/catch.hpp>
#include <climits>
#include <functional>

#include "contract/batch.h"
#include "contract/rows.h"

namespace contract {
namespace {

struct BadField {
  const char* name;
  std::string value;  // as the sentence must have it
  std::function<void(sparsesel_problem*)> spoil;
  sparsesel_status status = SPARSESEL_INVALID_ARGUMENT;
};

std::vector<BadField> BadProblems() {
  static const int32_t zero[] = {1, 0};
  static const int32_t huge[] = {1048577};
  static const int32_t twice[] = {4, 2, 4};
  using P = sparsesel_problem*;
  return {
      {"k", "-1", [](P p) { p->k = -1; }},
      {"k", "65537", [](P p) { p->k = 65537; }},
      {"capacit", "0", [](P p) { p->capacities = zero, p->capacity_count = 2; }},
      {"capacit", "1048577", [](P p) { p->capacities = huge, p->capacity_count = 1; }},
      {"capacit", "4", [](P p) { p->capacities = twice, p->capacity_count = 3; }},
      {"capacit", "1025", [](P p) { p->capacities = zero, p->capacity_count = 1025; }},
      {"capacit", "-1", [](P p) { p->capacities = zero, p->capacity_count = -1; }},
      {"capacit", "3", [](P p) { p->capacities = nullptr, p->capacity_count = 3; }},
      {"candidates", "-2", [](P p) { p->candidates = -2; }},
      {"candidates", "65537", [](P p) { p->candidates = 65537; }},
      {"alignment", "2", [](P p) { p->alignment = 2; }},
      {"alignment", "24", [](P p) { p->alignment = 24; }},
      {"alignment", "512", [](P p) { p->alignment = 512; }},
      {"score_type", "1", [](P p) { p->score_type = SPARSESEL_SCORE_FP16; }, SPARSESEL_UNSUPPORTED},
      {"score_type", "2", [](P p) { p->score_type = SPARSESEL_SCORE_BF16; }, SPARSESEL_UNSUPPORTED},
      {"score_type", "3", [](P p) { p->score_type = 3; }},
      {"score_stride", "15", [](P p) { p->score_stride = 15; }},
      {"score_stride", "-16", [](P p) { p->score_stride = -16; }},
      {"id_stride", "15", [](P p) { p->id_stride = 15; }},
      {"output_stride", "7", [](P p) { p->output_stride = 7; }},
      {"output_stride", std::to_string(INT64_MAX), [](P p) { p->output_stride = INT64_MAX; }},
      {"score_row_length", "5", [](P p) { p->score_row_length = 5; }},
      {"score_row_length", "0", [](P p) { p->input_kind = SPARSESEL_INPUT_POSITIONS; }},
      {"input_kind", "2", [](P p) { p->input_kind = 2; }},
      {"input_order", "3", [](P p) { p->input_order = 3; }},
      {"input_order", "-1", [](P p) { p->input_order = -1; }},
      {"id_map", "3", [](P p) { p->id_map = 3; }},
      {"id_offset", "-1", [](P p) { p->id_map = SPARSESEL_ID_OFFSET, p->id_offset = -1; }},
      {"id_block", "0", [](P p) { p->id_map = SPARSESEL_ID_INTERLEAVE, p->id_shards = 2; }},
      {"id_shards", "0", [](P p) { p->id_map = SPARSESEL_ID_INTERLEAVE, p->id_block = 1; }},
      {"id_shard", "2",
       [](P p) {
         p->id_map = SPARSESEL_ID_INTERLEAVE, p->id_block = 1, p->id_shard = 2, p->id_shards = 2;
       }},
      {"output_order", "2", [](P p) { p->output_order = 2; }},
      {"output_kind", "1", [](P p) { p->output_kind = SPARSESEL_OUTPUT_LOCAL_IDS; },
       SPARSESEL_UNSUPPORTED},
      {"output_kind", "2", [](P p) { p->output_kind = SPARSESEL_OUTPUT_PAGE_SLOTS; },
       SPARSESEL_UNSUPPORTED},
      {"output_kind", "9", [](P p) { p->output_kind = 9; }},
      {"outputs", "4", [](P p) { p->outputs = 4; }},
      {"output_scope", "2", [](P p) { p->output_scope = 2; }},
      {"phase", "2", [](P p) { p->phase = 2; }},
      {"requests", "-1", [](P p) { p->requests = -1; }},
      {"workload", "8", [](P p) { p->workload = 8; }},
      {"race_policy", "3", [](P p) { p->race_policy = 3; }},
      {"reserved", "1", [](P p) { p->reserved = 1; }},
  };
}

bool Says(const std::string& text, const std::string& word) {
  return text.find(word) != std::string::npos;
}

TEST_CASE("refusals: every field of a problem, by name and value") {
  const Group group(2);
  for (const BadField& bad : BadProblems()) {
    sparsesel_problem problem = SPARSESEL_PROBLEM_INIT;
    problem.k = 8;
    problem.candidates = 16;
    bad.spoil(&problem);
    auto* plan = reinterpret_cast<sparsesel_plan*>(1);
    sparsesel_error error = SPARSESEL_ERROR_INIT;
    INFO(bad.name << " = " << bad.value);
    CHECK(sparsesel_plan_create(group.comm(0), &problem, &plan, &error) == bad.status);
    INFO(error.text);
    CHECK(plan == nullptr);
    CHECK(error.status == bad.status);
    CHECK(Says(error.text, bad.name));
    CHECK(Says(error.text, bad.value));
  }
}

// A rank whose arrays break a promise: every rank is told, and the group goes on.
struct BadIo {
  const char* name;
  std::function<void(sparsesel_io*)> spoil;
};

TEST_CASE("refusals: every field of an io, on every rank, from the rank at fault", "[host]") {
  static float scores[4 * 32];
  static int32_t ids[4 * 32];
  static int32_t out[4 * 32];
  static float out_scores[4 * 32];
  static int32_t out_counts[4];
  const std::vector<BadIo> bad_ios = {
      {"rows", [](sparsesel_io* io) { io->rows = 5; }},
      {"rows", [](sparsesel_io* io) { io->rows = -1; }},
      {"scores", [](sparsesel_io* io) { io->scores = nullptr; }},
      {"ids", [](sparsesel_io* io) { io->ids = nullptr; }},
      {"out_ids", [](sparsesel_io* io) { io->out_ids = nullptr; }},
      {"out_scores", [](sparsesel_io* io) { io->out_scores = nullptr; }},
      {"out_counts", [](sparsesel_io* io) { io->out_counts = nullptr; }},
      {"row_starts", [](sparsesel_io* io) { io->row_starts = ids; }},
      {"score_stride", [](sparsesel_io* io) { io->score_stride = 8; }},
      {"id_stride", [](sparsesel_io* io) { io->id_stride = -32; }},
      {"out_id_stride", [](sparsesel_io* io) { io->out_id_stride = 4; }},
      {"out_score_stride", [](sparsesel_io* io) { io->out_score_stride = 4; }},
      {"scores", [](sparsesel_io* io) { io->scores = scores + 1; }},  // alignment 16
      {"ids", [](sparsesel_io* io) { io->ids = ids + 2; }},
      {"ids", [](sparsesel_io* io) { io->id_stride = 19; }},
      {"out_ids", [](sparsesel_io* io) { io->out_ids = out + 1; }},
      {"out_ids", [](sparsesel_io* io) { io->out_ids = ids + 4; }},  // overlap, not in place
      {"out_ids", [](sparsesel_io* io) { io->out_ids = ids, io->out_id_stride = 12; }},
      {"out_ids", [](sparsesel_io* io) { io->out_ids = reinterpret_cast<int32_t*>(scores); }},
      {"out_scores", [](sparsesel_io* io) { io->out_scores = scores; }},
      {"out_counts", [](sparsesel_io* io) { io->out_counts = ids; }},
      {"out_scores", [](sparsesel_io* io) { io->out_scores = reinterpret_cast<float*>(out); }},
      {"struct_size", [](sparsesel_io* io) { io->struct_size = 2; }},
  };
  Job job = MakeJob(2, 8, 16, {4});
  for (sparsesel_problem& problem : job.problems) {
    problem.alignment = 16;
    problem.outputs = SPARSESEL_OUTPUT_SCORES | SPARSESEL_OUTPUT_COUNTS;
  }
  const Batch batch = BatchOfKinds(job, 4, 1);
  for (int32_t composition : {SPARSESEL_COMPOSITION_REPLICATED, SPARSESEL_COMPOSITION_OWNER}) {
    job.composition = composition;
    const Group group(2);
    const Bound bound(group, job);
    REQUIRE(bound.ok());
    for (const BadIo& bad : bad_ios) {
      struct alignas(16) Arrays {
        float scores[4 * 16] = {};
        int32_t ids[4 * 16] = {};
        int32_t out_ids[4 * 8] = {};
        float out_scores[4 * 8] = {};
        int32_t out_counts[4] = {};
      };
      std::vector<Arrays> arrays(2);
      for (int32_t at_fault : {1, 0}) {
        const Outcomes outcomes = OnEveryRank(2, [&](int32_t rank, sparsesel_error* error) {
          Arrays& own = arrays[static_cast<size_t>(rank)];
          sparsesel_io io = SPARSESEL_IO_INIT;
          io.rows = 4;
          io.scores = own.scores;
          io.ids = own.ids;
          io.out_ids = own.out_ids;
          io.out_scores = own.out_scores;
          io.out_counts = own.out_counts;
          if (rank == at_fault) {
            io.scores = scores;
            io.ids = ids;
            io.out_ids = out;
            io.out_scores = out_scores;
            io.out_counts = out_counts;
            bad.spoil(&io);
          }
          return sparsesel_execute(bound.binding(rank), &io, nullptr, error);
        });
        INFO(bad.name << " on rank " << at_fault << "\n" << Describe(outcomes));
        CHECK(AllAre(outcomes, SPARSESEL_INVALID_ARGUMENT));
        CHECK(outcomes[0].error.rank == at_fault);
        CHECK(outcomes[1].error.rank == at_fault);
        CHECK(Says(outcomes[static_cast<size_t>(at_fault)].text(), bad.name));
      }
    }
    // Nothing of this ended the group.
    CHECK(sparsesel_comm_status(group.comm(0), nullptr, nullptr) == SPARSESEL_OK);
  }
}

TEST_CASE("refusals: a position outside its score row, and a mapped id beyond 31 bits", "[host]") {
  Job job = MakeJob(2, 8, 16, {4});
  job.problems[1].input_kind = SPARSESEL_INPUT_POSITIONS;
  job.problems[1].score_row_length = 100;
  job.problems[0].id_map = SPARSESEL_ID_OFFSET;
  job.problems[0].id_offset = 1000;
  for (int32_t composition : {SPARSESEL_COMPOSITION_REPLICATED, SPARSESEL_COMPOSITION_OWNER}) {
    job.composition = composition;
    const Group group(2);
    const Bound bound(group, job);
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
    const std::vector<std::pair<size_t, Batch>> bad = {
        {1, with(1, 100, 0)},       {1, with(1, 50, 50)},       {1, with(1, INT32_MAX, 50)},
        {1, with(1, 3, -4)},        {1, with(1, 3, INT32_MAX)}, {0, with(0, INT32_MAX - 999, 0)},
        {0, with(0, INT32_MAX, 0)},
    };
    for (const auto& [rank, batch] : bad) {
      const Results results = Execute(bound, job, batch);
      INFO(Describe(results.outcomes));
      CHECK(AllAre(results.outcomes, SPARSESEL_INVALID_ARGUMENT));
      CHECK(results.outcomes[0].error.rank == static_cast<int32_t>(rank));
      CHECK(results.outcomes[1].error.rank == static_cast<int32_t>(rank));
      for (const RankOutput& output : results.ranks) CHECK(output.stray == "");
    }
    CHECK(Check(bound, job, with(1, 7, 0)) == "");
  }
}

TEST_CASE("refusals: child plans that do not exist, or cannot run the problem") {
  for (const char* child_plans : {"select.none", "select", "exchange.prefix:7", "exchange.prefix:",
                                  "exchange.prefix:x", ",", "pack.plain,,", "exchange.prefix:256x",
                                  "exchange.prefix:99999999999999999999", "PACK.PLAIN"}) {
    const Group group(2);
    std::vector<sparsesel_plan*> plans;
    REQUIRE(AllOk(CreatePlans(group, MakeJob(2, 8, 16, {4}), &plans)));
    const Outcomes outcomes = Prepare(plans, child_plans);
    INFO(child_plans << "\n" << Describe(outcomes));
    CHECK(AllAre(outcomes, SPARSESEL_UNSUPPORTED));
    Release(&plans);
  }
}

TEST_CASE("refusals: options out of their ranges") {
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  sparsesel_comm* comms[2] = {};
  sparsesel_comm_options options = ShortLimits();
  options.transport = SPARSESEL_TRANSPORT_MPI;
  CHECK(sparsesel_comm_create_local(2, &options, comms, &error) == SPARSESEL_UNSUPPORTED);
  options.transport = 77;
  CHECK(sparsesel_comm_create_local(2, &options, comms, &error) == SPARSESEL_INVALID_ARGUMENT);
  CHECK(Says(error.text, "77"));
  options.transport = 0;
  options.memory = 9;
  CHECK(sparsesel_comm_create_local(2, &options, comms, &error) == SPARSESEL_INVALID_ARGUMENT);
  options.memory = 0;
  options.allocator.allocate = [](void*, int32_t, size_t, size_t, const char*) -> void* {
    return nullptr;
  };
  CHECK(sparsesel_comm_create_local(2, &options, comms, &error) == SPARSESEL_INVALID_ARGUMENT);

  const Group group(1);
  std::vector<sparsesel_plan*> plans;
  REQUIRE(AllOk(CreatePlans(group, MakeJob(1, 4, 4, {1}), &plans)));
  REQUIRE(AllOk(Prepare(plans)));
  sparsesel_report* report = nullptr;
  for (int32_t pairs : {-1, 1, 17, 256}) {
    sparsesel_race_options race = SPARSESEL_RACE_OPTIONS_INIT;
    race.max_pairs = pairs;
    CHECK(sparsesel_plan_race(plans[0], &race, &report, &error) == SPARSESEL_INVALID_ARGUMENT);
    CHECK(Says(error.text, std::to_string(pairs)));
  }
  sparsesel_binding* binding = nullptr;
  CHECK(sparsesel_plan_bind(plans[0], nullptr, 3, &binding, &error) == SPARSESEL_INVALID_ARGUMENT);
  CHECK(Says(error.text, "3"));
  sparsesel_workspace_options workspace = SPARSESEL_WORKSPACE_OPTIONS_INIT;
  workspace.slots = 17;
  sparsesel_workspace* made = nullptr;
  CHECK(sparsesel_workspace_create(group.comm(0), &workspace, &made, &error) ==
        SPARSESEL_INVALID_ARGUMENT);
  CHECK(Says(error.text, "17"));
  sparsesel_prepare_options prepare = SPARSESEL_PREPARE_OPTIONS_INIT;
  prepare.cache_directory = "/tmp";
  std::vector<sparsesel_plan*> more;
  REQUIRE(AllOk(CreatePlans(group, MakeJob(1, 4, 4, {1}), &more)));
  CHECK(sparsesel_plan_prepare(more[0], &prepare, &error) == SPARSESEL_UNSUPPORTED);
  Release(&more);
  Release(&plans);

  int32_t begin = 0;
  int32_t end = 0;
  CHECK(sparsesel_owned_rows(10, 4, 1, &begin, &end, nullptr) == SPARSESEL_OK);
  CHECK(begin == 3);
  CHECK(end == 6);
  for (const auto& [rows, world, rank] :
       {std::tuple{-1, 4, 0}, {1, 0, 0}, {1, 65, 0}, {1, 4, 4}, {1, 4, -1}}) {
    CHECK(sparsesel_owned_rows(rows, world, rank, &begin, &end, nullptr) ==
          SPARSESEL_INVALID_ARGUMENT);
  }
}

}  // namespace
}  // namespace contract
