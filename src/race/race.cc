#include "race/race.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "contract/guard.h"
#include "contract/ownership.h"
#include "race/expected.h"
#include "race/race_phases.h"

namespace sparsesel {
namespace {

constexpr int32_t kWarmTrain = 3;
constexpr int32_t kFirstLook = 16;  // pairs
constexpr int32_t kLongestTrain = 10'000;

// splitmix64: the coin that orders the compositions of a pair, the same on every rank.
bool Coin(uint64_t seed, uint64_t contest, uint64_t pair) {
  uint64_t x = seed + 0x9e3779b97f4a7c15u * (1 + contest * 1024 + pair);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return ((x ^ (x >> 31)) & 1) != 0;
}

}  // namespace

Looks LooksOf(int32_t max_pairs) {
  Looks looks;
  for (const int32_t pairs : {kFirstLook, max_pairs / 2, max_pairs}) {
    if (looks.count > 0 && pairs <= looks.pairs[static_cast<size_t>(looks.count - 1)]) continue;
    looks.pairs[static_cast<size_t>(looks.count++)] = std::min(pairs, max_pairs);
  }
  return looks;
}

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
      const Status run = trials_.Run(executor, contest.capacity);
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

Status RunRace(Comm& comm, const Job& job, const RaceSettings& settings, Trials& trials,
               std::vector<Contest>& contests, uint64_t* digest) {
  return Race(comm, job, settings, trials, contests).Run(digest);
}

}  // namespace sparsesel
