// The group whose ranks may be anywhere: its control plane is the caller's bootstrap; its data
// plane, on host memory, is the caller's transport table, or the bootstrap again.
#ifndef SPARSESEL_TRANSPORT_CUSTOM_GROUP_H_
#define SPARSESEL_TRANSPORT_CUSTOM_GROUP_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "comm/comm.h"
#include "transport/group_state.h"

namespace sparsesel {

// This rank's view of the group: there is nothing else that the ranks share. A failure is known to
// this rank only; its peers find out by their limits.
struct CustomRank : std::enable_shared_from_this<CustomRank> {
  CustomRank(int32_t rank, int32_t world, const CommOptions& options, bool custom_data);

  const int32_t rank;
  const int32_t world;
  const Environment environment;
  const sparsesel_bootstrap bootstrap;
  const bool custom_data;      // the data plane is `custom`, not the bootstrap
  const std::string identity;  // what custom.identity points to, copied
  const sparsesel_transport custom;
  const HostChannelTable channel_table;
  GroupState state;
  // Null, or asked while this rank waits in the bootstrap: what else has ended the group, OK if
  // nothing has.
  std::function<Status()> ended;
  // The caller's planes have one order of calls, so that two at once are a mistake, found here.
  std::atomic<bool> control_busy{false};
  std::atomic<bool> data_busy{false};
};

std::shared_ptr<CustomRank> MakeCustomRank(int32_t rank, int32_t world, const CommOptions& options,
                                           bool custom_data);

const GroupTable* CustomGroupTable(bool custom_data);

// Joins for no other purpose than to say why this rank cannot. Allocates nothing.
Status TellPeers(int32_t rank, int32_t world, const CommOptions& options, const Status& why);

// All-gather over the bootstrap: starts it, polls it until the deadline, and frees it in any case.
// Any failure is the group's.
Status BootstrapAllGather(CustomRank& rank, const void* send, void* receive, size_t bytes,
                          int64_t deadline);

// Calls the caller's transport with what is left of the limit. Any failure, exceptions among them,
// is the group's. `name` is the callback's, for sentences.
Status CallTransport(CustomRank& rank, const char* name, int64_t deadline,
                     absl::FunctionRef<sparsesel_status(uint64_t timeout)> call);

// The data plane, in custom_channel.cc.
HostChannelTable CustomChannelTable(bool custom_data, const sparsesel_transport& custom);
Status MakeCustomChannel(std::shared_ptr<CustomRank> rank, HostChannel* channel);

}  // namespace sparsesel

#endif  // SPARSESEL_TRANSPORT_CUSTOM_GROUP_H_
