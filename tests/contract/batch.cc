#include "contract/batch.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "contract/allocation_probe.h"

namespace contract {
namespace {

constexpr int32_t kPoison = 0x5a5a5a5a;
constexpr size_t kGuard = 64;  // elements before and after an array

int32_t ListLength(const sparsesel_problem& problem) {
  return problem.candidates == 0 ? 2048 : problem.candidates;
}

int32_t K(const Job& job) { return job.problems[0].k == 0 ? 2048 : job.problems[0].k; }

int64_t ScoreRowLength(const sparsesel_problem& problem) {
  return problem.input_kind == SPARSESEL_INPUT_POSITIONS ? problem.score_row_length
                                                         : ListLength(problem);
}

int32_t GlobalId(const sparsesel_problem& problem, int32_t id) {
  if (id < 0) return id;
  const int64_t local = id;
  if (problem.id_map == SPARSESEL_ID_OFFSET) {
    return static_cast<int32_t>(local + problem.id_offset);
  }
  if (problem.id_map == SPARSESEL_ID_INTERLEAVE) {
    const int64_t block = local / problem.id_block * problem.id_shards + problem.id_shard;
    return static_cast<int32_t>(block * problem.id_block + local % problem.id_block);
  }
  return id;
}

bool WantsScores(const Job& job) {
  return (job.problems[0].outputs & SPARSESEL_OUTPUT_SCORES) != 0;
}
bool WantsCounts(const Job& job) {
  return (job.problems[0].outputs & SPARSESEL_OUTPUT_COUNTS) != 0;
}

std::vector<uint32_t> AsBits(const std::vector<int32_t>& words) {
  std::vector<uint32_t> bits(words.size());
  if (!words.empty()) std::memcpy(bits.data(), words.data(), words.size() * sizeof(int32_t));
  return bits;
}

struct Owned {
  int32_t begin;
  int32_t rows;
};

Owned RowsOf(const Job& job, int32_t rows, int32_t rank) {
  if (job.problems[0].output_scope != SPARSESEL_SCOPE_OWNED_ROWS) return {0, rows};
  int32_t begin = 0;
  int32_t end = 0;
  sparsesel_owned_rows(rows, job.world(), rank, &begin, &end, nullptr);
  return {begin, end - begin};
}

std::string Place(int32_t rank, int32_t row, int32_t slot) {
  return "rank " + std::to_string(rank) + ", row " + std::to_string(row) + ", slot " +
         std::to_string(slot) + ": ";
}

std::string CompareRow(const oracle::Answer& expected, const RankOutput& output, int32_t rank,
                       int32_t local_row, int32_t k) {
  const int32_t row = output.first_row + local_row;
  const auto at = static_cast<size_t>(local_row) * static_cast<size_t>(k);
  const auto bytes = static_cast<size_t>(k) * sizeof(int32_t);
  if (std::memcmp(output.ids.data() + at, expected.ids.data(), bytes) != 0) {
    for (int32_t i = 0; i < k; ++i) {
      const auto slot = static_cast<size_t>(i);
      if (output.ids[at + slot] == expected.ids[slot]) continue;
      return Place(rank, row, i) + "id " + std::to_string(output.ids[at + slot]) + " instead of " +
             std::to_string(expected.ids[slot]);
    }
  }
  if (!output.score_bits.empty() &&
      std::memcmp(output.score_bits.data() + at, expected.score_bits.data(), bytes) != 0) {
    for (int32_t i = 0; i < k; ++i) {
      const auto slot = static_cast<size_t>(i);
      if (output.score_bits[at + slot] == expected.score_bits[slot]) continue;
      return Place(rank, row, i) + "score bits " + std::to_string(output.score_bits[at + slot]) +
             " instead of " + std::to_string(expected.score_bits[slot]);
    }
  }
  if (!output.counts.empty() && output.counts[static_cast<size_t>(local_row)] != expected.count) {
    return Place(rank, row, 0) + "count " +
           std::to_string(output.counts[static_cast<size_t>(local_row)]) + " instead of " +
           std::to_string(expected.count);
  }
  return "";
}

}  // namespace

Batch MakeBatch(const Job& job, int32_t rows) {
  Batch batch;
  batch.rows = rows;
  for (const sparsesel_problem& problem : job.problems) {
    RankInput input;
    input.score_stride = std::max(ScoreRowLength(problem), problem.score_stride);
    input.id_stride = std::max<int64_t>(ListLength(problem), problem.id_stride);
    // One more, so that the arrays exist when there are no rows.
    input.score_bits.assign(static_cast<size_t>(rows * input.score_stride) + 1, 0x7f800000u);
    input.ids.assign(static_cast<size_t>(rows * input.id_stride) + 1, -1);
    input.counts.assign(static_cast<size_t>(rows) + 1, 0);
    batch.ranks.push_back(std::move(input));
  }
  return batch;
}

void SetList(const Job& job, int32_t rank, int32_t row, const oracle::List& list, Batch* batch) {
  RankInput& input = batch->ranks[static_cast<size_t>(rank)];
  const auto length = std::min<size_t>(
      list.ids.size(), static_cast<size_t>(ListLength(job.problems[static_cast<size_t>(rank)])));
  std::copy_n(list.score_bits.begin(), length,
              input.score_bits.begin() + int64_t{row} * input.score_stride);
  std::copy_n(list.ids.begin(), length, input.ids.begin() + int64_t{row} * input.id_stride);
  if (!input.counts.empty()) {
    input.counts[static_cast<size_t>(row)] = static_cast<int32_t>(list.count);
  }
}

oracle::List ListOf(const Job& job, const Batch& batch, int32_t rank, int32_t row) {
  const RankInput& input = batch.ranks[static_cast<size_t>(rank)];
  const sparsesel_problem& problem = job.problems[static_cast<size_t>(rank)];
  const uint32_t* scores = input.score_bits.data() + row * input.score_stride;
  const int32_t* ids = input.ids.data() + row * input.id_stride;
  const int32_t length = ListLength(problem);
  oracle::List list;
  list.count = input.counts.empty() ? length : input.counts[static_cast<size_t>(row)];
  list.score_bits.reserve(static_cast<size_t>(length));
  list.ids.reserve(static_cast<size_t>(length));
  for (int32_t i = 0; i < length; ++i) {
    int64_t at = i;
    if (problem.input_kind == SPARSESEL_INPUT_POSITIONS) {
      const int32_t start =
          input.row_starts.empty() ? 0 : input.row_starts[static_cast<size_t>(row)];
      at = ids[i] < 0 || i >= list.count ? 0 : int64_t{start} + ids[i];
    }
    list.score_bits.push_back(scores[at]);
    list.ids.push_back(GlobalId(problem, ids[i]));
  }
  return list;
}

std::vector<oracle::Answer> ExpectRows(const Job& job, const Batch& batch) {
  const bool by_id = job.problems[0].output_order == SPARSESEL_OUTPUT_BY_ID;
  const int32_t active = std::max(batch.active_rows, 0);
  std::vector<oracle::Answer> answers;
  for (int32_t row = 0; row < batch.rows; ++row) {
    std::vector<oracle::List> lists;
    for (int32_t rank = 0; rank < job.world() && row < active; ++rank) {
      lists.push_back(ListOf(job, batch, rank, row));
    }
    answers.push_back(oracle::Expect(lists, K(job), by_id));
  }
  return answers;
}

RankArrays::GuardedRows::GuardedRows(int32_t rows, int64_t stride, int64_t width)
    : rows_(rows),
      stride_(stride),
      width_(width),
      before_(2 * kGuard + static_cast<size_t>(rows * stride), kPoison),
      array_(before_) {}

void RankArrays::GuardedRows::Load(const std::vector<int32_t>& values, int64_t used) {
  for (int64_t row = 0; row < rows_; ++row) {
    std::copy_n(values.begin() + row * stride_, used,
                before_.begin() + static_cast<ptrdiff_t>(kGuard) + row * stride_);
  }
  Reset();
}

int32_t* RankArrays::GuardedRows::data() const { return array_.data() + kGuard; }

std::vector<int32_t> RankArrays::GuardedRows::Pack(const std::vector<int32_t>& words) const {
  std::vector<int32_t> packed;
  packed.reserve(static_cast<size_t>(rows_ * width_));
  for (int64_t row = 0; row < rows_; ++row) {
    const auto begin = words.begin() + static_cast<ptrdiff_t>(kGuard) + row * stride_;
    packed.insert(packed.end(), begin, begin + width_);
  }
  return packed;
}

bool RankArrays::GuardedRows::IsIntactAround(const std::vector<int32_t>& words) const {
  for (size_t i = 0; i < words.size(); ++i) {
    const int64_t at = static_cast<int64_t>(i) - static_cast<int64_t>(kGuard);
    const bool inside = at >= 0 && at < rows_ * stride_ && at % stride_ < width_;
    if (!inside && words[i] != before_[i]) return false;
  }
  return true;
}

RankArrays::RankArrays(const Job& job, const Batch& batch, int32_t rank, const OutputLayout& layout)
    : rows_(batch.rows),
      k_(K(job)),
      length_(ListLength(job.problems[static_cast<size_t>(rank)])),
      first_row_(RowsOf(job, batch.rows, rank).begin),
      owned_rows_(RowsOf(job, batch.rows, rank).rows),
      in_place_(layout.in_place),
      wants_scores_(WantsScores(job)),
      wants_counts_(WantsCounts(job)) {
  const RankInput& input = batch.ranks[static_cast<size_t>(rank)];
  const int64_t id_stride = layout.in_place         ? input.id_stride
                            : layout.id_stride != 0 ? layout.id_stride
                                                    : k_;
  const int64_t score_stride = layout.score_stride != 0 ? layout.score_stride : k_;

  scores_before_ = input.score_bits;
  scores_ = Array<uint32_t>(input.score_bits);
  if (!input.counts.empty()) counts_ = Array<int32_t>(input.counts);
  if (!input.row_starts.empty()) row_starts_ = Array<int32_t>(input.row_starts);
  if (batch.active_rows != kNoActiveRows) active_rows_ = Array<int32_t>(1, batch.active_rows);
  if (kOnDevice) status_word_ = Array<uint32_t>(1, SPARSESEL_OK);
  // Input ids lie behind guards, too: in place they are written, else they must not be.
  const int32_t width = layout.in_place ? std::max(length_, k_) : length_;
  ids_ = GuardedRows(batch.rows, input.id_stride, width);
  ids_.Load(input.ids, length_);
  out_ids_ = GuardedRows(owned_rows_, id_stride, k_);
  out_scores_ = GuardedRows(owned_rows_, score_stride, k_);
  out_counts_ = GuardedRows(owned_rows_, 1, 1);

  io.rows = batch.rows;
  io.scores = reinterpret_cast<const float*>(scores_.data());
  io.ids = ids_.data();
  io.counts = counts_.data();
  io.row_starts = row_starts_.data();
  io.active_rows = active_rows_.data();
  io.status_word = status_word_.data();
  io.out_ids = layout.in_place ? ids_.data() : out_ids_.data();
  if (wants_scores_) io.out_scores = reinterpret_cast<float*>(out_scores_.data());
  if (wants_counts_) io.out_counts = out_counts_.data();
  io.score_stride = input.score_stride;
  io.id_stride = input.id_stride;
  io.out_id_stride = id_stride;
  io.out_score_stride = score_stride;
  io.tag = batch.tag;
}

void RankArrays::Reset() {
  scores_.Write(scores_before_);
  if (kOnDevice) status_word_.Write({SPARSESEL_OK});
  ids_.Reset();
  out_ids_.Reset();
  out_scores_.Reset();
  out_counts_.Reset();
}

void RankArrays::Replace(const Batch& batch, int32_t rank) {
  const RankInput& input = batch.ranks[static_cast<size_t>(rank)];
  scores_before_ = input.score_bits;
  if (!input.counts.empty()) counts_.Write(input.counts);
  if (!input.row_starts.empty()) row_starts_.Write(input.row_starts);
  ids_.Load(input.ids, length_);
  Reset();
}

RankOutput RankArrays::Read() const {
  RankOutput output;
  output.first_row = first_row_;
  output.rows = owned_rows_;
  const std::vector<int32_t> ids = ids_.Now();
  const std::vector<int32_t> out_ids = out_ids_.Now();
  const std::vector<int32_t> out_scores = out_scores_.Now();
  const std::vector<int32_t> out_counts = out_counts_.Now();
  if (!ids_.IsIntactAround(ids)) output.stray += "around the ids; ";
  if (!out_ids_.IsIntactAround(out_ids)) output.stray += "around the output ids; ";
  if (!out_scores_.IsIntactAround(out_scores)) output.stray += "around the output scores; ";
  if (!out_counts_.IsIntactAround(out_counts)) output.stray += "around the output counts; ";
  if (in_place_ && out_ids != out_ids_.before()) output.stray += "an array not given; ";
  if (!wants_scores_ && out_scores != out_scores_.before()) output.stray += "an array not given; ";
  if (scores_before_ != scores_.Read()) output.stray += "the input scores; ";
  if (!in_place_ && ids != ids_.before()) output.stray += "the input ids; ";
  if (in_place_) {
    const std::vector<int32_t> after = ids_.Pack(ids);
    const std::vector<int32_t> before = ids_.Pack(ids_.before());
    const int64_t width = rows_ == 0 ? 0 : static_cast<int64_t>(after.size()) / rows_;
    for (int32_t row = 0; row < rows_; ++row) {
      const auto begin = after.begin() + row * width;
      if (row < owned_rows_) output.ids.insert(output.ids.end(), begin, begin + k_);
      const int32_t kept_from = row < owned_rows_ ? k_ : 0;
      if (!std::equal(begin + kept_from, begin + width, before.begin() + row * width + kept_from)) {
        output.stray += "input ids that no output covers; ";
      }
    }
  } else {
    output.ids = out_ids_.Pack(out_ids);
  }
  if (wants_scores_) output.score_bits = AsBits(out_scores_.Pack(out_scores));
  if (wants_counts_) output.counts = out_counts_.Pack(out_counts);
  return output;
}

sparsesel_status RankArrays::device_status() const {
  return kOnDevice ? static_cast<sparsesel_status>(status_word_.Read()[0]) : SPARSESEL_OK;
}

std::vector<RankArrays> MakeArrays(const Job& job, const Batch& batch, const OutputLayout& layout) {
  std::vector<RankArrays> arrays;
  for (int32_t rank = 0; rank < job.world(); ++rank) {
    const OnRank on(rank);
    arrays.emplace_back(job, batch, rank, layout);
  }
  return arrays;
}

sparsesel_status StatusOf(const RankArrays& arrays, sparsesel_error* error) {
  const sparsesel_status status = arrays.device_status();
  if (status != SPARSESEL_OK) {
    error->status = status;
    std::snprintf(error->text, sizeof(error->text), "left in the status word");
  }
  return status;
}

sparsesel_status ExecuteAndWait(sparsesel_binding* binding, const RankArrays& arrays, void* stream,
                                sparsesel_error* error) {
  const sparsesel_status status = sparsesel_execute(binding, &arrays.io, stream, error);
  if (status != SPARSESEL_OK) return status;
  Synchronize(stream);
  return StatusOf(arrays, error);
}

Results ReadResults(const std::vector<RankArrays>& arrays, Outcomes outcomes) {
  Results results;
  results.outcomes = std::move(outcomes);
  for (const RankArrays& rank : arrays) results.ranks.push_back(rank.Read());
  return results;
}

Results Execute(const Bound& bound, const Job& job, const Batch& batch,
                const OutputLayout& layout) {
  const std::vector<RankArrays> arrays = MakeArrays(job, batch, layout);
  std::vector<int64_t> allocations(arrays.size(), 0);
  Outcomes outcomes = OnEveryRank(job.world(), [&](int32_t rank, sparsesel_error* error) {
    const auto r = static_cast<size_t>(rank);
    sparsesel_status status = SPARSESEL_OK;
    {
      const AllocationCount count;
      status = sparsesel_execute(bound.binding(rank), &arrays[r].io, bound.stream(rank), error);
      // CUDA has its own ways.
      allocations[r] = kOnDevice ? 0 : count.value();
    }
    if (status != SPARSESEL_OK) return status;
    Synchronize(bound.stream(rank));
    return StatusOf(arrays[r], error);
  });
  Results results = ReadResults(arrays, std::move(outcomes));
  for (size_t r = 0; r < arrays.size(); ++r) results.ranks[r].allocations = allocations[r];
  return results;
}

std::string Compare(const Job& job, const std::vector<oracle::Answer>& expected,
                    const Results& results) {
  if (!AllOk(results.outcomes)) return Describe(results.outcomes);
  for (int32_t rank = 0; rank < job.world(); ++rank) {
    const RankOutput& output = results.ranks[static_cast<size_t>(rank)];
    if (output.allocations != 0) {
      return Place(rank, -1, -1) + std::to_string(output.allocations) + " allocations in execute";
    }
    if (!output.stray.empty()) return Place(rank, -1, -1) + "written: " + output.stray;
    for (int32_t row = 0; row < output.rows; ++row) {
      const std::string difference = CompareRow(
          expected[static_cast<size_t>(output.first_row + row)], output, rank, row, K(job));
      if (!difference.empty()) return difference;
    }
  }
  return "";
}

std::string Check(const Bound& bound, const Job& job, const Batch& batch,
                  const OutputLayout& layout) {
  if (!bound.ok()) return Describe(bound.outcomes());
  return Compare(job, ExpectRows(job, batch), Execute(bound, job, batch, layout));
}

bool SameOutputs(const Results& a, const Results& b) {
  for (size_t rank = 0; rank < a.ranks.size(); ++rank) {
    if (a.ranks[rank].ids != b.ranks[rank].ids ||
        a.ranks[rank].score_bits != b.ranks[rank].score_bits ||
        a.ranks[rank].counts != b.ranks[rank].counts) {
      return false;
    }
  }
  return true;
}

}  // namespace contract
