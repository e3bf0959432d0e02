// A whole group in the test's process: one thread per rank, every collective call made by all, and
// limits on everything, so that no fault of the library can hang a test.
//
// Rank threads only record; Catch2's assertions are made by the test's own thread.
#ifndef SPARSESEL_TESTS_CONTRACT_GROUP_FIXTURE_H_
#define SPARSESEL_TESTS_CONTRACT_GROUP_FIXTURE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "contract/memory.h"
#include "sparsesel.h"

namespace contract {

inline constexpr uint64_t kMillisecond = 1'000'000;
inline constexpr uint64_t kSecond = 1000 * kMillisecond;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;  // ten times slower: less is sampled
#else
inline constexpr bool kSanitized = false;
#endif

// What a call returned on one rank.
struct Outcome {
  sparsesel_status status = SPARSESEL_OK;
  sparsesel_error error = SPARSESEL_ERROR_INIT;

  std::string text() const { return error.text; }
};
using Outcomes = std::vector<Outcome>;  // by rank

bool AllAre(const Outcomes& outcomes, sparsesel_status status);
bool AllOk(const Outcomes& outcomes);
// The status and sentence of every rank, for a failing test's message.
std::string Describe(const Outcomes& outcomes);

using RankCall = std::function<sparsesel_status(int32_t rank, sparsesel_error* error)>;
// Makes `call` as every rank at once; what it throws is INTERNAL.
Outcomes OnEveryRank(int32_t world, const RankCall& call);

// Options with short limits, on the memory that is tested.
sparsesel_comm_options ShortLimits(uint64_t startup = 30 * kSecond, uint64_t steady = 20 * kSecond);

// A local group, each rank with a stream of its own; throws std::runtime_error if it cannot be
// made.
class Group {
 public:
  explicit Group(int32_t world);
  Group(int32_t world, const sparsesel_comm_options& options);
  // Of comms that were made otherwise; owns them.
  explicit Group(std::vector<sparsesel_comm*> comms = {});
  Group(Group&& other) noexcept
      : comms_(std::exchange(other.comms_, {})), streams_(std::exchange(other.streams_, {})) {}
  Group& operator=(Group&& other) noexcept {
    std::swap(comms_, other.comms_);
    std::swap(streams_, other.streams_);
    return *this;
  }
  ~Group();

  int32_t world() const { return static_cast<int32_t>(comms_.size()); }
  sparsesel_comm* comm(int32_t rank) const { return comms_[static_cast<size_t>(rank)]; }
  void* stream(int32_t rank) const { return streams_[static_cast<size_t>(rank)]; }
  const std::vector<void*>& streams() const { return streams_; }
  void Release();

 private:
  std::vector<sparsesel_comm*> comms_;
  std::vector<void*> streams_;
};

// A group of more ranks than a device may hold at once: none if the library says so, as it should,
// and why.
std::optional<Group> GroupIfAvailable(int32_t world, std::string* reason);

// The problem of every rank, and how it is to be run.
struct Job {
  std::vector<sparsesel_problem> problems;  // by rank
  std::vector<int32_t> capacities = {1};    // the same on all ranks
  std::string child_plans;                  // empty: the library chooses
  int32_t composition = SPARSESEL_COMPOSITION_REPLICATED;

  int32_t world() const { return static_cast<int32_t>(problems.size()); }
};

// `world` equal problems.
Job MakeJob(int32_t world, int32_t k, int32_t candidates, std::vector<int32_t> capacities);

// Plans and bindings of all ranks for one job. `outcomes` are those of the last step that was made.
class Bound {
 public:
  Bound(const Group& group, const Job& job, sparsesel_workspace* const* workspaces = nullptr);
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;
  ~Bound();

  bool ok() const { return AllOk(outcomes_); }
  const Outcomes& outcomes() const { return outcomes_; }
  int32_t world() const { return static_cast<int32_t>(bindings_.size()); }
  sparsesel_binding* binding(int32_t rank) const { return bindings_[static_cast<size_t>(rank)]; }
  sparsesel_plan* plan(int32_t rank) const { return plans_[static_cast<size_t>(rank)]; }
  void* stream(int32_t rank) const { return streams_[static_cast<size_t>(rank)]; }

 private:
  std::vector<void*> streams_;  // the group's
  std::vector<sparsesel_plan*> plans_;
  std::vector<sparsesel_binding*> bindings_;
  Outcomes outcomes_;
};

// Steps of a job's life, each made by all ranks at once.
Outcomes CreatePlans(const Group& group, const Job& job, std::vector<sparsesel_plan*>* plans);
Outcomes Prepare(const std::vector<sparsesel_plan*>& plans, const std::string& child_plans = "");
Outcomes Bind(const std::vector<sparsesel_plan*>& plans, int32_t composition,
              std::vector<sparsesel_binding*>* bindings,
              sparsesel_workspace* const* workspaces = nullptr);
// With a short time budget, unless options are given.
Outcomes Race(const std::vector<sparsesel_plan*>& plans, std::vector<sparsesel_report*>* reports,
              const sparsesel_race_options* options = nullptr);
void Release(std::vector<sparsesel_plan*>* plans);
void Release(std::vector<sparsesel_report*>* reports);
void Release(std::vector<sparsesel_binding*>* bindings);

// A text that the library gives by the buffer rules of report_json.
template <typename Function, typename... Handle>
std::string TextOf(Function function, Handle... handle) {
  size_t needed = 0;
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  if (function(handle..., nullptr, 0, &needed, &error) != SPARSESEL_OK) return error.text;
  std::string text(needed, '\0');
  if (function(handle..., text.data(), needed, &needed, &error) != SPARSESEL_OK) return error.text;
  text.resize(needed - 1);
  return text;
}

}  // namespace contract

#endif  // SPARSESEL_TESTS_CONTRACT_GROUP_FIXTURE_H_
