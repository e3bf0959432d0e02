// Groups on device memory, where this build and machine have them.
#ifndef SPARSESEL_TRANSPORT_DEVICE_GROUP_H_
#define SPARSESEL_TRANSPORT_DEVICE_GROUP_H_

#include <memory>
#include <vector>

#include "comm/comm.h"

namespace sparsesel {

// OK, or why no device group can be made here. A rank that joins a group asks before the ranks
// meet, so that all hear of it.
Status DeviceGroupSupport(const CommOptions& options);

// All ranks of a group in this process. `options` are validated: transport AUTO or PEER.
Status CreateLocalDeviceGroup(int32_t world, const CommOptions& options,
                              std::vector<std::shared_ptr<Comm>>* comms);

// Collective over the bootstrap; the group's first call is Enter(CallKind::kJoin, ...).
Status JoinDeviceGroup(int32_t rank, int32_t world, const CommOptions& options,
                       std::shared_ptr<Comm>* comm);

}  // namespace sparsesel

#endif  // SPARSESEL_TRANSPORT_DEVICE_GROUP_H_
