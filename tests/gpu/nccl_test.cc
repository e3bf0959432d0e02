// Groups over NCCL, a rank per GPU, through the C API: both compositions and every way to
// replicate, eager, captured and raced, against a reference on the host.
//
//   nccl_test [largest world] [replays] [smallest world]
//
// The world is as large as there are GPUs; one is enough, and then NCCL has nobody to talk to.
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "contract/order.h"
#include "contract/ownership.h"
#include "sparsesel.h"

namespace {

std::mutex g_mutex;
int g_failures = 0;
int g_shown = 0;  // of the case at hand

void Fail(const std::string& what) {
  const std::lock_guard lock(g_mutex);
  ++g_failures;
  if (++g_shown <= 3) std::printf("FAILED: %s\n", what.c_str());
}

bool Check(sparsesel_status status, const sparsesel_error& error, const std::string& what) {
  if (status == SPARSESEL_OK) return true;
  Fail(what + ": " + sparsesel_status_name(status) + ": " + error.text);
  return false;
}

bool Check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return true;
  Fail(std::string(what) + ": " + cudaGetErrorString(error));
  return false;
}

// ------------------------------------------------------------------------------------- inputs

enum class Kind { kRandom, kTies, kDuplicates, kFew, kSpecial };
constexpr const char* kKindNames[] = {"random", "ties", "duplicates", "few", "special"};

struct Case {
  int world, rows, candidates, k;
  Kind kind = Kind::kRandom;
  int composition = SPARSESEL_COMPOSITION_REPLICATED;
  const char* child_plans = nullptr;
  bool scores = false;  // scores and counts are wanted, too
  bool by_id = false;
  bool owned = false;  // only the rows a rank owns
  bool tiled = false;  // a memory limit that one tile does not fit
  int active = -1;     // active rows, or all
  int slots = 1;       // of the workspace
  bool race = false;

  std::string Name() const {
    std::string name = "W=" + std::to_string(world) + " rows=" + std::to_string(rows) +
                       " n=" + std::to_string(candidates) + " k=" + std::to_string(k) + " " +
                       kKindNames[static_cast<int>(kind)] +
                       (composition == SPARSESEL_COMPOSITION_OWNER ? " owner" : " replicated");
    if (child_plans != nullptr) name += std::string(" ") + child_plans;
    if (scores) name += " scores";
    if (by_id) name += " by-id";
    if (owned) name += " owned-rows";
    if (tiled) name += " tiled";
    if (active >= 0) name += " active=" + std::to_string(active);
    if (slots > 1) name += " slots=" + std::to_string(slots);
    return race ? name + " race" : name;
  }
};

struct Data {
  std::vector<std::vector<float>> scores;  // [rank][rows * candidates]
  std::vector<std::vector<int32_t>> ids;
  std::vector<std::vector<int32_t>> counts;
  // Of all rows.
  std::vector<int32_t> expected_ids;
  std::vector<uint32_t> expected_scores;
  std::vector<int32_t> expected_counts;
};

size_t Size(int value) { return static_cast<size_t>(value); }

void MakeInput(const Case& c, Data* data) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  const size_t n = Size(c.rows) * Size(c.candidates);
  for (int rank = 0; rank < c.world; ++rank) {
    std::vector<float> scores(n);
    std::vector<int32_t> ids(n);
    std::vector<int32_t> counts(Size(c.rows), c.candidates);
    for (size_t i = 0; i < n; ++i) {
      const auto position = static_cast<int32_t>(i % Size(c.candidates));
      ids[i] = position * c.world + rank;
      scores[i] = normal(random);
      if (c.kind == Kind::kTies) scores[i] = std::rint(scores[i] * 2);
      if (c.kind == Kind::kDuplicates) {
        ids[i] = position;
        scores[i] = static_cast<float>(position % 97);
      }
      if (c.kind == Kind::kFew && random() % 64 != 0) {
        ids[i] = -1 - static_cast<int32_t>(random() % 5);
      }
      if (c.kind == Kind::kSpecial) {
        const uint32_t bits[] = {0x7fc00000u, 0xffc00001u, 0x7f800000u, 0xff800000u, 0u,
                                 0x80000000u, 1u,          0x80000001u, 0x3f800000u};
        std::memcpy(&scores[i], &bits[random() % 9], 4);
      }
    }
    if (c.kind == Kind::kFew) {
      for (int32_t& count : counts) count = static_cast<int32_t>(random() % 3000) - 100;
    }
    data->scores.push_back(std::move(scores));
    data->ids.push_back(std::move(ids));
    data->counts.push_back(std::move(counts));
  }
}

