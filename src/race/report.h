// What a race found, as data; and as JSON.
#ifndef SPARSESEL_RACE_REPORT_H_
#define SPARSESEL_RACE_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "contract/problem.h"
#include "contract/status.h"
#include "sparsesel.h"

namespace sparsesel {

// One composition at one capacity.
struct Entrant {
  std::vector<std::string> child_plans;  // variant names with configuration, in stage order
  bool measured = false;
  bool exact = true;            // on the trial input and on the holdouts that were run
  std::string disqualified;     // why not exact, else empty
  std::vector<double> samples;  // ns of one execute, maximum over ranks, in the order taken
  std::vector<int32_t> train_lengths;
  struct Span {
    std::string stage;  // "pack", "exchange", "select", "replicate"
    double median = 0;  // ns, maximum over ranks
  };
  std::vector<Span> spans;
};

struct CapacityReport {
  sparsesel_outcome outcome = SPARSESEL_OUTCOME_INIT;
  Entrant replicated;
  Entrant owner;
};

struct Report {
  int32_t rank = 0;
  int32_t world = 1;
  std::string transport;
  Problem problem;
  uint64_t seed = 0;
  double margin = 0.02;       // what the owner had to be faster by
  double error_level = 0.05;  // over all looks
  uint64_t digest = 0;        // of the decision, equal on all ranks
  int64_t duration = 0;       // ns that the race took
  uint64_t control_calls = 0;
  bool raced = false;
  std::string note;  // e.g. why the policy kept the workload out
  std::vector<std::string> holdouts;
  uint64_t trial_bytes_freed = 0;
  std::vector<CapacityReport> capacities;  // ascending
};

// Never throws; OUT_OF_MEMORY when the text does not fit in memory.
Status ReportToJson(const Report& report, std::string* json);

}  // namespace sparsesel

#endif  // SPARSESEL_RACE_REPORT_H_
