#include "race/decision.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace sparsesel {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Verdict JudgeRatios(std::vector<double> ratios, const DecisionRule& rule, bool last_look) {
  const std::vector<double> owner(ratios.size(), 1000.0);
  for (double& ratio : ratios) ratio *= 1000.0;
  return Judge(ratios, owner, rule, last_look);
}

// 1, 2, ..., n, not in order.
std::vector<double> Sequence(int n) {
  std::vector<double> ratios;
  for (int i = 0; i < n; ++i) ratios.push_back(i % 2 == 0 ? n - i / 2 : 1 + i / 2);
  return ratios;
}

// From the tables of the binomial distribution with p = 1/2: P(B(16) <= 3) = 0.0106, <= 4: 0.0384;
// P(B(32) <= 9) = 0.0100, <= 10: 0.0251; P(B(64) <= 23) = 0.0164, <= 24: 0.0300.
TEST_CASE("decision: the bounds are the order statistics that the binomial tails name") {
  const DecisionRule rule{.margin = 0.02, .error_level = 0.05, .looks = 3};  // 0.0167 a look
  const Verdict of_16 = JudgeRatios(Sequence(16), rule, false);
  CHECK(of_16.ratio_low == 4);
  CHECK(of_16.ratio_high == 13);
  CHECK(of_16.ratio == 8.5);
  const Verdict of_32 = JudgeRatios(Sequence(32), rule, false);
  CHECK(of_32.ratio_low == 10);
  CHECK(of_32.ratio_high == 23);
  const Verdict of_64 = JudgeRatios(Sequence(64), rule, false);
  CHECK(of_64.ratio_low == 24);
  CHECK(of_64.ratio_high == 41);
}

TEST_CASE("decision: the owner wins only beyond the margin") {
  const DecisionRule rule;
  const auto of = [&](double ratio, bool last) {
    return JudgeRatios(std::vector<double>(16, ratio), rule, last);
  };
  const Verdict faster = of(1.03, false);
  CHECK(faster.decided);
  CHECK(faster.rule == SPARSESEL_RULE_FASTER);
  CHECK(faster.winner == SPARSESEL_COMPOSITION_OWNER);
  const Verdict not_faster = of(1.01, false);
  CHECK(not_faster.decided);
  CHECK(not_faster.rule == SPARSESEL_RULE_NOT_FASTER);
  CHECK(not_faster.winner == SPARSESEL_COMPOSITION_REPLICATED);
  const Verdict slower = of(0.5, false);
  CHECK(slower.rule == SPARSESEL_RULE_NOT_FASTER);
  CHECK(slower.winner == SPARSESEL_COMPOSITION_REPLICATED);
}

TEST_CASE("decision: open until the last look, then the incumbent") {
  std::vector<double> ratios;
  for (int i = 0; i < 32; ++i) ratios.push_back(i % 2 == 0 ? 0.9 : 1.2);
  const Verdict open = JudgeRatios(ratios, {}, false);
  CHECK_FALSE(open.decided);
  CHECK(open.winner == SPARSESEL_COMPOSITION_REPLICATED);
  const Verdict last = JudgeRatios(ratios, {}, true);
  CHECK(last.decided);
  CHECK(last.rule == SPARSESEL_RULE_INCONCLUSIVE);
  CHECK(last.winner == SPARSESEL_COMPOSITION_REPLICATED);
  CHECK(last.ratio_low == 0.9);
  CHECK(last.ratio_high == 1.2);
}

TEST_CASE("decision: too few pairs bound nothing") {
  for (int n = 0; n < 6; ++n) {
    const Verdict verdict = JudgeRatios(std::vector<double>(static_cast<size_t>(n), 5.0), {}, true);
    CHECK(verdict.rule == SPARSESEL_RULE_INCONCLUSIVE);
    CHECK(verdict.ratio_low == 0);
    CHECK(verdict.ratio_high == kInfinity);
  }
  CHECK(JudgeRatios(std::vector<double>(6, 5.0), {}, false).rule == SPARSESEL_RULE_FASTER);
}

TEST_CASE("decision: a level above one half does not turn the bounds around") {
  const DecisionRule rule{.margin = 0.02, .error_level = 1, .looks = 1};
  for (int n : {1, 2, 15, 16}) {
    const Verdict verdict = JudgeRatios(Sequence(n), rule, true);
    CHECK(verdict.ratio_low <= verdict.ratio);
    CHECK(verdict.ratio <= verdict.ratio_high);
  }
}

