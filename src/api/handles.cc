#include "api/handles.h"

#include <new>

namespace sparsesel {
namespace {

constexpr uint64_t kTag = 0x5e;
constexpr int kTagShift = 56;
constexpr int kKindShift = 52;
constexpr int kGenerationShift = 20;
constexpr uint64_t kSlotMask = (uint64_t{1} << kGenerationShift) - 1;
static_assert(uint64_t{HandleTable::kChunkSlots} * HandleTable::kChunks == kSlotMask + 1);

constexpr uint64_t kLive = uint64_t{1} << 31;
constexpr uint64_t kPinMask = kLive - 1;

constexpr uint64_t StateOf(uint32_t generation) { return uint64_t{generation} << 32; }
constexpr uint32_t GenerationOf(uint64_t state) { return static_cast<uint32_t>(state >> 32); }

constexpr uint32_t HandleGeneration(uint64_t handle) {
  return static_cast<uint32_t>(handle >> kGenerationShift);
}
constexpr uint32_t HandleKindBits(uint64_t handle) { return (handle >> kKindShift) & 0xf; }

// Static and without destructors, so that nothing happens at exit.
constinit HandleTable tables[kHandleKinds] = {
    HandleTable(HandleKind::kComm), HandleTable(HandleKind::kPlan),
    HandleTable(HandleKind::kReport), HandleTable(HandleKind::kWorkspace),
    HandleTable(HandleKind::kBinding)};
static_assert(std::is_trivially_destructible_v<HandleTable>);

}  // namespace

const char* HandleKindName(HandleKind kind) {
  constexpr const char* kNames[kHandleKinds] = {"comm", "plan", "report", "workspace", "binding"};
  return kNames[static_cast<uint32_t>(kind) - 1];
}

HandleTable& Handles(HandleKind kind) { return tables[static_cast<uint32_t>(kind) - 1]; }

HandleSlot* HandleTable::At(uint32_t slot) const {
  HandleSlot* chunk = chunks_[slot / kChunkSlots].load(std::memory_order_acquire);
  return chunk == nullptr ? nullptr : chunk + slot % kChunkSlots;
}

HandleSlot* HandleTable::Find(uint64_t handle) const {
  if (handle >> kTagShift != kTag || HandleKindBits(handle) != static_cast<uint32_t>(kind_)) {
    return nullptr;
  }
  return At(static_cast<uint32_t>(handle & kSlotMask));
}

Status HandleTable::Refuse(uint64_t handle) const {
  const char* wanted = HandleKindName(kind_);
  if (handle == 0) return Status::Error(SPARSESEL_INVALID_ARGUMENT, "%s is NULL", wanted);
  const uint32_t kind = HandleKindBits(handle);
  if (handle >> kTagShift != kTag || kind < 1 || kind > kHandleKinds) {
    return Status::Error(SPARSESEL_INVALID_ARGUMENT, "%s is %#x, which is no handle", wanted,
                         handle);
  }
  if (kind != static_cast<uint32_t>(kind_)) {
    return Status::Error(SPARSESEL_INVALID_ARGUMENT, "a %s was passed where a %s is wanted",
                         HandleKindName(HandleKind{kind}), wanted);
  }
  return Status::Error(SPARSESEL_INVALID_ARGUMENT, "this %s was released before, or never made",
                       wanted);
}

Status HandleTable::Reserve(uint32_t* slot) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (first_free_ == kNoSlot) {
    if (chunk_count_ == kChunks) {
      return Status::Error(SPARSESEL_OUT_OF_MEMORY, "there are too many live handles: %d",
                           kChunks * kChunkSlots);
    }
    auto* chunk = new (std::nothrow) HandleSlot[kChunkSlots];
    if (chunk == nullptr) {
      return Status::Error(SPARSESEL_OUT_OF_MEMORY, "no memory for %d handles", kChunkSlots);
    }
    const uint32_t first = chunk_count_ * kChunkSlots;
    for (uint32_t i = 0; i < kChunkSlots; ++i) {
      chunk[i].state.store(StateOf(first_generation_), std::memory_order_relaxed);
      chunk[i].index = first + i;
      chunk[i].next_free = i + 1 < kChunkSlots ? first + i + 1 : kNoSlot;
    }
    chunks_[chunk_count_++].store(chunk, std::memory_order_release);
    first_free_ = first;
  }
  *slot = first_free_;
  first_free_ = At(*slot)->next_free;
  return {};
}

void HandleTable::GiveBack(uint32_t slot) {
  const std::lock_guard<std::mutex> lock(mutex_);
  At(slot)->next_free = std::exchange(first_free_, slot);
}

uint64_t HandleTable::Publish(uint32_t slot, std::shared_ptr<void> object) {
  HandleSlot& place = *At(slot);
  place.object = std::move(object);
  const uint64_t state = place.state.load(std::memory_order_relaxed);
  place.state.store(state | kLive, std::memory_order_release);
  return kTag << kTagShift | uint64_t{static_cast<uint32_t>(kind_)} << kKindShift |
         uint64_t{GenerationOf(state)} << kGenerationShift | slot;
}

Status HandleTable::Pin(uint64_t handle, HandleSlot** slot) {
  *slot = nullptr;
  HandleSlot* place = Find(handle);
  if (place == nullptr) return Refuse(handle);
  uint64_t state = place->state.load(std::memory_order_relaxed);
  do {
    if (GenerationOf(state) != HandleGeneration(handle) || (state & kLive) == 0) {
      return Refuse(handle);
    }
  } while (!place->state.compare_exchange_weak(state, state + 1, std::memory_order_acquire,
                                               std::memory_order_relaxed));
  *slot = place;
  return {};
}

void HandleTable::Unpin(HandleSlot* slot) {
  const uint64_t before = slot->state.fetch_sub(1, std::memory_order_acq_rel);
  if ((before & kLive) == 0 && (before & kPinMask) == 1) Recycle(slot);
}

Status HandleTable::Release(uint64_t handle) {
  HandleSlot* place = Find(handle);
  if (place == nullptr) return Refuse(handle);
  uint64_t state = place->state.load(std::memory_order_relaxed);
  do {
    if (GenerationOf(state) != HandleGeneration(handle) || (state & kLive) == 0) {
      return Refuse(handle);
    }
    // In one step dead and pinned by this call, so that exactly one Unpin is the last.
  } while (!place->state.compare_exchange_weak(
      state, (state & ~kLive) + 1, std::memory_order_acquire, std::memory_order_relaxed));
  Unpin(place);
  return {};
}

void HandleTable::Recycle(HandleSlot* slot) {
  const std::shared_ptr<void> object = std::move(slot->object);
  const uint32_t generation = GenerationOf(slot->state.load(std::memory_order_relaxed));
  if (generation == UINT32_MAX) return;  // a next one would bring old handles back to life
  slot->state.store(StateOf(generation + 1), std::memory_order_release);
  GiveBack(slot->index);
  // The object goes here, when nothing is locked: its destructor may wait for peers.
}

}  // namespace sparsesel
