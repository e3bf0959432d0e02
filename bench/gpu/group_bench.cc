// Whole compositions on GPUs, through the C API: a race for each number of rows, then both
// compositions measured again with long trains, and the regret of the race's choice. Ranks are
// threads of this process; rank r runs on device r modulo the devices there are.
//
//   group_bench TRANSPORT [WORLD] [ORDER] [ROWS...]
//
//   TRANSPORT   peer, or nccl (a device for each rank)
//   WORLD       ranks; default: the devices there are
//   ORDER       unsorted (default), or sorted: lists promised in full order
//   ROWS        default 1 2 4 8 16 64 256
//
//   K           is taken from the environment (K=512), default 2048; so are CANDIDATES
//
// Prints Markdown, times in microseconds, of the slowest rank; spans are the race's. Below the
// table: what as many kernels cost that do nothing, and, with one rank, the host's time in execute.
#include <cuda_runtime.h>

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bench/gpu/launch_floor.h"
#include "sparsesel.h"
#include "tests/gpu/peer_cases.h"

namespace {

using sparsesel::testing::Data;
using sparsesel::testing::Kind;
using sparsesel::testing::Make;
using sparsesel::testing::Order;
using sparsesel::testing::Shape;

constexpr int kTrain = 20;
constexpr int kReplays = 31;
constexpr int32_t kKinds[2] = {SPARSESEL_COMPOSITION_REPLICATED, SPARSESEL_COMPOSITION_OWNER};

void Must(sparsesel_status status, const sparsesel_error& error) {
  if (status == SPARSESEL_OK) return;
  std::printf("%s: %s\n", sparsesel_status_name(status), error.text);
  std::exit(1);
}

void Must(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

template <typename T>
T* ToDevice(const std::vector<T>& host) {
  T* device = nullptr;
  Must(cudaMalloc(reinterpret_cast<void**>(&device), host.size() * sizeof(T)), "cudaMalloc");
  Must(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice), "copy");
  return device;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

struct Measured {
  sparsesel_outcome outcome = SPARSESEL_OUTCOME_INIT;
  nlohmann::json report;                      // of rank 0
  std::vector<std::vector<double>> again[2];  // [composition][rank][replay]
  double host[2] = {};                        // of rank 0, where it is alone
  size_t wrong = 0;                           // ids, over all ranks
};

class Rank {
 public:
  Rank(sparsesel_comm* comm, int number, const Shape& shape, const Data& data,
       std::barrier<>* barrier, Measured* measured)
      : comm_(comm),
        number_(static_cast<size_t>(number)),
        shape_(shape),
        data_(data),
        barrier_(*barrier),
        measured_(*measured) {}

  void Run(int device) {
    Must(cudaSetDevice(device), "cudaSetDevice");
    Must(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream");
    scores_ = ToDevice(data_.scores[number_]);
    ids_ = ToDevice(data_.ids[number_]);
    out_ = ToDevice(std::vector<int32_t>(data_.expected.size(), -77));
    io_.rows = shape_.rows;
    io_.scores = scores_;
    io_.ids = ids_;
    io_.out_ids = out_;
    RaceAndBind();
    for (int which : {0, 1}) Capture(which);
    Must(cudaStreamSynchronize(stream_), "capture");
    barrier_.arrive_and_wait();
    for (int replay = 0; replay < kReplays; ++replay) {
      for (int which : {0, 1}) Replay(which);
    }
    barrier_.arrive_and_wait();
    if (shape_.world == 1) {
      for (int which : {0, 1}) {
        measured_.host[which] = sparsesel::bench::HostCost(
            stream_, [&] { (void)sparsesel_execute(bindings_[which], &io_, stream_, nullptr); });
      }
    }
    LetGo();
  }

 private:
  void RaceAndBind() {
    sparsesel_error error = SPARSESEL_ERROR_INIT;
    sparsesel_problem problem = SPARSESEL_PROBLEM_INIT;
    problem.k = shape_.k;
    problem.candidates = shape_.candidates;
    problem.capacities = &shape_.rows;
    problem.capacity_count = 1;
    if (shape_.order != Order::kNone) problem.input_order = SPARSESEL_ORDER_FULL;
    sparsesel_plan* plan = nullptr;
    Must(sparsesel_plan_create(comm_, &problem, &plan, &error), error);
    Must(sparsesel_plan_prepare(plan, nullptr, &error), error);
    sparsesel_race_options options = SPARSESEL_RACE_OPTIONS_INIT;
    options.trial_io = &io_;
    sparsesel_report* report = nullptr;
    Must(sparsesel_plan_race(plan, &options, &report, &error), error);
    if (number_ == 0) {
      Must(sparsesel_report_outcome(report, 0, &measured_.outcome, &error), error);
      size_t needed = 0;
      Must(sparsesel_report_json(report, nullptr, 0, &needed, &error), error);
      std::string text(needed, '\0');
      Must(sparsesel_report_json(report, text.data(), text.size(), &needed, &error), error);
      measured_.report = nlohmann::json::parse(text.c_str());
    }
    for (int which : {0, 1}) {
      Must(sparsesel_plan_bind(plan, nullptr, kKinds[which], &bindings_[which], &error), error);
    }
    sparsesel_report_release(report, nullptr);
    sparsesel_plan_release(plan, nullptr);
  }

  void Capture(int which) {
    sparsesel_error error = SPARSESEL_ERROR_INIT;
    cudaGraph_t graph = nullptr;
    Must(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "begin capture");
    for (int i = 0; i < kTrain; ++i) {
      Must(sparsesel_execute(bindings_[which], &io_, stream_, &error), error);
    }
    Must(cudaStreamEndCapture(stream_, &graph), "end capture");
    Must(cudaGraphInstantiate(&graphs_[which], graph, 0), "instantiate");
    Must(cudaGraphUpload(graphs_[which], stream_), "upload");
    cudaGraphDestroy(graph);
    Must(cudaEventCreate(&events_[0]), "event");
    Must(cudaEventCreate(&events_[1]), "event");
  }

  void Replay(int which) {
    barrier_.arrive_and_wait();
    Must(cudaEventRecord(events_[0], stream_), "event");
    Must(cudaGraphLaunch(graphs_[which], stream_), "replay");
    Must(cudaEventRecord(events_[1], stream_), "event");
    Must(cudaStreamSynchronize(stream_), "replay");
    float ms = 0;
    Must(cudaEventElapsedTime(&ms, events_[0], events_[1]), "time");
    measured_.again[which][number_].push_back(ms * 1e3 / kTrain);
    std::vector<int32_t> out(data_.expected.size());
    Must(cudaMemcpy(out.data(), out_, out.size() * 4, cudaMemcpyDeviceToHost), "copy out");
    for (size_t i = 0; i < out.size(); ++i) wrong_ += out[i] != data_.expected[i];
  }

  void LetGo() {
    __atomic_fetch_add(&measured_.wrong, wrong_, __ATOMIC_RELAXED);
    for (int which : {0, 1}) {
      cudaGraphExecDestroy(graphs_[which]);
      sparsesel_binding_release(bindings_[which], nullptr);
    }
    cudaFree(scores_);
    cudaFree(ids_);
    cudaFree(out_);
    cudaStreamDestroy(stream_);
  }

  sparsesel_comm* const comm_;
  const size_t number_;
  const Shape& shape_;
  const Data& data_;
  std::barrier<>& barrier_;
  Measured& measured_;
  cudaStream_t stream_ = nullptr;
  sparsesel_binding* bindings_[2] = {};
  cudaGraphExec_t graphs_[2] = {};
  cudaEvent_t events_[2] = {};
  sparsesel_io io_ = SPARSESEL_IO_INIT;
  float* scores_ = nullptr;
  int32_t* ids_ = nullptr;
  int32_t* out_ = nullptr;
  size_t wrong_ = 0;
};

Measured Run(const Shape& shape, int32_t transport, int devices) {
  const Data data = Make(shape, Kind::kRandom, 7);
  const auto world = static_cast<size_t>(shape.world);
  std::vector<int32_t> ordinals;
  for (int r = 0; r < shape.world; ++r) ordinals.push_back(r % devices);
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  sparsesel_comm_options options = SPARSESEL_COMM_OPTIONS_INIT;
  options.memory = SPARSESEL_MEMORY_DEVICE;
  options.transport = transport;
  options.devices = ordinals.data();
  options.device_count = shape.world;
  std::vector<sparsesel_comm*> comms(world);
  Must(sparsesel_comm_create_local(shape.world, &options, comms.data(), &error), error);
  Measured measured;
  for (auto& again : measured.again) again.resize(world);
  std::barrier<> barrier(shape.world);
  std::vector<std::thread> threads;
  for (int r = 0; r < shape.world; ++r) {
    threads.emplace_back([&, r] {
      Rank(comms[static_cast<size_t>(r)], r, shape, data, &barrier, &measured)
          .Run(ordinals[static_cast<size_t>(r)]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (sparsesel_comm* comm : comms) sparsesel_comm_release(comm, nullptr);
  return measured;
}

// The median over replays of the slowest rank.
double Slowest(const std::vector<std::vector<double>>& ranks) {
  std::vector<double> slowest(kReplays, 0);
  for (const auto& rank : ranks) {
    for (size_t i = 0; i < rank.size(); ++i) slowest[i] = std::max(slowest[i], rank[i]);
  }
  return Median(slowest);
}

std::string Spans(const nlohmann::json& entrant) {
  std::string text;
  for (const nlohmann::json& span : entrant["spans"]) {
    char one[64];
    std::snprintf(one, sizeof(one), "%s%s %.1f", text.empty() ? "" : ", ",
                  span["stage"].get<std::string>().c_str(), span["median"].get<double>() / 1e3);
    text += one;
  }
  return text;
}

std::string Plans(const nlohmann::json& entrant) {
  std::string text;
  for (const nlohmann::json& name : entrant["child_plans"]) {
    text += (text.empty() ? "" : ", ") + name.get<std::string>();
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  int devices = 0;
  Must(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  const std::string transport = argc > 1 ? argv[1] : "peer";
  Shape shape{argc > 2 ? std::atoi(argv[2]) : devices, 1, 2048, 2048};
  if (const char* k = std::getenv("K")) shape.k = std::atoi(k);
  if (const char* candidates = std::getenv("CANDIDATES")) shape.candidates = std::atoi(candidates);
  if (argc > 3 && std::string(argv[3]) == "sorted") shape.order = Order::kKept;
  std::vector<int> rows;
  for (int i = 4; i < argc; ++i) rows.push_back(std::atoi(argv[i]));
  if (rows.empty()) rows = {1, 2, 4, 8, 16, 64, 256};
  std::printf(
      "\n%s, %d ranks on %d devices, %s lists of %d, k = %d\n\n"
      "| rows | replicated | owner | winner | ratio (bounds) | regret | replicated by | its spans "
      "| owner's spans |\n|---|---|---|---|---|---|---|---|---|\n",
      transport.c_str(), shape.world, std::min(devices, shape.world),
      shape.order == Order::kNone ? "unsorted" : "sorted", shape.candidates, shape.k);
  size_t wrong = 0;
  double host[2] = {};
  for (const int r : rows) {
    shape.rows = r;
    const Measured m = Run(
        shape, transport == "nccl" ? SPARSESEL_TRANSPORT_NCCL : SPARSESEL_TRANSPORT_PEER, devices);
    const double again[2] = {Slowest(m.again[0]), Slowest(m.again[1])};
    const bool owner = m.outcome.winner == SPARSESEL_COMPOSITION_OWNER;
    const nlohmann::json& capacity = m.report["capacities"][0];
    std::printf("| %d | %.1f | %.1f | %s | %.3f (%.3f .. %.3f) | %.3f | %s | %s | %s |\n", r,
                again[0], again[1], owner ? "owner" : "replicated", m.outcome.ratio,
                m.outcome.ratio_low, m.outcome.ratio_high,
                again[owner ? 1 : 0] / std::min(again[0], again[1]),
                Plans(capacity["replicated"]).c_str(), Spans(capacity["replicated"]).c_str(),
                Spans(capacity["owner"]).c_str());
    std::fflush(stdout);
    wrong += m.wrong;
    std::copy_n(m.host, 2, host);
  }
  if (shape.world == 1) {
    cudaStream_t stream = nullptr;
    Must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    const double launch = sparsesel::bench::HostCost(
        stream, [&] { (void)sparsesel::bench::LaunchNothing(16, 16, stream); });
    std::printf("\nhost, per execute: replicated %.2f, owner %.2f; per launch of nothing %.2f\n",
                host[0], host[1], launch);
  }
  const int sharing = (shape.world + devices - 1) / devices;
  std::printf(
      "\nkernels that do nothing, on %d streams at once: %.2f in clusters of 16, %.2f alone\n",
      sharing, sparsesel::bench::LaunchFloor(sharing, 16),
      sparsesel::bench::LaunchFloor(sharing, 1));
  std::printf("\n%zu ids wrong\n", wrong);
  return wrong == 0 ? 0 : 1;
}