void MakeExpected(const Case& c, Data* data) {
  struct Entry {
    uint64_t key;
    uint32_t bits;
    size_t source;
  };
  const size_t k = Size(c.k);
  data->expected_ids.assign(Size(c.rows) * k, -1);
  data->expected_scores.assign(Size(c.rows) * k, 0xff800000u);
  data->expected_counts.assign(Size(c.rows), 0);
  for (size_t row = 0; row < Size(c.active < 0 ? c.rows : std::min(c.active, c.rows)); ++row) {
    std::vector<Entry> entries;
    for (size_t r = 0; r < Size(c.world); ++r) {
      const int count = std::clamp(data->counts[r][row], 0, c.candidates);
      for (size_t i = 0; i < Size(count); ++i) {
        const size_t at = row * Size(c.candidates) + i;
        uint32_t bits;
        std::memcpy(&bits, &data->scores[r][at], 4);
        const uint64_t key = sparsesel::CandidateKey(bits, data->ids[r][at]);
        if (key != 0) entries.push_back({key, bits, entries.size()});
      }
    }
    std::stable_sort(entries.begin(), entries.end(),
                     [](const Entry& a, const Entry& b) { return a.key > b.key; });
    if (entries.size() > k) entries.resize(k);
    if (c.by_id) {
      std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
        const int32_t x = sparsesel::KeyId(a.key);
        const int32_t y = sparsesel::KeyId(b.key);
        return x != y ? x < y : a.source < b.source;
      });
    }
    for (size_t i = 0; i < entries.size(); ++i) {
      data->expected_ids[row * k + i] = sparsesel::KeyId(entries[i].key);
      data->expected_scores[row * k + i] = entries[i].bits;
    }
    data->expected_counts[row] = static_cast<int32_t>(entries.size());
  }
}

// ------------------------------------------------------------------------------- groups, ranks

class Barrier {
 public:
  explicit Barrier(int n) : count_(n) {}
  void Wait() {
    std::unique_lock lock(mutex_);
    const int mine = generation_;
    if (++arrived_ == count_) {
      arrived_ = 0;
      ++generation_;
      return;
    }
    while (generation_ == mine) {
      lock.unlock();
      std::this_thread::yield();
      lock.lock();
    }
  }

 private:
  std::mutex mutex_;
  const int count_;
  int arrived_ = 0;
  int generation_ = 0;
};

// A bootstrap over the memory of this process.
struct Board {
  std::mutex mutex;
  std::vector<std::map<int, std::string>> rounds;
  size_t world = 1;
};
struct Member {
  Board* board = nullptr;
  int rank = 0;
  size_t round = 0;
  void* receive = nullptr;
};

sparsesel_status Start(void* context, const void* send, void* receive, size_t bytes,
                       void** request) {
  auto& member = *static_cast<Member*>(context);
  const std::lock_guard lock(member.board->mutex);
  if (member.board->rounds.size() <= member.round) member.board->rounds.resize(member.round + 1);
  member.board->rounds[member.round][member.rank].assign(static_cast<const char*>(send), bytes);
  member.receive = receive;
  *request = &member;
  return SPARSESEL_OK;
}
sparsesel_status Test(void*, void* request) {
  auto& member = *static_cast<Member*>(request);
  const std::lock_guard lock(member.board->mutex);
  const auto& parts = member.board->rounds[member.round];
  if (parts.size() < member.board->world) return SPARSESEL_IN_PROGRESS;
  auto* out = static_cast<char*>(member.receive);
  for (const auto& [rank, part] : parts) out += part.copy(out, part.size());
  ++member.round;
  return SPARSESEL_OK;
}
void Free(void*, void*) {}

