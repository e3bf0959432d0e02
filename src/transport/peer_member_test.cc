#include "transport/peer_member.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <string>

namespace sparsesel {
namespace {

template <size_t kWorld>
std::array<PeerMember, kWorld> Alike() {
  std::array<PeerMember, kWorld> members;
  for (PeerMember& member : members) {
    member = MakePeerMember();
    std::strcpy(member.device_name, "a device");
    member.processors = 132;
  }
  return members;
}

TEST_CASE("members: a process knows itself, and its fork is another") {
  const PeerMember here = MakePeerMember();
  REQUIRE(here.machine[0] != '\0');
  REQUIRE(SameProcess(here, MakePeerMember()));
  const pid_t child = fork();
  if (child == 0) _exit(SameProcess(here, MakePeerMember()) ? 1 : 0);
  REQUIRE(child > 0);
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
}

TEST_CASE("members: one machine, one kind of device") {
  auto members = Alike<3>();
  REQUIRE(CheckMembers(members).ok());

  std::strcpy(members[2].machine, "another");
  std::strcpy(members[2].host, "far");
  Status status = CheckMembers(members);
  REQUIRE(status.code() == SPARSESEL_UNAVAILABLE);
  REQUIRE(status.rank() == 2);
  REQUIRE(std::string(status.text()).find("far") != std::string::npos);

  members = Alike<3>();
  members[1].processors = 78;
  status = CheckMembers(members);
  REQUIRE(status.code() == SPARSESEL_UNAVAILABLE);
  REQUIRE(status.rank() == 1);

  members = Alike<3>();
  std::strcpy(members[1].device_name, "a better device");
  REQUIRE(CheckMembers(members).code() == SPARSESEL_UNAVAILABLE);
}

TEST_CASE("members: who shares a device, who a process") {
  auto members = Alike<4>();
  for (size_t r = 0; r < 4; ++r) members[r].device[3] = static_cast<uint8_t>(r / 2);
  members[3].process[1] ^= 1;
  REQUIRE(RanksOnDevice(members, 0) == 2);
  REQUIRE(RanksOnDevice(members, 3) == 2);
  REQUIRE(RanksElsewhere(members, 0) == 8);
  REQUIRE(RanksElsewhere(members, 3) == 7);
  // The same numbers on another machine mean another process and another device.
  std::strcpy(members[1].machine, "another");
  REQUIRE(RanksOnDevice(members, 0) == 1);
  REQUIRE(RanksElsewhere(members, 0) == (8 | 2));
}

}  // namespace
}  // namespace sparsesel
