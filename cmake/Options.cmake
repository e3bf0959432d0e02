# What can be switched. AUTO builds a part when what it needs is found and says so when it is not.

function(sparsesel_auto_option name help)
  set(${name} AUTO CACHE STRING "${help} (AUTO, ON or OFF)")
  set_property(CACHE ${name} PROPERTY STRINGS AUTO ON OFF)
endfunction()

sparsesel_auto_option(SPARSESEL_CUDA "The CUDA backend; AUTO: if nvcc is found")
sparsesel_auto_option(SPARSESEL_TOOLS "The command-line tool; AUTO: if CLI11 is found")
sparsesel_auto_option(SPARSESEL_TESTS "The tests; AUTO: if Catch2 2.x is found")
sparsesel_auto_option(SPARSESEL_BENCH "The benchmarks; AUTO: if Google Benchmark is found")
option(SPARSESEL_EXAMPLES "The examples" ON)
option(SPARSESEL_EXHAUSTIVE "Let ctest run the exhaustive tests, too, which take long" OFF)
option(SPARSESEL_GPU_PROGRAMS "The tests and benchmarks that run on a GPU" OFF)
option(SPARSESEL_FETCH_DEPS "Download a missing library's source from its upstream" ON)

# 90a is the only way to Hopper's own instructions; the last entry adds PTX for what comes later.
set(SPARSESEL_CUDA_ARCHITECTURES "80-real;90a-real;100-real;120" CACHE STRING
  "GPU architectures to compile for")
set(SPARSESEL_SANITIZE "" CACHE STRING "Sanitizers: 'address,undefined', 'thread' or empty")
set_property(CACHE SPARSESEL_SANITIZE PROPERTY STRINGS "" "address,undefined" "thread")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

if(SPARSESEL_SANITIZE STREQUAL "")
  set(SPARSESEL_DEPS_FLAVOR plain)
elseif(SPARSESEL_SANITIZE STREQUAL "address,undefined")
  set(SPARSESEL_DEPS_FLAVOR asan)
elseif(SPARSESEL_SANITIZE STREQUAL "thread")
  set(SPARSESEL_DEPS_FLAVOR tsan)
else()
  message(FATAL_ERROR "SPARSESEL_SANITIZE is neither 'address,undefined' nor 'thread'")
endif()

# Sets `result` for a part whose requirement was looked for, and stops if it was demanded in vain.
function(sparsesel_resolve option found what result)
  if(${option} STREQUAL "AUTO")
    set(${result} ${found} PARENT_SCOPE)
    if(NOT found)
      message(STATUS "${option}: off, ${what} not found")
    endif()
  else()
    set(${result} ${${option}} PARENT_SCOPE)
    if(${option} AND NOT found)
      message(FATAL_ERROR "${option} is ON, but ${what} was not found")
    endif()
  endif()
endfunction()
