#include "contract/custom_group.h"

#include <bit>
#include <chrono>
#include <cstring>

#include "contract/allocation_probe.h"

namespace contract {
namespace {

float FromBf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }
// Exact for the sums of small integers that are tested here.
uint16_t ToBf16(float value) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16); }

}  // namespace

bool Hub::Barrier(std::unique_lock<std::mutex>& lock, uint64_t timeout) {
  const uint64_t mine = generation_;
  if (++arrived_ == world_) {
    arrived_ = 0;
    ++generation_;
    changed_.notify_all();
    return true;
  }
  return changed_.wait_for(lock, std::chrono::nanoseconds(timeout),
                           [&] { return generation_ != mine; });
}

bool Hub::Meet(int32_t rank, const void* mine, uint64_t timeout,
               const std::function<void(const Posted&)>& read) {
  std::unique_lock<std::mutex> lock(mutex_);
  posted_[static_cast<size_t>(rank)] = mine;
  if (!Barrier(lock, timeout)) return false;
  read(posted_);
  return Barrier(lock, timeout);
}

// The bootstrap: rounds of an all-gather that never block.
struct CustomGroup::Control {
  struct Round {
    std::vector<std::vector<char>> sent;
    int32_t arrived = 0;
    int32_t left = 0;
  };
  std::mutex mutex;
  std::vector<Round> rounds;
};

struct CustomGroup::Rank {
  CustomGroup* group;
  int32_t rank;
  size_t next_round = 0;
  void* receive = nullptr;
  size_t bytes = 0;

  // Whether this call is to fail.
  bool Fails() const {
    Faults& faults = group->faults_;
    if (faults.failing_rank.load() != rank) return false;
    return faults.calls_until_failure.fetch_sub(1) <= 0;
  }
};

sparsesel_status CustomGroup::Start(void* context, const void* send, void* receive, size_t bytes,
                                    void** request) {
  const AllocationPause pause;
  auto* const self = static_cast<Rank*>(context);
  Control& control = *self->group->control_;
  const std::lock_guard<std::mutex> lock(control.mutex);
  if (control.rounds.size() <= self->next_round) control.rounds.resize(self->next_round + 1);
  Control::Round& round = control.rounds[self->next_round];
  round.sent.resize(self->group->ranks_.size());
  const char* const data = static_cast<const char*>(send);
  round.sent[static_cast<size_t>(self->rank)].assign(data, data + bytes);
  ++round.arrived;
  self->receive = receive;
  self->bytes = bytes;
  *request = self;
  return SPARSESEL_OK;
}

sparsesel_status CustomGroup::Test(void* context, void*) {
  const AllocationPause pause;
  auto* const self = static_cast<Rank*>(context);
  Control& control = *self->group->control_;
  const std::lock_guard<std::mutex> lock(control.mutex);
  Control::Round& round = control.rounds[self->next_round];
  if (round.arrived < static_cast<int32_t>(round.sent.size())) return SPARSESEL_IN_PROGRESS;
  for (size_t r = 0; r < round.sent.size(); ++r) {
    // Ranks in different calls must still send alike.
    if (round.sent[r].size() != self->bytes) return SPARSESEL_MISMATCH;
    std::memcpy(static_cast<char*>(self->receive) + r * self->bytes, round.sent[r].data(),
                self->bytes);
  }
  return SPARSESEL_OK;
}

void CustomGroup::Free(void* context, void*) {
  const AllocationPause pause;
  auto* const self = static_cast<Rank*>(context);
  Control& control = *self->group->control_;
  const std::lock_guard<std::mutex> lock(control.mutex);
  Control::Round& round = control.rounds[self->next_round++];
  if (++round.left == static_cast<int32_t>(round.sent.size())) round.sent.clear();
}

sparsesel_status CustomGroup::AllGather(void* context, const void* send, void* receive,
                                        uint64_t bytes, void*, uint64_t timeout) {
  const AllocationPause pause;
  auto* const self = static_cast<Rank*>(context);
  if (self->Fails()) return self->group->faults_.failure.load();
  const bool met =
      self->group->data_.Meet(self->rank, send, timeout, [&](const Hub::Posted& posted) {
        for (size_t r = 0; r < posted.size() && bytes > 0; ++r) {
          std::memcpy(static_cast<char*>(receive) + r * bytes, posted[r], bytes);
          if (self->group->faults_.wrong_all_gather) static_cast<char*>(receive)[r * bytes] ^= 1;
        }
      });
  return met ? SPARSESEL_OK : SPARSESEL_TIMEOUT;
}

