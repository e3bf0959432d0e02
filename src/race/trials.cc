#include "race/trials.h"

#include <algorithm>
#include <utility>

#include "contract/ownership.h"
#include "contract/trace.h"
#include "xxhash.h"

namespace sparsesel {
namespace {

constexpr int32_t kPoison = -77;  // neither an id nor -1

// Rows that go through host memory at a time: a copy to or from a device takes some microseconds,
// however little it copies.
int32_t StagedRows(size_t row_bytes) {
  constexpr size_t kStaging = size_t{4} << 20;
  return static_cast<int32_t>(std::max<size_t>(1, kStaging / row_bytes));
}

int64_t ScoreStride(const Job& job) {
  return job.problem.input_kind == SPARSESEL_INPUT_POSITIONS ? job.problem.score_row_length
                                                             : job.problem.candidates;
}

}  // namespace

RowDigest DigestRow(const Job& job, const int32_t* ids, const uint32_t* score_bits, int32_t count) {
  const auto k = static_cast<size_t>(job.problem.k);
  XXH128_hash_t hash = XXH3_128bits_withSeed(
      ids, k * sizeof(int32_t), job.problem.wants_counts() ? static_cast<uint32_t>(count) : 0);
  if (job.problem.wants_scores()) {
    const XXH128_hash_t scores =
        XXH3_128bits_withSeed(score_bits, k * sizeof(uint32_t), hash.low64);
    hash.low64 ^= scores.low64;
    hash.high64 ^= scores.high64;
  }
  return {hash.low64, hash.high64};
}

RowDigest DigestReference(const Job& job, const ReferenceRow& row) {
  return DigestRow(job, row.ids.data(), row.score_bits.data(), row.count);
}

Trials::Trials(std::shared_ptr<Comm> comm, const Backend& backend, const Job& job)
    : comm_(std::move(comm)), backend_(backend), job_(job), score_stride_(ScoreStride(job)) {}

Trials::~Trials() {
  if (slot_.memory == nullptr) return;
  const Status drained = backend_.drain(slot_, comm_->SteadyDeadline());
  if (drained.ok()) return;
  // A peer may still be reading: memory that is lost is better than memory that is reused.
  comm_->environment().Log(SPARSESEL_LOG_WARNING, drained.text());
  Abandon(std::move(slot_.memory));
}

RowRange Trials::OutputRows(int32_t rows) const {
  return job_.everywhere() ? RowRange{0, rows} : OwnedRows(rows, job_.world, job_.rank);
}

uint64_t Trials::InputOutputBytes(const Job& job, int32_t rows) {
  const auto n = static_cast<uint64_t>(rows);
  const uint64_t answer =
      4 * static_cast<uint64_t>(job.problem.k) * (job.problem.wants_scores() ? 2 : 1);
  const uint64_t counts = job.problem.wants_counts() ? 8 : 4;
  return n * (4 * static_cast<uint64_t>(ScoreStride(job)) +
              4 * static_cast<uint64_t>(job.problem.candidates) + answer + counts);
}

Status Trials::Create(std::shared_ptr<Comm> comm, const Backend& backend, const Job& job,
                      int32_t rows, size_t workspace_bytes, size_t peer_visible,
                      std::unique_ptr<Trials>* trials) {
  std::unique_ptr<Trials> made(new Trials(std::move(comm), backend, job));
  Comm& group = *made->comm_;
  const auto n = static_cast<size_t>(rows);
  const size_t k = static_cast<size_t>(job.problem.k) * sizeof(int32_t);
  SPARSESEL_RETURN_IF_ERROR(backend.make_slot(group, false, &made->slot_));
  SPARSESEL_RETURN_IF_ERROR(backend.reserve(group, workspace_bytes, peer_visible, &made->slot_));
  const auto take = [&](size_t bytes, const char* tag, Buffer* buffer) {
    return Buffer::Take(group.environment(), backend.memory, bytes, tag, buffer);
  };
  SPARSESEL_RETURN_IF_ERROR(take(n * static_cast<size_t>(made->score_stride_) * sizeof(float),
                                 "trial scores", &made->scores_));
  SPARSESEL_RETURN_IF_ERROR(take(n * static_cast<size_t>(job.problem.candidates) * sizeof(int32_t),
                                 "trial ids", &made->ids_));
  SPARSESEL_RETURN_IF_ERROR(take(n * sizeof(int32_t), "trial counts", &made->counts_));
  SPARSESEL_RETURN_IF_ERROR(take(n * k, "trial output ids", &made->out_ids_));
  SPARSESEL_RETURN_IF_ERROR(
      take(job.problem.wants_scores() ? n * k : 0, "trial output scores", &made->out_scores_));
  SPARSESEL_RETURN_IF_ERROR(take(job.problem.wants_counts() ? n * sizeof(int32_t) : 0,
                                 "trial output counts", &made->out_counts_));
  *trials = std::move(made);
  return {};
}

Status Trials::Connect() { return backend_.connect(*comm_, &slot_); }

uint64_t Trials::bytes() const {
  return slot_.memory->size() + scores_.size() + ids_.size() + counts_.size() + out_ids_.size() +
         out_scores_.size() + out_counts_.size();
}

Status Trials::Load(int32_t rows, const std::function<const TrialRow*(int32_t row)>& make) {
  const auto scores = static_cast<size_t>(score_stride_);
  const auto ids = static_cast<size_t>(job_.problem.candidates);
  std::vector<float> staged_scores;
  std::vector<int32_t> staged_ids;
  std::vector<int32_t> staged_counts;
  const int32_t step = StagedRows((scores + ids) * sizeof(float));
  for (int32_t begin = 0; begin < rows; begin += step) {
    staged_scores.clear();
    staged_ids.clear();
    staged_counts.clear();
    for (int32_t row = begin; row < std::min(rows, begin + step); ++row) {
      const TrialRow& made = *make(row);
      staged_scores.insert(staged_scores.end(), made.scores.begin(), made.scores.begin() + scores);
      staged_ids.insert(staged_ids.end(), made.ids.begin(), made.ids.begin() + ids);
      staged_counts.push_back(made.count);
    }
    const auto copy = [&](const Buffer& to, size_t width, const auto& from) {
      return backend_.copy_in(*comm_,
                              to.data() + static_cast<size_t>(begin) * width * sizeof(from[0]),
                              from.data(), from.size() * sizeof(from[0]));
    };
    SPARSESEL_RETURN_IF_ERROR(copy(scores_, scores, staged_scores));
    SPARSESEL_RETURN_IF_ERROR(copy(ids_, ids, staged_ids));
    SPARSESEL_RETURN_IF_ERROR(copy(counts_, 1, staged_counts));
  }
  return {};
}

Call Trials::MakeCall(int32_t rows) {
  Call call;
  call.io.struct_size = sizeof(sparsesel_io);
  call.io.rows = rows;
  call.io.scores = reinterpret_cast<const float*>(scores_.data());
  call.io.ids = reinterpret_cast<const int32_t*>(ids_.data());
  call.io.counts = reinterpret_cast<const int32_t*>(counts_.data());
  call.io.out_ids = reinterpret_cast<int32_t*>(out_ids_.data());
  call.io.out_scores = reinterpret_cast<float*>(out_scores_.data());
  call.io.out_counts = reinterpret_cast<int32_t*>(out_counts_.data());
  call.io.score_stride = score_stride_;
  call.io.id_stride = job_.problem.candidates;
  call.io.out_id_stride = job_.problem.k;
  call.io.out_score_stride = job_.problem.k;
  call.message.kind = CallKind::kExecute;
  call.message.rows = rows;
  call.message.active_rows = rows;
  call.message.sequence = sequence_;
  call.deadline = comm_->StartupDeadline();
  call.stream = backend_.trial_stream(slot_);
  return call;
}

Status Trials::Run(const Executor& executor, int32_t rows) {
  const TraceRange range("trial", rows);
  ++sequence_;
  SPARSESEL_RETURN_IF_ERROR(executor.Execute(MakeCall(rows), slot_, nullptr, &counters_));
  return backend_.finish(slot_);
}

Status Trials::Time(const Executor& executor, int32_t rows, int32_t length, double* ns) {
  const TraceRange range("timed trial", rows);
  Call call = MakeCall(rows);
  const Status status = backend_.time_train(*comm_, executor, slot_, length, &call, ns);
  sequence_ = call.message.sequence;
  return status;
}

Status Trials::MeasureSpans(const Executor& executor, int32_t rows, std::span<SpanTimes> executes) {
  const TraceRange range("spans of a trial", rows);
  Call call = MakeCall(rows);
  const Status status = backend_.time_spans(*comm_, executor, slot_, &call, executes);
  sequence_ = call.message.sequence;
  return status;
}

Status Trials::ProveLossless(const Executor& executor) {
  return executor.ProveLossless(slot_, comm_->StartupDeadline());
}

Status Trials::Poison(int32_t rows) {
  const RowRange output = OutputRows(rows);
  const auto k = static_cast<size_t>(job_.problem.k);
  const int32_t step = std::min(StagedRows(k * sizeof(int32_t)), std::max(1, output.size()));
  const std::vector<int32_t> poison(static_cast<size_t>(step) * k, kPoison);
  for (int32_t begin = 0; begin < output.size(); begin += step) {
    const auto staged = static_cast<size_t>(std::min(step, output.size() - begin));
    const auto spoil = [&](const Buffer& buffer, size_t width) {
      return backend_.copy_in(*comm_,
                              buffer.data() + static_cast<size_t>(begin) * width * sizeof(int32_t),
                              poison.data(), staged * width * sizeof(int32_t));
    };
    SPARSESEL_RETURN_IF_ERROR(spoil(out_ids_, k));
    if (job_.problem.wants_scores()) SPARSESEL_RETURN_IF_ERROR(spoil(out_scores_, k));
    if (job_.problem.wants_counts()) SPARSESEL_RETURN_IF_ERROR(spoil(out_counts_, 1));
  }
  return {};
}

Status Trials::ReadDigests(int32_t rows, std::vector<RowDigest>* digests) {
  const RowRange output = OutputRows(rows);
  const auto k = static_cast<size_t>(job_.problem.k);
  const int32_t step = std::min(StagedRows(k * sizeof(int32_t)), std::max(1, output.size()));
  std::vector<int32_t> ids(static_cast<size_t>(step) * k);
  std::vector<uint32_t> score_bits(job_.problem.wants_scores() ? ids.size() : 0);
  std::vector<int32_t> counts(static_cast<size_t>(step));
  for (int32_t begin = 0; begin < output.size(); begin += step) {
    const auto staged = static_cast<size_t>(std::min(step, output.size() - begin));
    const auto read = [&](const Buffer& buffer, size_t width, void* to) {
      return backend_.copy_out(*comm_, to,
                               buffer.data() + static_cast<size_t>(begin) * width * sizeof(int32_t),
                               staged * width * sizeof(int32_t));
    };
    SPARSESEL_RETURN_IF_ERROR(read(out_ids_, k, ids.data()));
    if (job_.problem.wants_scores()) {
      SPARSESEL_RETURN_IF_ERROR(read(out_scores_, k, score_bits.data()));
    }
    if (job_.problem.wants_counts()) {
      SPARSESEL_RETURN_IF_ERROR(read(out_counts_, 1, counts.data()));
    }
    for (size_t i = 0; i < staged; ++i) {
      (*digests)[static_cast<size_t>(output.begin + begin) + i] =
          DigestRow(job_, ids.data() + i * k, score_bits.data() + (score_bits.empty() ? 0 : i * k),
                    counts[i]);
    }
  }
  return {};
}

}  // namespace sparsesel
