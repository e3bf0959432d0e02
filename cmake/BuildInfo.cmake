# Writes build_info.h, from which the library answers what it is. The commit is the one that was
# checked out when the build was configured; a source without git says "unknown".

set(SPARSESEL_GIT_HASH "unknown")
find_package(Git QUIET)
if(Git_FOUND)
  execute_process(
    COMMAND "${GIT_EXECUTABLE}" -C "${PROJECT_SOURCE_DIR}" describe --always --dirty --abbrev=12
      --exclude=*
    OUTPUT_VARIABLE git_hash OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE git_failed)
  if(NOT git_failed)
    set(SPARSESEL_GIT_HASH "${git_hash}")
  endif()
endif()
configure_file("${PROJECT_SOURCE_DIR}/cmake/build_info.h.in"
  "${PROJECT_BINARY_DIR}/generated/build_info.h" @ONLY)
