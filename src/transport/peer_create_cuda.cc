// How groups on device memory come about: all ranks at once in one process, or each by joining.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "contract/guard.h"
#include "transport/custom_group.h"
#include "transport/device_group.h"
#include "transport/peer_group.h"
#include "transport/peer_member.h"
#include "transport/thread_group.h"

namespace sparsesel {
namespace {

// What ranks must share to join: never the digest of a group on host memory.
constexpr uint64_t kJoinDigest = uint64_t{0x70656572} << 32 | kernels::kPeerLayout;

using WordsOfRanks = std::vector<std::shared_ptr<PeerWords>>;
using Members = std::array<PeerMember, kMaxWorld>;

std::shared_ptr<Comm> MakeComm(int32_t world, const CommOptions& options,
                               const std::shared_ptr<PeerRank>& rank) {
  Environment environment = options.environment;
  environment.rank = rank->rank;
  return std::make_shared<Comm>(rank->rank, world, SPARSESEL_MEMORY_DEVICE, rank->device,
                                environment, options.startup_timeout, options.steady_timeout,
                                PeerGroupTable(), rank);
}

// The board's page as this process's devices see it.
struct PinnedPage {
  explicit PinnedPage(std::shared_ptr<GroupBoard> board_in) : board(std::move(board_in)) {}
  ~PinnedPage() { (void)cudaHostUnregister(board->page()); }
  PinnedPage(const PinnedPage&) = delete;
  PinnedPage& operator=(const PinnedPage&) = delete;

  const std::shared_ptr<GroupBoard> board;
};

// Where the page cannot be pinned, an abort reaches other processes' kernels by their limits only.
const uint32_t* PinAbortWord(const PeerRank& rank, std::shared_ptr<void>* page) {
  if (rank.board == nullptr) return nullptr;
  const OnDevice on(rank.device);
  if (cudaHostRegister(rank.board->page(), GroupBoard::kPageBytes,
                       cudaHostRegisterPortable | cudaHostRegisterMapped) != cudaSuccess) {
    (void)cudaGetLastError();
    return nullptr;
  }
  *page = std::make_shared<PinnedPage>(rank.board);
  void* seen = nullptr;
  if (cudaHostGetDevicePointer(&seen, rank.board->page(), 0) != cudaSuccess) {
    (void)cudaGetLastError();
    return nullptr;
  }
  const auto offset = reinterpret_cast<const std::byte*>(rank.board->abort_word()) -
                      static_cast<const std::byte*>(rank.board->page());
  return reinterpret_cast<const uint32_t*>(static_cast<std::byte*>(seen) + offset);
}

// ----------------------------------------------------------------------------- joining a group

// Before the ranks have met: all that can be done without them.
Status SetUpMember(int32_t world, PeerRank* rank, PeerMember* member) {
  SPARSESEL_RETURN_IF_ERROR(SetUpRank(rank));
  *member = MakePeerMember();
  SPARSESEL_RETURN_IF_ERROR(DescribeMember(rank->device, member));
  if (rank->rank == 0 && world > 1) {
    SPARSESEL_RETURN_IF_ERROR(GroupBoard::Create(0, &rank->board, &member->board));
  }
  return {};
}

// Whether this rank's device can store into another process's. Mapping its memory will say so too,
// with less to read; and it must, where the other device is hidden from this process.
class ReachableDevices {
 public:
  explicit ReachableDevices(int32_t device) : device_(device) {}

  Status Check(int32_t rank, int32_t other, const PeerMember& member) {
    SPARSESEL_RETURN_IF_ERROR(Describe());
    for (const PeerMember& here : here_) {
      if (!SameDevice(here, member) || here.ordinal == device_) continue;
      int can = 0;
      SPARSESEL_RETURN_IF_ERROR(CudaStatus(cudaDeviceCanAccessPeer(&can, device_, here.ordinal),
                                           "cudaDeviceCanAccessPeer"));
      if (can != 0) return {};
      return Status::Error(SPARSESEL_UNAVAILABLE,
                           "the device of rank %d cannot store into that of rank %d", rank, other)
          .WithRank(other);
    }
    return {};
  }

