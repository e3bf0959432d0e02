// Ranks sharing one GPU, through the C API: both compositions, eager and captured, against a
// reference on the host; then the time of a replayed train per composition.
//
//   peer_test [largest world] [replays] [smallest world] [child plans of replicated]
//
// Set CUDA_DEVICE_MAX_CONNECTIONS to at least the ranks on a device.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sparsesel.h"
#include "tests/gpu/peer_cases.h"

namespace {

using sparsesel::testing::Data;
using sparsesel::testing::Kind;
using sparsesel::testing::kKindNames;
using sparsesel::testing::kOrderNames;
using sparsesel::testing::Make;
using sparsesel::testing::Order;
using sparsesel::testing::Shape;

std::mutex g_mutex;
int g_failures = 0;
int g_shown = 0;  // of the case at hand
const char* g_child_plans = nullptr;

void Fail(const std::string& what) {
  const std::lock_guard lock(g_mutex);
  ++g_failures;
  if (++g_shown <= 3) std::printf("FAILED: %s\n", what.c_str());
}

bool Check(sparsesel_status status, const sparsesel_error& error, const char* what) {
  if (status == SPARSESEL_OK) return true;
  Fail(std::string(what) + ": " + sparsesel_status_name(status) + ": " + error.text);
  return false;
}

bool Check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return true;
  Fail(std::string(what) + ": " + cudaGetErrorString(error));
  return false;
}

template <typename T>
T* ToDevice(const std::vector<T>& host) {
  T* device = nullptr;
  Check(cudaMalloc(reinterpret_cast<void**>(&device), host.size() * sizeof(T)), "cudaMalloc");
  Check(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice), "copy");
  return device;
}

struct Barrier {
  explicit Barrier(int n) : count(n) {}
  void Wait() {
    std::unique_lock lock(mutex);
    const int mine = generation;
    if (++arrived == count) {
      arrived = 0;
      ++generation;
      return;
    }
    lock.unlock();
    for (;;) {
      lock.lock();
      const bool done = generation != mine;
      lock.unlock();
      if (done) return;
      std::this_thread::yield();
    }
  }
  std::mutex mutex;
  const int count;
  int arrived = 0;
  int generation = 0;
};

struct Rank {
  sparsesel_comm* comm = nullptr;
  sparsesel_binding* binding = nullptr;
  cudaStream_t stream = nullptr;
  cudaGraphExec_t graph = nullptr;
  float* scores = nullptr;
  int32_t *ids = nullptr, *counts = nullptr, *out = nullptr;
  double us = 0;
};

void Compare(const Shape& s, const Data& data, const Rank& rank, const std::string& what) {
  std::vector<int32_t> out(data.expected.size());
  Check(cudaMemcpy(out.data(), rank.out, out.size() * 4, cudaMemcpyDeviceToHost), "copy out");
  size_t wrong = 0;
  for (size_t i = 0; i < out.size(); ++i) wrong += out[i] != data.expected[i];
  if (wrong != 0) {
    Fail(what + ": " + std::to_string(wrong) + " of " + std::to_string(out.size()) + " ids wrong");
  }
  (void)s;
}

constexpr int kTrain = 20;

