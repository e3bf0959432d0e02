// What only mutants have shown to be untested (tests/mutants): faults that no input brings about,
// but a peer that is slow, a message that is old, a vote that differs, a clock that stands still.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "contract/allocation_probe.h"
#include "contract/batch.h"
#include "contract/group_fixture.h"
#include "contract/rows.h"

namespace contract {
namespace {

using Clock = std::chrono::steady_clock;

// A group over a bootstrap alone, which also carries the data; one rank's exchanges can be spoilt.
class SpoiltGroup {
 public:
  explicit SpoiltGroup(int32_t world) : members_(static_cast<size_t>(world)) {
    std::vector<sparsesel_comm*> comms(members_.size(), nullptr);
    outcomes_ = OnEveryRank(world, [&](int32_t rank, sparsesel_error* error) {
      Member& member = At(rank);
      member.group = this;
      member.rank = static_cast<size_t>(rank);
      sparsesel_comm_options options = ShortLimits();
      options.rank = rank;
      options.world_size = world;
      options.bootstrap = {&member, Start, Test, Free};
      return sparsesel_comm_create(&options, &comms[static_cast<size_t>(rank)], error);
    });
    group_ = Group(std::move(comms));
  }
  SpoiltGroup(const SpoiltGroup&) = delete;
  SpoiltGroup& operator=(const SpoiltGroup&) = delete;
  ~SpoiltGroup() { group_.Release(); }

  struct Member {
    SpoiltGroup* group = nullptr;
    size_t rank = 0;
    // Faults of this rank's exchanges of `spoilt_bytes` per rank, or of all if that is 0. Set by
    // the thread that runs the rank.
    size_t spoilt_bytes = 0;
    int64_t flip_sent = -1;      // a byte whose lowest bit is flipped in what this rank sends
    int64_t flip_received = -1;  // and in what it receives, whoever sent it
    bool replay = false;         // what peers sent is old: from the last exchange of this size

    size_t round = 0;
    char* receive = nullptr;
    size_t bytes = 0;
    std::vector<char> sent;
    std::map<size_t, std::vector<char>> last;  // by bytes
  };

  bool ok() const { return AllOk(outcomes_); }
  const Group& group() const { return group_; }
  Member& At(int32_t rank) { return members_[static_cast<size_t>(rank)]; }

 private:
  using Round = std::map<size_t, std::vector<char>>;  // by rank

  static bool Spoils(const Member& member) {
    return member.spoilt_bytes == 0 || member.spoilt_bytes == member.bytes;
  }
  static sparsesel_status Start(void* context, const void* send, void* receive, size_t bytes,
                                void** request) {
    const AllocationPause pause;
    Member& member = *static_cast<Member*>(context);
    member.receive = static_cast<char*>(receive);
    member.bytes = bytes;
    member.sent.assign(static_cast<const char*>(send), static_cast<const char*>(send) + bytes);
    if (member.flip_sent >= 0 && Spoils(member)) {
      member.sent[static_cast<size_t>(member.flip_sent)] ^= 1;
    }
    *request = context;
    if (member.replay) return SPARSESEL_OK;
    const std::lock_guard<std::mutex> lock(member.group->mutex_);
    member.group->rounds_[member.round++][member.rank] = member.sent;
    return SPARSESEL_OK;
  }
  static sparsesel_status Test(void* context, void*) {
    const AllocationPause pause;
    Member& member = *static_cast<Member*>(context);
    std::vector<char>& last = member.last[member.bytes];
    if (!member.replay) {
      const std::lock_guard<std::mutex> lock(member.group->mutex_);
      const Round& round = member.group->rounds_[member.round - 1];
      if (round.size() < member.group->members_.size()) return SPARSESEL_IN_PROGRESS;
      last.clear();
      for (const auto& [rank, sent] : round) last.insert(last.end(), sent.begin(), sent.end());
    }
    last.resize(member.group->members_.size() * member.bytes);
    std::copy(member.sent.begin(), member.sent.end(),
              last.begin() + static_cast<int64_t>(member.rank * member.bytes));
    std::copy(last.begin(), last.end(), member.receive);
    if (member.flip_received >= 0 && Spoils(member)) member.receive[member.flip_received] ^= 1;
    return SPARSESEL_OK;
  }
  static void Free(void*, void*) {}

