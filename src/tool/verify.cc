#include <cinttypes>
#include <cstdio>
#include <string>
#include <vector>

#include "tool/commands.h"
#include "tool/replay.h"
#include "tool/reshard.h"
#include "tool/table.h"

namespace sparsesel_tool {
namespace {

std::vector<std::string> Reshardings(const Job& job) {
  if (!job.reshard.empty()) return {job.reshard};
  std::vector<std::string> names = {""};
  for (const std::string_view name : ReshardNames()) {
    // A change of the number of ranks leaves only what deals anew.
    if (job.world_given && !job.input.empty() && name == "duplicate") continue;
    names.emplace_back(name);
  }
  if (job.world_given && !job.input.empty()) names.erase(names.begin());
  return names;
}

std::vector<std::string> Compositions(const Job& job) {
  if (job.composition != "auto") return {job.composition};
  return {"replicated", "owner"};
}

// Both compositions on one way of dealing the candidates.
Result VerifyOne(Job job, Table* table, int64_t* wrong) {
  Dataset dataset;
  if (Result r = OpenDataset(&job, &dataset); !r.ok()) return r;
  const Truth truth = TruthOf(dataset, job.k);
  Group group;
  Placed placed;
  if (Result r = MakeGroup(job, dataset, &group, &placed); !r.ok()) return r;
  std::vector<Plan> plans;
  if (Result r = PreparePlans(group, job, dataset, placed, SPARSESEL_RACE_OFF, nullptr, &plans);
      !r.ok()) {
    return r;
  }
  for (const std::string& composition : Compositions(job)) {
    std::vector<Binding> bindings;
    if (Result r = BindPlans(group, placed, plans, CompositionOf(composition), &bindings);
        !r.ok()) {
      return r;
    }
    ReplayCount count;
    if (Result r = Replay(group, placed, dataset.rows, truth, job.k, job.capacities, job.executes,
                          bindings, &count);
        !r.ok()) {
      return r;
    }
    table->AddRow({job.reshard.empty() ? "as it is" : job.reshard, composition,
                   std::to_string(dataset.world()), std::to_string(count.executes),
                   std::to_string(count.rows), std::to_string(count.wrong_ids), truth.source});
    *wrong += count.wrong_ids;
  }
  return {};
}

}  // namespace

Result VerifyCommand(Job job) {
  Table table;
  table.AddColumn("sharding", Table::Align::kLeft);
  table.AddColumn("composition", Table::Align::kLeft);
  for (const char* title : {"ranks", "executes", "rows compared", "wrong ids"}) {
    table.AddColumn(title, Table::Align::kRight);
  }
  table.AddColumn("compared with", Table::Align::kLeft);
  int64_t wrong = 0;
  Progress progress;
  const std::vector<std::string> reshardings = Reshardings(job);
  for (size_t i = 0; i < reshardings.size(); ++i) {
    progress.Show("verify", static_cast<double>(i) / static_cast<double>(reshardings.size()),
                  reshardings[i].empty() ? "as it is" : reshardings[i]);
    job.reshard = reshardings[i];
    if (Result r = VerifyOne(job, &table, &wrong); !r.ok()) return r;
  }
  progress.Clear();
  std::printf("%s", table.ToString().c_str());
  if (wrong == 0) {
    std::printf("all ids are equal\n");
    return {};
  }
  std::printf("%" PRId64 " ids are WRONG\n", wrong);
  return {kExitWrongIds, "ids are wrong"};
}

}  // namespace sparsesel_tool
