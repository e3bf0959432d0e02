#include "transport/nccl_library.h"

#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <string>

namespace sparsesel {
namespace {

std::string PathOf(const char* name) {
  return std::string(SPARSESEL_TEST_LIBRARY_DIR "/lib") + name + ".so";
}

std::string Refusal(const char* name) {
  NcclLibrary library;
  const Status status = LoadNcclNamed(PathOf(name).c_str(), &library);
  CHECK(status.code() == SPARSESEL_UNAVAILABLE);
  CHECK(library.all_gather == nullptr);
  return status.text();
}

TEST_CASE("bug_H03_an_nccl_that_does_not_serve_is_unavailable_and_the_sentence_says_why",
          "[bug_H03]") {
  CHECK_THAT(Refusal("there_is_no_such_nccl"),
             Catch::Contains("NCCL cannot be loaded") && Catch::Contains("there_is_no_such_nccl"));
  CHECK(Refusal("fake_nccl_old") ==
        "NCCL is version 2.18.5, but 2.19.0 or a later one of major version 2 is needed");
  CHECK_THAT(Refusal("fake_nccl_ancient"), Catch::Contains("version 2.7.8"));
  CHECK(Refusal("fake_nccl_next") ==
        "NCCL is version 3.0.1, but 2.19.0 or a later one of major version 2 is needed");
  CHECK(Refusal("fake_nccl_incomplete") == "NCCL has no function ncclSend");
}

TEST_CASE("a library that serves is taken, by name or by handle") {
  NcclLibrary named;
  REQUIRE(LoadNcclNamed(PathOf("fake_nccl").c_str(), &named).ok());
  CHECK(named.version == 22809);
  CHECK(NcclVersionText(named.version) == "2.28.9");
  void* const handle = dlopen(PathOf("fake_nccl").c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(handle != nullptr);
  NcclLibrary handed;
  REQUIRE(LoadNccl(handle, &handed).ok());
  CHECK(handed.all_gather == named.all_gather);
  dlclose(handle);
}

TEST_CASE("what NCCL returns is told in its words, with its code") {
  NcclLibrary library;
  REQUIRE(LoadNcclNamed(PathOf("fake_nccl").c_str(), &library).ok());
  CHECK(NcclStatus(library, kNcclSuccess, SPARSESEL_INTERNAL, "ncclSend").ok());
  const Status status = NcclStatus(library, kNcclSystemError, SPARSESEL_UNAVAILABLE, "ncclSend");
  CHECK(status.code() == SPARSESEL_UNAVAILABLE);
  CHECK(status.backend_code() == kNcclSystemError);
  CHECK(std::string(status.text()) == "ncclSend: a fake error: said the fake");
}

}  // namespace
}  // namespace sparsesel
