// Groups on device memory, where this build and machine have them.
#ifndef SPARSESEL_TRANSPORT_DEVICE_GROUP_H_
#define SPARSESEL_TRANSPORT_DEVICE_GROUP_H_

#include <memory>
#include <string>
#include <vector>

#include "comm/comm.h"

namespace sparsesel {

// OK, or why no device group can be made here. A rank that joins a group asks before the ranks
// meet, so that all hear of it.
Status DeviceGroupSupport(const CommOptions& options);

// What the library sees of one GPU.
struct DeviceDescription {
  int32_t ordinal = 0;
  std::string name;
  int32_t compute_capability = 0;  // 90 for 9.0
  int32_t processors = 0;
  uint64_t memory = 0;               // bytes
  std::vector<int32_t> stores_into;  // ordinals of the other devices whose memory it can store into
};
// Empty without CUDA or devices; then `reason` says why.
std::vector<DeviceDescription> DescribeDevices(std::string* reason);

// All ranks of a group in this process. `options` are validated: transport AUTO or PEER.
Status CreateLocalDeviceGroup(int32_t world, const CommOptions& options,
                              std::vector<std::shared_ptr<Comm>>* comms);

// Collective over the bootstrap; the group's first call is Enter(CallKind::kJoin, ...).
Status JoinDeviceGroup(int32_t rank, int32_t world, const CommOptions& options,
                       std::shared_ptr<Comm>* comm);

}  // namespace sparsesel

#endif  // SPARSESEL_TRANSPORT_DEVICE_GROUP_H_