sparsesel_comm_options Options() {
  sparsesel_comm_options options = SPARSESEL_COMM_OPTIONS_INIT;
  options.memory = SPARSESEL_MEMORY_DEVICE;
  options.transport = SPARSESEL_TRANSPORT_NCCL;
  options.startup_timeout = 60'000'000'000u;
  options.steady_timeout = 10'000'000'000u;
  return options;
}

std::vector<int32_t> Devices(int world) {
  std::vector<int32_t> devices(Size(world));
  for (size_t r = 0; r < devices.size(); ++r) devices[r] = static_cast<int32_t>(r);
  return devices;
}

std::vector<sparsesel_comm*> LocalGroup(int world) {
  const std::vector<int32_t> devices = Devices(world);
  sparsesel_comm_options options = Options();
  options.device_count = world;
  options.devices = devices.data();
  std::vector<sparsesel_comm*> comms(devices.size());
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  if (!Check(sparsesel_comm_create_local(world, &options, comms.data(), &error), error,
             "comm_create_local")) {
    return {};
  }
  return comms;
}

void OnEachRank(int world, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int r = 0; r < world; ++r) {
    threads.emplace_back([&, r] {
      Check(cudaSetDevice(r), "cudaSetDevice");
      body(r);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

template <typename T>
class OnDevice {
 public:
  explicit OnDevice(const std::vector<T>& host) : size_(host.size()) {
    Check(cudaMalloc(reinterpret_cast<void**>(&data_), size_ * sizeof(T)), "cudaMalloc");
    Check(cudaMemcpy(data_, host.data(), size_ * sizeof(T), cudaMemcpyHostToDevice), "copy in");
  }
  ~OnDevice() { (void)cudaFree(data_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  T* get() const { return data_; }
  std::vector<T> Read() const {
    std::vector<T> host(size_);
    Check(cudaMemcpy(host.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost), "copy out");
    return host;
  }

 private:
  T* data_ = nullptr;
  const size_t size_;
};

constexpr int kTrain = 10;

// One rank of a case.
class Rank {
 public:
  Rank(const Case& c, const Data& data, int rank, sparsesel_comm* comm)
      : case_(c),
        data_(data),
        rank_(rank),
        comm_(comm),
        scores_(data.scores[Size(rank)]),
        ids_(data.ids[Size(rank)]),
        counts_(data.counts[Size(rank)]),
        active_({c.active}),
        status_({0u}),
        out_ids_(std::vector<int32_t>(data.expected_ids.size(), -77)),
        out_scores_(std::vector<uint32_t>(data.expected_ids.size(), 77)),
        out_counts_(std::vector<int32_t>(Size(c.rows), -77)) {
    io_.rows = c.rows;
    io_.scores = scores_.get();
    io_.ids = ids_.get();
    io_.counts = counts_.get();
    if (c.active >= 0) io_.active_rows = active_.get();
    io_.out_ids = out_ids_.get();
    io_.status_word = status_.get();
    if (c.scores) io_.out_scores = reinterpret_cast<float*>(out_scores_.get());
    if (c.scores) io_.out_counts = out_counts_.get();
  }

  bool Bind() {
    sparsesel_problem problem = SPARSESEL_PROBLEM_INIT;
    const int32_t capacities[] = {case_.rows, 1};
    problem.k = case_.k;
    problem.candidates = case_.candidates;
    problem.capacities = capacities;
    problem.capacity_count = case_.rows > 1 ? 2 : 1;
    if (case_.scores) problem.outputs = SPARSESEL_OUTPUT_SCORES | SPARSESEL_OUTPUT_COUNTS;
    if (case_.by_id) problem.output_order = SPARSESEL_OUTPUT_BY_ID;
    if (case_.owned) problem.output_scope = SPARSESEL_SCOPE_OWNED_ROWS;
    sparsesel_plan* plan = nullptr;
    if (!Ok(sparsesel_plan_create(comm_, &problem, &plan, &error_), "plan_create")) return false;
    if (case_.tiled) {
      sparsesel_memory memory = SPARSESEL_MEMORY_INIT;
      Ok(sparsesel_plan_memory(plan, &memory, &error_), "plan_memory");
      sparsesel_plan_release(plan, nullptr);
      problem.memory_limit = memory.persistent / 3;
      if (!Ok(sparsesel_plan_create(comm_, &problem, &plan, &error_), "plan_create")) return false;
    }
    sparsesel_prepare_options prepare = SPARSESEL_PREPARE_OPTIONS_INIT;
    prepare.child_plans = case_.child_plans;
    bool ok = Ok(sparsesel_plan_prepare(plan, &prepare, &error_), "plan_prepare");
    if (ok && case_.race) ok = Race(plan);
    if (ok && case_.slots > 1) {
      sparsesel_workspace_options options = SPARSESEL_WORKSPACE_OPTIONS_INIT;
      options.slots = case_.slots;
      ok = Ok(sparsesel_workspace_create(comm_, &options, &workspace_, &error_), "workspace");
    }
    if (ok) {
      ok = Ok(sparsesel_plan_bind(plan, workspace_, case_.composition, &binding_, &error_), "bind");
    }
    sparsesel_plan_release(plan, nullptr);
    return ok;
  }

  bool Race(sparsesel_plan* plan) {
    sparsesel_report* report = nullptr;
    const bool ok = Ok(sparsesel_plan_race(plan, nullptr, &report, &error_), "race");
    for (int32_t i = 0; ok && rank_ == 0 && i < sparsesel_report_size(report); ++i) {
      sparsesel_outcome o = SPARSESEL_OUTCOME_INIT;
      sparsesel_report_outcome(report, i, &o, &error_);
      std::printf(
          "race W=%d rows=%d: replicated %.2f us, owner %.2f us, ratio %.3f [%.3f, %.3f], "
          "winner %d rule %d exact %d %d\n",
          case_.world, o.capacity, o.replicated_median / 1e3, o.owner_median / 1e3, o.ratio,
          o.ratio_low, o.ratio_high, o.winner, o.rule, o.replicated_exact, o.owner_exact);
    }
    sparsesel_report_release(report, nullptr);
    return ok;
  }

  void Execute() { Ok(sparsesel_execute(binding_, &io_, stream_, &error_), "execute"); }

  // Captured first of all: nothing may be made lazily inside it.
  void Capture() {
    Check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream");
    cudaGraph_t graph = nullptr;
    Check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "begin capture");
    for (int i = 0; i < kTrain; ++i) Execute();
    Check(cudaStreamEndCapture(stream_, &graph), "end capture");
    Check(cudaGraphInstantiate(&graph_, graph, 0), "instantiate");
    if (graph != nullptr) cudaGraphDestroy(graph);
    Check(cudaStreamSynchronize(stream_), "sync");
  }

  void Replay() {
    Check(cudaGraphLaunch(graph_, stream_), "replay");
    Check(cudaStreamSynchronize(stream_), "sync replay");
  }

  // us of one execute in a replayed train.
  double Time(int replays, Barrier& barrier) {
    cudaEvent_t begin, end;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    std::vector<float> times;
    for (int replay = 0; replay < replays; ++replay) {
      barrier.Wait();
      if (replay % 4 == 3) Execute();
      cudaEventRecord(begin, stream_);
      Check(cudaGraphLaunch(graph_, stream_), "replay");
      cudaEventRecord(end, stream_);
      Check(cudaStreamSynchronize(stream_), "sync replay");
      float ms = 0;
      cudaEventElapsedTime(&ms, begin, end);
      times.push_back(ms * 1000 / kTrain);
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    std::sort(times.begin(), times.end());
    return times.empty() ? 0 : times[times.size() / 2];
  }

  // Compares what is there, and clears it.
  void Compare(const std::string& when) {
    sparsesel::RowRange rows{0, case_.rows};
    if (case_.owned) rows = sparsesel::OwnedRows(case_.rows, case_.world, rank_);
    const size_t k = Size(case_.k);
    const auto from = static_cast<std::ptrdiff_t>(Size(rows.begin) * k);
    const size_t words = Size(rows.size()) * k;
    Equal(out_ids_.Read(), data_.expected_ids, from, words, when + " ids");
    if (case_.scores) {
      Equal(out_scores_.Read(), data_.expected_scores, from, words, when + " scores");
      Equal(out_counts_.Read(), data_.expected_counts, rows.begin, Size(rows.size()),
            when + " counts");
    }
    if (status_.Read()[0] != 0) Fail(case_.Name() + ": " + when + ": the status word is set");
    Check(cudaMemset(out_ids_.get(), 0x55, data_.expected_ids.size() * 4), "clear");
    Check(cudaMemset(out_scores_.get(), 0x55, data_.expected_ids.size() * 4), "clear");
    Check(cudaMemset(out_counts_.get(), 0x55, Size(case_.rows) * 4), "clear");
    Check(cudaDeviceSynchronize(), "clear");
  }

  void ReleaseBinding() {
    sparsesel_binding_release(binding_, nullptr);
    sparsesel_workspace_release(workspace_, nullptr);
    binding_ = nullptr;
    workspace_ = nullptr;
  }

  ~Rank() {
    ReleaseBinding();
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

 private:
  bool Ok(sparsesel_status status, const char* what) {
    return Check(status, error_, case_.Name() + ": " + what);
  }
  template <typename T>
  void Equal(const std::vector<T>& found, const std::vector<T>& expected, std::ptrdiff_t from,
             size_t count, const std::string& what) {
    size_t wrong = 0;
    for (size_t i = 0; i < count; ++i) wrong += found[i] != expected[static_cast<size_t>(from) + i];
    if (wrong == 0) return;
    Fail(case_.Name() + ": rank " + std::to_string(rank_) + ", " + what + ": " +
         std::to_string(wrong) + " of " + std::to_string(count) + " wrong");
  }

  const Case& case_;
  const Data& data_;
  const int rank_;
  sparsesel_comm* const comm_;
  sparsesel_workspace* workspace_ = nullptr;
  sparsesel_binding* binding_ = nullptr;
  sparsesel_io io_ = SPARSESEL_IO_INIT;
  sparsesel_error error_ = SPARSESEL_ERROR_INIT;
  cudaStream_t stream_ = nullptr;
  cudaGraphExec_t graph_ = nullptr;
  OnDevice<float> scores_;
  OnDevice<int32_t> ids_;
  OnDevice<int32_t> counts_;
  OnDevice<int32_t> active_;
  OnDevice<uint32_t> status_;
  OnDevice<int32_t> out_ids_;
  OnDevice<uint32_t> out_scores_;
  OnDevice<int32_t> out_counts_;
};

void RunCase(const Case& c, const std::vector<sparsesel_comm*>& comms, int replays) {
  g_shown = 0;
  Data data;
  MakeInput(c, &data);
  MakeExpected(c, &data);
  Barrier barrier(c.world);
  std::vector<double> us(comms.size());
  const auto begin = std::chrono::steady_clock::now();
  OnEachRank(c.world, [&](int r) {
    Rank rank(c, data, r, comms[Size(r)]);
    if (!rank.Bind()) return;  // every rank has heard of it
    rank.Capture();
    barrier.Wait();
    rank.Replay();
    rank.Compare("captured");
    us[Size(r)] = rank.Time(replays, barrier);
    rank.Compare("replayed");
    // Released while the graph lives, which keeps what it uses.
    rank.ReleaseBinding();
    barrier.Wait();
    rank.Replay();
    rank.Compare("after release");
    barrier.Wait();
  });
  for (sparsesel_comm* comm : comms) {
    sparsesel_error error = SPARSESEL_ERROR_INIT;
    Check(sparsesel_comm_status(comm, nullptr, &error), error, c.Name() + ": comm_status");
  }
  std::printf("%-90s %8.2f us, %.1f s\n", c.Name().c_str(), *std::max_element(us.begin(), us.end()),
              std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  std::fflush(stdout);
}

constexpr const char* kReplicates[] = {"nccl.all_gather", "nccl.bf16", "nccl.int32_sum"};

void RunWorld(int world, int replays) {
  const std::vector<sparsesel_comm*> comms = LocalGroup(world);
  if (comms.empty()) return;
  const auto both = [&](Case c) {
    c.composition = SPARSESEL_COMPOSITION_REPLICATED;
    RunCase(c, comms, replays);
    c.composition = SPARSESEL_COMPOSITION_OWNER;
    if (c.owned) return RunCase(c, comms, replays);
    for (const char* replicate : kReplicates) {
      c.child_plans = replicate;
      RunCase(c, comms, replays);
    }
  };
  for (const int rows : {1, 5, 8}) both({world, rows, 2048, 2048});
  for (const Kind kind : {Kind::kTies, Kind::kDuplicates, Kind::kFew, Kind::kSpecial}) {
    Case c{world, 3, 2048, 2048, kind};
    c.scores = true;
    both(c);
    both({world, 70, 500, 300, kind});
  }
  Case by_id{world, 9, 700, 1000, Kind::kDuplicates};
  by_id.by_id = true;
  both(by_id);
  by_id.scores = true;
  both(by_id);
  Case owned{world, 13, 600, 500, Kind::kTies};
  owned.owned = owned.scores = true;
  both(owned);
  owned.tiled = true;
  both(owned);
  Case tiled{world, 101, 333, 200, Kind::kTies};
  tiled.tiled = true;
  both(tiled);
  Case active{world, 11, 512, 256};
  active.active = 4;
  active.scores = true;
  both(active);
  Case slots{world, 8, 512, 512};
  slots.slots = 3;
  both(slots);
  Case race{world, 8, 2048, 2048};
  race.race = true;
  race.composition = SPARSESEL_COMPOSITION_AUTO;
  RunCase(race, comms, replays);
  for (sparsesel_comm* comm : comms) sparsesel_comm_release(comm, nullptr);
}

// ------------------------------------------------------------------------ joined and refused

void Expect(sparsesel_status status, sparsesel_status expected, const sparsesel_error& error,
            const char* what) {
  std::printf("%s: %s: %s\n", what, sparsesel_status_name(status), error.text);
  if (status != expected) Fail(std::string(what) + ": not " + sparsesel_status_name(expected));
}

using Communicator = void*;
struct UniqueId {
  char internal[128];
};

sparsesel_comm_options JoinOptions(Board* board, Member* member, int rank) {
  member->board = board;
  member->rank = rank;
  sparsesel_comm_options options = Options();
  options.rank = rank;
  options.world_size = static_cast<int32_t>(board->world);
  options.bootstrap = {member, Start, Test, Free};
  return options;
}

// Ranks that join over a bootstrap, with a communicator of the library's own or a borrowed one.
void RunJoined(int world, bool borrowed) {
  g_shown = 0;
  void* const nccl = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (nccl == nullptr) return Fail(dlerror());
  const auto unique_id = reinterpret_cast<int (*)(UniqueId*)>(dlsym(nccl, "ncclGetUniqueId"));
  const auto init =
      reinterpret_cast<int (*)(Communicator*, int, UniqueId, int)>(dlsym(nccl, "ncclCommInitRank"));
  const auto destroy = reinterpret_cast<int (*)(Communicator)>(dlsym(nccl, "ncclCommDestroy"));
  UniqueId id{};
  if (borrowed && unique_id(&id) != 0) return Fail("ncclGetUniqueId");
  Board board, wrong_board;
  board.world = wrong_board.world = Size(world);
  std::vector<Member> members(Size(world)), wrong_members(Size(world));
  std::vector<sparsesel_comm*> comms(Size(world));
  std::vector<Communicator> communicators(Size(world));
  OnEachRank(world, [&](int r) {
    if (borrowed && init(&communicators[Size(r)], world, id, r) != 0) Fail("ncclCommInitRank");
    sparsesel_error error = SPARSESEL_ERROR_INIT;
    if (borrowed && world > 1) {
      const int other = (r + 1) % world;
      sparsesel_comm_options wrong = JoinOptions(&wrong_board, &wrong_members[Size(r)], other);
      wrong.borrowed_communicator = communicators[Size(r)];
      sparsesel_comm* comm = nullptr;
      Expect(sparsesel_comm_create(&wrong, &comm, &error), SPARSESEL_INVALID_ARGUMENT, error,
             "a communicator of another rank");
    }
    sparsesel_comm_options options = JoinOptions(&board, &members[Size(r)], r);
    options.nccl_library = nccl;
    options.borrowed_communicator = communicators[Size(r)];
    Check(sparsesel_comm_create(&options, &comms[Size(r)], &error), error, "comm_create");
  });
  const auto made = [](sparsesel_comm* comm) { return comm != nullptr; };
  if (std::all_of(comms.begin(), comms.end(), made)) {
    std::printf("joined, %s\n", borrowed ? "borrowed communicators" : "own communicators");
    Case c{world, 8, 2048, 2048};
    c.race = true;
    RunCase(c, comms, 4);
    c.race = false;
    c.composition = SPARSESEL_COMPOSITION_OWNER;
    RunCase(c, comms, 4);
    if (borrowed) {
      OnEachRank(world, [&](int r) {
        sparsesel_workspace_options options = SPARSESEL_WORKSPACE_OPTIONS_INIT;
        options.slots = 2;
        sparsesel_workspace* workspace = nullptr;
        sparsesel_error error = SPARSESEL_ERROR_INIT;
        Expect(sparsesel_workspace_create(comms[Size(r)], &options, &workspace, &error),
               SPARSESEL_UNAVAILABLE, error, "slots that overlap on a borrowed communicator");
      });
    }
  }
  for (sparsesel_comm* comm : comms) sparsesel_comm_release(comm, nullptr);
  if (borrowed) OnEachRank(world, [&](int r) { destroy(communicators[Size(r)]); });
}

void RunRefusals(int world) {
  g_shown = 0;
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  sparsesel_comm_options options = Options();
  const int32_t one_device[] = {0, 0};
  options.device_count = 2;
  options.devices = one_device;
  sparsesel_comm* comms[2] = {};
  Expect(sparsesel_comm_create_local(2, &options, comms, &error), SPARSESEL_UNAVAILABLE, error,
         "two ranks on one device");
  const std::vector<sparsesel_comm*> group = LocalGroup(world);
  if (group.empty()) return;
  Check(sparsesel_comm_abort(group[0], &error), error, "comm_abort");
  for (sparsesel_comm* comm : group) {
    Expect(sparsesel_comm_status(comm, nullptr, &error), SPARSESEL_ABORTED, error, "after abort");
    sparsesel_comm_release(comm, nullptr);
  }
}

}  // namespace

int main(int argc, char** argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::printf("there is no CUDA device\n");
    return 1;
  }
  const int largest = std::min(devices, argc > 1 ? std::atoi(argv[1]) : 64);
  const int replays = argc > 2 ? std::atoi(argv[2]) : 8;
  const int smallest = argc > 3 ? std::atoi(argv[3]) : 1;
  for (int world = 1; world <= largest;
       world = world < largest && 2 * world > largest ? largest : 2 * world) {
    if (world < smallest) continue;
    RunWorld(world, replays);
    RunJoined(world, false);
    RunJoined(world, true);
  }
  RunRefusals(largest);
  std::printf("%d failures\n", g_failures);
  return g_failures == 0 ? 0 : 1;
}
