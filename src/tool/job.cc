#include "tool/job.h"

#include <algorithm>

#include "tool/reshard.h"

namespace sparsesel_tool {
namespace {

constexpr int32_t kAllCapacities = 16;
constexpr int32_t kDefaultK = 2048;

Result MakePlan(const Job& job, const Dataset& dataset, sparsesel_comm* comm, int32_t rank,
                int32_t policy, Plan* plan) {
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  sparsesel_problem problem = SPARSESEL_PROBLEM_INIT;
  problem.k = job.k;
  problem.capacities = job.capacities.data();
  problem.capacity_count = static_cast<int32_t>(job.capacities.size());
  problem.candidates = dataset.ranks[static_cast<size_t>(rank)].candidates;
  problem.race_policy = policy;
  sparsesel_plan* made = nullptr;
  const sparsesel_status status = sparsesel_plan_create(comm, &problem, &made, &error);
  plan->reset(made);
  return LibraryResult("plan_create", status, error);
}

}  // namespace

int32_t CompositionOf(const std::string& name) {
  if (name == "replicated") return SPARSESEL_COMPOSITION_REPLICATED;
  if (name == "owner") return SPARSESEL_COMPOSITION_OWNER;
  return SPARSESEL_COMPOSITION_AUTO;
}

std::vector<int32_t> DefaultCapacities(int32_t rows) {
  std::vector<int32_t> capacities;
  for (int32_t c = rows; c >= 1; c = rows <= kAllCapacities ? c - 1 : c / 2) {
    capacities.push_back(c);
  }
  return capacities;
}

Result OpenDataset(Job* job, Dataset* dataset) {
  Dataset loaded;
  Result opened =
      job->input.empty() ? Generate(job->generator, &loaded) : LoadDataset(job->input, &loaded);
  if (!opened.ok()) return opened;
  if (job->reshard.empty()) {
    if (!job->input.empty() && job->world_given && job->generator.world != loaded.world()) {
      return Failure("the file has " + std::to_string(loaded.world()) +
                     " ranks: --world needs --reshard to change that");
    }
    *dataset = std::move(loaded);
  } else {
    const int32_t world = job->world_given ? job->generator.world : loaded.world();
    if (Result r = Reshard(loaded, job->reshard, world, dataset); !r.ok()) return r;
  }
  if (job->k == 0) job->k = dataset->expected.empty() ? kDefaultK : dataset->expected_k;
  if (job->capacities.empty()) job->capacities = DefaultCapacities(dataset->rows);
  if (job->budget == 0) {
    job->budget = kBudgetPerCapacity * static_cast<double>(job->capacities.size());
  }
  return {};
}

Result MakeGroup(const Job& job, const Dataset& dataset, Group* group, Placed* placed) {
  const Memory* const memory = MemoryOf(job.device);
  if (memory == nullptr) return Failure("--device " + job.device + ": this build has no CUDA");
  std::vector<int32_t> devices;
  if (Result r = memory->begin(dataset.world(), &devices); !r.ok()) return r;
  if (Result r = Group::Create(dataset.world(), memory->kind, devices, group); !r.ok()) return r;
  return Placed::Create(*memory, dataset, job.k, devices, placed);
}

Result PreparePlans(const Group& group, const Job& job, const Dataset& dataset,
                    const Placed& placed, int32_t policy, Progress* progress,
                    std::vector<Plan>* plans) {
  plans->clear();
  plans->resize(static_cast<size_t>(group.world()));
  return group.Run([&](int32_t rank) -> Result {
    if (Result r = placed.Use(rank); !r.ok()) return r;
    Plan& plan = (*plans)[static_cast<size_t>(rank)];
    if (Result r = MakePlan(job, dataset, group.comm(rank), rank, policy, &plan); !r.ok()) {
      return r;
    }
    sparsesel_error error = SPARSESEL_ERROR_INIT;
    sparsesel_prepare_options options = SPARSESEL_PREPARE_OPTIONS_INIT;
    options.seed = job.race_seed;
    options.time_budget = static_cast<uint64_t>(job.budget * 1e9 / 2);
    options.child_plans = job.child_plans.empty() ? nullptr : job.child_plans.c_str();
    if (rank == 0 && progress != nullptr) options.progress = progress->Callback("prepare");
    const sparsesel_status status = sparsesel_plan_prepare(plan.get(), &options, &error);
    return LibraryResult("plan_prepare", status, error);
  });
}

Result BindPlans(const Group& group, const Placed& placed, const std::vector<Plan>& plans,
                 int32_t composition, std::vector<Binding>* bindings) {
  bindings->clear();
  bindings->resize(plans.size());
  return group.Run([&](int32_t rank) -> Result {
    if (Result r = placed.Use(rank); !r.ok()) return r;
    sparsesel_error error = SPARSESEL_ERROR_INIT;
    sparsesel_binding* made = nullptr;
    const sparsesel_status status = sparsesel_plan_bind(plans[static_cast<size_t>(rank)].get(),
                                                        nullptr, composition, &made, &error);
    (*bindings)[static_cast<size_t>(rank)].reset(made);
    return LibraryResult("plan_bind", status, error);
  });
}

}  // namespace sparsesel_tool
