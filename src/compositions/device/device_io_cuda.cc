#include <algorithm>

#include "compositions/device/device_io.h"

namespace sparsesel {

Status RefuseLegacyStream(cudaStream_t stream) {
  if (stream != nullptr && stream != cudaStreamLegacy) return {};
  return Status::Error(SPARSESEL_INVALID_ARGUMENT,
                       "the legacy stream cannot be used: it would make ranks wait for each "
                       "other's kernels");
}

kernels::CandidateArrays InputOf(const Problem& problem, const sparsesel_io& io) {
  kernels::CandidateArrays input;
  input.scores = reinterpret_cast<const uint32_t*>(io.scores);
  input.ids = io.ids;
  input.counts = io.counts;
  input.row_starts = io.row_starts;
  input.score_stride = io.score_stride;
  input.id_stride = io.id_stride;
  input.score_row_length = problem.score_row_length;
  input.candidates = problem.candidates;
  input.positions = problem.input_kind == SPARSESEL_INPUT_POSITIONS;
  input.id_map = problem.id_map;
  return input;
}

kernels::AnswerOutput OutputOf(const Problem& problem, const sparsesel_io& io, int64_t row) {
  kernels::AnswerOutput output;
  output.ids = io.out_ids + row * io.out_id_stride;
  output.id_stride = io.out_id_stride;
  if (io.out_scores != nullptr) {
    output.score_bits = reinterpret_cast<uint32_t*>(io.out_scores) + row * io.out_score_stride;
    output.score_stride = io.out_score_stride;
  }
  if (io.out_counts != nullptr) output.counts = io.out_counts + row;
  output.k = problem.k;
  return output;
}

kernels::PeerRows TileRows(const Job& job, const sparsesel_io& io, int32_t begin, int32_t step) {
  kernels::PeerRows rows;
  rows.begin = begin;
  rows.rows = std::min(step, io.rows - begin);
  // With rows everywhere, each tile is dealt by itself; else ownership is that of the whole call.
  rows.deal_begin = job.everywhere() ? begin : 0;
  rows.deal_rows = job.everywhere() ? rows.rows : io.rows;
  rows.active_rows = io.active_rows;
  return rows;
}

RowRange RowsOfOwner(const Job& job, const kernels::PeerRows& rows, int32_t owner) {
  const RowRange owned = OwnedRows(rows.deal_rows, job.world, owner);
  const int32_t before = rows.begin - rows.deal_begin;
  return {std::clamp(owned.begin - before, 0, rows.rows),
          std::clamp(owned.end - before, 0, rows.rows)};
}

int64_t OutputRow(const Job& job, const kernels::PeerRows& rows, RowRange selected) {
  if (job.everywhere()) return rows.begin;
  return rows.begin + selected.begin - OwnedRows(rows.deal_rows, job.world, job.rank).begin;
}

}  // namespace sparsesel
