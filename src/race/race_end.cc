// How a race ends: its winners are checked on inputs that it never timed, and all ranks agree.
#include <algorithm>
#include <string>

#include "contract/guard.h"
#include "contract/ownership.h"
#include "race/expected.h"
#include "race/race_phases.h"
#include "xxhash.h"

namespace sparsesel {
namespace {

constexpr size_t kSpanRuns = 5;
constexpr const char* kNames[2] = {"replicated", "owner"};

}  // namespace

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
    const Status run = trials_.Run(*contest.executors[which], capacity);
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
    Finding& finding = own_[c * 2 + which];
    std::array<SpanTimes, kSpanRuns> runs{};
    // A composition that fails here is out, as with the holdouts; the others go on.
    const Status status =
        trials_.MeasureSpans(*contests_[c].executors[which], contests_[c].capacity, runs);
    if (!status.ok()) finding.status = status.code();
    for (size_t s = 0; s < kStages; ++s) {
      std::array<int64_t, kSpanRuns> times{};
      std::transform(runs.begin(), runs.end(), times.begin(),
                     [s](const SpanTimes& spans) { return spans.stage[s]; });
      std::nth_element(times.begin(), times.begin() + kSpanRuns / 2, times.end());
      finding.spans[s] = static_cast<double>(times[kSpanRuns / 2]);
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

}  // namespace sparsesel
