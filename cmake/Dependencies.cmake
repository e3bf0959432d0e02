# The libraries used inside; none of them is visible to those who use sparsesel.
#
# Abseil and Highway must be static, position-independent and of hidden visibility, which
# distributions' archives are not. They are looked for only in SPARSESEL_DEPS_PREFIX, where
# scripts/bootstrap puts them, and in CMAKE_PREFIX_PATH, never in the system's folders.

set(sparsesel_built_deps "${PROJECT_SOURCE_DIR}/build/deps/${SPARSESEL_DEPS_FLAVOR}")
set(SPARSESEL_DEPS_PREFIX "${sparsesel_built_deps}/abseil;${sparsesel_built_deps}/highway"
  CACHE STRING "Install prefixes of Abseil and Highway")

find_package(Threads REQUIRED)

macro(sparsesel_find_private package)
  find_package(${package} CONFIG QUIET PATHS ${SPARSESEL_DEPS_PREFIX} NO_DEFAULT_PATH)
  if(NOT ${package}_FOUND)
    find_package(${package} CONFIG QUIET NO_CMAKE_PACKAGE_REGISTRY NO_SYSTEM_ENVIRONMENT_PATH
      NO_CMAKE_SYSTEM_PATH NO_CMAKE_SYSTEM_PACKAGE_REGISTRY)
  endif()
endmacro()

# Adds upstream's source as a part of this build, at the version that was tested.
function(sparsesel_fetch name repository tag)
  if(NOT SPARSESEL_FETCH_DEPS)
    message(FATAL_ERROR "${name} was not found. scripts/bootstrap installs it on Debian; else set "
      "SPARSESEL_DEPS_PREFIX, or SPARSESEL_FETCH_DEPS=ON to download its source.")
  endif()
  message(STATUS "${name} was not found: fetching ${repository} ${tag}")
  include(FetchContent)
  set(BUILD_TESTING OFF)
  set(BUILD_SHARED_LIBS OFF)
  set(ABSL_PROPAGATE_CXX_STD ON)
  set(HWY_ENABLE_CONTRIB OFF)
  set(HWY_ENABLE_EXAMPLES OFF)
  set(HWY_ENABLE_INSTALL OFF)
  set(HWY_ENABLE_TESTS OFF)
  set(JSON_BuildTests OFF)
  set(CMAKE_POLICY_DEFAULT_CMP0077 NEW) # lets the settings above reach their option() calls
  FetchContent_Declare(${name} GIT_REPOSITORY ${repository} GIT_TAG ${tag} GIT_SHALLOW ON)
  FetchContent_GetProperties(${name})
  if(NOT ${name}_POPULATED)
    FetchContent_Populate(${name})
    if(EXISTS "${${name}_SOURCE_DIR}/CMakeLists.txt")
      add_subdirectory("${${name}_SOURCE_DIR}" "${${name}_BINARY_DIR}" EXCLUDE_FROM_ALL SYSTEM)
    endif()
  endif()
  set(${name}_SOURCE_DIR "${${name}_SOURCE_DIR}" PARENT_SCOPE)
endfunction()

sparsesel_find_private(absl)
if(NOT absl_FOUND)
  sparsesel_fetch(abseil https://github.com/abseil/abseil-cpp.git 20220623.1)
endif()

sparsesel_find_private(hwy)
if(NOT hwy_FOUND)
  sparsesel_fetch(highway https://github.com/google/highway.git 1.0.3)
  add_library(hwy::hwy ALIAS hwy)
endif()

find_package(nlohmann_json 3.9 CONFIG QUIET)
if(NOT nlohmann_json_FOUND)
  sparsesel_fetch(nlohmann_json https://github.com/nlohmann/json.git v3.11.2)
endif()

find_path(SPARSESEL_XXHASH_INCLUDE_DIR xxhash.h DOC "The folder of xxhash.h")
if(NOT SPARSESEL_XXHASH_INCLUDE_DIR)
  sparsesel_fetch(xxhash https://github.com/Cyan4973/xxHash.git v0.8.1)
  set(SPARSESEL_XXHASH_INCLUDE_DIR "${xxhash_SOURCE_DIR}")
endif()
add_library(sparsesel_xxhash INTERFACE)
target_include_directories(sparsesel_xxhash SYSTEM INTERFACE "${SPARSESEL_XXHASH_INCLUDE_DIR}")
# Compiled in and static: the library neither needs libxxhash at run time nor exports its names.
target_compile_definitions(sparsesel_xxhash INTERFACE XXH_INLINE_ALL)

find_package(CLI11 CONFIG QUIET)
sparsesel_resolve(SPARSESEL_TOOLS "${CLI11_FOUND}" "CLI11" SPARSESEL_BUILD_TOOLS)
find_package(Catch2 2 CONFIG QUIET)
sparsesel_resolve(SPARSESEL_TESTS "${Catch2_FOUND}" "Catch2 2.x" SPARSESEL_BUILD_TESTS)
find_package(benchmark CONFIG QUIET)
sparsesel_resolve(SPARSESEL_BENCH "${benchmark_FOUND}" "Google Benchmark" SPARSESEL_BUILD_BENCH)
