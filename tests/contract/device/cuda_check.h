// CUDA calls whose failure ends the test that made them.
#ifndef SPARSESEL_TESTS_CONTRACT_DEVICE_CUDA_CHECK_H_
#define SPARSESEL_TESTS_CONTRACT_DEVICE_CUDA_CHECK_H_

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace contract {

inline void CheckCuda(cudaError_t error, const char* call, const char* file, int line) {
  if (error == cudaSuccess) return;
  (void)cudaGetLastError();  // reported here; later checks must not find it again
  throw std::runtime_error(std::string(cudaGetErrorString(error)) + " (" + cudaGetErrorName(error) +
                           "): " + call + " at " + file + ":" + std::to_string(line));
}
#define CHECK_CUDA(call) ::contract::CheckCuda((call), #call, __FILE_NAME__, __LINE__)

}  // namespace contract

#endif  // SPARSESEL_TESTS_CONTRACT_DEVICE_CUDA_CHECK_H_
