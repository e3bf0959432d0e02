#include "contract/job.h"

#include <algorithm>

namespace sparsesel {

RankFacts FactsOf(const Problem& problem) {
  return {problem.candidates, problem.input_kind,       problem.input_order,
          problem.id_map,     problem.score_row_length, problem.memory_limit};
}

void SetFacts(const std::array<RankFacts, kMaxWorldSize>& facts, Job* job) {
  job->facts = facts;
  job->longest = 0;
  job->memory_limit = 0;
  for (size_t r = 0; r < static_cast<size_t>(job->world); ++r) {
    job->candidates[r] = facts[r].candidates;
    job->longest = std::max(job->longest, facts[r].candidates);
    if (facts[r].memory_limit != 0 &&
        (job->memory_limit == 0 || facts[r].memory_limit < job->memory_limit)) {
      job->memory_limit = facts[r].memory_limit;
    }
  }
}

Job LonelyJob(const Problem& problem, int32_t rank, int32_t world) {
  Job job;
  job.problem = problem;
  job.rank = rank;
  job.world = world;
  std::array<RankFacts, kMaxWorldSize> facts;
  facts.fill(FactsOf(problem));
  SetFacts(facts, &job);
  return job;
}

}  // namespace sparsesel
