#include "api/handles.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace sparsesel {
namespace {

// An object that counts its own lives, and notices use after its end.
struct Counted {
  explicit Counted(std::atomic<int>* count) : alive(count) { alive->fetch_add(1); }
  ~Counted() {
    value = 0;
    alive->fetch_sub(1);
  }
  std::atomic<int>* alive;
  std::atomic<int> value{42};
};

uint64_t Make(HandleTable* table, std::shared_ptr<void> object) {
  uint32_t slot = 0;
  REQUIRE(table->Reserve(&slot).ok());
  return table->Publish(slot, std::move(object));
}

// Tables keep their chunks for good, so they are kept, too.
HandleTable* NewTable(HandleKind kind, uint32_t first_generation = 1) {
  static auto* const tables = new std::vector<std::unique_ptr<HandleTable>>;
  tables->push_back(std::make_unique<HandleTable>(kind, first_generation));
  return tables->back().get();
}

bool IsLive(HandleTable* table, uint64_t handle) {
  HandleSlot* slot = nullptr;
  if (!table->Pin(handle, &slot).ok()) return false;
  table->Unpin(slot);
  return true;
}

}  // namespace

TEST_CASE("a handle is no address that any machine maps") {
  HandleTable* table = NewTable(HandleKind::kBinding);
  for (int i = 0; i < 300; ++i) {
    const uint64_t handle = Make(table, std::make_shared<int>(i));
    const uint64_t top = handle >> 56;
    REQUIRE((top != 0 && top != 0xff));  // x86-64
    const uint64_t next = (handle >> 52) & 0xf;
    REQUIRE((next != 0 && next != 0xf));  // aarch64, where the top byte is ignored
  }
}

TEST_CASE("bug_G01: a released, copied-and-released or repeated handle is refused") {
  HandleTable* table = NewTable(HandleKind::kPlan);
  std::atomic<int> alive{0};
  const uint64_t handle = Make(table, std::make_shared<Counted>(&alive));
  const uint64_t copy = handle;
  REQUIRE(IsLive(table, handle));
  REQUIRE(table->Release(handle).ok());
  REQUIRE(alive == 0);
  const Status again = table->Release(copy);
  REQUIRE(again.code() == SPARSESEL_INVALID_ARGUMENT);
  REQUIRE(std::string(again.text()) == "this plan was released before, or never made");
  REQUIRE(!IsLive(table, copy));

  const uint64_t successor = Make(table, std::make_shared<Counted>(&alive));
  REQUIRE(successor != handle);  // the slot is the same, the generation is not
  REQUIRE((successor & 0xfffff) == (handle & 0xfffff));
  REQUIRE(!IsLive(table, handle));
  REQUIRE(table->Release(handle).code() == SPARSESEL_INVALID_ARGUMENT);
  REQUIRE(IsLive(table, successor));
  REQUIRE(table->Release(successor).ok());
}

TEST_CASE("forged handles are refused without touching memory") {
  HandleTable* table = NewTable(HandleKind::kComm);
  const uint64_t handle = Make(table, std::make_shared<int>(1));
  int local = 0;
  const std::vector<uint64_t> forged = {0,
                                        1,
                                        4096,
                                        reinterpret_cast<uint64_t>(&local),
                                        UINT64_MAX,
                                        handle + 1,                    // the next slot
                                        handle | 0xfffff,              // a chunk that is not there
                                        handle + (uint64_t{1} << 20),  // the next generation
                                        handle ^ (uint64_t{1} << 63)};
  for (const uint64_t value : forged) {
    CAPTURE(value);
    HandleSlot* slot = nullptr;
    const Status status = table->Pin(value, &slot);
    REQUIRE(status.code() == SPARSESEL_INVALID_ARGUMENT);
    REQUIRE(status.text()[0] != '\0');
    REQUIRE(slot == nullptr);
    REQUIRE(table->Release(value).code() == SPARSESEL_INVALID_ARGUMENT);
  }
  REQUIRE(IsLive(table, handle));
}

TEST_CASE("a handle of another kind is named") {
  HandleTable* plans = NewTable(HandleKind::kPlan);
  HandleTable* comms = NewTable(HandleKind::kComm);
  const uint64_t plan = Make(plans, std::make_shared<int>(1));
  HandleSlot* slot = nullptr;
  REQUIRE(std::string(comms->Pin(plan, &slot).text()) ==
          "a plan was passed where a comm is wanted");
  REQUIRE(std::string(comms->Pin(0, &slot).text()) == "comm is NULL");
}

