#include "tool/commands.h"

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tool/outcome_table.h"
#include "tool/replay.h"
#include "tool/reshard.h"
#include "tool/table.h"

namespace sparsesel_tool {
namespace {

using Catch::Contains;

Job SmallJob() {
  Job job;
  job.generator.world = 3;
  job.generator.rows = 4;
  job.generator.candidates = 40;
  job.k = 16;
  job.capacities = {4, 2, 1};
  job.executes = 3;
  job.budget = 0.02;
  return job;
}

// A file with one row of two ranks, and what its answer is claimed to be.
std::string WriteFile(const char* name, const std::vector<int32_t>& expected) {
  const std::string header =
      R"({"scores":{"dtype":"F32","shape":[2,1,2],"data_offsets":[0,16]},)"
      R"("ids":{"dtype":"I32","shape":[2,1,2],"data_offsets":[16,32]},)"
      R"("expected_ids":{"dtype":"I32","shape":[1,3],"data_offsets":[32,44]}})";
  const float scores[] = {1.0f, 2.0f, 3.0f, 2.0f};
  const int32_t ids[] = {10, 11, 12, 9};
  const std::string path = std::string("/tmp/sparsesel_commands_test_") + name;
  std::ofstream file(path, std::ios::binary);
  const uint64_t length = header.size();
  file.write(reinterpret_cast<const char*>(&length), 8);
  file << header;
  file.write(reinterpret_cast<const char*>(scores), sizeof(scores));
  file.write(reinterpret_cast<const char*>(ids), sizeof(ids));
  file.write(reinterpret_cast<const char*>(expected.data()), 12);
  return path;
}

}  // namespace

TEST_CASE("race: generated candidates, every distribution") {
  for (const std::string_view name : DistributionNames()) {
    CAPTURE(std::string(name));
    Job job = SmallJob();
    job.generator.distribution = name;
    CHECK(RaceCommand(job).text.empty());
  }
}

TEST_CASE("race: compositions and child plans that are asked for") {
  Job job = SmallJob();
  job.composition = "owner";
  job.child_plans = "pack.sorted,exchange.full,select.loser_tree";
  CHECK(RaceCommand(job).text.empty());
  job.child_plans = "select.of_dreams";
  const Result result = RaceCommand(job);
  CHECK(result.exit == kExitError);
  CHECK_THAT(result.text, Contains("SPARSESEL_UNSUPPORTED") && Contains("select.of_dreams"));
}

TEST_CASE("race: a file that tells the truth, and one that does not") {
  Job job = SmallJob();
  job.k = 0;
  job.capacities.clear();
  job.input = WriteFile("true", {12, 9, 11});
  job.json = job.input + ".json";
  CHECK(RaceCommand(job).text.empty());
  std::ifstream json(job.json);
  const std::string report((std::istreambuf_iterator<char>(json)), {});
  CHECK_THAT(report, Contains("\"capacities\"") && Contains("\"samples\""));
  std::remove(job.json.c_str());
  std::remove(job.input.c_str());

  job.json.clear();
  job.input = WriteFile("false", {12, 11, 9});
  CHECK(RaceCommand(job).exit == kExitWrongIds);
  CHECK(VerifyCommand(job).exit == kExitWrongIds);
  std::remove(job.input.c_str());
}

TEST_CASE("race: files and folders that are not to be had") {
  Job job = SmallJob();
  job.input = "/nowhere/at/all";
  CHECK(RaceCommand(job).exit == kExitError);
  job = SmallJob();
  job.json = "/nowhere/at/all";
  const Result result = RaceCommand(job);
  CHECK(result.exit == kExitError);
  CHECK_THAT(result.text, Contains("cannot be written"));
}

TEST_CASE("a file's number of ranks changes only by dealing anew") {
  Job job = SmallJob();
  job.input = WriteFile("world", {12, 9, 11});
  job.k = 3;
  job.world_given = true;
  job.generator.world = 5;
  Dataset dataset;
  CHECK_THAT(OpenDataset(&job, &dataset).text, Contains("--reshard"));
  job.reshard = "interleaved";
  CHECK(OpenDataset(&job, &dataset).ok());
  CHECK(dataset.world() == 5);
  std::remove(job.input.c_str());
}

TEST_CASE("verify: every re-sharding of generated candidates") {
  Job job = SmallJob();
  job.generator.distribution = "special";
  CHECK(VerifyCommand(job).text.empty());
  job.reshard = "duplicate";
  job.composition = "replicated";
  CHECK(VerifyCommand(job).text.empty());
}

// Whether a GPU can be used, as the library sees it.
static bool HasGpu() {
  std::vector<char> json(1 << 16);
  size_t needed = 0;
  REQUIRE(sparsesel_system_json(json.data(), json.size(), &needed, nullptr) == SPARSESEL_OK);
  return std::string(json.data()).find("\"ordinal\"") != std::string::npos;
}

TEST_CASE("race and verify: on GPUs, or a line that says why not") {
  Job job = SmallJob();
  job.device = "cuda";
  for (const auto command : {RaceCommand, VerifyCommand}) {
    const Result result = command(job);
    CHECK(result.ok() == HasGpu());
    if (HasGpu()) continue;
    CHECK(result.exit == kExitError);
    CHECK_THAT(result.text, Contains("CUDA"));
    CHECK(result.text.find('\n') == std::string::npos);
  }
}

TEST_CASE("info") {
  CHECK(InfoCommand(false).ok());
  CHECK(InfoCommand(true).ok());
}

TEST_CASE("capacities by default") {
  CHECK(DefaultCapacities(3) == std::vector<int32_t>{3, 2, 1});
  CHECK(DefaultCapacities(16).size() == 16);
  CHECK(DefaultCapacities(40) == std::vector<int32_t>{40, 20, 10, 5, 2, 1});
}

TEST_CASE("a rank that fails ends the group's call for all") {
  Group group;
  REQUIRE(Group::Create(3, SPARSESEL_MEMORY_HOST, {}, &group).ok());
  const Result result = group.Run([&](int32_t rank) -> Result {
    if (rank == 1) return Failure("rank 1 has had enough");
    sparsesel_error error = SPARSESEL_ERROR_INIT;
    sparsesel_workspace* workspace = nullptr;  // waits for rank 1
    return LibraryResult("workspace_create",
                         sparsesel_workspace_create(group.comm(rank), nullptr, &workspace, &error),
                         error);
  });
  CHECK(result.text == "rank 1 has had enough");
}

TEST_CASE("tables line up") {
  Table table;
  table.AddColumn("name", Table::Align::kLeft);
  table.AddColumn("n", Table::Align::kRight);
  table.AddRow({"a", "100"});
  table.AddRow({"longer"});
  CHECK(table.ToString() == "name      n\na       100\nlonger\n");
  CHECK(Microseconds(12345) == "12.3");
  CHECK(Ratio(1.234) == "1.23");
}

}  // namespace sparsesel_tool