void RunRank(const Shape& s, const Data& data, int composition, int replays, size_t r, Rank& rank,
             Barrier& barrier, const std::string& what, bool race) {
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  sparsesel_problem problem = SPARSESEL_PROBLEM_INIT;
  std::vector<int32_t> capacities{s.rows};
  if (s.rows > 1) capacities.push_back(1);
  problem.k = s.k;
  problem.candidates = s.candidates;
  if (s.order != Order::kNone) problem.input_order = SPARSESEL_ORDER_FULL;
  problem.capacities = capacities.data();
  problem.capacity_count = static_cast<int32_t>(capacities.size());
  sparsesel_plan* plan = nullptr;
  if (!Check(sparsesel_plan_create(rank.comm, &problem, &plan, &error), error, "plan_create")) {
    barrier.Wait();
    return;
  }
  sparsesel_prepare_options prepare = SPARSESEL_PREPARE_OPTIONS_INIT;
  prepare.child_plans = composition == SPARSESEL_COMPOSITION_REPLICATED ? g_child_plans : nullptr;
  bool ok = Check(sparsesel_plan_prepare(plan, &prepare, &error), error, "prepare");
  if (ok && race) {
    sparsesel_report* report = nullptr;
    ok = Check(sparsesel_plan_race(plan, nullptr, &report, &error), error, "race");
    for (int32_t i = 0; ok && r == 0 && i < sparsesel_report_size(report); ++i) {
      sparsesel_outcome o = SPARSESEL_OUTCOME_INIT;
      sparsesel_report_outcome(report, i, &o, &error);
      std::printf(
          "race W=%d rows=%d: replicated %.2f us, owner %.2f us, ratio %.3f [%.3f, %.3f], "
          "winner %d rule %d exact %d %d\n",
          s.world, o.capacity, o.replicated_median / 1e3, o.owner_median / 1e3, o.ratio,
          o.ratio_low, o.ratio_high, o.winner, o.rule, o.replicated_exact, o.owner_exact);
    }
    sparsesel_report_release(report, nullptr);
  }
  if (ok) {
    ok = Check(sparsesel_plan_bind(plan, nullptr, composition, &rank.binding, &error), error,
               "bind");
  }
  sparsesel_plan_release(plan, nullptr);
  if (!ok) {
    barrier.Wait();
    return;
  }
  Check(cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking), "stream");
  rank.scores = ToDevice(data.scores[r]);
  rank.ids = ToDevice(data.ids[r]);
  rank.counts = ToDevice(data.counts[r]);
  rank.out = ToDevice(std::vector<int32_t>(data.expected.size(), -77));
  sparsesel_io io = SPARSESEL_IO_INIT;
  io.rows = s.rows;
  io.scores = rank.scores;
  io.ids = rank.ids;
  io.counts = rank.counts;
  io.out_ids = rank.out;
  // Capture is the first execute ever: nothing may be made lazily inside it.
  cudaGraph_t graph = nullptr;
  Check(cudaStreamBeginCapture(rank.stream, cudaStreamCaptureModeThreadLocal), "begin capture");
  for (int i = 0; i < kTrain; ++i) {
    Check(sparsesel_execute(rank.binding, &io, rank.stream, &error), error, "captured execute");
  }
  Check(cudaStreamEndCapture(rank.stream, &graph), "end capture");
  Check(cudaGraphInstantiate(&rank.graph, graph, 0), "instantiate");
  cudaGraphDestroy(graph);
  Check(cudaGraphUpload(rank.graph, rank.stream), "upload");
  Check(cudaStreamSynchronize(rank.stream), "sync");
  barrier.Wait();
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  std::vector<float> times;
  for (int replay = 0; replay < replays; ++replay) {
    if (replay % 4 == 3) {
      // Eager calls between replays share the epochs.
      Check(sparsesel_execute(rank.binding, &io, rank.stream, &error), error, "eager execute");
    }
    Check(cudaEventRecord(begin, rank.stream), "event");
    Check(cudaGraphLaunch(rank.graph, rank.stream), "replay");
    Check(cudaEventRecord(end, rank.stream), "event");
    Check(cudaStreamSynchronize(rank.stream), "sync replay");
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    times.push_back(ms * 1000 / kTrain);
    barrier.Wait();
  }
  std::sort(times.begin(), times.end());
  rank.us = times[times.size() / 2];
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  Compare(s, data, rank, what);
  if (sparsesel_comm_status(rank.comm, nullptr, &error) != SPARSESEL_OK) Fail(error.text);
  // Released while the graph lives, which keeps what it uses.
  sparsesel_binding_release(rank.binding, nullptr);
  barrier.Wait();
  Check(cudaGraphLaunch(rank.graph, rank.stream), "replay after release");
  Check(cudaStreamSynchronize(rank.stream), "sync after release");
  barrier.Wait();
  Compare(s, data, rank, what + " after release");
  cudaGraphExecDestroy(rank.graph);
  cudaFree(rank.scores);
  cudaFree(rank.ids);
  cudaFree(rank.counts);
  cudaFree(rank.out);
  cudaStreamDestroy(rank.stream);
}

