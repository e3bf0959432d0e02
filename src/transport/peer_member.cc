#include "transport/peer_member.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace sparsesel {
namespace {

// Drawn once; together with the process's number, since a fork inherits what was drawn before it.
uint64_t DrawnOnce() {
  static const uint64_t drawn = [] {
    uint64_t random = 0;
    if (getrandom(&random, sizeof(random), 0) == sizeof(random)) return random;
    return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(&DrawnOnce));
  }();
  return drawn;
}

// Leaves `text` empty if it cannot be read; ends it at a newline.
template <size_t kBytes>
void ReadLine(const char* path, char (&text)[kBytes]) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  const ssize_t got = read(file, text, kBytes - 1);
  (void)close(file);
  *std::find(text, text + std::max<ssize_t>(got, 0), '\n') = '\0';
}

template <size_t kBytes>
bool Same(const char (&one)[kBytes], const char (&other)[kBytes]) {
  return std::strncmp(one, other, kBytes) == 0;
}

}  // namespace

PeerMember MakePeerMember() {
  PeerMember member;
  if (gethostname(member.host, sizeof(member.host) - 1) != 0) member.host[0] = '\0';
  ReadLine("/proc/sys/kernel/random/boot_id", member.machine);
  if (member.machine[0] == '\0') {
    std::memcpy(member.machine, member.host, sizeof(member.machine) - 1);
  }
  member.process[0] = DrawnOnce();
  member.process[1] = static_cast<uint64_t>(getpid());
  return member;
}

bool SameProcess(const PeerMember& one, const PeerMember& other) {
  return Same(one.machine, other.machine) && one.process[0] == other.process[0] &&
         one.process[1] == other.process[1];
}

bool SameDevice(const PeerMember& one, const PeerMember& other) {
  return Same(one.machine, other.machine) &&
         std::equal(std::begin(one.device), std::end(one.device), std::begin(other.device));
}

Status CheckMembers(std::span<const PeerMember> members) {
  const PeerMember& first = members[0];
  for (size_t rank = 1; rank < members.size(); ++rank) {
    const PeerMember& member = members[rank];
    if (!Same(member.machine, first.machine)) {
      return Status::Error(SPARSESEL_UNAVAILABLE,
                           "ranks 0 and %d are on different machines (%.30s, %.30s), and the "
                           "transport peer stays within one",
                           rank, first.host, member.host)
          .WithRank(static_cast<int32_t>(rank));
    }
    if (!Same(member.device_name, first.device_name) || member.processors != first.processors) {
      return Status::Error(SPARSESEL_UNAVAILABLE,
                           "ranks 0 and %d have devices of different kinds: %.40s with %d "
                           "multiprocessors, %.40s with %d",
                           rank, first.device_name, first.processors, member.device_name,
                           member.processors)
          .WithRank(static_cast<int32_t>(rank));
    }
  }
  return {};
}

int32_t RanksOnDevice(std::span<const PeerMember> members, int32_t rank) {
  const PeerMember& own = members[static_cast<size_t>(rank)];
  return static_cast<int32_t>(std::count_if(
      members.begin(), members.end(), [&](const auto& other) { return SameDevice(own, other); }));
}

uint64_t RanksElsewhere(std::span<const PeerMember> members, int32_t rank) {
  const PeerMember& own = members[static_cast<size_t>(rank)];
  uint64_t mask = 0;
  for (size_t other = 0; other < members.size(); ++other) {
    if (!SameProcess(own, members[other])) mask |= uint64_t{1} << other;
  }
  return mask;
}

}  // namespace sparsesel
