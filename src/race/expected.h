// The rows a race runs on, and the digests of their right answers. Each rank makes its own rows and
// the references of its share of them; one all-gather gives every rank all digests.
#ifndef SPARSESEL_RACE_EXPECTED_H_
#define SPARSESEL_RACE_EXPECTED_H_

#include <cstdint>
#include <vector>

#include "comm/comm.h"
#include "contract/job.h"
#include "race/trial_input.h"
#include "race/trials.h"

namespace sparsesel {

// Rows of the trial input repeat with this period, which shares no factor with common tile sizes.
inline constexpr int32_t kTrialPeriod = 61;
// Every holdout kind, in two patterns.
inline constexpr int32_t kHoldoutKinds = kInputKinds - 1;
inline constexpr int32_t kHoldoutRows = 2 * kHoldoutKinds;

InputKind HoldoutKind(int32_t holdout_row);  // of row 0 .. kHoldoutRows - 1

struct RaceRows {
  std::vector<TrialRow> trial;    // this rank's; row r of a call is trial[r % size]
  std::vector<TrialRow> holdout;  // this rank's, kHoldoutRows
  std::vector<RowDigest> trial_expected;
  std::vector<RowDigest> holdout_expected;

  const RowDigest& trial_digest(int32_t row) const {
    return trial_expected[static_cast<size_t>(row) % trial_expected.size()];
  }
};

// How many distinct trial rows a race over capacities up to `rows` uses.
int32_t TrialPeriod(const Job& job, int32_t rows);

// A caller's own trial rows, copied from `io`, whose arrays are in `backend`'s memory and have been
// checked: this rank's trial rows, and their records as [row, job.longest]. Local.
struct TrialIo {
  std::vector<TrialRow> rows;
  std::vector<Record> own;
  std::vector<Record> all;  // room for every rank's records
};
Status CopyTrialIo(const Comm& comm, const Backend& backend, const Job& job, const sparsesel_io& io,
                   int32_t largest_capacity, TrialIo* copied);

// Fills all of RaceRows; `records` are the caller's trial rows of all ranks as
// [rank, row, job.longest], or empty. `local` is what kept this rank from going on, told to all.
// Collective; one all-gather.
Status MakeRaceRows(Comm& comm, const Job& job, uint64_t seed, int32_t rows,
                    const std::vector<Record>& records, const Status& local, RaceRows* race_rows);

}  // namespace sparsesel

#endif  // SPARSESEL_RACE_EXPECTED_H_
