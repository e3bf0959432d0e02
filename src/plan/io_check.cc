#include "plan/io_check.h"

#include <array>
#include <cstdint>

#include "contract/ownership.h"

namespace sparsesel {
namespace {

// A strided array of 4-byte elements, as bytes.
struct Extent {
  const char* name;
  uintptr_t begin = 0;
  uint64_t row_bytes = 0;
  uint64_t stride_bytes = 0;
  uint64_t rows = 0;

  bool empty() const { return begin == 0 || rows == 0; }
  uintptr_t end() const { return begin + (rows - 1) * stride_bytes + row_bytes; }
};

Extent MakeExtent(const char* name, const void* data, int64_t row, int64_t stride, int64_t rows) {
  return {name, reinterpret_cast<uintptr_t>(data), static_cast<uint64_t>(row) * 4,
          static_cast<uint64_t>(stride) * 4, static_cast<uint64_t>(rows)};
}

// Whether two arrays share a byte. Rows of one stride may interleave without touching.
bool Overlap(const Extent& a, const Extent& b) {
  if (a.empty() || b.empty() || a.end() <= b.begin || b.end() <= a.begin) return false;
  if (a.stride_bytes != b.stride_bytes || a.stride_bytes == 0) return true;
  const Extent& low = a.begin <= b.begin ? a : b;
  const Extent& high = a.begin <= b.begin ? b : a;
  const uint64_t shift = (high.begin - low.begin) % low.stride_bytes;
  return shift < low.row_bytes || shift + high.row_bytes > low.stride_bytes;
}

Status CheckArray(const Problem& problem, const Extent& extent, bool required, bool has_rows) {
  if (extent.begin == 0) {
    if (!required) return {};
    return Status::Error(SPARSESEL_INVALID_ARGUMENT, "io.%s is NULL", extent.name);
  }
  const auto alignment = static_cast<uint64_t>(has_rows ? problem.alignment : 4);
  if (extent.begin % alignment != 0) {
    return Status::Error(SPARSESEL_INVALID_ARGUMENT, "io.%s is %#x, not a multiple of %d",
                         extent.name, extent.begin, alignment);
  }
  if (has_rows && extent.rows > 1 && extent.stride_bytes % alignment != 0) {
    return Status::Error(SPARSESEL_INVALID_ARGUMENT,
                         "the stride of io.%s is %d bytes, not a multiple of %d", extent.name,
                         extent.stride_bytes, alignment);
  }
  if (extent.rows > 0 && extent.end() < extent.begin) {
    return Status::Error(SPARSESEL_INVALID_ARGUMENT, "io.%s runs past the end of memory",
                         extent.name);
  }
  return {};
}

Status CheckStride(const char* name, int64_t promised, int64_t* stride) {
  if (*stride == 0) *stride = promised;
  if (*stride < promised || *stride > (int64_t{1} << 40)) {
    return Status::Error(SPARSESEL_INVALID_ARGUMENT,
                         "io.%s is %d, the problem promised at least %d", name, *stride, promised);
  }
  return {};
}

Status CheckOptional(const char* name, bool given, bool wanted) {
  if (given == wanted) return {};
  if (given) {
    return Status::Error(SPARSESEL_INVALID_ARGUMENT,
                         "io.%s is given, but the problem did not ask for it", name);
  }
  return Status::Error(SPARSESEL_INVALID_ARGUMENT, "io.%s is NULL, but the problem asked for it",
                       name);
}

}  // namespace

Status CheckIo(const Job& job, int32_t largest_capacity, bool reads_only, sparsesel_io* io) {
  const Problem& problem = job.problem;
  if (io->rows < 0 || io->rows > largest_capacity) {
    return Status::Error(SPARSESEL_INVALID_ARGUMENT, "io.rows is %d, not in 0 .. %d", io->rows,
                         largest_capacity);
  }
  SPARSESEL_RETURN_IF_ERROR(CheckStride("score_stride", problem.score_stride, &io->score_stride));
  SPARSESEL_RETURN_IF_ERROR(CheckStride("id_stride", problem.id_stride, &io->id_stride));
  if (io->row_starts != nullptr && problem.input_kind != SPARSESEL_INPUT_POSITIONS) {
    return CheckOptional("row_starts", true, false);
  }
  const bool needed = io->rows > 0;
  const int64_t score_row = problem.input_kind == SPARSESEL_INPUT_POSITIONS
                                ? problem.score_row_length
                                : problem.candidates;
  const std::array<Extent, 5> inputs = {
      MakeExtent("scores", io->scores, score_row, io->score_stride, io->rows),
      MakeExtent("ids", io->ids, problem.candidates, io->id_stride, io->rows),
      MakeExtent("counts", io->counts, 1, 1, io->rows),
      MakeExtent("row_starts", io->row_starts, 1, 1, io->rows),
      MakeExtent("active_rows", io->active_rows, 1, 1, 1),
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    SPARSESEL_RETURN_IF_ERROR(CheckArray(problem, inputs[i], needed && i < 2, i < 2));
  }
  if (reads_only) return {};

  SPARSESEL_RETURN_IF_ERROR(
      CheckStride("out_id_stride", problem.output_stride, &io->out_id_stride));
  SPARSESEL_RETURN_IF_ERROR(
      CheckStride("out_score_stride", problem.output_stride, &io->out_score_stride));
  const int64_t out_rows =
      job.everywhere() ? io->rows : OwnedRows(io->rows, job.world, job.rank).size();
  if (needed) {
    SPARSESEL_RETURN_IF_ERROR(
        CheckOptional("out_scores", io->out_scores != nullptr, problem.wants_scores()));
    SPARSESEL_RETURN_IF_ERROR(
        CheckOptional("out_counts", io->out_counts != nullptr, problem.wants_counts()));
  }
  const std::array<Extent, 4> outputs = {
      MakeExtent("out_ids", io->out_ids, problem.k, io->out_id_stride, out_rows),
      MakeExtent("out_scores", io->out_scores, problem.k, io->out_score_stride, out_rows),
      MakeExtent("out_counts", io->out_counts, 1, 1, out_rows),
      MakeExtent("status_word", io->status_word, 1, 1, 1),
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    SPARSESEL_RETURN_IF_ERROR(CheckArray(problem, outputs[i], out_rows > 0 && i == 0, i < 2));
    for (size_t j = 0; j < inputs.size(); ++j) {
      const bool in_place =
          i == 0 && j == 1 && io->out_ids == io->ids && io->out_id_stride == io->id_stride;
      if (in_place || !Overlap(outputs[i], inputs[j])) continue;
      return Status::Error(SPARSESEL_INVALID_ARGUMENT, "io.%s overlaps io.%s", outputs[i].name,
                           inputs[j].name);
    }
    for (size_t j = 0; j < i; ++j) {
      if (!Overlap(outputs[i], outputs[j])) continue;
      return Status::Error(SPARSESEL_INVALID_ARGUMENT, "io.%s overlaps io.%s", outputs[i].name,
                           outputs[j].name);
    }
  }
  return {};
}

}  // namespace sparsesel
