// Whole compositions on the CPU: both, for several worlds and row counts, through the C API; beside
// them the floor, which is the bytes a rank must take in moved once at memory-copy speed. Then what
// execute itself costs, how long a race takes, and its regret: the chosen composition's time over
// the better one's, both measured again with long trains.
//
//   composition_bench [k] [candidates]
//
// Prints Markdown. Ranks are threads: with more ranks than cores, times include waiting for a core.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "sparsesel.h"

namespace {

using Clock = std::chrono::steady_clock;

double Microseconds(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

void Must(sparsesel_status status, const sparsesel_error& error) {
  if (status == SPARSESEL_OK) return;
  std::fprintf(stderr, "%s: %s\n", sparsesel_status_name(status), error.text);
  std::exit(1);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

// us to copy `bytes` once, median of several, buffers beyond the cache taken in turn.
double CopyTime(size_t bytes) {
  constexpr size_t kBuffers = 4;
  static std::vector<char> from(kBuffers << 24, 'a');
  static std::vector<char> to(kBuffers << 24, 'b');
  std::vector<double> times;
  for (size_t i = 0; i < 9; ++i) {
    const size_t at = (i % kBuffers) << 24;
    const auto begin = Clock::now();
    std::memcpy(to.data() + at, from.data() + at, std::min(bytes, size_t{1} << 24));
    times.push_back(Microseconds(begin));
  }
  return Median(times) * static_cast<double>(bytes) /
         static_cast<double>(std::min(bytes, size_t{1} << 24));
}

struct Result {
  sparsesel_outcome outcome = SPARSESEL_OUTCOME_INIT;
  double race_seconds = 0;
  double again[2] = {0, 0};  // us per execute, remeasured: replicated, owner
};

// One rank's thread: race one capacity, then time both bindings with long trains.
void RunRank(sparsesel_comm* comm, int32_t rank, int32_t world, int32_t rows, int32_t candidates,
             int32_t k, Result* result) {
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  const auto n = static_cast<size_t>(rows) * static_cast<size_t>(candidates);
  std::vector<float> scores(n);
  std::vector<int32_t> ids(n);
  std::vector<int32_t> out(static_cast<size_t>(rows) * static_cast<size_t>(k));
  std::mt19937 random(static_cast<unsigned>(rank + 1));
  std::normal_distribution<float> normal;
  for (size_t i = 0; i < n; ++i) {
    scores[i] = normal(random);
    ids[i] = static_cast<int32_t>(i % static_cast<size_t>(candidates)) * world + rank;
  }
  sparsesel_problem problem = SPARSESEL_PROBLEM_INIT;
  problem.k = k;
  problem.candidates = candidates;
  problem.capacities = &rows;
  problem.capacity_count = 1;
  sparsesel_io io = SPARSESEL_IO_INIT;
  io.rows = rows;
  io.scores = scores.data();
  io.ids = ids.data();
  io.out_ids = out.data();

  sparsesel_plan* plan = nullptr;
  Must(sparsesel_plan_create(comm, &problem, &plan, &error), error);
  Must(sparsesel_plan_prepare(plan, nullptr, &error), error);
  sparsesel_report* report = nullptr;
  const auto begin = Clock::now();
  Must(sparsesel_plan_race(plan, nullptr, &report, &error), error);
  const double seconds = Microseconds(begin) / 1e6;
  sparsesel_binding* bindings[2] = {};
  const int32_t kinds[2] = {SPARSESEL_COMPOSITION_REPLICATED, SPARSESEL_COMPOSITION_OWNER};
  std::vector<double> times[2];
  for (int i = 0; i < 2; ++i) {
    Must(sparsesel_plan_bind(plan, nullptr, kinds[i], &bindings[i], &error), error);
  }
  for (int round = 0; round < 15; ++round) {
    for (int i = 0; i < 2; ++i) {
      constexpr int kTrain = 10;
      const auto start = Clock::now();
      for (int turn = 0; turn < kTrain; ++turn) {
        Must(sparsesel_execute(bindings[i], &io, nullptr, &error), error);
      }
      times[i].push_back(Microseconds(start) / kTrain);
    }
  }
  if (rank == 0) {
    Must(sparsesel_report_outcome(report, 0, &result->outcome, &error), error);
    result->race_seconds = seconds;
    for (int i = 0; i < 2; ++i) result->again[i] = Median(times[i]);
  }
  for (sparsesel_binding* binding : bindings) sparsesel_binding_release(binding, nullptr);
  sparsesel_report_release(report, nullptr);
  sparsesel_plan_release(plan, nullptr);
}

Result Run(int32_t world, int32_t rows, int32_t candidates, int32_t k) {
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  std::vector<sparsesel_comm*> comms(static_cast<size_t>(world));
  Must(sparsesel_comm_create_local(world, nullptr, comms.data(), &error), error);
  Result result;
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < world; ++rank) {
    threads.emplace_back(RunRank, comms[static_cast<size_t>(rank)], rank, world, rows, candidates,
                         k, &result);
  }
  for (std::thread& thread : threads) thread.join();
  for (sparsesel_comm* comm : comms) sparsesel_comm_release(comm, nullptr);
  return result;
}

// What execute adds when there is next to nothing to do: one rank, one row, one candidate.
double ExecuteOverhead() {
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  sparsesel_comm* comm = nullptr;
  Must(sparsesel_comm_create_local(1, nullptr, &comm, &error), error);
  sparsesel_problem problem = SPARSESEL_PROBLEM_INIT;
  problem.k = 1;
  problem.candidates = 1;
  sparsesel_plan* plan = nullptr;
  sparsesel_binding* binding = nullptr;
  Must(sparsesel_plan_create(comm, &problem, &plan, &error), error);
  Must(sparsesel_plan_prepare(plan, nullptr, &error), error);
  Must(sparsesel_plan_bind(plan, nullptr, SPARSESEL_COMPOSITION_AUTO, &binding, &error), error);
  const float score = 1;
  const int32_t id = 7;
  int32_t out = 0;
  sparsesel_io io = SPARSESEL_IO_INIT;
  io.rows = 1;
  io.scores = &score;
  io.ids = &id;
  io.out_ids = &out;
  std::vector<double> times;
  for (int round = 0; round < 101; ++round) {
    constexpr int kTrain = 1000;
    const auto begin = Clock::now();
    for (int turn = 0; turn < kTrain; ++turn) {
      Must(sparsesel_execute(binding, &io, nullptr, &error), error);
    }
    times.push_back(Microseconds(begin) / kTrain);
  }
  sparsesel_binding_release(binding, nullptr);
  sparsesel_plan_release(plan, nullptr);
  sparsesel_comm_release(comm, nullptr);
  return Median(times);
}

}  // namespace

int main(int argc, char** argv) {
  const int32_t k = argc > 1 ? std::atoi(argv[1]) : 2048;
  const int32_t candidates = argc > 2 ? std::atoi(argv[2]) : 2048;
  std::printf("%u cores, k = %d, %d candidates per rank, us\n\n",
              std::thread::hardware_concurrency(), k, candidates);
  std::printf(
      "| W | rows | floor | replicated | spread | owner | spread | winner | ratio (bounds) "
      "| race s | regret |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
  std::vector<double> regrets;
  for (const int32_t world : {2, 4, 8, 16}) {
    for (const int32_t rows : {1, 2, 4, 8, 16, 64, 256}) {
      const Result result = Run(world, rows, candidates, k);
      const sparsesel_outcome& o = result.outcome;
      const bool owner = o.winner == SPARSESEL_COMPOSITION_OWNER;
      const double regret =
          result.again[owner ? 1 : 0] / std::min(result.again[0], result.again[1]);
      regrets.push_back(regret);
      // All ranks share the machine: every rank's lists are read once by some rank at least.
      const double floor = CopyTime(static_cast<size_t>(world) * static_cast<size_t>(rows) *
                                    static_cast<size_t>(candidates) * 8);
      std::printf(
          "| %d | %d | %.1f | %.1f | %.1f | %.1f | %.1f | %s | %.2f (%.2f .. %.2f) | %.2f "
          "| %.3f |\n",
          world, rows, floor, o.replicated_median / 1e3, o.replicated_spread / 1e3,
          o.owner_median / 1e3, o.owner_spread / 1e3, owner ? "owner" : "replicated", o.ratio,
          o.ratio_low, o.ratio_high, result.race_seconds, regret);
      std::fflush(stdout);
    }
  }
  std::sort(regrets.begin(), regrets.end());
  std::printf("\nregret: median %.3f, 95th percentile %.3f, worst %.3f over %zu shapes\n",
              regrets[regrets.size() / 2], regrets[(regrets.size() * 95 + 99) / 100 - 1],
              regrets.back(), regrets.size());
  std::printf("execute with one rank, one row, one candidate, k = 1: %.3f us\n", ExecuteOverhead());
  return 0;
}
