#include <algorithm>
#include <array>
#include <cstring>

#include "compositions/host/host_run.h"

namespace sparsesel {
namespace {

// Sends `per_row` bytes for each of counts[o] rows to each owner o, from a region in which owners
// follow each other; receives counts[own] rows from every rank.
Status ToOwners(HostRun& run, std::span<const int32_t> counts, size_t per_row, const Region& send,
                const Region& receive, Blocks* blocks) {
  const auto world = static_cast<size_t>(run.job.world);
  const size_t own = static_cast<size_t>(counts[static_cast<size_t>(run.job.rank)]) * per_row;
  std::array<uint64_t, kMaxWorldSize> send_bytes{};
  std::array<uint64_t, kMaxWorldSize> send_offsets{};
  std::array<uint64_t, kMaxWorldSize> receive_bytes{};
  std::array<uint64_t, kMaxWorldSize> receive_offsets{};
  uint64_t offset = 0;
  for (size_t r = 0; r < world; ++r) {
    send_bytes[r] = static_cast<uint64_t>(counts[r]) * per_row;
    send_offsets[r] = offset;
    offset += send_bytes[r];
    receive_bytes[r] = own;
    receive_offsets[r] = r * own;
  }
  return run.channel().all_to_all(run.channel_self(), run.At<std::byte>(send), send_bytes.data(),
                                  send_offsets.data(), run.At<std::byte>(receive),
                                  receive_bytes.data(), receive_offsets.data(), blocks);
}

// Moves the rests of the given slots, ascending, to the front of the region.
void GatherRests(HostRun& run, std::span<const int32_t> slots) {
  Record* const rests = run.At<Record>(run.layout.send_rest);
  const int64_t rest = run.choices.rest;
  for (size_t i = 0; i < slots.size(); ++i) {
    const auto to = static_cast<int64_t>(i);
    if (slots[i] == to) continue;
    std::memmove(rests + to * rest, rests + slots[i] * rest,
                 static_cast<size_t>(rest) * sizeof(Record));
  }
}

}  // namespace

Status ExchangeLists(HostRun& run) {
  const size_t per_row = static_cast<size_t>(run.choices.prefix) * sizeof(Record);
  if (!run.choices.owner) {
    return run.channel().all_gather(run.channel_self(), run.At<std::byte>(run.layout.send),
                                    static_cast<size_t>(run.slots()) * per_row,
                                    run.At<std::byte>(run.layout.receive), &run.lists);
  }
  std::array<int32_t, kMaxWorldSize> counts{};
  for (size_t r = 0; r < static_cast<size_t>(run.job.world); ++r) counts[r] = run.rows[r].size();
  return ToOwners(run, counts, per_row, run.layout.send, run.layout.receive, &run.lists);
}

Status ExchangeRests(HostRun& run, std::span<const int32_t> flagged) {
  const size_t per_row = static_cast<size_t>(run.choices.rest) * sizeof(Record);
  if (!run.choices.owner) {
    // Every rank judged the same bytes, so all know the same rows.
    if (flagged.empty()) return {};
    GatherRests(run, flagged);
    return run.channel().all_gather(run.channel_self(), run.At<std::byte>(run.layout.send_rest),
                                    flagged.size() * per_row,
                                    run.At<std::byte>(run.layout.receive_rest), &run.rests);
  }

  // The owner alone knows: one bit per row tells the senders.
  const size_t bit_bytes = (static_cast<size_t>(run.layout.step) + 7) / 8;
  auto* const bits = run.At<uint8_t>(run.layout.row_bits);
  std::fill_n(bits, bit_bytes, uint8_t{0});
  for (const int32_t row : flagged) {
    bits[row / 8] = static_cast<uint8_t>(bits[row / 8] | (1u << (row % 8)));
  }
  Blocks answers;
  SPARSESEL_RETURN_IF_ERROR(run.channel().all_gather(
      run.channel_self(), reinterpret_cast<const std::byte*>(bits), bit_bytes,
      run.At<std::byte>(run.layout.row_bits_receive), &answers));
  auto* const slots = run.At<int32_t>(run.layout.wanted);
  std::array<int32_t, kMaxWorldSize> counts{};
  size_t wanted = 0;
  for (size_t owner = 0; owner < static_cast<size_t>(run.job.world); ++owner) {
    const auto* const theirs = reinterpret_cast<const uint8_t*>(answers.from[owner]);
    for (int32_t row = 0; row < run.rows[owner].size(); ++row) {
      if ((theirs[row / 8] >> (row % 8) & 1) == 0) continue;
      slots[wanted++] = run.first[owner] + row;
      ++counts[owner];
    }
  }
  if (wanted == 0) return {};
  GatherRests(run, {slots, wanted});
  return ToOwners(run, counts, per_row, run.layout.send_rest, run.layout.receive_rest, &run.rests);
}

}  // namespace sparsesel
