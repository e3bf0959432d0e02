// Handles: numbers that stand for objects, so that a released, copied or forged one is answered
// without touching the object's memory.
//
// A handle is 64 bits in the form of a pointer that no machine maps:
//
//   bits 63..56  0x5e: not canonical on x86-64 with 4 or 5 levels of pages
//   bits 55..52  the kind, 1 .. 5: not canonical on aarch64 either, where the top byte is ignored
//   bits 51..20  the generation of the slot
//   bits 19..0   the slot
//
// A slot's state is one atomic word: generation, whether its handle is live, and the number of
// pins. A lookup pins; a release makes the handle dead, and the last pin to go lets go of the
// object. Slots stand in chunks that are never freed, so that any index may be looked at at any
// time; a slot whose generations are used up is never used again.
#ifndef SPARSESEL_API_HANDLES_H_
#define SPARSESEL_API_HANDLES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

#include "comm/comm.h"
#include "contract/status.h"
#include "plan/binding.h"
#include "plan/plan.h"
#include "plan/workspace.h"
#include "race/report.h"
#include "sparsesel.h"

namespace sparsesel {

enum class HandleKind : uint32_t { kComm = 1, kPlan, kReport, kWorkspace, kBinding };
inline constexpr uint32_t kHandleKinds = 5;
const char* HandleKindName(HandleKind kind);

struct HandleSlot {
  std::atomic<uint64_t> state{0};
  std::shared_ptr<void> object;  // touched only by who made the slot live or holds a pin
  uint32_t index = 0;            // constant
  uint32_t next_free = 0;        // under the table's mutex
};

// The handles of one kind. Never destroyed: objects that are live at exit stay as they are.
class HandleTable {
 public:
  static constexpr uint32_t kChunkSlots = 256;
  static constexpr uint32_t kChunks = 4096;
  static constexpr uint32_t kNoSlot = UINT32_MAX;

  constexpr explicit HandleTable(HandleKind kind, uint32_t first_generation = 1)
      : kind_(kind), first_generation_(first_generation) {}
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;

  // Takes a slot whose handle is not live yet; to be published or given back.
  Status Reserve(uint32_t* slot);
  void GiveBack(uint32_t slot);
  // Makes the slot's handle live. Cannot fail.
  uint64_t Publish(uint32_t slot, std::shared_ptr<void> object);

  // INVALID_ARGUMENT if `handle` is not a live handle of this kind. Else `*slot` is to be unpinned.
  Status Pin(uint64_t handle, HandleSlot** slot);
  void Unpin(HandleSlot* slot);
  // Makes the handle dead; the object goes with its last pin.
  Status Release(uint64_t handle);

 private:
  HandleSlot* Find(uint64_t handle) const;
  HandleSlot* At(uint32_t slot) const;
  Status Refuse(uint64_t handle) const;
  void Recycle(HandleSlot* slot);

  const HandleKind kind_;
  const uint32_t first_generation_;
  std::atomic<HandleSlot*> chunks_[kChunks]{};
  std::mutex mutex_;  // of what follows
  uint32_t chunk_count_ = 0;
  uint32_t first_free_ = kNoSlot;
};

HandleTable& Handles(HandleKind kind);

template <typename Handle>
struct HandleTraits;
template <>
struct HandleTraits<sparsesel_comm> {
  using Object = Comm;
  static constexpr HandleKind kKind = HandleKind::kComm;
};
template <>
struct HandleTraits<sparsesel_plan> {
  using Object = Plan;
  static constexpr HandleKind kKind = HandleKind::kPlan;
};
template <>
struct HandleTraits<sparsesel_report> {
  using Object = const Report;
  static constexpr HandleKind kKind = HandleKind::kReport;
};
template <>
struct HandleTraits<sparsesel_workspace> {
  using Object = Workspace;
  static constexpr HandleKind kKind = HandleKind::kWorkspace;
};
template <>
struct HandleTraits<sparsesel_binding> {
  using Object = Binding;
  static constexpr HandleKind kKind = HandleKind::kBinding;
};

template <typename Handle>
uint64_t HandleBits(const Handle* handle) {
  static_assert(sizeof(void*) == sizeof(uint64_t));
  return reinterpret_cast<uint64_t>(handle);
}

// A live object for the duration of a call.
template <typename Handle>
class Pinned {
 public:
  using Object = typename HandleTraits<Handle>::Object;

  Pinned() = default;
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  ~Pinned() {
    if (slot_ != nullptr) Table().Unpin(slot_);
  }

  Status Take(const Handle* handle) { return Table().Pin(HandleBits(handle), &slot_); }
  Object* operator->() const { return static_cast<Object*>(slot_->object.get()); }
  std::shared_ptr<Object> share() const {
    return slot_ == nullptr ? nullptr : std::static_pointer_cast<Object>(slot_->object);
  }

 private:
  static HandleTable& Table() { return Handles(HandleTraits<Handle>::kKind); }
  HandleSlot* slot_ = nullptr;
};

// A place for a handle, taken before the object is made: once all ranks have made their objects,
// none may fail for want of a place.
template <typename Handle>
class Reserved {
 public:
  using Object = typename HandleTraits<Handle>::Object;

  Reserved() = default;
  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;
  ~Reserved() {
    if (slot_ != HandleTable::kNoSlot) Table().GiveBack(slot_);
  }

  Status Take() { return Table().Reserve(&slot_); }
  Handle* Publish(std::shared_ptr<Object> object) {
    const uint32_t slot = std::exchange(slot_, HandleTable::kNoSlot);
    auto untyped = std::const_pointer_cast<std::remove_const_t<Object>>(std::move(object));
    // A handle is a number that is never followed: nothing to optimize.
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return reinterpret_cast<Handle*>(Table().Publish(slot, std::move(untyped)));
  }

 private:
  static HandleTable& Table() { return Handles(HandleTraits<Handle>::kKind); }
  uint32_t slot_ = HandleTable::kNoSlot;
};

// What every release function does: NULL is nothing to do.
template <typename Handle>
Status ReleaseHandle(const Handle* handle) {
  if (handle == nullptr) return {};
  return Handles(HandleTraits<Handle>::kKind).Release(HandleBits(handle));
}

}  // namespace sparsesel

#endif  // SPARSESEL_API_HANDLES_H_
