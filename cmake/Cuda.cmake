# Whether there is a CUDA backend, and how it is compiled.

set(SPARSESEL_BUILD_CUDA OFF)
if(NOT SPARSESEL_CUDA STREQUAL "OFF")
  if(DEFINED ENV{CUDACXX})
    set(CMAKE_CUDA_COMPILER "$ENV{CUDACXX}" CACHE FILEPATH "nvcc")
  endif()
  # NVIDIA's packages put nvcc here and leave PATH alone.
  find_program(CMAKE_CUDA_COMPILER nvcc PATHS /usr/local/cuda/bin)
  set(nvcc_found OFF)
  if(CMAKE_CUDA_COMPILER)
    set(nvcc_found ON)
  endif()
  sparsesel_resolve(SPARSESEL_CUDA "${nvcc_found}" "nvcc" SPARSESEL_BUILD_CUDA)
endif()

if(SPARSESEL_BUILD_CUDA)
  # Before the language: CMake tries the compiler with these, and new ones have dropped its default.
  set(CMAKE_CUDA_ARCHITECTURES "${SPARSESEL_CUDA_ARCHITECTURES}")
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    # nvcc takes it since 12.0, which CMake 3.25 does not know yet.
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  find_package(CUDAToolkit REQUIRED)
endif()