 private:
  Status Describe() {
    if (!here_.empty()) return {};
    int count = 0;
    SPARSESEL_RETURN_IF_ERROR(CudaStatus(cudaGetDeviceCount(&count), "cudaGetDeviceCount"));
    std::vector<PeerMember> here(static_cast<size_t>(count), MakePeerMember());
    for (int32_t ordinal = 0; ordinal < count; ++ordinal) {
      SPARSESEL_RETURN_IF_ERROR(DescribeMember(ordinal, &here[static_cast<size_t>(ordinal)]));
    }
    here_ = std::move(here);
    return {};
  }

  const int32_t device_;
  std::vector<PeerMember> here_;  // the devices of this process, when they are first needed
};

// After the ranks have said where they are.
Status MeetMembers(std::span<const PeerMember> members, PeerRank* rank, PeerGroupMemory* memory) {
  rank->elsewhere = RanksElsewhere(members, rank->rank);
  rank->ranks_on_device = RanksOnDevice(members, rank->rank);
  ReachableDevices reachable(rank->device);
  for (size_t r = 0; r < members.size(); ++r) {
    const auto other = static_cast<int32_t>(r);
    const bool elsewhere = (rank->elsewhere >> r & 1) != 0;
    SPARSESEL_RETURN_IF_ERROR(elsewhere ? reachable.Check(rank->rank, other, members[r])
                                        : EnablePeer(rank->device, members[r].ordinal));
  }
  if (rank->board == nullptr && members.size() > 1) {
    SPARSESEL_RETURN_IF_ERROR(GroupBoard::Open(members[0].board, rank->rank, &rank->board));
  }
  memory->words = rank->words;
  const uint32_t* const abort = PinAbortWord(*rank, &memory->abort_page);
  return MakeRankMemory(*rank, static_cast<int32_t>(members.size()), abort,
                        &memory->ranks[static_cast<size_t>(rank->rank)]);
}

// Each rank's memory to all; then the ranks' kernels meet.
Status Connect(Comm& comm, std::span<const PeerMember> members, PeerRank* rank) {
  std::shared_ptr<PeerGroupMemory> memory;
  const Status local = Guarded([&] {
    memory = std::make_shared<PeerGroupMemory>();
    return MeetMembers(members, rank, memory.get());
  });
  std::array<std::shared_ptr<PeerMemory>, kMaxWorld> all;
  const Status shared = SharePeerMemory(
      comm, memory == nullptr ? nullptr : memory->ranks[static_cast<size_t>(rank->rank)], local,
      &all);
  if (rank->board != nullptr) rank->board->HideName();
  SPARSESEL_RETURN_IF_ERROR(shared);
  memory->ranks = std::move(all);
  rank->memory = std::move(memory);
  const PeerRank* const own = rank;
  const Status proved = Guarded([&] { return ProveCoResidency(comm.world(), {&own, 1}); });
  return comm.AllGatherOrFail(proved, nullptr, nullptr, 0);
}

}  // namespace

Status DeviceGroupSupport(const CommOptions& options) {
  return Guarded([&] {
    std::vector<int32_t> devices;
    return ChooseDevices(1, options, &devices);
  });
}

Status JoinDeviceGroup(int32_t rank, int32_t world, const CommOptions& options,
                       std::shared_ptr<Comm>* comm) {
  std::shared_ptr<PeerRank> self;
  std::shared_ptr<Comm> made;
  const Status created = Guarded([&]() -> Status {
    self = std::make_shared<PeerRank>();
    self->rank = rank;
    std::vector<int32_t> devices;
    SPARSESEL_RETURN_IF_ERROR(ChooseDevices(1, options, &devices));
    self->device = devices[0];
    // Before the ranks have met, this rank's own words are all there is to look at.
    const OnDevice on(self->device);
    SPARSESEL_RETURN_IF_ERROR(CudaStatus(on.error(), "cudaSetDevice"));
    SPARSESEL_RETURN_IF_ERROR(PeerWords::Make(options.steady_timeout, &self->words));
    self->local_words = std::make_shared<WordsOfRanks>(1, self->words);
    const std::shared_ptr<CustomRank> control = MakeCustomRank(rank, world, options, false);
    control->ended = [looked = self.get()] { return PeerFailureOf(*looked); };
    self->control_table = CustomGroupTable(false);
    self->control = control;
    made = MakeComm(world, options, self);
    return {};
  });
  if (!created.ok()) return TellPeers(rank, world, options, created);
  PeerMember member;
  const Status local = Guarded([&] { return SetUpMember(world, self.get(), &member); });
  SPARSESEL_RETURN_IF_ERROR(made->Enter(CallKind::kJoin, kJoinDigest, local));
  Members all;
  SPARSESEL_RETURN_IF_ERROR(made->AllGatherOrFail(Status(), &member, all.data(), sizeof(member)));
  const std::span<const PeerMember> members(all.data(), static_cast<size_t>(world));
  SPARSESEL_RETURN_IF_ERROR(CheckMembers(members));
  SPARSESEL_RETURN_IF_ERROR(Connect(*made, members, self.get()));
  *comm = std::move(made);
  return {};
}

// ------------------------------------------------------------------------------- local groups

Status CreateLocalDeviceGroup(int32_t world, const CommOptions& options,
                              std::vector<std::shared_ptr<Comm>>* comms) {
  std::vector<int32_t> devices;
  SPARSESEL_RETURN_IF_ERROR(ChooseDevices(world, options, &devices));
  Members members;
  for (size_t r = 0; r < devices.size(); ++r) {
    SPARSESEL_RETURN_IF_ERROR(DescribeMember(devices[r], &members[r]));
    for (const int32_t to : devices) SPARSESEL_RETURN_IF_ERROR(EnablePeer(devices[r], to));
  }
  SPARSESEL_RETURN_IF_ERROR(CheckMembers({members.data(), devices.size()}));
  const std::vector<std::shared_ptr<void>> threads = MakeThreadGroup(world, options.environment);
  std::vector<std::shared_ptr<PeerRank>> ranks;
  const auto local_words = std::make_shared<WordsOfRanks>();
  std::array<std::shared_ptr<PeerMemory>, kMaxWorld> memories;
  for (size_t r = 0; r < devices.size(); ++r) {
    auto rank = std::make_shared<PeerRank>();
    rank->rank = static_cast<int32_t>(r);
    rank->control_table = ThreadGroupTable();
    rank->control = threads[r];
    rank->device = devices[r];
    rank->ranks_on_device =
        static_cast<int32_t>(std::count(devices.begin(), devices.end(), devices[r]));
    const OnDevice on(rank->device);
    SPARSESEL_RETURN_IF_ERROR(CudaStatus(on.error(), "cudaSetDevice"));
    SPARSESEL_RETURN_IF_ERROR(PeerWords::Make(options.steady_timeout, &rank->words));
    SPARSESEL_RETURN_IF_ERROR(SetUpRank(rank.get()));
    SPARSESEL_RETURN_IF_ERROR(MakeRankMemory(*rank, world, nullptr, &memories[r]));
    local_words->push_back(rank->words);
    ranks.push_back(std::move(rank));
  }
  for (const std::shared_ptr<PeerRank>& rank : ranks) {
    rank->local_words = local_words;
    auto memory = std::make_shared<PeerGroupMemory>();
    memory->words = rank->words;
    memory->ranks = memories;
    rank->memory = std::move(memory);
  }
  std::vector<const PeerRank*> here(ranks.size());
  std::transform(ranks.begin(), ranks.end(), here.begin(),
                 [](const std::shared_ptr<PeerRank>& rank) { return rank.get(); });
  SPARSESEL_RETURN_IF_ERROR(ProveCoResidency(world, here));
  std::vector<std::shared_ptr<Comm>> made;
  made.reserve(ranks.size());
  for (const std::shared_ptr<PeerRank>& rank : ranks)
    made.push_back(MakeComm(world, options, rank));
  *comms = std::move(made);
  return {};
}

}  // namespace sparsesel
