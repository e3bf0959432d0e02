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

struct Results {
  Outcomes outcomes;
  std::vector<RankOutput> ranks;
};

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
