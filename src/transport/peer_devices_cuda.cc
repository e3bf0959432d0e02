// Which devices there are, what they can reach, and how they are told apart.
#include <algorithm>
#include <cstring>

#include "transport/device_group.h"
#include "transport/peer_group.h"
#include "transport/peer_member.h"

namespace sparsesel {

Status ChooseDevices(int32_t count, const CommOptions& options, std::vector<int32_t>* devices) {
  int present = 0;
  const cudaError_t error = cudaGetDeviceCount(&present);
  if (error != cudaSuccess || present == 0) {
    (void)cudaGetLastError();
    return Status::Error(SPARSESEL_UNAVAILABLE, "there is no CUDA device: %s",
                         cudaGetErrorString(error))
        .WithBackendCode(error);
  }
  *devices = options.devices;
  if (devices->empty()) {
    int current = 0;
    SPARSESEL_RETURN_IF_ERROR(CudaStatus(cudaGetDevice(&current), "cudaGetDevice"));
    devices->push_back(current);
  }
  if (devices->size() == 1) devices->resize(static_cast<size_t>(count), devices->front());
  for (const int32_t device : *devices) {
    if (device < 0 || device >= present) {
      return Status::Error(SPARSESEL_INVALID_ARGUMENT, "device %d is not one of the %d there are",
                           device, present);
    }
  }
  return {};
}

Status DescribeMember(int32_t device, PeerMember* member) {
  cudaDeviceProp properties;
  SPARSESEL_RETURN_IF_ERROR(
      CudaStatus(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties"));
  static_assert(sizeof(member->device) == sizeof(properties.uuid.bytes));
  std::memcpy(member->device, properties.uuid.bytes, sizeof(member->device));
  std::memcpy(member->device_name, properties.name,
              strnlen(properties.name, sizeof(member->device_name) - 1));
  member->ordinal = device;
  member->processors = properties.multiProcessorCount;
  return {};
}

Status EnablePeer(int32_t from, int32_t to) {
  if (to == from) return {};
  const OnDevice on(from);
  SPARSESEL_RETURN_IF_ERROR(CudaStatus(on.error(), "cudaSetDevice"));
  int can = 0;
  SPARSESEL_RETURN_IF_ERROR(
      CudaStatus(cudaDeviceCanAccessPeer(&can, from, to), "cudaDeviceCanAccessPeer"));
  if (can == 0) {
    return Status::Error(SPARSESEL_UNAVAILABLE, "device %d cannot store into device %d", from, to);
  }
  const cudaError_t error = cudaDeviceEnablePeerAccess(to, 0);
  if (error == cudaErrorPeerAccessAlreadyEnabled) {
    (void)cudaGetLastError();
    return {};
  }
  return CudaStatus(error, "cudaDeviceEnablePeerAccess");
}

std::vector<DeviceDescription> DescribeDevices(std::string* reason) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess || count == 0) {
    (void)cudaGetLastError();
    *reason = error == cudaSuccess ? "there is no CUDA device" : cudaGetErrorString(error);
    return {};
  }
  std::vector<DeviceDescription> devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, ordinal) != cudaSuccess) {
      (void)cudaGetLastError();
      continue;
    }
    DeviceDescription& device = devices.emplace_back();
    device.ordinal = ordinal;
    device.name = properties.name;
    device.compute_capability = 10 * properties.major + properties.minor;
    device.processors = properties.multiProcessorCount;
    device.memory = properties.totalGlobalMem;
    for (int other = 0; other < count; ++other) {
      int can = 0;
      if (other != ordinal && cudaDeviceCanAccessPeer(&can, ordinal, other) == cudaSuccess &&
          can != 0) {
        device.stores_into.push_back(other);
      }
    }
  }
  return devices;
}

}  // namespace sparsesel
