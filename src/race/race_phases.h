// One race under way: its state, and its phases as methods. For race*.cc alone.
#ifndef SPARSESEL_RACE_RACE_PHASES_H_
#define SPARSESEL_RACE_RACE_PHASES_H_

#include <array>
#include <cstdint>
#include <vector>

#include "race/race.h"

namespace sparsesel {

inline Entrant& EntrantOf(CapacityReport& report, int32_t which) {
  return which == 0 ? report.replicated : report.owner;
}

// What a rank found of one composition at one capacity, exchanged after a round of checks.
struct Finding {
  int32_t wrong_item = -1;  // row of the trial input, or holdout row, that was wrong; -1: none
  int32_t status = SPARSESEL_OK;
  double ns = 0;                        // of one execute
  std::array<double, kStages> spans{};  // ns per stage
};

// The numbers of pairs after which a race is judged: soon, so that clear cases cost little, and at
// the end.
struct Looks {
  int32_t count = 0;
  std::array<int32_t, 3> pairs{};
};
Looks LooksOf(int32_t max_pairs);

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

}  // namespace sparsesel

#endif  // SPARSESEL_RACE_RACE_PHASES_H_
