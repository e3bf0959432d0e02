// Ranks in processes of their own, one each, on GPUs of one machine, through the C API: answers of
// both compositions, a race, refusals, an abort, a rank that is killed, and memory that stays flat
// over many groups.
//
//   ipc_test [replays] [world...]
//
// Rank r runs on device r modulo the devices there are. Ranks that share one are served in turns, a
// few milliseconds each, so that every exchange takes as long.
#include <cuda_runtime.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "sparsesel.h"
#include "tests/gpu/peer_cases.h"
#include "tests/gpu/process_group.h"

namespace {

using namespace std::chrono_literals;
using sparsesel::testing::Data;
using sparsesel::testing::Kind;
using sparsesel::testing::kKindNames;
using sparsesel::testing::Make;
using sparsesel::testing::ProcessGroup;
using sparsesel::testing::Shape;
using sparsesel::testing::SharedWords;
using Clock = std::chrono::steady_clock;

constexpr auto kSteadyLimit = 3s;
constexpr auto kStartupLimit = 30s;
constexpr auto kSlack = 5s;  // beyond a limit, for what else a call does
constexpr int kTrain = 5;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// ------------------------------------------------------------------------------------ one rank

class Rank {
 public:
  Rank(ProcessGroup& group, int replays) : group_(group), replays_(replays) {}

  int Run(const std::string& mode) {
    int devices = 0;
    if (!Check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount") || devices == 0) return Done();
    device_ = group_.rank() % devices;
    Check(cudaSetDevice(device_), "cudaSetDevice");
    Check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream");
    if (mode == "answers") Answers();
    if (mode == "refusal") Refusal();
    if (mode == "abort") AbortOne();
    if (mode == "kill") KillOne();
    if (mode == "cycles") Cycles();
    return Done();
  }

 private:
  struct Bound {
    sparsesel_binding* binding = nullptr;
    sparsesel_io io = SPARSESEL_IO_INIT;
    float* scores = nullptr;
    int32_t *ids = nullptr, *counts = nullptr, *out = nullptr;
    uint32_t* status_word = nullptr;
  };

  int Done() {
    group_.words().failures += static_cast<uint32_t>(failures_);
    return failures_ == 0 ? 0 : 1;
  }

  void Fail(const std::string& what) {
    ++failures_;
    if (failures_ <= 5) {
      std::printf("FAILED: rank %d of %d: %s\n", group_.rank(), group_.world(), what.c_str());
      std::fflush(stdout);
    }
  }
  bool Check(sparsesel_status status, const std::string& what) {
    if (status == SPARSESEL_OK) return true;
    Fail(what + ": " + sparsesel_status_name(status) + ": " + error_.text);
    return false;
  }
  bool Check(cudaError_t error, const std::string& what) {
    if (error == cudaSuccess) return true;
    Fail(what + ": " + cudaGetErrorString(error));
    return false;
  }
  void Require(bool condition, const std::string& what) {
    if (!condition) Fail(what);
  }
  void Meet() { Require(group_.Barrier(), "a barrier of the test"); }

  sparsesel_comm_options Options() {
    sparsesel_comm_options options = SPARSESEL_COMM_OPTIONS_INIT;
    options.memory = SPARSESEL_MEMORY_DEVICE;
    options.rank = group_.rank();
    options.world_size = group_.world();
    options.device_count = 1;
    options.devices = &device_;
    options.startup_timeout = std::chrono::nanoseconds(kStartupLimit).count();
    options.steady_timeout = std::chrono::nanoseconds(kSteadyLimit).count();
    options.bootstrap = group_.bootstrap();
    return options;
  }

  bool Join() {
    const sparsesel_comm_options options = Options();
    return Check(sparsesel_comm_create(&options, &comm_, &error_), "comm_create");
  }
  void Leave() {
    Check(sparsesel_comm_release(comm_, &error_), "comm_release");
    comm_ = nullptr;
  }

  template <typename T>
  T* ToDevice(const std::vector<T>& host) {
    T* device = nullptr;
    Check(cudaMalloc(reinterpret_cast<void**>(&device), host.size() * sizeof(T)), "cudaMalloc");
    Check(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice), "copy");
    return device;
  }