void RunCase(const Shape& s, Kind kind, int composition, int replays, bool race) {
  const std::string what = "W=" + std::to_string(s.world) + " rows=" + std::to_string(s.rows) +
                           " n=" + std::to_string(s.candidates) + " k=" + std::to_string(s.k) +
                           " " + kKindNames[static_cast<int>(kind)] +
                           kOrderNames[static_cast<int>(s.order)] +
                           (composition == SPARSESEL_COMPOSITION_OWNER ? " owner" : " replicated");
  const Data data = Make(s, kind, 7);
  g_shown = 0;
  const auto begin = std::chrono::steady_clock::now();
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  sparsesel_comm_options options = SPARSESEL_COMM_OPTIONS_INIT;
  options.memory = SPARSESEL_MEMORY_DEVICE;
  options.startup_timeout = 20'000'000'000u;
  options.steady_timeout = 2'000'000'000u;
  std::vector<sparsesel_comm*> comms(static_cast<size_t>(s.world));
  if (!Check(sparsesel_comm_create_local(s.world, &options, comms.data(), &error), error,
             what.c_str())) {
    return;
  }
  std::vector<Rank> ranks(comms.size());
  Barrier barrier(s.world);
  std::vector<std::thread> threads;
  for (size_t r = 0; r < comms.size(); ++r) {
    ranks[r].comm = comms[r];
    threads.emplace_back(
        [&, r] { RunRank(s, data, composition, replays, r, ranks[r], barrier, what, race); });
  }
  for (std::thread& thread : threads) thread.join();
  for (sparsesel_comm* comm : comms) sparsesel_comm_release(comm, nullptr);
  double slowest = 0;
  for (const Rank& rank : ranks) slowest = std::max(slowest, rank.us);
  std::printf("%-60s %8.2f us, %.1f s\n", what.c_str(), slowest,
              std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const int largest = argc > 1 ? std::atoi(argv[1]) : 16;
  const int replays = argc > 2 ? std::atoi(argv[2]) : 20;
  const int smallest = argc > 3 ? std::atoi(argv[3]) : 1;
  if (argc > 4) g_child_plans = argv[4];
  for (const int world : {1, 2, 4, 8, 16}) {
    if (world < smallest || world > largest) continue;
    for (const int composition : {SPARSESEL_COMPOSITION_REPLICATED, SPARSESEL_COMPOSITION_OWNER}) {
      for (const int rows : {1, 5, 8}) {
        RunCase({world, rows, 2048, 2048}, Kind::kRandom, composition, replays,
                composition == SPARSESEL_COMPOSITION_OWNER && rows == 8);
      }
      // Prefixes need an answer from a part of every list only, and a way out.
      if (composition == SPARSESEL_COMPOSITION_REPLICATED && world > 1) {
        const char* const pinned = g_child_plans;
        const int prefix = world >= 16 ? 256 : world == 8 ? 512 : 1024;
        const std::string plan = "peer.fused_prefix:" + std::to_string(prefix);
        const int k = world == 2 ? 1500 : 2048;  // less than the prefixes hold
        if (pinned == nullptr) g_child_plans = plan.c_str();
        for (const int rows : {1, 4}) {
          RunCase({world, rows, 2048, k, Order::kKept}, Kind::kRandom, composition, replays, false);
        }
        RunCase({world, 4, 2048, k, Order::kBroken}, Kind::kRandom, composition, 4, false);
        for (const Kind kind :
             {Kind::kTies, Kind::kEqual, Kind::kDuplicates, Kind::kFew, Kind::kSpecial}) {
          RunCase({world, 2, 2048, k, Order::kKept}, kind, composition, 4, false);
          RunCase({world, 2, 1500, 700, Order::kBroken}, kind, composition, 4, false);
        }
        g_child_plans = pinned;
      }
      if (world == 3 || world == 4) {
        for (const Kind kind :
             {Kind::kTies, Kind::kEqual, Kind::kDuplicates, Kind::kFew, Kind::kSpecial}) {
          RunCase({world, 3, 2048, 2048}, kind, composition, 4, false);
          RunCase({world, 70, 500, 300}, kind, composition, 4, false);
        }
      }
    }
  }
  std::printf("%d failures\n", g_failures);
  return g_failures == 0 ? 0 : 1;
}
