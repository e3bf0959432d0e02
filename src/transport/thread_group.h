// The group of ranks that are threads of one process, on host memory. Needs nothing installed.
#ifndef SPARSESEL_TRANSPORT_THREAD_GROUP_H_
#define SPARSESEL_TRANSPORT_THREAD_GROUP_H_

#include <memory>
#include <utility>
#include <vector>

#include "comm/comm.h"
#include "contract/environment.h"
#include "transport/hub.h"

namespace sparsesel {

// One rank's share of the group. When the last owner lets go, the rank has left.
struct ThreadRank : std::enable_shared_from_this<ThreadRank> {
  ThreadRank(std::shared_ptr<Hub> hub_in, int32_t rank_in)
      : hub(std::move(hub_in)), rank(rank_in) {}
  ~ThreadRank() { hub->Leave(rank); }
  ThreadRank(const ThreadRank&) = delete;
  ThreadRank& operator=(const ThreadRank&) = delete;

  const std::shared_ptr<Hub> hub;
  const int32_t rank;
};

// The ranks of a new group; each is the `self` of ThreadGroupTable().
std::vector<std::shared_ptr<void>> MakeThreadGroup(int32_t world, const Environment& environment);

const GroupTable* ThreadGroupTable();

// The data plane, in thread_channel.cc. May throw std::bad_alloc.
HostChannel MakeThreadChannel(std::shared_ptr<ThreadRank> rank, int32_t index, bool overlaps);
const HostChannelTable* ThreadChannelTable();

}  // namespace sparsesel

#endif  // SPARSESEL_TRANSPORT_THREAD_GROUP_H_
