#include "api/version.h"

#include "sparsesel.h"

#if __has_include("build_info.h")
#include "build_info.h"
#define SPARSESEL_GIT_HASH SPARSESEL_BUILD_GIT_HASH
#else
#define SPARSESEL_GIT_HASH "unknown"
#endif

#define SPARSESEL_STRING_OF(value) #value
#define SPARSESEL_STRING(macro) SPARSESEL_STRING_OF(macro)

namespace sparsesel {

const char* VersionString() {
  return SPARSESEL_STRING(SPARSESEL_VERSION_MAJOR) "." SPARSESEL_STRING(
      SPARSESEL_VERSION_MINOR) "." SPARSESEL_STRING(SPARSESEL_VERSION_PATCH) "+" SPARSESEL_GIT_HASH;
}

const char* StatusName(sparsesel_status status) {
  switch (status) {
#define SPARSESEL_CASE(name) \
  case SPARSESEL_##name:     \
    return "SPARSESEL_" #name
    SPARSESEL_CASE(OK);
    SPARSESEL_CASE(INVALID_ARGUMENT);
    SPARSESEL_CASE(INVALID_STATE);
    SPARSESEL_CASE(UNSUPPORTED);
    SPARSESEL_CASE(UNAVAILABLE);
    SPARSESEL_CASE(OUT_OF_MEMORY);
    SPARSESEL_CASE(TIMEOUT);
    SPARSESEL_CASE(PEER_FAILED);
    SPARSESEL_CASE(ABORTED);
    SPARSESEL_CASE(MISMATCH);
    SPARSESEL_CASE(WRONG_RESULT);
    SPARSESEL_CASE(IO);
    SPARSESEL_CASE(INTERNAL);
    SPARSESEL_CASE(IN_PROGRESS);
#undef SPARSESEL_CASE
    default:
      return "SPARSESEL_UNKNOWN_STATUS";
  }
}

}  // namespace sparsesel

uint32_t sparsesel_version(void) {
  return SPARSESEL_VERSION_MAJOR << 16 | SPARSESEL_VERSION_MINOR << 8 | SPARSESEL_VERSION_PATCH;
}

const char* sparsesel_version_string(void) { return sparsesel::VersionString(); }

const char* sparsesel_status_name(sparsesel_status status) { return sparsesel::StatusName(status); }
