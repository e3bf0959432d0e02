// What the user asked for, and how its plans are made.
#ifndef SPARSESEL_TOOL_JOB_H_
#define SPARSESEL_TOOL_JOB_H_

#include <cstdint>
#include <string>
#include <vector>

#include "sparsesel.h"
#include "tool/dataset.h"
#include "tool/generate.h"
#include "tool/group.h"
#include "tool/memory.h"
#include "tool/progress.h"
#include "tool/result.h"

namespace sparsesel_tool {

struct Job {
  std::string input;  // a file; empty: generated
  GeneratorOptions generator;
  bool world_given = false;
  std::string reshard;  // empty: as it is
  int32_t k = 0;        // 0: the file's expected ids, or 2048
  std::vector<int32_t> capacities;
  std::string composition = "auto";
  std::string child_plans;
  std::string device = "cpu";
  std::string json;
  int32_t executes = 8;  // per capacity
  double budget = 2;     // s of measuring
  uint64_t race_seed = 1;
};

// Enough for the first look at samples where ranks share few cores.
inline constexpr double kBudgetPerCapacity = 0.75;

// The dataset as asked for, re-sharded if asked for; fills in what depends on it.
Result OpenDataset(Job* job, Dataset* dataset);
int32_t CompositionOf(const std::string& name);

// Capacities from `rows` down to 1: all of them, or from 16 on by halves.
std::vector<int32_t> DefaultCapacities(int32_t rows);

// A group for the dataset, which it places in the memory that the job names.
Result MakeGroup(const Job& job, const Dataset& dataset, Group* group, Placed* placed);

// Plans of every rank, prepared. The policy: SPARSESEL_RACE_...
Result PreparePlans(const Group& group, const Job& job, const Dataset& dataset,
                    const Placed& placed, int32_t policy, Progress* progress,
                    std::vector<Plan>* plans);
Result BindPlans(const Group& group, const Placed& placed, const std::vector<Plan>& plans,
                 int32_t composition, std::vector<Binding>* bindings);

}  // namespace sparsesel_tool

#endif  // SPARSESEL_TOOL_JOB_H_
