#include "plan/negotiation.h"

#include <array>
#include <vector>

#include "contract/guard.h"
#include "xxhash.h"

namespace sparsesel {
namespace {

constexpr size_t kMaxShared = 16;

struct Hello {
  std::array<uint64_t, kMaxShared> shared{};
  RankFacts facts;
};

}  // namespace

Status Negotiate(Comm& comm, const Problem& problem, const PrepareOptions& options, Job* job) {
  std::vector<SharedField> fields;
  Hello own;
  std::array<Hello, kMaxWorldSize> all;
  const Status local = Guarded([&]() -> Status {
    fields = SharedFields(problem);
    fields.push_back({"seed", options.seed});
    fields.push_back({"time_budget", options.time_budget});
    fields.push_back(
        {"child_plans (digest)", XXH64(options.child_plans.data(), options.child_plans.size(), 0)});
    if (fields.size() > kMaxShared) {
      return Status::Error(SPARSESEL_INTERNAL, "%d shared fields", fields.size());
    }
    for (size_t i = 0; i < fields.size(); ++i) own.shared[i] = fields[i].value;
    own.facts = FactsOf(problem);
    job->problem = problem;
    job->rank = comm.rank();
    job->world = comm.world();
    return {};
  });
  SPARSESEL_RETURN_IF_ERROR(comm.AllGatherOrFail(local, &own, all.data(), sizeof(Hello)));
  std::array<RankFacts, kMaxWorldSize> facts{};
  for (int32_t rank = 0; rank < comm.world(); ++rank) {
    const auto r = static_cast<size_t>(rank);
    for (size_t i = 0; i < fields.size(); ++i) {
      if (all[r].shared[i] == all[0].shared[i]) continue;
      return Status::Error(SPARSESEL_MISMATCH, "%s is %d on rank %d and %d on rank 0",
                           fields[i].name, all[r].shared[i], rank, all[0].shared[i])
          .WithRank(rank);
    }
    facts[r] = all[r].facts;
  }
  SetFacts(facts, job);
  return {};
}

}  // namespace sparsesel
