// For tests: a bootstrap and a transport of a caller's own, over memory, that can be made to fail.
#ifndef SPARSESEL_TRANSPORT_FAKE_NETWORK_H_
#define SPARSESEL_TRANSPORT_FAKE_NETWORK_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "transport/rank_threads.h"

namespace sparsesel {

// Everyone's contribution to each exchange, kept by its number.
class FakeExchange {
 public:
  explicit FakeExchange(size_t world) : next_(world), world_(world) {}

  // Returns the number of this rank's exchange.
  size_t Put(size_t rank, const void* send, size_t bytes) {
    const std::lock_guard lock(mutex_);
    const size_t number = next_[rank]++;
    auto& parts = exchanges_[number];
    parts.resize(world_);
    parts[rank].data.assign(static_cast<const std::byte*>(send),
                            static_cast<const std::byte*>(send) + bytes);
    parts[rank].there = true;
    changed_.notify_all();
    return number;
  }

  bool Complete(size_t number) {
    const std::lock_guard lock(mutex_);
    return CompleteLocked(number);
  }
  bool Wait(size_t number, std::chrono::nanoseconds timeout, const std::atomic<bool>& aborted) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout, [&] { return CompleteLocked(number) || aborted; });
    return CompleteLocked(number);
  }
  void Wake() {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }

  // What `rank` put. Never changes once complete.
  const std::vector<std::byte>& Part(size_t number, size_t rank) {
    const std::lock_guard lock(mutex_);
    return exchanges_[number][rank].data;
  }

 private:
  struct Contribution {
    bool there = false;
    std::vector<std::byte> data;
  };
  bool CompleteLocked(size_t number) {
    for (const Contribution& part : exchanges_[number]) {
      if (!part.there) return false;
    }
    return !exchanges_[number].empty();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<size_t, std::vector<Contribution>> exchanges_;
  std::vector<size_t> next_;
  const size_t world_;
};

// One rank's ends of the network, and what goes wrong with them.
struct FakeRank {
  FakeExchange* control;
  FakeExchange* data;
  size_t rank;
  size_t world;

  enum class Fault { kNone, kStatus, kThrow, kNever };
  std::atomic<Fault> start{Fault::kNone};
  std::atomic<Fault> test{Fault::kNone};
  std::atomic<Fault> free{Fault::kNone};
  std::atomic<Fault> transport{Fault::kNone};
  std::atomic<bool> aborted{false};
  std::atomic<int> opened{0};
  std::atomic<int> freed{0};

  static sparsesel_status Act(Fault fault) {
    if (fault == Fault::kThrow) throw 17;  // not derived from std::exception
    if (fault == Fault::kNever) return SPARSESEL_IN_PROGRESS;
    return fault == Fault::kStatus ? sparsesel_status{77} : SPARSESEL_OK;
  }
};

inline FakeRank& Fake(void* context) { return *static_cast<FakeRank*>(context); }

struct FakeRequest {
  size_t number;
  void* receive;
};

inline sparsesel_status FakeStart(void* context, const void* send, void* receive, size_t bytes,
                                  void** request) {
  FakeRank& fake = Fake(context);
  if (const auto status = FakeRank::Act(fake.start); status != SPARSESEL_OK) return status;
  ++fake.opened;
  *request = new FakeRequest{fake.control->Put(fake.rank, send, bytes), receive};
  return SPARSESEL_OK;
}

inline sparsesel_status FakeTest(void* context, void* request) {
  FakeRank& fake = Fake(context);
  if (const auto status = FakeRank::Act(fake.test); status != SPARSESEL_OK) return status;
  const auto& open = *static_cast<FakeRequest*>(request);
  if (!fake.control->Complete(open.number)) return SPARSESEL_IN_PROGRESS;
  auto* to = static_cast<std::byte*>(open.receive);
  for (size_t rank = 0; rank < fake.world; ++rank) {
    const auto& part = fake.control->Part(open.number, rank);
    std::copy(part.begin(), part.end(), to);
    to += part.size();
  }
  return SPARSESEL_OK;
}

inline void FakeFree(void* context, void* request) {
  FakeRank& fake = Fake(context);
  ++fake.freed;
  delete static_cast<FakeRequest*>(request);
  (void)FakeRank::Act(fake.free);
}