  bool Bind(const Shape& shape, const Data& data, int composition, bool race, uint64_t budget,
            Bound* bound) {
    const int32_t capacities[] = {shape.rows};
    sparsesel_problem problem = SPARSESEL_PROBLEM_INIT;
    problem.k = shape.k;
    problem.candidates = shape.candidates;
    problem.capacities = capacities;
    problem.capacity_count = 1;
    sparsesel_plan* plan = nullptr;
    if (!Check(sparsesel_plan_create(comm_, &problem, &plan, &error_), "plan_create")) return false;
    sparsesel_prepare_options prepare = SPARSESEL_PREPARE_OPTIONS_INIT;
    prepare.time_budget = budget;
    bool ok = Check(sparsesel_plan_prepare(plan, &prepare, &error_), "plan_prepare");
    if (ok && race) {
      sparsesel_report* report = nullptr;
      ok = Check(sparsesel_plan_race(plan, nullptr, &report, &error_), "plan_race");
      sparsesel_outcome outcome = SPARSESEL_OUTCOME_INIT;
      if (ok && group_.rank() == 0 &&
          Check(sparsesel_report_outcome(report, 0, &outcome, &error_), "report_outcome")) {
        std::printf("race W=%d rows=%d: replicated %.1f us, owner %.1f us, winner %d rule %d\n",
                    shape.world, shape.rows, outcome.replicated_median / 1e3,
                    outcome.owner_median / 1e3, outcome.winner, outcome.rule);
        std::fflush(stdout);
        Require(outcome.replicated_exact != 0 && outcome.owner_exact != 0, "inexact in the race");
      }
      sparsesel_report_release(report, nullptr);
    }
    ok = ok && Check(sparsesel_plan_bind(plan, nullptr, composition, &bound->binding, &error_),
                     "plan_bind");
    sparsesel_plan_release(plan, nullptr);
    if (!ok) return false;
    const auto r = static_cast<size_t>(group_.rank());
    bound->scores = ToDevice(data.scores[r]);
    bound->ids = ToDevice(data.ids[r]);
    bound->counts = ToDevice(data.counts[r]);
    bound->out = ToDevice(std::vector<int32_t>(data.expected.size(), -77));
    bound->status_word = ToDevice(std::vector<uint32_t>(1, 0));
    bound->io.rows = shape.rows;
    bound->io.scores = bound->scores;
    bound->io.ids = bound->ids;
    bound->io.counts = bound->counts;
    bound->io.out_ids = bound->out;
    bound->io.status_word = bound->status_word;
    return true;
  }
  void Unbind(Bound& bound) {
    Check(sparsesel_binding_release(bound.binding, &error_), "binding_release");
    cudaFree(bound.scores);
    cudaFree(bound.ids);
    cudaFree(bound.counts);
    cudaFree(bound.out);
    cudaFree(bound.status_word);
    bound = {};
  }

  void Compare(const Data& data, const Bound& bound, const std::string& what) {
    std::vector<int32_t> out(data.expected.size());
    Check(cudaMemcpy(out.data(), bound.out, out.size() * 4, cudaMemcpyDeviceToHost), "copy out");
    size_t wrong = 0;
    for (size_t i = 0; i < out.size(); ++i) wrong += out[i] != data.expected[i];
    if (wrong != 0) {
      Fail(what + ": " + std::to_string(wrong) + " of " + std::to_string(out.size()) +
           " ids wrong");
    }
    Check(cudaMemset(bound.out, 0x5a, out.size() * 4), "poison");
    Check(cudaDeviceSynchronize(), "poison");
  }