TEST_CASE("decision: a sample that is no duration decides nothing") {
  const double bad[] = {0.0,        -0.0,     -1.0, std::nan(""), kInfinity,
                        -kInfinity, 3600.1e9, 1e-9, 1e300,        -1e300};
  for (double sample : bad) {
    for (bool in_owner : {false, true}) {
      std::vector<double> replicated(16, 2000.0);
      std::vector<double> owner(16, 1000.0);
      (in_owner ? owner : replicated)[7] = sample;
      const Verdict verdict = Judge(replicated, owner, {}, false);
      INFO(sample);
      CHECK(verdict.decided);
      CHECK(verdict.rule == SPARSESEL_RULE_INVALID_TIMING);
      CHECK(verdict.winner == SPARSESEL_COMPOSITION_REPLICATED);
      CHECK(verdict.ratio == 0);
    }
  }
  const std::vector<double> one(1, 1000.0);
  const std::vector<double> two(2, 1000.0);
  CHECK(Judge(one, two, {}, true).rule == SPARSESEL_RULE_INVALID_TIMING);
}

// How often a race with looks after 16, 32 and 64 pairs ends with `rule`, in percent.
template <typename Sample>
double PercentEnding(int32_t wanted, Sample sample) {
  constexpr int kRaces = 4000;
  std::mt19937_64 random(99);
  int ended = 0;
  for (int race = 0; race < kRaces; ++race) {
    std::vector<double> replicated;
    std::vector<double> owner;
    for (int pairs : {16, 32, 64}) {
      while (replicated.size() < static_cast<size_t>(pairs)) sample(random, replicated, owner);
      const Verdict verdict = Judge(replicated, owner, {}, pairs == 64);
      if (!verdict.decided) continue;
      ended += verdict.rule == wanted;
      break;
    }
  }
  return 100.0 * ended / kRaces;
}

// Both medians differ by exactly the margin, the hardest case in which the owner must not win. The
// noise of one pair: a common factor (the machine) and one for each, with a heavy tail.
auto NoisyPair(double ratio, double noise) {
  return [=](std::mt19937_64& random, std::vector<double>& replicated, std::vector<double>& owner) {
    std::normal_distribution<double> normal;
    const auto factor = [&] {
      const double tail = random() % 10 == 0 ? 4.0 : 1.0;
      return std::exp(noise * tail * normal(random));
    };
    const double common = std::exp(0.2 * normal(random));
    replicated.push_back(1000.0 * ratio * common * factor());
    owner.push_back(1000.0 * common * factor());
  };
}

TEST_CASE("decision: the owner wins falsely in no more than the error level of races") {
  for (double noise : {0.01, 0.1, 1.0}) {
    INFO("noise " << noise);
    CHECK(PercentEnding(SPARSESEL_RULE_FASTER, NoisyPair(1.02, noise)) <= 5.0);
    CHECK(PercentEnding(SPARSESEL_RULE_NOT_FASTER, NoisyPair(1.02, noise)) <= 5.0);
    CHECK(PercentEnding(SPARSESEL_RULE_FASTER, NoisyPair(1.0, noise)) <= 5.0);
  }
}

TEST_CASE("decision: a clear winner is found") {
  CHECK(PercentEnding(SPARSESEL_RULE_FASTER, NoisyPair(1.2, 0.05)) >= 99.0);
  CHECK(PercentEnding(SPARSESEL_RULE_NOT_FASTER, NoisyPair(0.8, 0.05)) >= 99.0);
}

TEST_CASE("decision: a summary is the median and half the distance of the quartiles") {
  CHECK(Summarize({}).median == 0);
  const std::vector<double> one = {7};
  CHECK(Summarize(one).median == 7);
  CHECK(Summarize(one).spread == 0);
  const std::vector<double> five = {50, 10, 40, 20, 30};
  CHECK(Summarize(five).median == 30);
  CHECK(Summarize(five).spread == 10);
  const std::vector<double> four = {1, 2, std::nan(""), 3, 4, kInfinity};
  CHECK(Summarize(four).median == 2.5);
}

}  // namespace
}  // namespace sparsesel
