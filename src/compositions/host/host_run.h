// One execute of a host composition while it runs, and its steps, in the order they are taken. Each
// step is a free function on this state, in the file named after its stage.
#ifndef SPARSESEL_COMPOSITIONS_HOST_HOST_RUN_H_
#define SPARSESEL_COMPOSITIONS_HOST_HOST_RUN_H_

#include <array>
#include <cstdint>
#include <span>

#include "compositions/executor.h"
#include "compositions/host/layout.h"
#include "contract/tiling.h"

namespace sparsesel {

struct HostRun {
  const Job& job;
  const HostChoices& choices;
  const HostLayout& layout;
  const Call& call;
  const Slot& slot;
  ExecuteCounters& counters;
  std::byte* memory;
  Tiling tiling;

  // The tile at hand: owner o's rows are rows[o], in slots first[o] .. first[o + 1].
  std::array<RowRange, kMaxWorldSize> rows{};
  std::array<int32_t, kMaxWorldSize + 1> first{};
  // What the exchange brought: of each rank, [rows to select, prefix] records; and for rows that
  // had to be completed, [completed rows, rest].
  Blocks lists;
  Blocks rests;

  void EnterTile(int32_t tile);
  int32_t slots() const { return first[static_cast<size_t>(job.world)]; }
  RowRange own() const { return rows[static_cast<size_t>(job.rank)]; }
  int32_t own_first() const { return first[static_cast<size_t>(job.rank)]; }
  // Slots this rank selects: its own, or all; and where they stand in `lists`.
  int32_t selected_slots() const { return choices.owner ? own().size() : slots(); }

  const HostChannelTable& channel() const { return *slot.channel.table; }
  void* channel_self() const { return slot.channel.self.get(); }

  template <typename T>
  T* At(const Region& region) const {
    return reinterpret_cast<T*>(memory + region.offset);
  }
  std::span<std::byte> Bytes(const Region& region) const {
    return {memory + region.offset, region.size};
  }
};

// host_pack.cc: this rank's rows into the send regions.
Status PackTile(HostRun& run);

// host_exchange.cc
Status ExchangeLists(HostRun& run);
// Completes the rows whose prefix was not enough: `flagged` are this rank's findings, as indexes of
// selected slots, ascending; run.rests then has their rests in that order. In the owner composition
// a collective step even for ranks without findings.
Status ExchangeRests(HostRun& run, std::span<const int32_t> flagged);

// host_select.cc: rows into answers or outputs.
Status SelectTile(HostRun& run);

// host_replicate.cc: answers of owners into everybody's outputs.
Status ReplicateTile(HostRun& run);
Status ProveLosslessBf16(const HostLayout& layout, const Job& job, const Slot& slot,
                         int64_t deadline);

// host_output.cc
struct OutputRow {
  int32_t* ids;
  uint32_t* score_bits;  // null unless wanted
  int32_t* count;        // null unless wanted
};
OutputRow OutputOf(const HostRun& run, int32_t row);
// Whether this rank's output has the row at all.
bool Receives(const HostRun& run, int32_t row);
void WriteEmptyRow(const HostRun& run, int32_t row);
// From an answer as replicate moves it: k ids, then k score words if wanted.
void WriteAnswer(const HostRun& run, int32_t row, const int32_t* answer);

}  // namespace sparsesel

#endif  // SPARSESEL_COMPOSITIONS_HOST_HOST_RUN_H_
