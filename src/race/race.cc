#include "race/race.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "contract/guard.h"
#include "contract/ownership.h"
#include "race/expected.h"
#include "xxhash.h"

namespace sparsesel {
namespace {

constexpr int32_t kWarmTrain = 3;
constexpr int32_t kFirstLook = 16;  // pairs
constexpr int32_t kSpanRuns = 5;
constexpr int32_t kLongestTrain = 10'000;
constexpr const char* kNames[2] = {"replicated", "owner"};

Entrant& EntrantOf(CapacityReport& report, int32_t which) {
  return which == 0 ? report.replicated : report.owner;
}

// What a rank found of one composition at one capacity, exchanged after a round of checks.
struct Finding {
  int32_t wrong_item = -1;  // row of the trial input, or holdout row, that was wrong; -1: none
  int32_t status = SPARSESEL_OK;
  double ns = 0;                        // of one execute
  std::array<double, kStages> spans{};  // ns per stage
};

// splitmix64: the coin that orders the compositions of a pair, the same on every rank.
bool Coin(uint64_t seed, uint64_t contest, uint64_t pair) {
  uint64_t x = seed + 0x9e3779b97f4a7c15u * (1 + contest * 1024 + pair);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return ((x ^ (x >> 31)) & 1) != 0;
}

// The numbers of pairs after which a race is judged: soon, so that clear cases cost little, and at
// the end.
struct Looks {
  int32_t count = 0;
  std::array<int32_t, 3> pairs{};
};

Looks LooksOf(int32_t max_pairs) {
  Looks looks;
  for (const int32_t pairs : {kFirstLook, max_pairs / 2, max_pairs}) {
    if (looks.count > 0 && pairs <= looks.pairs[static_cast<size_t>(looks.count - 1)]) continue;
    looks.pairs[static_cast<size_t>(looks.count++)] = std::min(pairs, max_pairs);
  }
  return looks;
}

// Everything a race works with. The phases are its methods, in the order they are run. Each phase
// ends in one all-gather, which also carries what went wrong on any rank; until then a rank that
// failed locally keeps executing with its peers.
class Race {
 public:
  Race(Comm& comm, const Job& job, const RaceSettings& settings, Trials& trials,
       std::vector<Contest>& contests)
      : comm_(comm), job_(job), settings_(settings), trials_(trials), contests_(contests) {}

  Status Run(uint64_t* digest) {
    begin_ = comm_.environment().Now();
    SPARSESEL_RETURN_IF_ERROR(MakeRows());
    SPARSESEL_RETURN_IF_ERROR(CheckTrialInput());
    rule_ = settings_.rule;
    const Looks looks = LooksOf(settings_.max_pairs);
    rule_.looks = looks.count;
    for (int32_t look = 0; look < looks.count; ++look) SPARSESEL_RETURN_IF_ERROR(Look(looks, look));
    SPARSESEL_RETURN_IF_ERROR(CheckHoldouts());
    return Agree(digest);
  }

 private:
  static constexpr size_t kReplicated = 0;
  static constexpr size_t kOwner = 1;

  struct State {
    bool alive[2] = {false, false};  // executable and exact so far
    int32_t train[2] = {1, 1};
    double estimate[2] = {0, 0};
    std::vector<double> samples[2];
    Verdict verdict;
    int32_t winner = 0;
    int32_t pairs = 0;
  };

  void Step(double fraction, const char* text) const {
    if (settings_.progress.step != nullptr) {
      settings_.progress.step(settings_.progress.context, fraction, text);
    }
  }

  Status MakeRows();
  Status CheckTrialInput();
  Status Look(const Looks& looks, int32_t look);
  Status CheckHoldouts();
  Status Agree(uint64_t* digest);

  Status LoadTrial();
  // Whether the rows of the last execute, of which row r should be expected(r), are all right:
  // the first wrong one, or -1.
  template <typename Expected>
  Status FirstWrong(int32_t rows, Expected expected, int32_t* wrong);
  void RunHoldouts(size_t contest, size_t which, Finding* finding, Status* local);
  void MeasureSpans(size_t contest);
  Status GatherFindings(const Status& local);
  void Disqualify(size_t contest, size_t which, const char* input);
  void PickWinner(size_t contest);

  Comm& comm_;
  const Job& job_;
  const RaceSettings& settings_;
  Trials& trials_;
  std::vector<Contest>& contests_;
  int64_t begin_ = 0;
  DecisionRule rule_;