// Puts `bytes`, waits for all; the number is that of the exchange.
inline sparsesel_status FakeMeet(FakeRank& fake, const void* send, uint64_t bytes, uint64_t timeout,
                                 size_t* number) {
  if (const auto status = FakeRank::Act(fake.transport); status != SPARSESEL_OK) return status;
  *number = fake.data->Put(fake.rank, send, bytes);
  const auto limit = std::chrono::nanoseconds(std::min<uint64_t>(timeout, 60'000'000'000));
  if (fake.data->Wait(*number, limit, fake.aborted)) return SPARSESEL_OK;
  return fake.aborted ? SPARSESEL_UNAVAILABLE : SPARSESEL_TIMEOUT;
}

inline sparsesel_status FakeAllGather(void* context, const void* send, void* receive,
                                      uint64_t bytes, void*, uint64_t timeout) {
  FakeRank& fake = Fake(context);
  size_t number;
  const auto status = FakeMeet(fake, send, bytes, timeout, &number);
  for (size_t rank = 0; status == SPARSESEL_OK && rank < fake.world; ++rank) {
    const auto& part = fake.data->Part(number, rank);
    std::copy(part.begin(), part.end(), static_cast<std::byte*>(receive) + rank * bytes);
  }
  return status;
}

inline sparsesel_status FakeAllToAll(void* context, const void* send, const uint64_t* send_bytes,
                                     const uint64_t* send_offsets, void* receive,
                                     const uint64_t* receive_bytes, const uint64_t* receive_offsets,
                                     void*, uint64_t timeout) {
  FakeRank& fake = Fake(context);
  // A table of (offset, bytes) for each receiver, then the data.
  std::vector<std::byte> message(fake.world * sizeof(uint64_t));
  for (size_t to = 0; to < fake.world; ++to) {
    const uint64_t offset = message.size();
    std::memcpy(message.data() + to * sizeof(uint64_t), &offset, sizeof(offset));
    const auto* from = static_cast<const std::byte*>(send) + send_offsets[to];
    message.insert(message.end(), from, from + send_bytes[to]);
  }
  size_t number;
  const auto status = FakeMeet(fake, message.data(), message.size(), timeout, &number);
  for (size_t from = 0; status == SPARSESEL_OK && from < fake.world; ++from) {
    const auto& part = fake.data->Part(number, from);
    uint64_t offset;
    std::memcpy(&offset, part.data() + fake.rank * sizeof(offset), sizeof(offset));
    std::copy_n(part.data() + offset, receive_bytes[from],
                static_cast<std::byte*>(receive) + receive_offsets[from]);
  }
  return status;
}

inline sparsesel_status FakeSumInt32(void* context, const void* send, void* receive, uint64_t count,
                                     void*, uint64_t timeout) {
  FakeRank& fake = Fake(context);
  size_t number;
  const auto status = FakeMeet(fake, send, count * sizeof(int32_t), timeout, &number);
  if (status != SPARSESEL_OK) return status;
  std::vector<uint32_t> sums(count);
  for (size_t rank = 0; rank < fake.world; ++rank) {
    const auto* words = reinterpret_cast<const uint32_t*>(fake.data->Part(number, rank).data());
    for (size_t i = 0; i < count; ++i) sums[i] += words[i];
  }
  std::memcpy(receive, sums.data(), count * sizeof(int32_t));
  return SPARSESEL_OK;
}

inline void FakeAbort(void* context) {
  Fake(context).aborted = true;
  Fake(context).data->Wake();
}

class FakeNetwork {
 public:
  explicit FakeNetwork(int32_t world)
      : control_(static_cast<size_t>(world)), data_(static_cast<size_t>(world)) {
    for (size_t rank = 0; rank < static_cast<size_t>(world); ++rank) {
      ranks_.push_back(std::make_unique<FakeRank>());
      ranks_[rank]->control = &control_;
      ranks_[rank]->data = &data_;
      ranks_[rank]->rank = rank;
      ranks_[rank]->world = static_cast<size_t>(world);
    }
  }
  // No request is ever left open.
  ~FakeNetwork() {
    for (const auto& rank : ranks_) CHECK(rank->opened == rank->freed);
  }

  FakeRank& rank(int32_t rank) { return *ranks_[static_cast<size_t>(rank)]; }

  CommOptions Options(int32_t rank_index, bool custom, bool all_to_all) {
    FakeRank* const fake = &rank(rank_index);
    CommOptions options;
    options.startup_timeout = 20'000'000'000;
    options.bootstrap = {fake, FakeStart, FakeTest, FakeFree};
    options.has_custom = custom;
    if (custom) {
      options.custom = SPARSESEL_TRANSPORT_INIT;
      options.custom.context = fake;
      options.custom.all_gather = FakeAllGather;
      options.custom.all_to_all = all_to_all ? FakeAllToAll : nullptr;
      options.custom.sum_int32 = FakeSumInt32;
      options.custom.abort = FakeAbort;
    }
    return options;
  }

 private:
  FakeExchange control_;
  FakeExchange data_;
  std::vector<std::unique_ptr<FakeRank>> ranks_;
};

}  // namespace sparsesel

#endif  // SPARSESEL_TRANSPORT_FAKE_NETWORK_H_
