#include "race/decision.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace sparsesel {
namespace {

// Of one execute, ns: no computer is as fast as the one, no caller as patient as the other (an
// hour).
constexpr double kShortestSample = 1e-3;
constexpr double kLongestSample = 3600e9;
// Far above the most pairs that a race takes; 2^-n is still a normal number.
constexpr size_t kMostPairs = 1000;

bool IsPlausible(double sample) {
  return sample >= kShortestSample && sample <= kLongestSample;  // false for NaN
}

bool AllPlausible(std::span<const double> samples) {
  return std::all_of(samples.begin(), samples.end(), IsPlausible);
}

// The greatest j, 1-based, for which the j-th smallest of n independent samples exceeds the median
// of their distribution with a probability of at most `level`; 0 if there is none.
//
// The j-th smallest exceeds the median only if fewer than j samples are at or below it. Each is
// with a probability of at least 1/2, whatever the distribution, so
//   P(X_(j) > median) <= P(Binomial(n, 1/2) <= j - 1) = 2^-n sum_{i < j} C(n, i).
// By symmetry X_(n + 1 - j) bounds the median from above at the same level.
// H. A. David, H. N. Nagaraja, Order Statistics, 3rd ed., section 7.1; W. R. Thompson, Annals of
// Mathematical Statistics 7 (1936), p. 122.
size_t BoundRank(size_t n, double level) {
  double term = std::ldexp(1.0, -static_cast<int>(n));
  double tail = term;
  size_t rank = 0;
  while (rank < (n + 1) / 2 && tail <= level) {  // never beyond the middle, whatever the level
    ++rank;
    term *= static_cast<double>(n - rank + 1) / static_cast<double>(rank);
    tail += term;
  }
  return rank;
}

double LevelOf(const DecisionRule& rule) { return rule.error_level / std::max(rule.looks, 1); }

// Linear between the two nearest order statistics.
double Quantile(const std::vector<double>& sorted, double fraction) {
  const double place = fraction * static_cast<double>(sorted.size() - 1);
  const size_t below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

int32_t FewestPairs(const DecisionRule& rule) {
  size_t pairs = 1;
  while (pairs < kMostPairs && BoundRank(pairs, LevelOf(rule)) == 0) ++pairs;
  return static_cast<int32_t>(pairs);
}

Verdict Judge(std::span<const double> replicated, std::span<const double> owner,
              const DecisionRule& rule, bool last_look) {
  Verdict verdict;
  if (replicated.size() != owner.size() || !AllPlausible(replicated) || !AllPlausible(owner)) {
    verdict.decided = true;
    verdict.rule = SPARSESEL_RULE_INVALID_TIMING;
    return verdict;
  }
  const size_t pairs = std::min(replicated.size(), kMostPairs);
  verdict.ratio_high = std::numeric_limits<double>::infinity();
  verdict.decided = last_look;
  if (pairs == 0) return verdict;

  // Ratios instead of their logarithms: the order, hence every order statistic, is the same.
  std::vector<double> ratios(pairs);
  for (size_t i = 0; i < pairs; ++i) ratios[i] = replicated[i] / owner[i];
  std::sort(ratios.begin(), ratios.end());
  verdict.ratio = Quantile(ratios, 0.5);

  const double level = LevelOf(rule);
  const size_t bound = BoundRank(pairs, level);
  if (bound == 0) return verdict;
  verdict.ratio_low = ratios[bound - 1];
  verdict.ratio_high = ratios[pairs - bound];

  const double wanted = 1 + rule.margin;
  if (verdict.ratio_low > wanted) {
    verdict.decided = true;
    verdict.rule = SPARSESEL_RULE_FASTER;
    verdict.winner = SPARSESEL_COMPOSITION_OWNER;
  } else if (verdict.ratio_high < wanted) {
    verdict.decided = true;
    verdict.rule = SPARSESEL_RULE_NOT_FASTER;
  }
  return verdict;
}

Summary Summarize(std::span<const double> samples) {
  std::vector<double> sorted;
  sorted.reserve(samples.size());
  for (double sample : samples) {
    if (std::isfinite(sample)) sorted.push_back(sample);
  }
  if (sorted.empty()) return {};
  std::sort(sorted.begin(), sorted.end());
  return {Quantile(sorted, 0.5), (Quantile(sorted, 0.75) - Quantile(sorted, 0.25)) / 2};
}

}  // namespace sparsesel
