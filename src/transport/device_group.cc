#include "transport/device_group.h"

#if !defined(SPARSESEL_HAS_CUDA)

namespace sparsesel {
namespace {

Status WithoutCuda() {
  return Status::Error(SPARSESEL_UNSUPPORTED,
                       "groups on device memory need a library that was built with CUDA");
}

}  // namespace

std::vector<DeviceDescription> DescribeDevices(std::string* reason) {
  *reason = "the library was built without CUDA";
  return {};
}

Status DeviceGroupSupport(const CommOptions&) { return WithoutCuda(); }

Status CreateLocalDeviceGroup(int32_t, const CommOptions&, std::vector<std::shared_ptr<Comm>>*) {
  return WithoutCuda();
}

Status JoinDeviceGroup(int32_t, int32_t, const CommOptions&, std::shared_ptr<Comm>*) {
  return WithoutCuda();
}

}  // namespace sparsesel

#endif  // !SPARSESEL_HAS_CUDA
