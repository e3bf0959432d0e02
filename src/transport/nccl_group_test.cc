#include "transport/nccl_group.h"

#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "fakes/fake_nccl.h"
#include "transport/rank_threads.h"
#include "transport/thread_group.h"

namespace sparsesel {
namespace {

constexpr uint64_t kLimit = 400 * kMillisecond;

// A group over a fake NCCL, whose ranks have no devices.
class Group {
 public:
  explicit Group(int32_t world, uint64_t startup = 20'000 * kMillisecond) {
    void* const handle = dlopen(SPARSESEL_TEST_LIBRARY_DIR "/libfake_nccl.so", RTLD_NOW);
    REQUIRE(handle != nullptr);
    fake_ = static_cast<FakeNccl*>(dlsym(handle, "fake_nccl"));
    fake_->hang_init = fake_->fail_init = -1;
    fake_->async_error = fake_->fail_all_gather = 0;
    fake_->hang_all_gather = fake_->hang_destroy = fake_->let_go = false;
    fake_->made = fake_->destroyed = fake_->aborted = 0;
    const auto threads = MakeThreadGroup(world, {});
    const auto family = std::make_shared<NcclFamily>();
    for (int32_t r = 0; r < world; ++r) {
      auto rank = std::make_shared<NcclRank>();
      rank->rank = r;
      rank->world = world;
      rank->steady_timeout = kLimit;
      rank->control = ThreadGroupTable();
      rank->control_self = threads[static_cast<size_t>(r)];
      rank->enter_device = [](int32_t) { return Status(); };
      rank->family = family;
      REQUIRE(LoadNccl(handle, &rank->library).ok());
      ranks_.push_back(rank);
      comms_.push_back(std::make_shared<Comm>(r, world, SPARSESEL_MEMORY_DEVICE, 0, Environment{},
                                              startup, kLimit, NcclGroupTable(), rank));
    }
  }

  std::vector<Status> Connect() {
    return OnEachRank(static_cast<int32_t>(ranks_.size()), [&](int32_t r) {
      return MakeNcclCommunicator(comm(r), &rank(r).communicator);
    });
  }
  Status AllGather(int32_t r) {
    return UseNccl(rank(r), *rank(r).communicator, "ncclAllGather",
                   [](const NcclLibrary& nccl, NcclHandle handle) {
                     return nccl.all_gather(nullptr, nullptr, 0, kNcclInt32, handle, nullptr);
                   });
  }

  FakeNccl& fake() { return *fake_; }
  NcclRank& rank(int32_t r) { return *ranks_[static_cast<size_t>(r)]; }
  Comm& comm(int32_t r) { return *comms_[static_cast<size_t>(r)]; }
  void Release() {
    comms_.clear();
    ranks_.clear();
  }

