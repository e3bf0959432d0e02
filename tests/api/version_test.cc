#include <catch2/catch.hpp>
#include <cstring>
#include <string>

#include "sparsesel.h"

namespace {

TEST_CASE("api: versions and names") {
  CHECK(sparsesel_version() ==
        (SPARSESEL_VERSION_MAJOR << 16 | SPARSESEL_VERSION_MINOR << 8 | SPARSESEL_VERSION_PATCH));
  CHECK(std::string(sparsesel_version_string()).rfind("0.1.0+", 0) == 0);
  // Pinned: these numbers are the ABI.
  const char* const names[] = {
      "SPARSESEL_OK",          "SPARSESEL_INVALID_ARGUMENT", "SPARSESEL_INVALID_STATE",
      "SPARSESEL_UNSUPPORTED", "SPARSESEL_UNAVAILABLE",      "SPARSESEL_OUT_OF_MEMORY",
      "SPARSESEL_TIMEOUT",     "SPARSESEL_PEER_FAILED",      "SPARSESEL_ABORTED",
      "SPARSESEL_MISMATCH",    "SPARSESEL_WRONG_RESULT",     "SPARSESEL_IO",
      "SPARSESEL_INTERNAL",    "SPARSESEL_IN_PROGRESS"};
  for (int32_t status = 0; status < 14; ++status) {
    CHECK(std::string(sparsesel_status_name(status)) == names[status]);
  }
  for (const int32_t status : {-1, 14, INT32_MAX, INT32_MIN}) {
    CHECK(std::string(sparsesel_status_name(status)) == "SPARSESEL_UNKNOWN_STATUS");
  }
}

TEST_CASE("api: init functions take NULL") {
  sparsesel_error_init(nullptr);
  sparsesel_transport_init(nullptr);
  sparsesel_comm_options_init(nullptr);
  sparsesel_comm_info_init(nullptr);
  sparsesel_problem_init(nullptr);
  sparsesel_memory_init(nullptr);
  sparsesel_io_init(nullptr);
  sparsesel_prepare_options_init(nullptr);
  sparsesel_race_options_init(nullptr);
  sparsesel_outcome_init(nullptr);
  sparsesel_workspace_options_init(nullptr);
  sparsesel_stats_init(nullptr);
}

TEST_CASE("api: an error struct of another size is filled as far as it goes, and cleared") {
  for (const uint32_t size : {8u, 24u, uint32_t{sizeof(sparsesel_error)}, 1024u}) {
    CAPTURE(size);
    alignas(sparsesel_error) unsigned char bytes[2048];
    std::memset(bytes, 0x5a, sizeof(bytes));
    std::memcpy(bytes, &size, sizeof(size));
    auto* const error = reinterpret_cast<sparsesel_error*>(bytes);
    CHECK(sparsesel_comm_abort(nullptr, error) == SPARSESEL_INVALID_ARGUMENT);
    CHECK(error->status == SPARSESEL_INVALID_ARGUMENT);
    CHECK(sparsesel_comm_release(nullptr, error) == SPARSESEL_OK);
    CHECK(error->status == SPARSESEL_OK);
    if (size > 16) CHECK(error->text[0] == '\0');
    bool untouched = true;
    for (size_t i = size; i < sizeof(bytes); ++i) untouched = untouched && bytes[i] == 0x5a;
    CHECK(untouched);
  }
  sparsesel_error garbage;
  std::memset(&garbage, 0xee, sizeof(garbage));  // its size, too
  const sparsesel_error before = garbage;
  CHECK(sparsesel_comm_abort(nullptr, &garbage) == SPARSESEL_INVALID_ARGUMENT);
  CHECK(std::memcmp(&garbage, &before, sizeof(garbage)) == 0);
}

}  // namespace
