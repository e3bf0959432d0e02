#include "plan/tuner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "contract/guard.h"
#include "race/expected.h"

namespace sparsesel {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int32_t kTrain = 2;
constexpr int32_t kRepeats = 3;

bool Is(const Composition& composition, Stage stage, std::string_view name) {
  const ChildPlan* child = composition.At(stage);
  return child != nullptr && name == child->variant->name;
}

bool SameChild(const Composition& a, const Composition& b, Stage stage) {
  const ChildPlan* x = a.At(stage);
  const ChildPlan* y = b.At(stage);
  if (x == nullptr || y == nullptr) return x == y;
  return x->variant == y->variant && x->configuration == y->configuration;
}

// Child plans are searched stage by stage rather than in every combination: first how whole lists
// are packed and selected, then prefixes with the best select for sorted lists, then replicate.
enum class Step { kWholeLists, kPrefixes, kReplicate };

class Search {
 public:
  Search(Comm& comm, const Backend& backend, const Job& job,
         const std::vector<Composition>& compositions, const PrepareOptions& options,
         Trials& trials)
      : comm_(comm),
        backend_(backend),
        job_(job),
        compositions_(compositions),
        options_(options),
        trials_(trials) {}

  Status Run(std::vector<CapacityChoice>* choices);

 private:
  Status Tune(int32_t capacity);
  // Measures the given compositions at a capacity and agrees on the times, kNever where one failed.
  Status Measure(int32_t capacity);
  void Propose(Step step);
  size_t Best(int32_t kind) const;  // index of the fastest so far, or of the first untried one
  size_t FirstOf(int32_t kind) const;
  bool BestCanRun(int32_t capacity) const;  // of both kinds

  Comm& comm_;
  const Backend& backend_;
  const Job& job_;
  const std::vector<Composition>& compositions_;
  const PrepareOptions& options_;
  Trials& trials_;
  int64_t begin_ = 0;
  bool out_of_time_ = false;
  bool alone_[2] = {};  // one composition of the kind, or none: replicated, owner

