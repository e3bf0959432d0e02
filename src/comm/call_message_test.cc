#include "comm/call_message.h"

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

namespace sparsesel {
namespace {

Status Compare(const std::function<void(std::vector<CallMessage>&)>& change) {
  std::vector<CallMessage> messages(4);
  for (size_t rank = 0; rank < messages.size(); ++rank) {
    messages[rank].kind = CallKind::kBind;
    messages[rank].world = 4;
    messages[rank].rank = static_cast<int32_t>(rank);
  }
  change(messages);
  return CompareCalls(messages);
}

void RequireMismatch(const Status& status, const char* words) {
  REQUIRE(status.code() == SPARSESEL_MISMATCH);
  REQUIRE(status.rank() == 2);
  REQUIRE_THAT(status.text(), Catch::Contains(words));
}

TEST_CASE("equal messages agree") {
  REQUIRE(Compare([](auto&) {}).ok());
}

TEST_CASE("each field that differs is named, with ranks and values") {
  RequireMismatch(Compare([](auto& m) { m[2].kind = CallKind::kRace; }),
                  "rank 0 in plan_bind, rank 2 in plan_race");
  RequireMismatch(Compare([](auto& m) { m[2].world = 5; }),
                  "world_size is 4 on rank 0, 5 on rank 2");
  RequireMismatch(Compare([](auto& m) { m[2].rank = 1; }),
                  "place 2 of the group says that it is rank 1");
  RequireMismatch(Compare([](auto& m) { m[2].sequence = UINT64_MAX; }),
                  "0 on rank 0, 18446744073709551615 on rank 2");
  RequireMismatch(Compare([](auto& m) { m[2].digest = 0xabc; }), "0000000000000abc on rank 2");
  RequireMismatch(Compare([](auto& m) { m[2].rows = 3; }), "rows is 0 on rank 0, 3 on rank 2");
  RequireMismatch(Compare([](auto& m) { m[2].active_rows = 3; }), "active_rows is 0");
  RequireMismatch(Compare([](auto& m) { m[2].tag = 3; }), "tag is 0");
  RequireMismatch(Compare([](auto& m) { m[2].abi_version = 3; }), "the library's version");
  RequireMismatch(Compare([](auto& m) { m[2].magic = 0x53535f4c; }),
                  "rank 2 sends what is no message");
}

TEST_CASE("the lowest failed rank speaks for all, before any field is compared") {
  const Status status = Compare([](auto& m) {
    SetStatus(Status::Error(SPARSESEL_OUT_OF_MEMORY, "no memory").WithBackendCode(12), 2, &m[2]);
    SetStatus(Status::Error(SPARSESEL_IO, "no file"), 3, &m[3]);
    m[1].digest = 5;
  });
  REQUIRE(status.code() == SPARSESEL_OUT_OF_MEMORY);
  REQUIRE(status.rank() == 2);
  REQUIRE(status.backend_code() == 12);
  REQUIRE(std::string(status.text()) == "no memory");
}

TEST_CASE("a status keeps the rank it names, unless there is no such rank") {
  const auto with_rank = [](int32_t rank) {
    return Compare([rank](auto& m) {
      SetStatus(Status::Error(SPARSESEL_TIMEOUT, "late").WithRank(rank), 2, &m[2]);
    });
  };
  REQUIRE(with_rank(1).rank() == 1);
  REQUIRE(with_rank(70).rank() == 2);
}

TEST_CASE("long sentences are cut between characters") {
  CallMessage message;
  const std::string long_text = std::string(190, 'a') + "\xc3\xa9 and more";
  SetStatus(Status::Error(SPARSESEL_IO, "%s", long_text), 0, &message);
  REQUIRE(std::string(message.text) == std::string(190, 'a'));
  message.status = SPARSESEL_IO;
  for (char& c : message.text) c = 'x';  // a peer that forgets the terminator
  const Status status = CompareCalls({&message, 1});
  REQUIRE(std::string(status.text()) == std::string(sizeof(message.text), 'x'));
}

TEST_CASE("messages that were never written, or are noise, are refused") {
  std::vector<CallMessage> messages(2);
  std::fill_n(reinterpret_cast<unsigned char*>(&messages[1]), sizeof(CallMessage), 0xff);
  REQUIRE(CompareCalls(messages).code() == SPARSESEL_MISMATCH);
  REQUIRE(std::string(CallName(static_cast<CallKind>(99))) == "an unknown call");
}

}  // namespace
}  // namespace sparsesel