  RaceRows rows_;
  std::vector<State> states_;
  std::vector<Finding> own_;  // [contest, composition]
  std::vector<Finding> all_;  // [rank, contest, composition]
  std::vector<RowDigest> digests_;
  std::vector<int32_t> taken_;  // pairs, in the look at hand
  std::vector<double> own_samples_;
  std::vector<double> all_samples_;
  int64_t elapsed_ = 0;  // ns, agreed at the last all-gather that carried it
};

Status Race::MakeRows() {
  Step(0.0, "making trial inputs");
  const int32_t most = contests_.back().capacity;
  int32_t period = TrialPeriod(job_, most);
  std::vector<Record> records;
  if (settings_.trial_io != nullptr) {
    TrialIo& io = *settings_.trial_io;
    SPARSESEL_RETURN_IF_ERROR(
        comm_.AllGather(io.own.data(), io.all.data(), io.own.size() * sizeof(Record)));
    period = static_cast<int32_t>(io.rows.size());
    rows_.trial = std::move(io.rows);
    records = std::move(io.all);
  }
  // All memory that the measuring needs is taken here: without it a rank could not go on, and says
  // so before its peers begin to execute.
  const Status memory = Guarded([&]() -> Status {
    states_.resize(contests_.size());
    taken_.resize(contests_.size());
    own_.resize(contests_.size() * 2);
    all_.resize(own_.size() * static_cast<size_t>(job_.world));
    digests_.resize(static_cast<size_t>(most));
    const auto pairs = static_cast<size_t>(settings_.max_pairs);
    own_samples_.resize(1 + contests_.size() * pairs * 2);
    all_samples_.resize(own_samples_.size() * static_cast<size_t>(job_.world));
    for (State& state : states_) {
      for (auto& samples : state.samples) samples.reserve(pairs);
    }
    return {};
  });
  return MakeRaceRows(comm_, job_, settings_.seed, period, records, memory, &rows_);
}

Status Race::LoadTrial() {
  return trials_.Load(contests_.back().capacity, [&](int32_t row) {
    return &rows_.trial[static_cast<size_t>(row) % rows_.trial.size()];
  });
}

template <typename Expected>
Status Race::FirstWrong(int32_t rows, Expected expected, int32_t* wrong) {
  SPARSESEL_RETURN_IF_ERROR(trials_.ReadDigests(rows, &digests_));
  const RowRange output =
      job_.everywhere() ? RowRange{0, rows} : OwnedRows(rows, job_.world, job_.rank);
  for (int32_t row = output.begin; row < output.end && *wrong < 0; ++row) {
    if (digests_[static_cast<size_t>(row)] != expected(row)) *wrong = row;
  }
  return {};
}

Status Race::GatherFindings(const Status& local) {
  return comm_.AllGatherOrFail(local, own_.data(), all_.data(), own_.size() * sizeof(Finding));
}

// Takes a composition out if any rank found it wrong or failing.
void Race::Disqualify(size_t contest, size_t which, const char* input) {
  for (int32_t rank = 0; rank < job_.world; ++rank) {
    const Finding& finding = all_[static_cast<size_t>(rank) * own_.size() + contest * 2 + which];
    if (finding.status == SPARSESEL_OK && finding.wrong_item < 0) continue;
    states_[contest].alive[which] = false;
    Entrant& entrant = EntrantOf(*contests_[contest].report, static_cast<int32_t>(which));
    entrant.exact = false;
    // A reason lost for want of memory changes no decision.
    (void)Guarded([&]() -> Status {
      entrant.disqualified = finding.status != SPARSESEL_OK
                                 ? "failed on rank " + std::to_string(rank) + " with status " +
                                       std::to_string(finding.status)
                                 : "wrong ids on rank " + std::to_string(rank) + ", " + input +
                                       " row " + std::to_string(finding.wrong_item);
      return {};
    });
    return;
  }
}

Status Race::CheckTrialInput() {
  Step(0.1, "checking both compositions");
  Status local = Guarded([&] { return LoadTrial(); });
  for (size_t c = 0; c < contests_.size(); ++c) {
    const Contest& contest = contests_[c];
    for (size_t which : {kReplicated, kOwner}) {
      Finding& finding = own_[c * 2 + which];
      states_[c].alive[which] = contest.executors[which] != nullptr;
      if (!states_[c].alive[which]) continue;
      const Executor& executor = *contest.executors[which];
      KeepFirst(Guarded([&] { return trials_.Poison(contest.capacity); }), &local);
      const Status run = trials_.Run(executor, contest.capacity, nullptr);
      if (!run.ok()) {
        finding.status = run.code();
        if (!comm_.State().ok()) return run;
        continue;
      }
      KeepFirst(Guarded([&] {
                  return FirstWrong(
                      contest.capacity,
                      [&](int32_t row) -> const RowDigest& { return rows_.trial_digest(row); },
                      &finding.wrong_item);
                }),
                &local);
      SPARSESEL_RETURN_IF_ERROR(trials_.Time(executor, contest.capacity, kWarmTrain, &finding.ns));
    }
  }
  SPARSESEL_RETURN_IF_ERROR(GatherFindings(local));
  for (size_t c = 0; c < contests_.size(); ++c) {
    State& state = states_[c];
    for (size_t which : {kReplicated, kOwner}) {
      if (!state.alive[which]) continue;
      Disqualify(c, which, "trial");
      for (size_t r = 0; r < static_cast<size_t>(job_.world); ++r) {
        state.estimate[which] =
            std::max(state.estimate[which], all_[r * own_.size() + c * 2 + which].ns);
      }
      // A clock that stands still would ask for trains without end.
      const double wanted =
          state.estimate[which] > 0
              ? std::ceil(static_cast<double>(settings_.sample_duration) / state.estimate[which])
              : 1.0;
      state.train[which] = static_cast<int32_t>(std::clamp(wanted, 1.0, double{kLongestTrain}));
    }
  }
  return {};
}

// Takes the samples of one look for every undecided capacity, gathers them and judges.
Status Race::Look(const Looks& looks, int32_t look) {
  const bool last = look == looks.count - 1;
  std::fill(taken_.begin(), taken_.end(), 0);
  double left = static_cast<double>(settings_.time_budget - elapsed_);
  size_t used = 1;
  for (size_t c = 0; c < contests_.size(); ++c) {
    State& state = states_[c];
    if (state.verdict.decided || !state.alive[kReplicated] || !state.alive[kOwner]) continue;
    const double cost = state.train[0] * state.estimate[0] + state.train[1] * state.estimate[1];
    // Ranks agree on what fits, since they agree on estimates and on the time gone by. Where not
    // all pairs fit, fewer are worth their time if they can decide.
    const int32_t wanted = looks.pairs[static_cast<size_t>(look)] - state.pairs;
    if (cost > left) continue;
    const int32_t pairs = cost * wanted <= left ? wanted : static_cast<int32_t>(left / cost);
    if (state.pairs + pairs < FewestPairs(rule_)) continue;
    left -= cost * pairs;
    taken_[c] = pairs;
    Step(0.2 + 0.6 * (look + static_cast<double>(c) / static_cast<double>(contests_.size())) /
                   looks.count,
         "racing");
    for (int32_t pair = state.pairs; pair < state.pairs + pairs; ++pair) {
      const bool owner_first = Coin(settings_.seed, c, static_cast<uint64_t>(pair));
      double ns[2] = {0, 0};
      for (int32_t turn = 0; turn < 2; ++turn) {
        const size_t which = (turn == 0) == owner_first ? kOwner : kReplicated;
        SPARSESEL_RETURN_IF_ERROR(trials_.Time(
            *contests_[c].executors[which], contests_[c].capacity, state.train[which], &ns[which]));
      }
      own_samples_[used++] = ns[kReplicated];
      own_samples_[used++] = ns[kOwner];
    }
  }
  own_samples_[0] = static_cast<double>(comm_.environment().Now() - begin_);
  SPARSESEL_RETURN_IF_ERROR(
      comm_.AllGather(own_samples_.data(), all_samples_.data(), used * sizeof(double)));
  const auto slowest = [&](size_t index) {
    double value = -std::numeric_limits<double>::infinity();
    for (size_t r = 0; r < static_cast<size_t>(job_.world); ++r) {
      const double sample = all_samples_[r * used + index];
      // A rank whose clock failed spoils the sample: the maximum would hide it.
      if (!(sample > 0)) return sample;
      value = std::max(value, sample);
    }
    return value;
  };
  // Time gone by is bounded by what any rank saw; a clock that stands still never ends a race
  // early, the number of pairs does.
  elapsed_ = static_cast<int64_t>(std::clamp(slowest(0), 0.0, 1e18));
  size_t index = 1;
  for (size_t c = 0; c < contests_.size(); ++c) {
    if (taken_[c] == 0) continue;
    State& state = states_[c];
    for (const int32_t until = state.pairs + taken_[c]; state.pairs < until; ++state.pairs) {
      for (size_t which : {kReplicated, kOwner}) {
        state.samples[which].push_back(slowest(index++));
      }
    }
    state.verdict = Judge(state.samples[kReplicated], state.samples[kOwner], rule_, last);
  }
  return {};
}

void Race::PickWinner(size_t contest) {
  State& state = states_[contest];
  sparsesel_outcome& outcome = contests_[contest].report->outcome;
  outcome.pairs = state.pairs;
  outcome.rule = state.verdict.rule;
  outcome.ratio = state.verdict.ratio;
  outcome.ratio_low = state.verdict.ratio_low;
  outcome.ratio_high = state.verdict.ratio_high;
  state.winner = state.verdict.decided && state.verdict.winner == SPARSESEL_COMPOSITION_OWNER;
  if (!state.alive[static_cast<size_t>(state.winner)] ||
      !(state.alive[kReplicated] && state.alive[kOwner])) {
    state.winner = state.alive[kReplicated] ? 0 : 1;
    outcome.rule = SPARSESEL_RULE_ONLY_EXACT;
  }
}

void Race::RunHoldouts(size_t c, size_t which, Finding* finding, Status* local) {
  const Contest& contest = contests_[c];
  const int32_t capacity = contest.capacity;
  // Small capacities take several executes to see every holdout row; large ones repeat the rows.
  for (int32_t base = 0; base < kHoldoutRows; base += capacity) {
    const auto item = [&](int32_t row) { return static_cast<size_t>((base + row) % kHoldoutRows); };
    KeepFirst(Guarded([&] {
                return trials_.Load(capacity,
                                    [&](int32_t row) { return &rows_.holdout[item(row)]; });
              }),
              local);
    KeepFirst(Guarded([&] { return trials_.Poison(capacity); }), local);
    const Status run = trials_.Run(*contest.executors[which], capacity, nullptr);
    if (!run.ok()) {
      if (finding->status == SPARSESEL_OK) finding->status = run.code();
      if (!comm_.State().ok()) return;
      continue;
    }
    int32_t wrong = -1;
    KeepFirst(
        Guarded([&] {
          return FirstWrong(
              capacity,
              [&](int32_t row) -> const RowDigest& { return rows_.holdout_expected[item(row)]; },
              &wrong);
        }),
        local);
    if (wrong >= 0 && finding->wrong_item < 0) {
      finding->wrong_item = static_cast<int32_t>(item(wrong));
    }
  }
}

void Race::MeasureSpans(size_t c) {
  for (size_t which : {kReplicated, kOwner}) {
    if (!states_[c].alive[which]) continue;
    std::array<std::array<double, kSpanRuns>, kStages> runs{};
    for (size_t run = 0; run < kSpanRuns; ++run) {
      SpanTimes spans;
      // A composition that fails here is out, as with the holdouts; the others go on.
      const Status status =
          trials_.Run(*contests_[c].executors[which], contests_[c].capacity, &spans);
      if (!status.ok()) own_[c * 2 + which].status = status.code();
      for (size_t s = 0; s < kStages; ++s) runs[s][run] = static_cast<double>(spans.stage[s]);
    }
    for (size_t s = 0; s < kStages; ++s) {
      std::sort(runs[s].begin(), runs[s].end());
      own_[c * 2 + which].spans[s] = runs[s][kSpanRuns / 2];
    }
  }
}

Status Race::CheckHoldouts() {
  Step(0.8, "checking holdouts");
  Status local;
  std::fill(own_.begin(), own_.end(), Finding{});
  for (size_t c = 0; c < contests_.size(); ++c) {
    PickWinner(c);
    MeasureSpans(c);
  }
  bool again = false;
  for (size_t round = 0; round == 0 || (round == 1 && again); ++round) {
    for (size_t c = 0; c < contests_.size(); ++c) {
      const State& state = states_[c];
      const auto which = static_cast<size_t>(state.winner);
      // The second round is for capacities whose first choice failed.
      if (!state.alive[which]) continue;
      if (round == 1 && contests_[c].report->outcome.rule != SPARSESEL_RULE_HOLDOUT) continue;
      RunHoldouts(c, which, &own_[c * 2 + which], &local);
      if (const Status group = comm_.State(); !group.ok()) return group;
    }
    SPARSESEL_RETURN_IF_ERROR(GatherFindings(local));
    again = false;
    for (size_t c = 0; c < contests_.size(); ++c) {
      State& state = states_[c];
      const auto which = static_cast<size_t>(state.winner);
      if (!state.alive[which]) continue;
      Disqualify(c, which, "holdout");
      if (state.alive[which]) continue;
      // The other one, if it is still in, becomes the first choice and has to pass as well.
      const size_t other = 1 - which;
      if (!state.alive[other]) continue;
      state.winner = static_cast<int32_t>(other);
      contests_[c].report->outcome.rule = SPARSESEL_RULE_HOLDOUT;
      again = true;
    }
  }
  for (size_t c = 0; c < contests_.size(); ++c) {
    if (states_[c].alive[static_cast<size_t>(states_[c].winner)]) continue;
    const CapacityReport& report = *contests_[c].report;
    return Status::Error(
        SPARSESEL_WRONG_RESULT, "no composition is exact at capacity %d; replicated: %s; owner: %s",
        contests_[c].capacity, report.replicated.disqualified, report.owner.disqualified);
  }
  return {};
}

Status Race::Agree(uint64_t* digest) {
  Step(0.95, "agreeing");
  std::vector<uint64_t> votes;
  const auto conclude = [&]() -> Status {
    votes.resize(static_cast<size_t>(job_.world));
    std::string text;
    for (size_t c = 0; c < contests_.size(); ++c) {
      const State& state = states_[c];
      CapacityReport& report = *contests_[c].report;
      sparsesel_outcome& outcome = report.outcome;
      outcome.capacity = contests_[c].capacity;
      outcome.winner =
          state.winner == 0 ? SPARSESEL_COMPOSITION_REPLICATED : SPARSESEL_COMPOSITION_OWNER;
      for (size_t which : {kReplicated, kOwner}) {
        Entrant& entrant = EntrantOf(report, static_cast<int32_t>(which));
        entrant.measured = !state.samples[which].empty();
        entrant.samples = state.samples[which];
        entrant.train_lengths.assign(entrant.samples.size(), state.train[which]);
        for (size_t s = 0; s < kStages; ++s) {
          double slowest = 0;
          for (size_t r = 0; r < static_cast<size_t>(job_.world); ++r) {
            slowest = std::max(slowest, all_[r * own_.size() + c * 2 + which].spans[s]);
          }
          if (slowest > 0) {
            entrant.spans.push_back({StageName(static_cast<Stage>(s)), slowest});
          }
        }
        const Summary summary = Summarize(entrant.samples);
        (which == 0 ? outcome.replicated_median : outcome.owner_median) = summary.median;
        (which == 0 ? outcome.replicated_spread : outcome.owner_spread) = summary.spread;
        (which == 0 ? outcome.replicated_exact : outcome.owner_exact) = entrant.exact ? 1 : 0;
      }
      text += std::to_string(outcome.capacity) + ' ' + kNames[state.winner] + ' ' +
              std::to_string(outcome.rule);
      for (const std::string& name : EntrantOf(report, state.winner).child_plans) {
        text += ' ' + name;
      }
      text += '\n';
    }
    *digest = XXH64(text.data(), text.size(), 0);
    return {};
  };
  const Status local = Guarded(conclude);
  SPARSESEL_RETURN_IF_ERROR(comm_.AllGatherOrFail(local, digest, votes.data(), sizeof(uint64_t)));
  for (int32_t r = 1; r < job_.world; ++r) {
    if (votes[static_cast<size_t>(r)] == votes[0]) continue;
    return Status::Error(SPARSESEL_MISMATCH,
                         "rank %d decided %016x in the race, rank 0 decided %016x", r,
                         votes[static_cast<size_t>(r)], votes[0])
        .WithRank(r);
  }
  return {};
}

}  // namespace

Status RunRace(Comm& comm, const Job& job, const RaceSettings& settings, Trials& trials,
               std::vector<Contest>& contests, uint64_t* digest) {
  return Race(comm, job, settings, trials, contests).Run(digest);
}

}  // namespace sparsesel