TEST_CASE("release defers to the last pin") {
  HandleTable* table = NewTable(HandleKind::kBinding);
  std::atomic<int> alive{0};
  const uint64_t handle = Make(table, std::make_shared<Counted>(&alive));
  HandleSlot* first = nullptr;
  HandleSlot* second = nullptr;
  REQUIRE(table->Pin(handle, &first).ok());
  REQUIRE(table->Pin(handle, &second).ok());
  REQUIRE(table->Release(handle).ok());
  REQUIRE(!IsLive(table, handle));
  REQUIRE(alive == 1);
  table->Unpin(first);
  REQUIRE(alive == 1);
  table->Unpin(second);
  REQUIRE(alive == 0);
}

TEST_CASE("a slot whose generations are used up never comes back") {
  HandleTable* table = NewTable(HandleKind::kPlan, UINT32_MAX - 1);
  std::vector<uint64_t> dead;
  std::vector<uint64_t> slots;
  for (int i = 0; i < 4; ++i) {
    const uint64_t handle = Make(table, std::make_shared<int>(i));
    slots.push_back(handle & 0xfffff);
    for (const uint64_t old : dead) REQUIRE(old != handle);
    REQUIRE(table->Release(handle).ok());
    dead.push_back(handle);
  }
  REQUIRE(slots[0] == slots[1]);
  REQUIRE(slots[1] != slots[2]);
  for (const uint64_t old : dead) REQUIRE(!IsLive(table, old));
}

TEST_CASE("a reserved place is no handle until it is published") {
  HandleTable* table = NewTable(HandleKind::kReport);
  uint32_t slot = 0;
  REQUIRE(table->Reserve(&slot).ok());
  table->GiveBack(slot);
  uint32_t again = 0;
  REQUIRE(table->Reserve(&again).ok());
  REQUIRE(again == slot);
  const uint64_t handle = table->Publish(again, std::make_shared<int>(7));
  REQUIRE(IsLive(table, handle));
}

TEST_CASE("more handles than a chunk holds") {
  HandleTable* table = NewTable(HandleKind::kReport);
  std::vector<uint64_t> handles;
  for (uint32_t i = 0; i < 3 * HandleTable::kChunkSlots; ++i) {
    handles.push_back(Make(table, std::make_shared<uint32_t>(i)));
  }
  for (uint32_t i = 0; i < handles.size(); ++i) {
    HandleSlot* slot = nullptr;
    REQUIRE(table->Pin(handles[i], &slot).ok());
    REQUIRE(*static_cast<uint32_t*>(slot->object.get()) == i);
    table->Unpin(slot);
  }
}

TEST_CASE("handles under concurrent lookups, releases and makings") {
  HandleTable* table = NewTable(HandleKind::kBinding);
  constexpr int kPlaces = 8;
  constexpr int kRounds = 3000;
  std::atomic<int> alive{0};
  std::atomic<uint64_t> places[kPlaces] = {};
  std::atomic<int> wrong{0};
  std::atomic<int> released{0};
  std::atomic<int> made{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      uint32_t random = 12345u + static_cast<uint32_t>(t);
      for (int round = 0; round < kRounds; ++round) {
        random = random * 1664525u + 1013904223u;
        std::atomic<uint64_t>& place = places[(random >> 8) % kPlaces];
        const uint64_t handle = place.load();
        switch (random >> 30) {
          case 0: {  // whoever releases first wins, every other one is told
            if (handle != 0 && table->Release(handle).ok()) ++released;
            break;
          }
          case 1: {
            uint32_t slot = 0;
            if (!table->Reserve(&slot).ok()) ++wrong;
            const uint64_t fresh = table->Publish(slot, std::make_shared<Counted>(&alive));
            ++made;
            const uint64_t old = place.exchange(fresh);
            if (old != 0 && table->Release(old).ok()) ++released;
            break;
          }
          default: {
            HandleSlot* slot = nullptr;
            if (!table->Pin(handle, &slot).ok()) break;
            if (static_cast<Counted*>(slot->object.get())->value != 42) ++wrong;
            table->Unpin(slot);
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::atomic<uint64_t>& place : places) {
    if (place != 0 && table->Release(place).ok()) ++released;
  }
  REQUIRE(wrong == 0);
  REQUIRE(made == released);
  REQUIRE(alive == 0);
}

}  // namespace sparsesel
