// The init functions: what the INIT macros give, for languages that have no macros of C.
#include "sparsesel.h"

namespace {

template <typename Struct>
void Set(Struct* out, const Struct& initial) {
  if (out != nullptr) *out = initial;
}

}  // namespace

void sparsesel_error_init(sparsesel_error* error) { Set(error, SPARSESEL_ERROR_INIT); }

void sparsesel_transport_init(sparsesel_transport* transport) {
  Set(transport, SPARSESEL_TRANSPORT_INIT);
}

void sparsesel_comm_options_init(sparsesel_comm_options* options) {
  Set(options, SPARSESEL_COMM_OPTIONS_INIT);
}

void sparsesel_comm_info_init(sparsesel_comm_info* info) { Set(info, SPARSESEL_COMM_INFO_INIT); }

void sparsesel_problem_init(sparsesel_problem* problem) { Set(problem, SPARSESEL_PROBLEM_INIT); }

void sparsesel_memory_init(sparsesel_memory* memory) { Set(memory, SPARSESEL_MEMORY_INIT); }

void sparsesel_io_init(sparsesel_io* io) { Set(io, SPARSESEL_IO_INIT); }

void sparsesel_prepare_options_init(sparsesel_prepare_options* options) {
  Set(options, SPARSESEL_PREPARE_OPTIONS_INIT);
}

void sparsesel_race_options_init(sparsesel_race_options* options) {
  Set(options, SPARSESEL_RACE_OPTIONS_INIT);
}

void sparsesel_outcome_init(sparsesel_outcome* outcome) { Set(outcome, SPARSESEL_OUTCOME_INIT); }

void sparsesel_workspace_options_init(sparsesel_workspace_options* options) {
  Set(options, SPARSESEL_WORKSPACE_OPTIONS_INIT);
}

void sparsesel_stats_init(sparsesel_stats* stats) { Set(stats, SPARSESEL_STATS_INIT); }