  // Eager calls and replays in turns; the graph outlives the binding.
  void Case(const Shape& shape, Kind kind, int composition, bool race) {
    const std::string what =
        "W=" + std::to_string(shape.world) + " rows=" + std::to_string(shape.rows) + " " +
        kKindNames[static_cast<int>(kind)] +
        (composition == SPARSESEL_COMPOSITION_OWNER ? " owner" : " replicated");
    const auto begin = Clock::now();
    const Data data = Make(shape, kind, 11);
    Bound bound;
    if (!Bind(shape, data, composition, race, 0, &bound)) return;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replay = nullptr;
    Check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "begin capture");
    for (int i = 0; i < kTrain; ++i) {
      Check(sparsesel_execute(bound.binding, &bound.io, stream_, &error_), what + ": captured");
    }
    Check(cudaStreamEndCapture(stream_, &graph), "end capture");
    Check(cudaGraphInstantiate(&replay, graph, 0), "instantiate");
    cudaGraphDestroy(graph);
    Meet();
    double us = 0;
    for (int i = 0; i < replays_; ++i) {
      const auto before = Clock::now();
      Check(cudaGraphLaunch(replay, stream_), "replay");
      Check(cudaStreamSynchronize(stream_), "synchronize");
      us = SecondsSince(before) * 1e6 / kTrain;
      Compare(data, bound, what + ", replayed");
      Check(sparsesel_execute(bound.binding, &bound.io, stream_, &error_), what + ": eager");
      Check(cudaStreamSynchronize(stream_), "synchronize");
      Compare(data, bound, what + ", eager");
    }
    Check(sparsesel_comm_status(comm_, nullptr, &error_), what + ": comm_status");
    Check(sparsesel_binding_release(bound.binding, &error_), "binding_release");
    bound.binding = nullptr;
    Meet();
    Check(cudaGraphLaunch(replay, stream_), "replay after release");
    Check(cudaStreamSynchronize(stream_), "synchronize");
    Compare(data, bound, what + ", after release");
    Meet();
    Check(cudaGraphExecDestroy(replay), "graph destroy");
    Unbind(bound);
    if (group_.rank() == 0) {
      std::printf("%-44s %9.1f us, %.1f s\n", what.c_str(), us, SecondsSince(begin));
      std::fflush(stdout);
    }
  }

  void Answers() {
    if (!Join()) return;
    const int world = group_.world();
    for (const int composition : {SPARSESEL_COMPOSITION_REPLICATED, SPARSESEL_COMPOSITION_OWNER}) {
      Case({world, 1, 2048, 2048}, Kind::kRandom, composition, false);
      Case({world, 5, 2048, 2048}, Kind::kRandom, composition,
           composition == SPARSESEL_COMPOSITION_OWNER);
      for (const Kind kind : {Kind::kTies, Kind::kDuplicates, Kind::kFew, Kind::kSpecial}) {
        Case({world, 3, 2048, 2048}, kind, composition, false);
      }
      Case({world, 70, 500, 300}, Kind::kDuplicates, composition, false);
    }
    Leave();
  }

  // One rank asks for a device that is not there: all hear of it, and of who it was.
  void Refusal() {
    sparsesel_comm_options options = Options();
    const int32_t none = 4096;
    if (group_.rank() == 1) options.devices = &none;
    const auto begin = Clock::now();
    const sparsesel_status status = sparsesel_comm_create(&options, &comm_, &error_);
    Require(status == SPARSESEL_INVALID_ARGUMENT && error_.rank == 1,
            std::string("a bad ordinal gives ") + sparsesel_status_name(status) + " by rank " +
                std::to_string(error_.rank));
    Require(comm_ == nullptr, "a comm in spite of it");
    Require(SecondsSince(begin) < 20, "the refusal took long");
  }

  bool BindSmall(Bound* bound) {
    const Shape shape{group_.world(), 2, 256, 256};
    return Bind(shape, Make(shape, Kind::kRandom, 3), SPARSESEL_COMPOSITION_REPLICATED, false,
                1'000'000, bound);
  }

  // After the end of a group: nothing waits, everything can be released.
  void CheckEnded(Bound& bound, const char* what) {
    const auto begin = Clock::now();
    Require(sparsesel_execute(bound.binding, &bound.io, stream_, &error_) != SPARSESEL_OK,
            std::string("execute after ") + what);
    sparsesel_workspace* workspace = nullptr;
    Require(sparsesel_workspace_create(comm_, nullptr, &workspace, &error_) != SPARSESEL_OK,
            std::string("a collective call after ") + what);
    Unbind(bound);
    Leave();
    const double took = SecondsSince(begin);
    Require(took < std::chrono::duration<double>(kSlack).count(),
            std::string("letting go after ") + what + " took " + std::to_string(took) + " s");
  }