  std::mutex mutex_;
  std::map<size_t, Round> rounds_;
  std::vector<Member> members_;
  Group group_;
  Outcomes outcomes_;
};

// Races on all ranks; `at_step` is called on each rank's thread.
Outcomes RaceWithSteps(const std::vector<sparsesel_plan*>& plans,
                       std::vector<sparsesel_report*>* reports,
                       void (*at_step)(void* context, double fraction, const char* text),
                       const std::vector<void*>& contexts) {
  reports->assign(plans.size(), nullptr);
  return OnEveryRank(static_cast<int32_t>(plans.size()), [&](int32_t rank, sparsesel_error* error) {
    const auto r = static_cast<size_t>(rank);
    sparsesel_race_options options = SPARSESEL_RACE_OPTIONS_INIT;
    options.time_budget = 100 * kMillisecond;
    options.sample_duration = 20'000;
    options.max_pairs = 16;
    options.progress = {contexts[r], at_step};
    return sparsesel_plan_race(plans[r], &options, &(*reports)[r], error);
  });
}

TEST_CASE("race: votes that differ are a mismatch on all ranks", "[host]") {
  SpoiltGroup spoilt(2);
  REQUIRE(spoilt.ok());
  const Job job = MakeJob(2, 16, 16, {1});
  std::vector<sparsesel_plan*> plans;
  std::vector<sparsesel_report*> reports;
  REQUIRE(AllOk(CreatePlans(spoilt.group(), job, &plans)));
  REQUIRE(AllOk(Prepare(plans)));
  const auto at_step = [](void* context, double, const char* text) {
    // The vote is the last thing that a race exchanges: 8 bytes behind the rank's status.
    if (context == nullptr || std::strcmp(text, "agreeing") != 0) return;
    auto& member = *static_cast<SpoiltGroup::Member*>(context);
    member.flip_sent = 256;
  };
  const Outcomes outcomes = RaceWithSteps(plans, &reports, at_step, {nullptr, &spoilt.At(1)});
  INFO(Describe(outcomes));
  CHECK(AllAre(outcomes, SPARSESEL_MISMATCH));
  CHECK(outcomes[0].error.rank == 1);
  CHECK(reports[0] == nullptr);
  Release(&reports);
  Release(&plans);
}

TEST_CASE("race: holdouts catch what was right while it was timed", "[host]") {
  SpoiltGroup spoilt(2);
  REQUIRE(spoilt.ok());
  const Job job = MakeJob(2, 16, 16, {1});
  std::vector<sparsesel_plan*> plans;
  std::vector<sparsesel_report*> reports;
  REQUIRE(AllOk(CreatePlans(spoilt.group(), job, &plans)));
  // Sums find for themselves that they are spoilt.
  REQUIRE(AllOk(Prepare(plans, "replicate.all_gather")));
  const auto at_step = [](void* context, double, const char* text) {
    if (std::strcmp(text, "checking holdouts") != 0) return;
    // From now on the lists of both compositions arrive with another first id.
    auto& member = *static_cast<SpoiltGroup::Member*>(context);
    member.spoilt_bytes = 16 * 8;
    member.flip_received = 4;
  };
  const Outcomes outcomes = RaceWithSteps(plans, &reports, at_step, {&spoilt.At(0), &spoilt.At(1)});
  INFO(Describe(outcomes));
  CHECK(AllAre(outcomes, SPARSESEL_WRONG_RESULT));
  CHECK(outcomes[1].text().find("holdout") != std::string::npos);
  Release(&reports);
  Release(&plans);
}

// Stands still on threads that have been told so.
thread_local bool clock_stands_still = false;

TEST_CASE("race: a clock that stands still on one rank disqualifies the timing of all", "[host]") {
  sparsesel_comm_options options = ShortLimits();
  options.clock = {nullptr, [](void*) -> int64_t {
                     return clock_stands_still
                                ? 1'000'000
                                : std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
                   }};
  const Group group(3, options);
  const Job job = MakeJob(3, 16, 16, {2});
  std::vector<sparsesel_plan*> plans;
  std::vector<sparsesel_report*> reports;
  REQUIRE(AllOk(CreatePlans(group, job, &plans)));
  REQUIRE(AllOk(Prepare(plans)));
  int stopped = 0;
  const auto at_step = [](void* context, double, const char*) {
    if (context != nullptr) clock_stands_still = true;
  };
  const Outcomes outcomes = RaceWithSteps(plans, &reports, at_step, {nullptr, &stopped, nullptr});
  INFO(Describe(outcomes));
  REQUIRE(AllOk(outcomes));
  for (sparsesel_report* report : reports) {
    sparsesel_outcome outcome = SPARSESEL_OUTCOME_INIT;
    REQUIRE(sparsesel_report_outcome(report, 0, &outcome, nullptr) == SPARSESEL_OK);
    CHECK(outcome.rule == SPARSESEL_RULE_INVALID_TIMING);
    CHECK(outcome.winner == SPARSESEL_COMPOSITION_REPLICATED);
  }
  Release(&reports);
  Release(&plans);
}

TEST_CASE("sequence: an execute that meets an old one of a peer is a mismatch", "[host]") {
  SpoiltGroup spoilt(2);
  REQUIRE(spoilt.ok());
  const Job job = MakeJob(2, 8, 8, {1});
  const Bound bound(spoilt.group(), job);
  REQUIRE(bound.ok());
  const Batch batch = BatchOfKinds(job, 1, 1);
  CHECK(Check(bound, job, batch) == "");
  // Rank 1 goes on alone, over a transport that shows it what rank 0 sent before.
  spoilt.At(1).replay = true;
  const RankInput& input = batch.ranks[1];
  int32_t out[8];
  sparsesel_io io = SPARSESEL_IO_INIT;
  io.rows = 1;
  io.scores = reinterpret_cast<const float*>(input.score_bits.data());
  io.ids = input.ids.data();
  io.counts = input.counts.data();
  io.out_ids = out;
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  CHECK(sparsesel_execute(bound.binding(1), &io, nullptr, &error) == SPARSESEL_MISMATCH);
  CHECK(std::string(error.text).find("calls so far") != std::string::npos);
}

TEST_CASE("counts: id 0 is an id like others") {
  for (int32_t composition : {SPARSESEL_COMPOSITION_REPLICATED, SPARSESEL_COMPOSITION_OWNER}) {
    const Group group(2);
    Job job = MakeJob(2, 8, 4, {2});
    for (sparsesel_problem& problem : job.problems) problem.outputs = SPARSESEL_OUTPUT_COUNTS;
    job.composition = composition;
    const Bound bound(group, job);
    REQUIRE(bound.ok());
    Batch batch = MakeBatch(job, 2);
    // The last of four, and the only one.
    SetList(job, 0, 0, {{0x40400000, 0x40000000, 0x3f800000, 0}, {3, 2, 1, 0}, 4}, &batch);
    SetList(job, 1, 1, {{0x3f800000}, {0}, 1}, &batch);
    CHECK(Check(bound, job, batch) == "");
  }
}

TEST_CASE("positions: each negative one is absent, also where a row start would make it one") {
  const Group group(1);
  Job job = MakeJob(1, 2, 2, {1});
  job.problems[0].input_kind = SPARSESEL_INPUT_POSITIONS;
  job.problems[0].score_row_length = 10;
  job.problems[0].id_map = SPARSESEL_ID_OFFSET;
  job.problems[0].id_offset = 100;
  const Bound bound(group, job);
  INFO(Describe(bound.outcomes()));
  REQUIRE(bound.ok());
  Batch batch = MakeBatch(job, 1);
  RankInput& input = batch.ranks[0];
  for (int i = 0; i < 10; ++i) {
    const auto score = static_cast<float>(i);
    std::memcpy(&input.score_bits[static_cast<size_t>(i)], &score, sizeof(score));
  }
  input.ids = {-2, 3};
  input.counts = {2};
  input.row_starts = {4};
  const Results results = Execute(bound, job, batch);
  CHECK(Compare(job, ExpectRows(job, batch), results) == "");
  CHECK(results.ranks[0].ids == std::vector<int32_t>{103, -1});
}

TEST_CASE("sums: what a rank added for its rows in one call is not added in the next", "[host]") {
  for (const char* replicate : {"replicate.bf16", "replicate.int32_sum"}) {
    INFO(replicate);
    const Group group(3);
    Job job = MakeJob(3, 20, 30, {8});
    job.composition = SPARSESEL_COMPOSITION_OWNER;
    job.child_plans = replicate;
    const Bound bound(group, job);
    REQUIRE(bound.ok());
    uint64_t seed = 0;
    for (int32_t rows : {8, 2, 8, 5, 1, 7, 3, 8}) {
      INFO(rows << " rows");
      CHECK(Check(bound, job, BatchOfKinds(job, rows, ++seed)) == "");
    }
  }
}

TEST_CASE("bf16: a sum that is no byte is an error on the ranks that got it", "[host]") {
  SpoiltGroup spoilt(2);
  REQUIRE(spoilt.ok());
  Job job = MakeJob(2, 8, 16, {1});
  job.composition = SPARSESEL_COMPOSITION_OWNER;
  job.child_plans = "replicate.bf16";
  const Bound bound(spoilt.group(), job);
  INFO(Describe(bound.outcomes()));
  REQUIRE(bound.ok());
  Batch batch = MakeBatch(job, 1);
  oracle::List list;
  list.count = 16;
  for (int32_t i = 0; i < 16; ++i) {
    list.score_bits.push_back(0);
    list.ids.push_back(i);
  }
  SetList(job, 0, 0, list, &batch);
  CHECK(Check(bound, job, batch) == "");
  // Sums move 2 bytes for each of the 4 of an id; a small byte that is changed is no integer.
  spoilt.At(1).spoilt_bytes = 8 * 4 * 2;
  spoilt.At(1).flip_received = 0;
  const Results results = Execute(bound, job, batch);
  INFO(Describe(results.outcomes));
  CHECK(results.outcomes[0].status == SPARSESEL_OK);
  CHECK(results.outcomes[1].status == SPARSESEL_INTERNAL);
}

TEST_CASE("what ended a group stays, whatever comes after it", "[host]") {
  const Group group(2, ShortLimits(kSecond, 50 * kMillisecond));
  const Job job = MakeJob(2, 8, 16, {2});
  const Bound bound(group, job);
  REQUIRE(bound.ok());
  sparsesel_io io = SPARSESEL_IO_INIT;  // no rows
  CHECK(sparsesel_execute(bound.binding(0), &io, nullptr, nullptr) == SPARSESEL_TIMEOUT);
  sparsesel_stats stats = SPARSESEL_STATS_INIT;
  CHECK(sparsesel_binding_stats(bound.binding(0), &stats, nullptr) == SPARSESEL_OK);
  CHECK(stats.timeouts == 1);
  CHECK(stats.failures == 1);
  CHECK(sparsesel_comm_abort(group.comm(1), nullptr) == SPARSESEL_OK);
  for (int32_t rank = 0; rank < 2; ++rank) {
    sparsesel_comm_info info = SPARSESEL_COMM_INFO_INIT;
    CHECK(sparsesel_comm_status(group.comm(rank), &info, nullptr) == SPARSESEL_TIMEOUT);
    CHECK(info.failed_rank == 1);
  }
}

// Nobody aborts or releases anything meanwhile, which would free the peers as well.
TEST_CASE("untold: an allocation that fails inside a call leaves no peer waiting", "[host]") {
  for (const bool in_race : {false, true}) {
    bool failed = true;
    for (int64_t nth = 1; failed; nth += std::max<int64_t>(1, nth / 30)) {
      INFO("allocation " << nth << " of " << (in_race ? "race" : "prepare"));
      const Group group(2, ShortLimits(3 * kSecond, 3 * kSecond));
      const Job job = MakeJob(2, 4, 8, {1, 2});
      const std::string child_plans = "pack.plain,select.threshold,replicate.all_gather";
      std::vector<sparsesel_plan*> plans;
      std::vector<sparsesel_report*> reports(2, nullptr);
      REQUIRE(AllOk(CreatePlans(group, job, &plans)));
      if (in_race) REQUIRE(AllOk(Prepare(plans, child_plans)));
      const Outcomes outcomes = OnEveryRank(2, [&](int32_t rank, sparsesel_error* error) {
        const auto r = static_cast<size_t>(rank);
        sparsesel_prepare_options prepare = SPARSESEL_PREPARE_OPTIONS_INIT;
        prepare.child_plans = child_plans.c_str();
        sparsesel_race_options race = SPARSESEL_RACE_OPTIONS_INIT;
        race.time_budget = kMillisecond;
        race.sample_duration = 1000;
        race.max_pairs = 16;
        const auto call = [&] {
          return in_race ? sparsesel_plan_race(plans[r], &race, &reports[r], error)
                         : sparsesel_plan_prepare(plans[r], &prepare, error);
        };
        if (rank == 0) return call();
        const AllocationFailure failure(nth);
        const sparsesel_status status = call();
        failed = failure.has_happened();
        return status;
      });
      INFO(Describe(outcomes));
      for (const Outcome& outcome : outcomes) CHECK(outcome.status != SPARSESEL_TIMEOUT);
      Release(&reports);
      Release(&plans);
      REQUIRE(nth < 100'000);
    }
  }
}

TEST_CASE("stats: rows that had to be completed are counted", "[host]") {
  for (int32_t composition : {SPARSESEL_COMPOSITION_REPLICATED, SPARSESEL_COMPOSITION_OWNER}) {
    const Group group(2);
    Job job = MakeJob(2, 100, 200, {5});
    job.child_plans = "pack.sorted,exchange.prefix:64";
    job.composition = composition;
    const Bound bound(group, job);
    INFO(Describe(bound.outcomes()));
    REQUIRE(bound.ok());
    Batch batch = MakeBatch(job, 5);
    for (int32_t row = 0; row < 5; ++row) {
      // In some rows the winners are on one rank: two in a row of one owner, the last of the other.
      const bool one_rank = row == 1 || row == 2 || row == 4;
      for (int32_t rank = 0; rank < 2; ++rank) {
        oracle::List list;
        list.count = 200;
        for (int32_t i = 0; i < 200; ++i) {
          const float score = static_cast<float>(!one_rank || rank == 0 ? 1000 - i : -i);
          uint32_t bits;
          std::memcpy(&bits, &score, sizeof(bits));
          list.score_bits.push_back(bits);
          list.ids.push_back(1000 * row + 2 * i + rank);
        }
        SetList(job, rank, row, list, &batch);
      }
    }
    CHECK(Check(bound, job, batch) == "");
    uint64_t refetches[2];
    for (int32_t rank = 0; rank < 2; ++rank) {
      sparsesel_stats stats = SPARSESEL_STATS_INIT;
      REQUIRE(sparsesel_binding_stats(bound.binding(rank), &stats, nullptr) == SPARSESEL_OK);
      refetches[rank] = stats.prefix_refetches;
    }
    if (composition == SPARSESEL_COMPOSITION_REPLICATED) {
      CHECK(refetches[0] == 3);
      CHECK(refetches[1] == 3);
    } else {
      CHECK(refetches[0] == 2);
      CHECK(refetches[1] == 1);
    }
  }
}

// Rank 0 owns the only row and takes long to select it. Rank 1 is through as soon as they have met.
class SlowReader {
 public:
  static constexpr int32_t kLength = 65536;

  explicit SlowReader(const sparsesel_comm_options& options) : group_(2, options), job_(MakeJob()) {
    bound_ = std::make_unique<Bound>(group_, job_);
    for (int32_t rank = 0; rank < 2; ++rank) {
      scores_[rank].resize(kLength);
      out_scores_[rank].resize(kLength);
      ids_[rank].resize(kLength);
      for (int32_t i = 0; i < kLength; ++i) {
        scores_[rank][static_cast<size_t>(i)] = static_cast<float>(i * 7919 % kLength);
        ids_[rank][static_cast<size_t>(i)] = 2 * i + rank;
      }
    }
  }

  bool ok() const { return bound_->ok(); }
  const Bound& bound() const { return *bound_; }

  sparsesel_status Execute(int32_t rank, sparsesel_error* error) {
    sparsesel_io io = SPARSESEL_IO_INIT;
    io.rows = 1;
    io.scores = scores_[rank].data();
    io.ids = ids_[rank].data();
    io.out_ids = rank == 0 ? out_.data() : nullptr;
    io.out_scores = out_scores_[rank].data();
    return sparsesel_execute(bound_->binding(rank), &io, nullptr, error);
  }
  // Equal scores stand in order of ids: 2i of rank 0, then 2i + 1 of rank 1.
  bool Right() const {
    for (size_t i = 0; i < out_.size(); i += 2) {
      if (out_[i] % 2 != 0 || out_[i + 1] != out_[i] + 1) return false;
    }
    return true;
  }
  // Of rank 1: what it sends next would spoil what rank 0 still reads.
  void Negate() {
    for (int32_t& id : ids_[1]) id = -1 - id;
  }

 private:
  static Job MakeJob() {
    Job job = contract::MakeJob(2, kLength, kLength, {1});
    for (sparsesel_problem& problem : job.problems) {
      problem.output_scope = SPARSESEL_SCOPE_OWNED_ROWS;
      problem.outputs = SPARSESEL_OUTPUT_SCORES;  // the lists are read again at the end
    }
    job.composition = SPARSESEL_COMPOSITION_OWNER;
    job.child_plans = "pack.plain,exchange.full,select.nth_element";
    return job;
  }

  Group group_;
  Job job_;
  std::unique_ptr<Bound> bound_;
  std::vector<float> scores_[2];
  std::vector<int32_t> ids_[2];
  std::vector<float> out_scores_[2];
  std::vector<int32_t> out_ = std::vector<int32_t>(kLength, -1);
};

TEST_CASE("workspace: what a slow peer reads is not written by the next execute", "[host]") {
  SlowReader reader(ShortLimits());
  REQUIRE(reader.ok());
  int wrong = 0;
  for (int round = 0; round < 10; ++round) {
    const Outcomes outcomes = OnEveryRank(2, [&](int32_t rank, sparsesel_error* error) {
      sparsesel_status status = reader.Execute(rank, error);
      if (rank == 1) reader.Negate();
      if (rank == 0) wrong += !reader.Right();
      if (status == SPARSESEL_OK) status = reader.Execute(rank, error);
      if (rank == 1) reader.Negate();
      return status;
    });
    INFO(Describe(outcomes));
    REQUIRE(AllOk(outcomes));
  }
  CHECK(wrong == 0);
}

// Memory that is given back is spoilt, but there to the end.
class Spoiler {
 public:
  ~Spoiler() {
    for (void* pointer : spoilt_) std::free(pointer);
  }
  sparsesel_allocator callbacks() { return {this, Allocate, Deallocate}; }

 private:
  static void* Allocate(void*, int32_t, size_t bytes, size_t alignment, const char*) {
    return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  }
  static void Deallocate(void* context, int32_t, void* pointer, size_t bytes, size_t, const char*) {
    std::memset(pointer, 0xff, bytes);  // absent: negative ids
    auto* const self = static_cast<Spoiler*>(context);
    const std::lock_guard<std::mutex> lock(self->mutex_);
    self->spoilt_.push_back(pointer);
  }

  std::mutex mutex_;
  std::vector<void*> spoilt_;
};

TEST_CASE("workspace: what a slow peer reads is not freed under it", "[host]") {
  int wrong = 0;
  for (int round = 0; round < 5; ++round) {
    Spoiler spoiler;
    sparsesel_comm_options options = ShortLimits();
    options.allocator = spoiler.callbacks();
    SlowReader reader(options);
    REQUIRE(reader.ok());
    const Outcomes outcomes = OnEveryRank(2, [&](int32_t rank, sparsesel_error* error) {
      const sparsesel_status status = reader.Execute(rank, error);
      if (rank == 1) sparsesel_binding_release(reader.bound().binding(1), nullptr);
      if (rank == 0) wrong += !reader.Right();
      return status;
    });
    INFO(Describe(outcomes));
    REQUIRE(AllOk(outcomes));
  }
  CHECK(wrong == 0);
}

TEST_CASE("workspace: a binding whose peers have read is let go at once") {
  const Group group(2);
  const Job job = MakeJob(2, 8, 16, {2});
  for (int32_t composition : {SPARSESEL_COMPOSITION_REPLICATED, SPARSESEL_COMPOSITION_OWNER}) {
    Job other = job;
    other.composition = composition;
    const Bound bound(group, other);
    REQUIRE(bound.ok());
    CHECK(Check(bound, other, BatchOfKinds(other, 2, 1)) == "");
    const auto begin = Clock::now();
    CHECK(sparsesel_binding_release(bound.binding(0), nullptr) == SPARSESEL_OK);
    CHECK(Clock::now() - begin < std::chrono::seconds(5));
  }
}

}  // namespace
}  // namespace contract
