#include <cinttypes>
#include <cstdio>
#include <string>
#include <vector>

#include "tool/commands.h"
#include "tool/outcome_table.h"
#include "tool/replay.h"

namespace sparsesel_tool {
namespace {

Result RacePlans(const Group& group, const Job& job, const Placed& placed, int32_t rows,
                 const std::vector<Plan>& plans, Progress* progress, Report* report) {
  return group.Run([&](int32_t rank) -> Result {
    if (Result r = placed.Use(rank); !r.ok()) return r;
    sparsesel_error error = SPARSESEL_ERROR_INIT;
    const sparsesel_io trial = placed.Io(rank, 0, rows);
    sparsesel_race_options options = SPARSESEL_RACE_OPTIONS_INIT;
    options.seed = job.race_seed;
    options.time_budget = static_cast<uint64_t>(job.budget * 1e9);
    options.trial_io = &trial;
    if (rank == 0) options.progress = progress->Callback("race");
    sparsesel_report* made = nullptr;
    const sparsesel_status status =
        sparsesel_plan_race(plans[static_cast<size_t>(rank)].get(), &options, &made, &error);
    Report own(made);
    if (rank == 0) *report = std::move(own);
    return LibraryResult("plan_race", status, error);
  });
}

Result WriteFile(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return Failure(path + ": cannot be written");
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = std::fclose(file) == 0;
  return written && closed ? Result() : Failure(path + ": cannot be written");
}

Result ShowReport(const Job& job, const sparsesel_report* report) {
  std::string json;
  std::string table;
  std::string notes;
  if (Result r = ReportText(report, &json); !r.ok()) return r;
  if (Result r = OutcomeTable(report, json, &table, &notes); !r.ok()) return r;
  std::printf("\n%s\n%s", table.c_str(), notes.c_str());
  return job.json.empty() ? Result() : WriteFile(job.json, json + "\n");
}

}  // namespace

Result RaceCommand(Job job) {
  Dataset dataset;
  if (Result r = OpenDataset(&job, &dataset); !r.ok()) return r;
  Group group;
  Placed placed;
  if (Result r = MakeGroup(job, dataset, &group, &placed); !r.ok()) return r;
  std::printf("%s: %d ranks, %d rows, k = %d\n", dataset.name.c_str(), dataset.world(),
              dataset.rows, job.k);
  std::fflush(stdout);

  std::vector<Plan> plans;
  Report report;
  {
    Progress progress;
    Result r =
        PreparePlans(group, job, dataset, placed, SPARSESEL_RACE_CONSERVATIVE, &progress, &plans);
    if (r.ok()) r = RacePlans(group, job, placed, dataset.rows, plans, &progress, &report);
    if (!r.ok()) return r;
  }
  if (Result r = ShowReport(job, report.get()); !r.ok()) return r;

  std::vector<Binding> bindings;
  if (Result r = BindPlans(group, placed, plans, CompositionOf(job.composition), &bindings);
      !r.ok()) {
    return r;
  }
  plans.clear();  // a binding outlives its plan
  const Truth truth = TruthOf(dataset, job.k);
  ReplayCount count;
  if (Result r = Replay(group, placed, dataset.rows, truth, job.k, job.capacities, job.executes,
                        bindings, &count);
      !r.ok()) {
    return r;
  }
  std::printf("\nbound %s and freed the trials\n",
              job.composition == "auto" ? "the winners" : job.composition.c_str());
  std::printf("replayed every capacity %d times, compared %" PRId64 " rows on %d ranks with %s: ",
              job.executes, count.rows, dataset.world(), truth.source.c_str());
  if (count.wrong_ids == 0) {
    std::printf("all ids are equal\n");
    return {};
  }
  std::printf("%" PRId64 " ids are WRONG\n", count.wrong_ids);
  return {kExitWrongIds, "ids are wrong"};
}

}  // namespace sparsesel_tool