 private:
  FakeNccl* fake_ = nullptr;
  std::vector<std::shared_ptr<NcclRank>> ranks_;
  std::vector<std::shared_ptr<Comm>> comms_;
};

// What is done on a thread of its own comes to pass soon.
bool Becomes(const std::atomic<int32_t>& value, int32_t wanted) {
  for (int i = 0; i < 5000 && value != wanted; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return value == wanted;
}

TEST_CASE("communicators are made by all ranks, and destroyed with them") {
  Group group(3);
  RequireOk(group.Connect());
  CHECK(group.fake().made == 3);
  CHECK(group.AllGather(0).ok());
  group.Release();
  CHECK(group.fake().destroyed == 3);
  CHECK(group.fake().aborted == 0);
}

TEST_CASE("a rank whose communicator cannot be made is told of by all") {
  Group group(3);
  group.fake().fail_init = 1;
  RequireAll(group.Connect(), SPARSESEL_UNAVAILABLE, 1);
  CHECK(group.comm(0).State().ok());
}

TEST_CASE("a start-up that hangs ends by the limit, and what it makes later is destroyed") {
  Group group(3, 2000 * kMillisecond);
  group.fake().hang_init = 2;
  RequireAll(group.Connect(), SPARSESEL_TIMEOUT, 2);
  group.fake().let_go = true;
  group.Release();
  CHECK(Becomes(group.fake().made, 3));
  CHECK(Becomes(group.fake().destroyed, 3));
}

TEST_CASE("comm_abort aborts the communicators of all ranks of a local group") {
  Group group(3);
  RequireOk(group.Connect());
  group.comm(1).Abort();
  CHECK(Becomes(group.fake().aborted, 3));
  for (int32_t r = 0; r < 3; ++r) {
    CHECK(group.comm(r).State().code() == SPARSESEL_ABORTED);
    CHECK(group.AllGather(r).code() == SPARSESEL_PEER_FAILED);
  }
  group.Release();
  CHECK(group.fake().destroyed == 0);
}

TEST_CASE("an error that NCCL finds meanwhile, or returns, is the group's") {
  const bool meanwhile = GENERATE(true, false);
  Group group(2);
  RequireOk(group.Connect());
  (meanwhile ? group.fake().async_error : group.fake().fail_all_gather) = kNcclRemoteError;
  if (!meanwhile) CHECK(group.AllGather(1).code() == SPARSESEL_PEER_FAILED);
  const Status state = group.comm(0).State();
  CHECK(state.code() == SPARSESEL_PEER_FAILED);
  CHECK(state.backend_code() == kNcclRemoteError);
  CHECK(group.comm(1).State().code() == SPARSESEL_PEER_FAILED);
  CHECK(Becomes(group.fake().aborted, 2));
}

TEST_CASE("a call that hangs in NCCL is ended by the limit") {
  Group group(1);
  RequireOk(group.Connect());
  group.fake().hang_all_gather = true;
  const auto communicator = group.rank(0).communicator;
  const int64_t deadline = group.rank(0).environment.Now() + static_cast<int64_t>(kLimit);
  const Status called = CallBounded(group.rank(0), deadline, "connecting", [communicator] {
    return communicator->Use("ncclAllGather", [](const NcclLibrary& nccl, NcclHandle handle) {
      return nccl.all_gather(nullptr, nullptr, 0, kNcclInt32, handle, nullptr);
    });
  });
  CHECK(called.code() == SPARSESEL_TIMEOUT);
  CHECK(group.comm(0).State().ok());  // asking does not wait for the call
  FailNccl(group.rank(0), called);
  CHECK(group.fake().aborted == 0);  // not while the call is inside
  group.rank(0).family->Abort(true);
  CHECK(Becomes(group.fake().aborted, 1));
  CHECK(group.comm(0).State().code() == SPARSESEL_TIMEOUT);
}

TEST_CASE("a borrowed communicator is neither aborted nor destroyed") {
  Group group(1);
  RequireOk(group.Connect());
  NcclRank& rank = group.rank(0);
  NcclHandle borrowed = nullptr;
  REQUIRE(rank.library.comm_init_rank(&borrowed, 1, NcclUniqueId{}, 0) == kNcclSuccess);
  {
    NcclCommunicator communicator(rank.library, borrowed, false, kLimit);
    communicator.Abort();
    communicator.Abort(true);
    CHECK(communicator.Use("nothing", [](const auto&, NcclHandle) { return kNcclSuccess; }).ok());
  }
  CHECK(group.fake().aborted == 0);
  CHECK(group.fake().destroyed == 0);
  CHECK(rank.library.comm_destroy(borrowed) == kNcclSuccess);
}

TEST_CASE("bug_F11_a_destroy_that_hangs_is_not_waited_for_beyond_the_limit", "[bug_F11]") {
  Group group(1);
  RequireOk(group.Connect());
  group.fake().hang_destroy = true;
  const int64_t begin = Environment{}.Now();
  group.Release();
  CHECK(Environment{}.Now() - begin < 20 * static_cast<int64_t>(kLimit));
  group.fake().let_go = true;
  CHECK(Becomes(group.fake().destroyed, 1));
}

}  // namespace
}  // namespace sparsesel