  // Rank 0 aborts while the kernels of the others wait for it.
  void AbortOne() {
    Bound bound;
    if (!Join() || !BindSmall(&bound)) return;
    Meet();
    const auto begin = Clock::now();
    if (group_.rank() == 0) {
      std::this_thread::sleep_for(500ms);
      Check(sparsesel_comm_abort(comm_, &error_), "comm_abort");
    } else {
      Check(sparsesel_execute(bound.binding, &bound.io, stream_, &error_), "execute");
      Check(cudaStreamSynchronize(stream_), "synchronize");
    }
    const double took = SecondsSince(begin);
    const sparsesel_status status = sparsesel_comm_status(comm_, nullptr, &error_);
    // Where the processes' shared page cannot be pinned, kernels find out by their limit.
    const bool by_limit = took > std::chrono::duration<double>(kSteadyLimit).count() &&
                          (status == SPARSESEL_TIMEOUT || status == SPARSESEL_PEER_FAILED);
    Require(status == SPARSESEL_ABORTED || by_limit,
            std::string("after an abort the status is ") + sparsesel_status_name(status));
    Require(took < std::chrono::duration<double>(kSteadyLimit + kSlack).count(), "abort took long");
    if (group_.rank() == 1)
      std::printf("waiting kernels ended %.2f s after the abort\n", took - 0.5);
    CheckEnded(bound, "an abort");
  }

  // The last rank is killed with kernels on their way.
  void KillOne() {
    Bound bound;
    if (!Join() || !BindSmall(&bound)) return;
    Meet();
    Clock::time_point begin = Clock::now();
    for (int i = 0; i < 1000; ++i) {
      const bool dies = group_.rank() == group_.world() - 1 && i == 20;
      begin = Clock::now();
      if (sparsesel_execute(bound.binding, &bound.io, stream_, &error_) != SPARSESEL_OK) break;
      if (dies) kill(getpid(), SIGKILL);
      Check(cudaStreamSynchronize(stream_), "synchronize");
      if (sparsesel_comm_status(comm_, nullptr, &error_) != SPARSESEL_OK) break;
      Require(i < 500, "nobody notices that a rank has died");
    }
    const double took = SecondsSince(begin);
    const sparsesel_status status = sparsesel_comm_status(comm_, nullptr, &error_);
    Require(status == SPARSESEL_TIMEOUT || status == SPARSESEL_PEER_FAILED,
            std::string("after a kill the status is ") + sparsesel_status_name(status));
    // Mostly the killed one; a survivor that waits for one that waits for it may name that one.
    Require(error_.rank >= 0 && error_.rank != group_.rank(),
            "the rank at fault is said to be " + std::to_string(error_.rank));
    Require(took < std::chrono::duration<double>(kSteadyLimit + kSlack).count(),
            "it took " + std::to_string(took) + " s to notice a killed rank");
    if (group_.rank() == 0) {
      std::printf("a killed rank was noticed after %.2f s: %s\n", took, error_.text);
      std::fflush(stdout);
    }
    CheckEnded(bound, "a kill");
  }

  size_t FreeMemory() {
    size_t free = 0;
    size_t total = 0;
    Meet();
    Check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    Meet();
    return free;
  }

