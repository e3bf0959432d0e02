// From the option structs of the public header to what the library uses inside. Every field is
// checked here or by ParseProblem; the sentence names the field and its value.
#ifndef SPARSESEL_API_OPTIONS_H_
#define SPARSESEL_API_OPTIONS_H_

#include <cstdint>

#include "comm/comm.h"
#include "contract/problem.h"
#include "contract/status.h"
#include "plan/plan.h"
#include "sparsesel.h"

namespace sparsesel {

// `options` may be NULL. The group's world size is `world`.
Status ParseLocalOptions(const sparsesel_comm_options* options, int32_t world, CommOptions* out);

// For sparsesel_comm_create. Fails only if there is no way to tell the peers; anything else that is
// wrong goes into comm.invalid.
struct JoinOptions {
  int32_t rank = 0;
  int32_t world = 1;
  CommOptions comm;
};
Status ParseJoinOptions(const sparsesel_comm_options* options, JoinOptions* out);

// A limit in ns as Comm wants it: 0 stays 0, more than 100 years is 100 years.
uint64_t ClampTimeout(uint64_t timeout);

Status ParseProblemStruct(const sparsesel_problem* options, Problem* out);

// The options of collective calls: what is wrong goes into `invalid`, so that the call is entered.
PrepareOptions ParsePrepareOptions(const sparsesel_prepare_options* options);
RaceOptions ParseRaceOptions(const sparsesel_race_options* options);
Status ParseWorkspaceOptions(const sparsesel_workspace_options* options, int32_t* slots);
Status CheckComposition(int32_t composition);

// Between the library and a caller's progress callback: lets no exception through, and calls no
// more after one. Progress is a courtesy; a collective call that this rank left for it would leave
// the peers waiting.
class ProgressGuard {
 public:
  explicit ProgressGuard(const sparsesel_progress& progress) : progress_(progress) {}
  ProgressGuard(const ProgressGuard&) = delete;
  ProgressGuard& operator=(const ProgressGuard&) = delete;

  // Valid as long as the guard.
  sparsesel_progress Guarded();

 private:
  static void Step(void* context, double fraction, const char* text);

  sparsesel_progress progress_;
};

}  // namespace sparsesel

#endif  // SPARSESEL_API_OPTIONS_H_