  // Of the capacity at hand.
  std::vector<double> times_;  // ns by composition; 0: not measured
  std::vector<size_t> proposed_;
  std::vector<std::unique_ptr<Executor>> executors_;  // of the proposed
  std::vector<double> own_;                           // times of the proposed, then ns gone by
  std::vector<double> all_;
};

size_t Search::FirstOf(int32_t kind) const {
  for (size_t i = 0; i < compositions_.size(); ++i) {
    if (compositions_[i].kind == kind) return i;
  }
  return compositions_.size();
}

size_t Search::Best(int32_t kind) const {
  size_t best = FirstOf(kind);
  double time = kNever;
  for (size_t i = 0; i < compositions_.size(); ++i) {
    if (compositions_[i].kind != kind || times_[i] <= 0 || times_[i] >= time) continue;
    best = i;
    time = times_[i];
  }
  return best;
}

bool Search::BestCanRun(int32_t capacity) const {
  for (const int32_t kind : {SPARSESEL_COMPOSITION_REPLICATED, SPARSESEL_COMPOSITION_OWNER}) {
    const size_t best = Best(kind);
    if (best == compositions_.size()) continue;
    std::unique_ptr<Executor> executor;
    const Status made =
        backend_.make_executor(comm_, job_, capacity, compositions_[best], &executor);
    if (made.code() == SPARSESEL_UNSUPPORTED) return false;
  }
  return true;
}

void Search::Propose(Step step) {
  proposed_.clear();
  for (size_t i = 0; i < compositions_.size(); ++i) {
    const Composition& composition = compositions_[i];
    const Composition& best = compositions_[Best(composition.kind)];
    const Composition& first = compositions_[FirstOf(composition.kind)];
    const bool prefix = Is(composition, Stage::kExchange, "exchange.prefix");
    // The only one of its kind needs no choosing.
    if (alone_[composition.kind == SPARSESEL_COMPOSITION_OWNER ? 1 : 0]) continue;
    bool wanted = false;
    switch (step) {
      case Step::kWholeLists:
        wanted = !prefix && SameChild(composition, first, Stage::kReplicate);
        break;
      case Step::kPrefixes: {
        // A prefix that cannot hold its share of k would always have to be completed.
        const ChildPlan* exchange = composition.At(Stage::kExchange);
        wanted = prefix && int64_t{exchange->configuration} * job_.world >= job_.problem.k &&
                 SameChild(composition, best, Stage::kSelect) &&
                 SameChild(composition, first, Stage::kReplicate);
        break;
      }
      case Step::kReplicate:
        wanted = SameChild(composition, best, Stage::kPack) &&
                 SameChild(composition, best, Stage::kExchange) &&
                 SameChild(composition, best, Stage::kSelect);
        break;
    }
    if (wanted && times_[i] == 0) proposed_.push_back(i);
  }
}

Status Search::Measure(int32_t capacity) {
  // Executors first, then the meeting, then the measuring: what making one asks of a driver may
  // wait for kernels of other ranks that wait for this rank.
  executors_.clear();
  const Status made = Guarded([&]() -> Status {
    for (const size_t index : proposed_) {
      const Status status = backend_.make_executor(comm_, job_, capacity, compositions_[index],
                                                   &executors_.emplace_back());
      // Whether a composition fits is the same on all ranks.
      if (!status.ok() && status.code() != SPARSESEL_UNSUPPORTED) return status;
    }
    return {};
  });
  SPARSESEL_RETURN_IF_ERROR(comm_.AllGatherOrFail(made, nullptr, nullptr, 0));
  for (size_t p = 0; p < proposed_.size(); ++p) {
    own_[p] = kNever;
    if (executors_[p] == nullptr) continue;
    const Executor& executor = *executors_[p];
    // A proof fails on the ranks that saw it fail; they go on executing with the others.
    Status run = trials_.ProveLossless(executor);
    const bool lossy = run.code() == SPARSESEL_WRONG_RESULT;
    if (lossy) run = Status();
    double ns = 0;
    if (run.ok()) run = trials_.Run(executor, capacity);
    for (int32_t repeat = 0; repeat < kRepeats && run.ok(); ++repeat) {
      double sample = 0;
      run = trials_.Time(executor, capacity, kTrain, &sample);
      ns = repeat == 0 ? sample : std::min(ns, sample);
    }
    if (const Status group = comm_.State(); !group.ok()) return run.ok() ? group : run;
    if (!run.ok() || lossy) continue;
    own_[p] = ns > 0 ? ns : 1;  // a clock that stands still measures nothing, and fails nothing
  }
  const size_t used = proposed_.size() + 1;
  own_[used - 1] = static_cast<double>(comm_.environment().Now() - begin_);
  SPARSESEL_RETURN_IF_ERROR(comm_.AllGather(own_.data(), all_.data(), used * sizeof(double)));
  for (size_t r = 0; r < static_cast<size_t>(job_.world); ++r) {
    const double* const theirs = all_.data() + r * used;
    for (size_t p = 0; p < proposed_.size(); ++p) {
      times_[proposed_[p]] = std::max(times_[proposed_[p]], theirs[p]);
    }
    if (theirs[used - 1] > static_cast<double>(options_.time_budget)) out_of_time_ = true;
  }
  return {};
}

Status Search::Tune(int32_t capacity) {
  std::fill(times_.begin(), times_.end(), 0.0);
  for (const Step step : {Step::kWholeLists, Step::kPrefixes, Step::kReplicate}) {
    // Without a single time there is nothing to choose by: the first step is always taken.
    if (out_of_time_ && step != Step::kWholeLists) break;
    Propose(step);
    if (!proposed_.empty()) SPARSESEL_RETURN_IF_ERROR(Measure(capacity));
  }
  return {};
}

Status Search::Run(std::vector<CapacityChoice>* choices) {
  begin_ = comm_.environment().Now();
  std::vector<TrialRow> rows;
  const std::vector<int32_t>& capacities = job_.problem.capacities;
  const Status local = Guarded([&]() -> Status {
    times_.resize(compositions_.size());
    proposed_.reserve(compositions_.size());
    own_.resize(compositions_.size() + 1);
    all_.resize(own_.size() * static_cast<size_t>(job_.world));
    choices->resize(capacities.size());
    rows.resize(static_cast<size_t>(TrialPeriod(job_, capacities.back())));
    for (size_t row = 0; row < rows.size(); ++row) {
      MakeTrialRow(job_, job_.rank, InputKind::kTrial, options_.seed, static_cast<int64_t>(row),
                   &rows[row]);
    }
    return trials_.Load(capacities.back(),
                        [&](int32_t row) { return &rows[static_cast<size_t>(row) % rows.size()]; });
  });
  SPARSESEL_RETURN_IF_ERROR(comm_.AllGatherOrFail(local, nullptr, nullptr, 0));

  for (const int32_t kind : {SPARSESEL_COMPOSITION_REPLICATED, SPARSESEL_COMPOSITION_OWNER}) {
    alone_[kind - SPARSESEL_COMPOSITION_REPLICATED] =
        std::count_if(compositions_.begin(), compositions_.end(),
                      [kind](const Composition& c) { return c.kind == kind; }) <= 1;
  }
  int32_t tuned = 0;
  for (size_t c = 0; c < capacities.size(); ++c) {
    CapacityChoice& choice = (*choices)[c];
    choice.capacity = capacities[c];
    if (options_.progress.step != nullptr) {
      options_.progress.step(options_.progress.context,
                             static_cast<double>(c) / static_cast<double>(capacities.size()),
                             "choosing child plans");
    }
    // Each doubling of rows is tuned; in between, the choice of the last one holds, if it can run.
    if (tuned == 0 || (capacities[c] >= 2 * tuned && !out_of_time_) || !BestCanRun(capacities[c])) {
      SPARSESEL_RETURN_IF_ERROR(Tune(capacities[c]));
      tuned = capacities[c];
    }
    for (const int32_t kind : {SPARSESEL_COMPOSITION_REPLICATED, SPARSESEL_COMPOSITION_OWNER}) {
      Choice& chosen = choice.choices[kind - SPARSESEL_COMPOSITION_REPLICATED];
      const size_t best = Best(kind);
      chosen.available = best < compositions_.size();
      if (chosen.available) chosen.composition = compositions_[best];
    }
  }
  return {};
}

// Reductions are proven at the message size of every capacity, tuned or not; where that fails the
// answers are gathered.
Status ProveChoices(Comm& comm, const Backend& backend, const Job& job,
                    const std::vector<Composition>& compositions, Trials& trials,
                    std::vector<CapacityChoice>* choices) {
  for (CapacityChoice& choice : *choices) {
    Choice& owner = choice.choices[1];
    if (!owner.available) continue;
    const ChildPlan* replicate = owner.composition.At(Stage::kReplicate);
    if (replicate == nullptr) continue;
    std::unique_ptr<Executor> executor;
    Status proof = Guarded([&] {
      return backend.make_executor(comm, job, choice.capacity, owner.composition, &executor);
    });
    if (executor == nullptr && proof.code() == SPARSESEL_OUT_OF_MEMORY) return proof;
    if (executor != nullptr) proof = trials.ProveLossless(*executor);
    int32_t fails = proof.ok() ? 0 : 1;
    std::array<int32_t, kMaxWorldSize> all{};
    SPARSESEL_RETURN_IF_ERROR(comm.AllGather(&fails, all.data(), sizeof(fails)));
    if (*std::max_element(all.begin(), all.begin() + comm.world()) == 0) continue;
    owner.available = false;
    for (const Composition& other : compositions) {
      if (other.kind == SPARSESEL_COMPOSITION_OWNER &&
          (Is(other, Stage::kReplicate, "replicate.all_gather") ||
           Is(other, Stage::kReplicate, "nccl.all_gather")) &&
          SameChild(other, owner.composition, Stage::kPack) &&
          SameChild(other, owner.composition, Stage::kExchange) &&
          SameChild(other, owner.composition, Stage::kSelect)) {
        owner = {true, other};
        break;
      }
    }
  }
  return {};
}

}  // namespace