  // Groups and bindings that come and go take no memory with them, whoever lets go first.
  void Cycles() {
    constexpr int kGroups = 12;
    constexpr int kBindings = 5;
    constexpr int kWarm = 3;
    size_t before = 0;
    for (int i = 0; i < kGroups; ++i) {
      if (!Join()) return;
      for (int j = 0; j < kBindings; ++j) {
        Bound bound;
        if (!BindSmall(&bound)) return;
        Check(sparsesel_execute(bound.binding, &bound.io, stream_, &error_), "execute");
        Check(cudaStreamSynchronize(stream_), "synchronize");
        if ((i + j + group_.rank()) % 3 == 0) std::this_thread::sleep_for(5ms);
        Unbind(bound);
      }
      Leave();
      if (i == kWarm - 1) before = FreeMemory();
    }
    const size_t after = FreeMemory();
    const auto grown = static_cast<double>(before) - static_cast<double>(after);
    // What the last group has put aside may differ. A binding has two memories of at least 2 MiB
    // that are lent, so that losing any would be seen.
    const double allowed = 48.0 * (1 << 20);
    Require(grown < allowed, std::to_string(grown / (1 << 20)) + " MiB are gone after " +
                                 std::to_string(kGroups - kWarm) + " groups");
    if (group_.rank() == 0) {
      std::printf("%d groups of %d bindings: %.1f MiB less free\n", kGroups, kBindings,
                  grown / (1 << 20));
      std::fflush(stdout);
    }
  }

  ProcessGroup& group_;
  const int replays_;
  int failures_ = 0;
  int32_t device_ = 0;
  cudaStream_t stream_ = nullptr;
  sparsesel_comm* comm_ = nullptr;
  sparsesel_error error_ = SPARSESEL_ERROR_INIT;
};

// ---------------------------------------------------------------------------------- the parent

// Runs a mode with `world` processes, none of which inherits anything of CUDA. True if all is well.
bool RunProcesses(const char* mode, int world, int replays) {
  std::printf("== %s, %d processes\n", mode, world);
  std::fflush(stdout);
  const int file = memfd_create("ipc_test", 0);
  if (file < 0 || ftruncate(file, sizeof(SharedWords)) != 0) {
    std::printf("FAILED: no shared memory\n");
    return false;
  }
  ProcessGroup group(file, 0, world);
  std::vector<pid_t> children;
  for (int rank = 0; rank < world; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      const std::string arguments[] = {std::to_string(file), std::to_string(rank),
                                       std::to_string(world), std::to_string(replays)};
      execl("/proc/self/exe", "ipc_test", "--rank", mode, arguments[0].c_str(),
            arguments[1].c_str(), arguments[2].c_str(), arguments[3].c_str(), nullptr);
      _exit(127);
    }
    children.push_back(child);
  }
  const bool kills = std::string(mode) == "kill";
  const auto end = Clock::now() + 400s;
  bool good = true;
  for (int rank = 0; rank < world; ++rank) {
    const pid_t child = children[static_cast<size_t>(rank)];
    int status = 0;
    pid_t ended = 0;
    while ((ended = waitpid(child, &status, WNOHANG)) == 0 && Clock::now() < end) {
      std::this_thread::sleep_for(10ms);
    }
    if (ended == 0) {
      std::printf("FAILED: rank %d does not end\n", rank);
      kill(child, SIGKILL);
      (void)waitpid(child, &status, 0);
      good = false;
      continue;
    }
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    const bool expected =
        kills && rank == world - 1 ? killed : WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!expected) std::printf("FAILED: rank %d ended with %#x\n", rank, status);
    good = good && expected;
  }
  good = good && group.words().failures == 0;
  (void)munmap(&group.words(), sizeof(SharedWords));
  (void)close(file);
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 7 && std::string(argv[1]) == "--rank") {
    ProcessGroup group(std::atoi(argv[3]), std::atoi(argv[4]), std::atoi(argv[5]));
    return Rank(group, std::atoi(argv[6])).Run(argv[2]);
  }
  const int replays = argc > 1 ? std::atoi(argv[1]) : 4;
  std::vector<int> worlds;
  for (int i = 2; i < argc; ++i) worlds.push_back(std::clamp(std::atoi(argv[i]), 2, 16));
  if (worlds.empty()) worlds = {2, 4};
  int failures = 0;
  for (const int world : worlds) {
    for (const char* mode : {"answers", "refusal", "abort", "kill", "cycles"}) {
      if (!RunProcesses(mode, world, replays)) ++failures;
    }
  }
  std::printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
