// The private world of tuning and racing: trial inputs and outputs, and a slot to run in. All of it
// goes when this object goes.
#ifndef SPARSESEL_RACE_TRIALS_H_
#define SPARSESEL_RACE_TRIALS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "compositions/executor.h"
#include "contract/job.h"
#include "contract/ownership.h"
#include "race/trial_input.h"

namespace sparsesel {

// A digest of one output row: ids, score bits, count.
struct RowDigest {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const RowDigest&) const = default;
};
RowDigest DigestRow(const Job& job, const int32_t* ids, const uint32_t* score_bits, int32_t count);
RowDigest DigestReference(const Job& job, const ReferenceRow& row);

class Trials {
 public:
  // Memory for `rows` rows and executors of up to `workspace_bytes`. Every rank makes its trials at
  // the same point of its calls. A failure must be told to the others by the caller.
  static Status Create(std::shared_ptr<Comm> comm, const Backend& backend, const Job& job,
                       int32_t rows, size_t workspace_bytes, size_t peer_visible,
                       std::unique_ptr<Trials>* trials);
  // Lets the ranks' trials reach each other. Collective.
  Status Connect();
  ~Trials();

  // Bytes that creating takes, besides the workspace.
  static uint64_t InputOutputBytes(const Job& job, int32_t rows);
  uint64_t bytes() const;

  // Fills the first `rows` rows: row r from make(r), which must stay valid until the next call.
  Status Load(int32_t rows, const std::function<const TrialRow*(int32_t row)>& make);

  Status Run(const Executor& executor, int32_t rows);
  // A barrier, then `length` executes: ns per execute.
  Status Time(const Executor& executor, int32_t rows, int32_t length, double* ns);
  // The spans of as many executes as there is room for.
  Status MeasureSpans(const Executor& executor, int32_t rows, std::span<SpanTimes> executes);
  Status ProveLossless(const Executor& executor);

  // Outputs become values that no answer has.
  Status Poison(int32_t rows);
  // Digests of the rows this rank's output has; others stay default. `digests` has `rows` entries.
  Status ReadDigests(int32_t rows, std::vector<RowDigest>* digests);

 private:
  Trials(std::shared_ptr<Comm> comm, const Backend& backend, const Job& job);
  Call MakeCall(int32_t rows);
  RowRange OutputRows(int32_t rows) const;

  const std::shared_ptr<Comm> comm_;
  const Backend& backend_;
  const Job job_;
  Slot slot_;
  int64_t score_stride_ = 0;
  Buffer scores_;
  Buffer ids_;
  Buffer counts_;
  Buffer out_ids_;
  Buffer out_scores_;
  Buffer out_counts_;
  uint64_t sequence_ = 0;
  ExecuteCounters counters_;
};

}  // namespace sparsesel

#endif  // SPARSESEL_RACE_TRIALS_H_