Status LargestWorkspace(const Comm& comm, const Backend& backend, const Job& job,
                        const std::vector<Composition>& compositions, size_t* bytes,
                        size_t* peer_visible) {
  *bytes = 0;
  *peer_visible = 0;
  for (const Composition& composition : compositions) {
    for (const int32_t capacity : job.problem.capacities) {
      // Without tiles, workspaces grow with the capacity.
      if (job.memory_limit == 0 && capacity != job.problem.capacities.back()) continue;
      std::unique_ptr<Executor> executor;
      const Status made = backend.make_executor(comm, job, capacity, composition, &executor);
      if (made.code() == SPARSESEL_UNSUPPORTED) continue;
      SPARSESEL_RETURN_IF_ERROR(made);
      *bytes = std::max(*bytes, executor->workspace_bytes());
      *peer_visible = std::max(*peer_visible, executor->peer_visible_bytes());
    }
  }
  return {};
}

Status TuneChildPlans(Comm& comm, const Backend& backend, const Job& job,
                      const std::vector<Composition>& compositions, const PrepareOptions& options,
                      Trials& trials, std::vector<CapacityChoice>* choices) {
  SPARSESEL_RETURN_IF_ERROR(Search(comm, backend, job, compositions, options, trials).Run(choices));
  return ProveChoices(comm, backend, job, compositions, trials, choices);
}

}  // namespace sparsesel