sparsesel_status CustomGroup::AllToAll(void* context, const void* send, const uint64_t* send_bytes,
                                       const uint64_t* send_offsets, void* receive,
                                       const uint64_t* receive_bytes,
                                       const uint64_t* receive_offsets, void*, uint64_t timeout) {
  const AllocationPause pause;
  auto* const self = static_cast<Rank*>(context);
  if (self->Fails()) return self->group->faults_.failure.load();
  struct Message {
    const char* data;
    const uint64_t* bytes;
    const uint64_t* offsets;
  };
  const Message mine{static_cast<const char*>(send), send_bytes, send_offsets};
  bool alike = true;
  const bool met =
      self->group->data_.Meet(self->rank, &mine, timeout, [&](const Hub::Posted& posted) {
        const auto me = static_cast<size_t>(self->rank);
        for (size_t r = 0; r < posted.size(); ++r) {
          const auto& from = *static_cast<const Message*>(posted[r]);
          alike = alike && from.bytes[me] == receive_bytes[r];
          if (!alike || receive_bytes[r] == 0) continue;
          char* const to = static_cast<char*>(receive) + receive_offsets[r];
          std::memcpy(to, from.data + from.offsets[me], receive_bytes[r]);
          // Every record is 8 bytes, of which the last 4 are the id.
          for (uint64_t i = 4; i < receive_bytes[r] && self->group->faults_.wrong_all_to_all;
               i += 8) {
            to[i] ^= 1;
          }
        }
      });
  if (!met) return SPARSESEL_TIMEOUT;
  return alike ? SPARSESEL_OK : SPARSESEL_MISMATCH;
}

sparsesel_status CustomGroup::SumBf16(void* context, const void* send, void* receive,
                                      uint64_t count, void*, uint64_t timeout) {
  const AllocationPause pause;
  auto* const self = static_cast<Rank*>(context);
  if (self->Fails()) return self->group->faults_.failure.load();
  const bool met =
      self->group->data_.Meet(self->rank, send, timeout, [&](const Hub::Posted& posted) {
        for (uint64_t i = 0; i < count; ++i) {
          float sum = 0;
          for (const void* from : posted) sum += FromBf16(static_cast<const uint16_t*>(from)[i]);
          uint16_t bits = ToBf16(sum);
          if (self->group->faults_.lossy_bf16) bits &= 0xfffe;
          static_cast<uint16_t*>(receive)[i] = bits;
        }
      });
  return met ? SPARSESEL_OK : SPARSESEL_TIMEOUT;
}

sparsesel_status CustomGroup::SumInt32(void* context, const void* send, void* receive,
                                       uint64_t count, void*, uint64_t timeout) {
  const AllocationPause pause;
  auto* const self = static_cast<Rank*>(context);
  if (self->Fails()) return self->group->faults_.failure.load();
  const bool met =
      self->group->data_.Meet(self->rank, send, timeout, [&](const Hub::Posted& posted) {
        for (uint64_t i = 0; i < count; ++i) {
          uint32_t sum = 0;
          for (const void* from : posted) sum += static_cast<const uint32_t*>(from)[i];
          static_cast<uint32_t*>(receive)[i] = sum;
        }
      });
  return met ? SPARSESEL_OK : SPARSESEL_TIMEOUT;
}

CustomGroup::CustomGroup(int32_t world, const CustomOptions& options)
    : data_(world), control_(std::make_unique<Control>()) {
  for (int32_t rank = 0; rank < world; ++rank) {
    ranks_.push_back(std::make_unique<Rank>(Rank{this, rank}));
  }
  std::vector<sparsesel_comm*> comms(static_cast<size_t>(world), nullptr);
  outcomes_ = OnEveryRank(world, [&](int32_t rank, sparsesel_error* error) {
    Rank* const self = ranks_[static_cast<size_t>(rank)].get();
    sparsesel_transport transport = SPARSESEL_TRANSPORT_INIT;
    transport.context = self;
    transport.identity = "test";
    transport.all_gather = AllGather;
    if (options.all_to_all) transport.all_to_all = AllToAll;
    if (options.sums) {
      transport.sum_bf16 = SumBf16;
      transport.sum_int32 = SumInt32;
    }
    sparsesel_comm_options join = ShortLimits(options.startup_timeout, options.steady_timeout);
    join.transport = options.transport;
    join.rank = rank;
    join.world_size = world;
    join.bootstrap = {self, Start, Test, Free};
    if (options.transport == SPARSESEL_TRANSPORT_CUSTOM) join.custom = &transport;
    return sparsesel_comm_create(&join, &comms[static_cast<size_t>(rank)], error);
  });
  group_ = Group(std::move(comms));
}

CustomGroup::~CustomGroup() { group_.Release(); }

}  // namespace contract
