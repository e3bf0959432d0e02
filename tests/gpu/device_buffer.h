// Device memory that frees itself, and a check that ends the program with the failing line.
#ifndef SPARSESEL_TESTS_GPU_DEVICE_BUFFER_H_
#define SPARSESEL_TESTS_GPU_DEVICE_BUFFER_H_

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace sparsesel::testing {

inline void CheckCuda(cudaError_t error, const char* what, int line) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s at line %d: %s\n", cudaGetErrorString(error), line, what);
  std::exit(1);
}
#define CHECK_CUDA(call) ::sparsesel::testing::CheckCuda((call), #call, __LINE__)

template <class T>
class DeviceBuffer {
 public:
  explicit DeviceBuffer(size_t size, int poison = 0x5a) : size_(size) {
    CHECK_CUDA(cudaMalloc(&data_, std::max<size_t>(1, size) * sizeof(T)));
    CHECK_CUDA(cudaMemset(data_, poison, std::max<size_t>(1, size) * sizeof(T)));
  }
  explicit DeviceBuffer(const std::vector<T>& values) : DeviceBuffer(values.size()) {
    CHECK_CUDA(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() { cudaFree(data_); }

  T* get() const { return data_; }
  size_t size() const { return size_; }
  std::vector<T> Read() const {
    std::vector<T> values(size_);
    CHECK_CUDA(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }
  void Poison(int byte = 0x5a) { CHECK_CUDA(cudaMemset(data_, byte, size_ * sizeof(T))); }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace sparsesel::testing

#endif  // SPARSESEL_TESTS_GPU_DEVICE_BUFFER_H_
