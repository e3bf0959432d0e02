#include "api/errors.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

namespace sparsesel {

TEST_CASE("bug_H01: every exception becomes a status") {
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  REQUIRE(Call(&error, []() -> Status { throw std::bad_alloc(); }) == SPARSESEL_OUT_OF_MEMORY);
  REQUIRE(error.status == SPARSESEL_OUT_OF_MEMORY);
  REQUIRE(Call(&error, []() -> Status { throw std::runtime_error("of its own"); }) ==
          SPARSESEL_INTERNAL);
  REQUIRE(std::string(error.text) == "unexpected exception: of its own");
  REQUIRE(Call(&error, []() -> Status { throw 7; }) == SPARSESEL_INTERNAL);
  REQUIRE(error.text[0] != '\0');
  REQUIRE(Call(nullptr, []() -> Status { throw 7; }) == SPARSESEL_INTERNAL);
}

TEST_CASE("success clears what an earlier failure left") {
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  REQUIRE(Call(&error, [] {
            return Status::Error(SPARSESEL_TIMEOUT, "late").WithRank(3).WithBackendCode(9);
          }) == SPARSESEL_TIMEOUT);
  REQUIRE(error.status == SPARSESEL_TIMEOUT);
  REQUIRE(error.rank == 3);
  REQUIRE(error.backend_code == 9);
  REQUIRE(std::string(error.text) == "late");
  REQUIRE(Call(&error, [] { return Status(); }) == SPARSESEL_OK);
  REQUIRE(error.status == SPARSESEL_OK);
  REQUIRE(error.rank == -1);
  REQUIRE(error.backend_code == 0);
  REQUIRE(error.text[0] == '\0');
}

TEST_CASE("an error struct of another size is filled only as far as it goes") {
  const Status status = Status::Error(SPARSESEL_IO, "%s", std::string(200, 'x').c_str());
  for (const uint32_t size : {8u, 16u, 24u, 64u, uint32_t{sizeof(sparsesel_error)}, 1024u, 4096u}) {
    CAPTURE(size);
    alignas(sparsesel_error) unsigned char bytes[4096 + 16];
    std::memset(bytes, 0x5a, sizeof(bytes));
    std::memcpy(bytes, &size, sizeof(size));
    auto* error = reinterpret_cast<sparsesel_error*>(bytes);
    FillError(status, error);
    REQUIRE(error->struct_size == size);
    REQUIRE(error->status == SPARSESEL_IO);
    for (size_t i = size; i < sizeof(bytes); ++i) REQUIRE(bytes[i] == 0x5a);
    if (size > 16) REQUIRE(std::memchr(error->text, 0, size - 16) != nullptr);
  }
}

TEST_CASE("an error struct of an impossible size is left alone") {
  for (const uint32_t size : {0u, 4u, 17u, 4104u, 0xffffffffu}) {
    CAPTURE(size);
    sparsesel_error error;
    std::memset(&error, 0x5a, sizeof(error));
    error.struct_size = size;
    const sparsesel_error before = error;
    FillError(Status::Error(SPARSESEL_IO, "x"), &error);
    REQUIRE(std::memcmp(&error, &before, sizeof(error)) == 0);
  }
}

TEST_CASE("an error's text is never cut inside a character") {
  alignas(sparsesel_error) unsigned char bytes[sizeof(sparsesel_error)] = {};
  auto* error = reinterpret_cast<sparsesel_error*>(bytes);
  error->struct_size = 24;  // room for 7 bytes of text
  FillError(Status::Error(SPARSESEL_IO, "abcdef\xc3\xa9"), error);
  REQUIRE(std::string(error->text) == "abcdef");
  FillError(Status::Error(SPARSESEL_IO, "abcde\xc3\xa9"), error);
  REQUIRE(std::string(error->text) == "abcde\xc3\xa9");
}

}  // namespace sparsesel
