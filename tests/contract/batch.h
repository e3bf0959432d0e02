// The input of one execute for all ranks, what must come out, and what came out.
#ifndef SPARSESEL_TESTS_CONTRACT_BATCH_H_
#define SPARSESEL_TESTS_CONTRACT_BATCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "contract/group_fixture.h"
#include "oracle/answer.h"
#include "sparsesel.h"

namespace contract {

inline constexpr int32_t kNoActiveRows = INT32_MAX;

// One rank's arrays; strides in elements, at least the row's length.
struct RankInput {
  int64_t score_stride = 0;
  int64_t id_stride = 0;
  std::vector<uint32_t> score_bits;
  std::vector<int32_t> ids;
  std::vector<int32_t> counts;      // empty: NULL
  std::vector<int32_t> row_starts;  // empty: NULL
};

struct Batch {
  int32_t rows = 0;
  std::vector<RankInput> ranks;
  int32_t active_rows = kNoActiveRows;  // kNoActiveRows: NULL
  uint64_t tag = 0;
};

// A batch with room for `rows` rows of the job's problems, all absent; strides as small as may be.
Batch MakeBatch(const Job& job, int32_t rows);

// Places one rank's list of a row of pairs: as many as are given, the rest by count.
void SetList(const Job& job, int32_t rank, int32_t row, const oracle::List& list, Batch* batch);

// What the contract sees: the list of one rank with global ids, after positions and id map.
oracle::List ListOf(const Job& job, const Batch& batch, int32_t rank, int32_t row);

// The answer to every row, by both oracles; inactive rows are empty.
std::vector<oracle::Answer> ExpectRows(const Job& job, const Batch& batch);

// How outputs lie in memory.
struct OutputLayout {
  int64_t id_stride = 0;     // 0: k
  int64_t score_stride = 0;  // 0: k
  bool in_place = false;     // out_ids is ids
};

// One rank's outputs. Memory around every row that may be written is poisoned and checked.
struct RankOutput {
  int32_t first_row = 0;  // of the call: owned rows have their own
  int32_t rows = 0;
  std::vector<int32_t> ids;          // rows x k
  std::vector<uint32_t> score_bits;  // rows x k, empty if not asked for
  std::vector<int32_t> counts;       // empty if not asked for
  std::string stray;                 // what was written that may not be
  int64_t allocations = 0;           // of this rank's thread inside execute
};

// The arrays of one rank's execute, in the groups' memory, and the io that describes them. Made,
// read and destroyed while no rank executes (see memory.h).
class RankArrays {
 public:
  RankArrays(const Job& job, const Batch& batch, int32_t rank, const OutputLayout& layout = {});

  // To be changed by tests that want something else.
  sparsesel_io io = SPARSESEL_IO_INIT;

  // What was written since the arrays were made, or Reset.
  RankOutput Read() const;
  // What the status word says: OK, or why an execute failed on the device.
  sparsesel_status device_status() const;
  // All as it was, in the same places.
  void Reset();
  // Another batch's input of the same shape in the same places; outputs as they were.
  void Replace(const Batch& batch, int32_t rank);

 private:
  // A poisoned array with guards on both sides, rows at a stride.
  class GuardedRows {
   public:
    GuardedRows() = default;
    GuardedRows(int32_t rows, int64_t stride, int64_t width);
    int32_t* data() const;
    const std::vector<int32_t>& before() const { return before_; }
    std::vector<int32_t> Now() const { return array_.Read(); }
    void Reset() { array_.Write(before_); }
    // The first `used` of each row.
    void Load(const std::vector<int32_t>& values, int64_t used);
    std::vector<int32_t> Pack(const std::vector<int32_t>& words) const;
    bool IsIntactAround(const std::vector<int32_t>& words) const;

   private:
    int64_t rows_ = 0;
    int64_t stride_ = 0;
    int64_t width_ = 0;
    std::vector<int32_t> before_;
    Array<int32_t> array_;
  };

  int32_t rows_;
  int32_t k_;
  int32_t length_;  // of the rank's lists
  int32_t first_row_;
  int32_t owned_rows_;
  bool in_place_;
  bool wants_scores_;
  bool wants_counts_;
  std::vector<uint32_t> scores_before_;
  Array<uint32_t> scores_;
  Array<int32_t> counts_;
  Array<int32_t> row_starts_;
  Array<int32_t> active_rows_;
  Array<uint32_t> status_word_;
  GuardedRows ids_;
  GuardedRows out_ids_;
  GuardedRows out_scores_;
  GuardedRows out_counts_;
};

std::vector<RankArrays> MakeArrays(const Job& job, const Batch& batch,
                                   const OutputLayout& layout = {});

// sparsesel_execute, and then what came of it: on a device, when `stream` is done, the status that
// the execute has left there.
sparsesel_status ExecuteAndWait(sparsesel_binding* binding, const RankArrays& arrays, void* stream,
                                sparsesel_error* error);
// The status word as an outcome.
sparsesel_status StatusOf(const RankArrays& arrays, sparsesel_error* error);

struct Results {
  Outcomes outcomes;
  std::vector<RankOutput> ranks;
};

Results ReadResults(const std::vector<RankArrays>& arrays, Outcomes outcomes);

Results Execute(const Bound& bound, const Job& job, const Batch& batch,
                const OutputLayout& layout = {});

// Empty if every rank returned OK and exactly the expected rows; else the first difference.
std::string Compare(const Job& job, const std::vector<oracle::Answer>& expected,
                    const Results& results);

// The whole way: execute and compare with the oracles.
std::string Check(const Bound& bound, const Job& job, const Batch& batch,
                  const OutputLayout& layout = {});

// Whether two executes gave the same outputs, whatever the statuses' texts.
bool SameOutputs(const Results& a, const Results& b);

}  // namespace contract

#endif  // SPARSESEL_TESTS_CONTRACT_BATCH_H_
