// What prepare finds out about the other ranks.
#ifndef SPARSESEL_PLAN_NEGOTIATION_H_
#define SPARSESEL_PLAN_NEGOTIATION_H_

#include "comm/comm.h"
#include "contract/job.h"
#include "plan/plan.h"

namespace sparsesel {

// All-gathers the ranks' problems and fills in the job. MISMATCH names the first field that must be
// shared and is not, with both values.
Status Negotiate(Comm& comm, const Problem& problem, const PrepareOptions& options, Job* job);

}  // namespace sparsesel

#endif  // SPARSESEL_PLAN_NEGOTIATION_H_
