#include "contract/small_scope.h"

namespace contract {
namespace {

constexpr uint32_t kScores[] = {kNan,       kMinusNan,   kInfinity, kMinusInfinity, 0,
                                kMinusZero, 0x00000001u, kOne,      0x40000000u};

void ExtendDeal(int32_t left, size_t rank, std::vector<int32_t>* deal,
                std::vector<std::vector<int32_t>>* deals) {
  if (rank + 1 == deal->size()) {
    (*deal)[rank] = left;
    deals->push_back(*deal);
    return;
  }
  for (int32_t n = 0; n <= left; ++n) {
    (*deal)[rank] = n;
    ExtendDeal(left - n, rank + 1, deal, deals);
  }
}

// Every way to deal `candidates` candidates to `world` ranks.
std::vector<std::vector<int32_t>> Deals(int32_t candidates, int32_t world) {
  std::vector<int32_t> deal(static_cast<size_t>(world), 0);
  std::vector<std::vector<int32_t>> deals;
  ExtendDeal(candidates, 0, &deal, &deals);
  return deals;
}

}  // namespace

std::vector<SmallCandidate> SmallAlphabet(int absences) {
  std::vector<SmallCandidate> alphabet;
  for (int32_t id : {0, 1}) {
    for (uint32_t score : kScores) alphabet.push_back({score, id});
  }
  // First the infinity, which would win if it were not absent.
  for (int i = 0; i < absences; ++i) alphabet.push_back({kScores[(i + 2) % 9], -1});
  return alphabet;
}

SmallScope::SmallScope(int32_t world, int32_t length, int32_t rows_per_execute)
    : world_(world), length_(length), rows_per_execute_(rows_per_execute), group_(world) {
  for (size_t mode = 0; mode < std::size(kOutputModes); ++mode) {
    for (int32_t k = 1; k <= 3; ++k) {
      Job job = MakeJob(world, k, length, {rows_per_execute});
      for (sparsesel_problem& problem : job.problems) {
        problem.outputs = kOutputModes[mode].outputs;
        problem.output_order = kOutputModes[mode].output_order;
      }
      for (const Combination& combination : CoveringCombinations(job)) {
        Entry entry{mode, With(job, combination), "", nullptr};
        entry.text =
            "k " + std::to_string(k) + ", " + kOutputModes[mode].name + ", " + combination.text();
        entry.bound = std::make_unique<Bound>(group_, entry.job);
        if (!entry.bound->ok()) {
          ++wrong_;
          first_difference_ = entry.text + ": " + Describe(entry.bound->outcomes());
        }
        entries_.push_back(std::move(entry));
      }
    }
  }
  batch_ = MakeBatch(MakeJob(world, 1, length, {}), rows_per_execute);
}

void SmallScope::Add(const std::vector<std::vector<SmallCandidate>>& lists) {
  for (size_t rank = 0; rank < lists.size(); ++rank) {
    RankInput& input = batch_.ranks[rank];
    const size_t at = static_cast<size_t>(filled_) * static_cast<size_t>(length_);
    for (size_t i = 0; i < lists[rank].size(); ++i) {
      input.score_bits[at + i] = lists[rank][i].score_bits;
      input.ids[at + i] = lists[rank][i].id;
    }
    // Beyond the count stands what would win.
    for (size_t i = lists[rank].size(); i < static_cast<size_t>(length_); ++i) {
      input.score_bits[at + i] = kInfinity;
      input.ids[at + i] = 0;
    }
    input.counts[static_cast<size_t>(filled_)] = static_cast<int32_t>(lists[rank].size());
  }
  ++cases_;
  if (++filled_ == rows_per_execute_) Finish();
}

void SmallScope::AddAll(int32_t candidates, const std::vector<SmallCandidate>& alphabet) {
  for (const std::vector<int32_t>& deal : Deals(candidates, world_)) {
    std::vector<size_t> letters(static_cast<size_t>(candidates), 0);
    std::vector<std::vector<SmallCandidate>> lists(static_cast<size_t>(world_));
    for (bool more = true; more;) {
      size_t next = 0;
      for (size_t rank = 0; rank < lists.size(); ++rank) {
        lists[rank].clear();
        for (int32_t i = 0; i < deal[rank]; ++i) lists[rank].push_back(alphabet[letters[next++]]);
      }
      Add(lists);
      more = false;
      for (size_t& letter : letters) {
        if (++letter < alphabet.size()) {
          more = true;
          break;
        }
        letter = 0;
      }
    }
  }
}

void SmallScope::AddSampled(int32_t candidates, int64_t cases,
                            const std::vector<SmallCandidate>& alphabet, Random& random) {
  for (int64_t i = 0; i < cases; ++i) {
    std::vector<std::vector<SmallCandidate>> lists(static_cast<size_t>(world_));
    for (int32_t n = 0; n < candidates; ++n) {
      std::vector<SmallCandidate>* list = &lists[random() % lists.size()];
      while (static_cast<int32_t>(list->size()) == length_) list = &lists[random() % lists.size()];
      // Two letters often, so that ties are common.
      const size_t letter = random() % (random() % 2 == 0 ? 3 : alphabet.size());
      list->push_back(alphabet[(letter * 5 + static_cast<size_t>(i)) % alphabet.size()]);
    }
    Add(lists);
  }
}

void SmallScope::Finish() {
  if (filled_ == 0) return;
  batch_.rows = filled_;
  if (all_modes_) {
    for (size_t mode = 0; mode < std::size(kOutputModes); ++mode) Judge(mode);
  } else {
    Judge(turn_++ % std::size(kOutputModes));
  }
  filled_ = 0;
}

void SmallScope::Judge(size_t mode) {
  std::vector<oracle::Answer> expected;
  int32_t k = 0;
  for (const Entry& entry : entries_) {
    if (entry.mode != mode || !entry.bound->ok()) continue;
    if (entry.job.problems[0].k != k) {
      k = entry.job.problems[0].k;
      expected = ExpectRows(entry.job, batch_);
    }
    const std::string difference =
        Compare(entry.job, expected, Execute(*entry.bound, entry.job, batch_));
    if (difference.empty()) continue;
    ++wrong_;
    if (first_difference_.empty()) {
      first_difference_ =
          entry.text + ", from case " + std::to_string(cases_ - filled_) + ": " + difference;
    }
  }
}

}  // namespace contract
