// For tests: a group's ranks, each on a thread of its own.
#ifndef SPARSESEL_TRANSPORT_RANK_THREADS_H_
#define SPARSESEL_TRANSPORT_RANK_THREADS_H_

#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/comm.h"

namespace sparsesel {

inline constexpr int64_t kMillisecond = 1'000'000;

// Runs `body(rank)` for all ranks at once and returns what each returned. Catch's assertions are
// for one thread, so bodies return a Status instead.
inline std::vector<Status> OnEachRank(int32_t world, const std::function<Status(int32_t)>& body) {
  std::vector<Status> results(static_cast<size_t>(world));
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < world; ++rank) {
    threads.emplace_back([&, rank] { results[static_cast<size_t>(rank)] = body(rank); });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

// All ranks returned OK; the first that did not is shown.
inline void RequireOk(const std::vector<Status>& results) {
  for (const Status& status : results) {
    INFO(status.text());
    REQUIRE(status.code() == SPARSESEL_OK);
  }
}

inline void RequireAll(const std::vector<Status>& results, sparsesel_status code, int32_t rank) {
  for (const Status& status : results) {
    INFO(status.text());
    REQUIRE(status.code() == code);
    REQUIRE(status.rank() == rank);
  }
}

// What a body returns when data is not as it should be.
inline Status Wrong(const char* what) { return Status::Error(SPARSESEL_WRONG_RESULT, "%s", what); }

using Comms = std::vector<std::shared_ptr<Comm>>;

inline Comms LocalGroup(int32_t world, const CommOptions& options = {}) {
  Comms comms;
  const Status status = CreateLocalGroup(world, options, &comms);
  INFO(status.text());
  REQUIRE(status.ok());
  return comms;
}

inline Comm& At(const Comms& comms, int32_t rank) { return *comms[static_cast<size_t>(rank)]; }

// Channels of one slot, one per rank.
inline std::vector<HostChannel> MakeChannels(const Comms& comms, bool overlaps = false) {
  std::vector<HostChannel> channels(comms.size());
  for (size_t rank = 0; rank < comms.size(); ++rank) {
    const Status status = comms[rank]->MakeHostChannel(&channels[rank], overlaps);
    INFO(status.text());
    REQUIRE(status.ok());
  }
  return channels;
}

// An execute's first step.
inline void BeginExecute(const HostChannel& channel, const Comm& comm, uint64_t sequence,
                         int32_t rows = 1) {
  CallMessage message;
  message.kind = CallKind::kExecute;
  message.sequence = sequence;
  message.rows = rows;
  channel.table->begin(channel.self.get(), message, comm.SteadyDeadline());
}

}  // namespace sparsesel

#endif  // SPARSESEL_TRANSPORT_RANK_THREADS_H_
