#include "race/expected.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "contract/guard.h"
#include "stages/host/pack.h"

namespace sparsesel {
namespace {

// A bound on what gathering a caller's trial rows takes on each rank.
constexpr int64_t kTrialIoBytes = int64_t{64} << 20;

constexpr uint64_t kHoldoutSeed = 0x9e3779b97f4a7c15u;  // other streams than the trial's

RowDigest ReferenceDigest(const Job& job, const std::vector<TrialRow>& lists) {
  std::vector<ReferenceList> views;
  views.reserve(lists.size());
  for (const TrialRow& list : lists) views.push_back(list.list());
  return DigestReference(job, SelectReference(views, job.problem.k,
                                              job.problem.output_order == SPARSESEL_OUTPUT_BY_ID));
}

// The digest of one generated row, over all ranks' lists.
RowDigest GeneratedDigest(const Job& job, InputKind kind, uint64_t seed, int64_t row) {
  std::vector<TrialRow> lists(static_cast<size_t>(job.world));
  for (int32_t r = 0; r < job.world; ++r) {
    MakeTrialRow(job, r, kind, seed, row, &lists[static_cast<size_t>(r)]);
  }
  return ReferenceDigest(job, lists);
}

RowDigest RecordsDigest(const Job& job, const std::vector<Record>& records, size_t rows,
                        size_t row) {
  const auto world = static_cast<size_t>(job.world);
  const auto longest = static_cast<size_t>(job.longest);
  std::vector<TrialRow> lists(world);
  for (size_t r = 0; r < world; ++r) {
    const Record* const list = records.data() + (r * rows + row) * longest;
    lists[r].count = job.candidates[r];
    for (size_t i = 0; i < static_cast<size_t>(job.candidates[r]); ++i) {
      lists[r].list_scores.push_back(std::bit_cast<float>(list[i].score_bits));
      lists[r].list_ids.push_back(list[i].id);
    }
  }
  return ReferenceDigest(job, lists);
}

}  // namespace

InputKind HoldoutKind(int32_t holdout_row) {
  return static_cast<InputKind>(1 + holdout_row % kHoldoutKinds);
}

int32_t TrialPeriod(const Job& job, int32_t rows) {
  const int64_t row_bytes = int64_t{job.world} * job.longest * int64_t{sizeof(Record)};
  const auto fit =
      static_cast<int32_t>(std::clamp<int64_t>(kTrialIoBytes / row_bytes, 1, kTrialPeriod));
  return std::min(rows, fit);
}

Status CopyTrialIo(const Comm& comm, const Backend& backend, const Job& job, const sparsesel_io& io,
                   int32_t largest_capacity, TrialIo* copied) {
  const Problem& problem = job.problem;
  const auto rows = static_cast<size_t>(std::min(TrialPeriod(job, largest_capacity), io.rows));
  const auto longest = static_cast<size_t>(job.longest);
  copied->own.resize(rows * longest, Record{0, -1});
  copied->all.resize(static_cast<size_t>(job.world) * copied->own.size());
  copied->rows.resize(rows);
  const auto length = static_cast<size_t>(problem.candidates);
  const size_t score_length = problem.input_kind == SPARSESEL_INPUT_POSITIONS
                                  ? static_cast<size_t>(problem.score_row_length)
                                  : length;
  for (size_t row = 0; row < rows; ++row) {
    TrialRow& trial = copied->rows[row];
    trial.scores.resize(score_length);
    trial.ids.resize(length);
    trial.count = problem.candidates;
    const auto r = static_cast<int64_t>(row);
    SPARSESEL_RETURN_IF_ERROR(backend.copy_out(
        comm, trial.scores.data(), io.scores + r * io.score_stride, score_length * sizeof(float)));
    SPARSESEL_RETURN_IF_ERROR(backend.copy_out(comm, trial.ids.data(), io.ids + r * io.id_stride,
                                               length * sizeof(int32_t)));
    if (io.counts != nullptr) {
      SPARSESEL_RETURN_IF_ERROR(
          backend.copy_out(comm, &trial.count, io.counts + r, sizeof(int32_t)));
    }
    int32_t start = 0;
    if (io.row_starts != nullptr) {
      SPARSESEL_RETURN_IF_ERROR(backend.copy_out(comm, &start, io.row_starts + r, sizeof(int32_t)));
    }
    // Trials run without row starts: fold them into the positions.
    if (start != 0) {
      for (int32_t& position : trial.ids) {
        if (position >= 0) position += start;
      }
    }
    const PackInput input{trial.scores.data(), trial.ids.data(), &trial.count, nullptr, 0, 0};
    SPARSESEL_RETURN_IF_ERROR(PackRow(problem, input, 0, copied->own.data() + row * longest));
  }
  return {};
}

Status MakeRaceRows(Comm& comm, const Job& job, uint64_t seed, int32_t rows,
                    const std::vector<Record>& records, const Status& local, RaceRows* race_rows) {
  const auto trial_rows = static_cast<size_t>(rows);
  const size_t items = trial_rows + kHoldoutRows;
  const auto world = static_cast<size_t>(job.world);
  // Item i is rank i % world's; every rank sends as many, so that the messages have one size.
  const size_t share = (items + world - 1) / world;
  std::vector<RowDigest> own;
  std::vector<RowDigest> all;
  const auto make = [&]() -> Status {
    own.resize(share);
    all.resize(share * world);
    SPARSESEL_RETURN_IF_ERROR(local);
    if (records.empty()) {
      race_rows->trial.resize(trial_rows);
      for (size_t row = 0; row < trial_rows; ++row) {
        MakeTrialRow(job, job.rank, InputKind::kTrial, seed, static_cast<int64_t>(row),
                     &race_rows->trial[row]);
      }
    }
    race_rows->holdout.resize(kHoldoutRows);
    for (int32_t row = 0; row < kHoldoutRows; ++row) {
      MakeTrialRow(job, job.rank, HoldoutKind(row), seed ^ kHoldoutSeed, row / kHoldoutKinds,
                   &race_rows->holdout[static_cast<size_t>(row)]);
    }
    race_rows->trial_expected.resize(trial_rows);
    race_rows->holdout_expected.resize(kHoldoutRows);
    for (size_t i = 0; i < share; ++i) {
      const size_t item = i * world + static_cast<size_t>(job.rank);
      if (item >= items) break;
      if (item >= trial_rows) {
        const auto row = static_cast<int32_t>(item - trial_rows);
        own[i] = GeneratedDigest(job, HoldoutKind(row), seed ^ kHoldoutSeed, row / kHoldoutKinds);
      } else if (records.empty()) {
        own[i] = GeneratedDigest(job, InputKind::kTrial, seed, static_cast<int64_t>(item));
      } else {
        own[i] = RecordsDigest(job, records, trial_rows, item);
      }
    }
    return {};
  };
  const Status made = Guarded(make);
  SPARSESEL_RETURN_IF_ERROR(
      comm.AllGatherOrFail(made, own.data(), all.data(), share * sizeof(RowDigest)));
  for (size_t item = 0; item < items; ++item) {
    const RowDigest& digest = all[(item % world) * share + item / world];
    if (item < trial_rows) {
      race_rows->trial_expected[item] = digest;
    } else {
      race_rows->holdout_expected[item - trial_rows] = digest;
    }
  }
  return {};
}

}  // namespace sparsesel
