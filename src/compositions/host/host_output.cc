#include <algorithm>

#include "compositions/host/host_run.h"
#include "contract/ownership.h"

namespace sparsesel {
namespace {

// The row's place in the output arrays.
int64_t Place(const HostRun& run, int32_t row) {
  if (run.job.everywhere()) return row;
  return row - OwnedRows(run.tiling.dealt, run.job.world, run.job.rank).begin;
}

}  // namespace

OutputRow OutputOf(const HostRun& run, int32_t row) {
  const sparsesel_io& io = run.call.io;
  const int64_t place = Place(run, row);
  // Scores leave as bits: a float copy may quieten a NaN on some machines.
  return {io.out_ids + place * io.out_id_stride,
          io.out_scores == nullptr
              ? nullptr
              : reinterpret_cast<uint32_t*>(io.out_scores) + place * io.out_score_stride,
          io.out_counts == nullptr ? nullptr : io.out_counts + place};
}

bool Receives(const HostRun& run, int32_t row) {
  if (run.job.everywhere()) return true;
  const RowRange owned = OwnedRows(run.tiling.dealt, run.job.world, run.job.rank);
  return owned.begin <= row && row < owned.end;
}

void WriteEmptyRow(const HostRun& run, int32_t row) {
  const OutputRow output = OutputOf(run, row);
  const int32_t k = run.job.problem.k;
  std::fill_n(output.ids, k, -1);
  if (output.score_bits != nullptr) std::fill_n(output.score_bits, k, kMinusInfinityBits);
  if (output.count != nullptr) *output.count = 0;
}

void WriteAnswer(const HostRun& run, int32_t row, const int32_t* answer) {
  const OutputRow output = OutputOf(run, row);
  const int32_t k = run.job.problem.k;
  std::copy_n(answer, k, output.ids);
  if (output.score_bits != nullptr) {
    std::copy_n(reinterpret_cast<const uint32_t*>(answer + k), k, output.score_bits);
  }
  if (output.count != nullptr) {
    // Ids are a dense prefix, then -1.
    const int32_t* const end =
        std::partition_point(answer, answer + k, [](int32_t id) { return id >= 0; });
    *output.count = static_cast<int32_t>(end - answer);
  }
}

}  // namespace sparsesel
