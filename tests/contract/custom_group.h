// A group over callbacks: a bootstrap and a data plane in the test's own process, whose faults the
// test chooses.
#ifndef SPARSESEL_TESTS_CONTRACT_CUSTOM_GROUP_H_
#define SPARSESEL_TESTS_CONTRACT_CUSTOM_GROUP_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "contract/group_fixture.h"
#include "sparsesel.h"

namespace contract {

// What the ranks of a CustomGroup meet in.
class Hub {
 public:
  explicit Hub(int32_t world) : world_(world), posted_(static_cast<size_t>(world), nullptr) {}

  // Shows `mine` to all ranks and calls `read` when all have shown theirs; returns when all have
  // read. False if a rank did not come in time.
  using Posted = std::vector<const void*>;
  bool Meet(int32_t rank, const void* mine, uint64_t timeout,
            const std::function<void(const Posted&)>& read);

 private:
  bool Barrier(std::unique_lock<std::mutex>& lock, uint64_t timeout);

  const int32_t world_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Posted posted_;
  int32_t arrived_ = 0;
  uint64_t generation_ = 0;
};

// Faults of the data plane; all off by default.
struct Faults {
  std::atomic<int32_t> failing_rank{-1};        // its calls return `failure`
  std::atomic<int64_t> calls_until_failure{0};  // counted down on that rank
  std::atomic<int32_t> failure{SPARSESEL_IO};
  std::atomic<bool> lossy_bf16{false};        // sums drop the lowest mantissa bit
  std::atomic<bool> wrong_all_to_all{false};  // one bit of every id is flipped
  std::atomic<bool> wrong_all_gather{false};
};

struct CustomOptions {
  int32_t transport = SPARSESEL_TRANSPORT_CUSTOM;  // or _BOOTSTRAP
  bool all_to_all = true;
  bool sums = true;
  uint64_t startup_timeout = 30 * kSecond;
  uint64_t steady_timeout = 20 * kSecond;
};

class CustomGroup {
 public:
  explicit CustomGroup(int32_t world, const CustomOptions& options = {});
  CustomGroup(const CustomGroup&) = delete;
  CustomGroup& operator=(const CustomGroup&) = delete;
  ~CustomGroup();

  const Outcomes& outcomes() const { return outcomes_; }  // of joining
  bool ok() const { return AllOk(outcomes_); }
  Faults& faults() { return faults_; }
  const Group& group() const { return group_; }

 private:
  struct Rank;
  static sparsesel_status Start(void* context, const void* send, void* receive, size_t bytes,
                                void** request);
  static sparsesel_status Test(void* context, void* request);
  static void Free(void* context, void* request);
  static sparsesel_status AllGather(void* context, const void* send, void* receive, uint64_t bytes,
                                    void* stream, uint64_t timeout);
  static sparsesel_status AllToAll(void* context, const void* send, const uint64_t* send_bytes,
                                   const uint64_t* send_offsets, void* receive,
                                   const uint64_t* receive_bytes, const uint64_t* receive_offsets,
                                   void* stream, uint64_t timeout);
  static sparsesel_status SumBf16(void* context, const void* send, void* receive, uint64_t count,
                                  void* stream, uint64_t timeout);
  static sparsesel_status SumInt32(void* context, const void* send, void* receive, uint64_t count,
                                   void* stream, uint64_t timeout);

  Hub data_;
  Faults faults_;
  struct Control;
  std::unique_ptr<Control> control_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  Group group_;
  Outcomes outcomes_;
};

}  // namespace contract

#endif  // SPARSESEL_TESTS_CONTRACT_CUSTOM_GROUP_H_
