#include <algorithm>
#include <span>

#include "compositions/host/host_run.h"
#include "stages/host/byte_floats.h"

namespace sparsesel {
namespace {

Status AllGatherAnswers(HostRun& run) {
  const auto words = static_cast<size_t>(run.layout.answer_words);
  // Owner 0 has the longest block; shorter ones send the rest of their region along.
  const size_t bytes = static_cast<size_t>(run.rows[0].size()) * words * sizeof(int32_t);
  Blocks answers;
  SPARSESEL_RETURN_IF_ERROR(
      run.channel().all_gather(run.channel_self(), run.At<std::byte>(run.layout.answers), bytes,
                               run.At<std::byte>(run.layout.receive), &answers));
  for (size_t owner = 0; owner < static_cast<size_t>(run.job.world); ++owner) {
    const auto* answer = reinterpret_cast<const int32_t*>(answers.from[owner]);
    for (int32_t row = run.rows[owner].begin; row < run.rows[owner].end; ++row, answer += words) {
      WriteAnswer(run, row, answer);
    }
  }
  return {};
}

// Reductions always move the whole region, so that every message has the size that was proven.
// Rows of other owners, and slots without a row, are zero.
template <typename Element, typename Encode>
Element* Contribute(HostRun& run, int64_t per_row, Encode encode) {
  auto* const send = run.At<Element>(run.layout.replicate_send);
  const int64_t own_first = run.own_first();
  const int64_t own_end = own_first + run.own().size();
  std::fill_n(send, own_first * per_row, Element{0});
  for (int64_t slot = own_first; slot < own_end; ++slot) {
    encode(run.At<int32_t>(run.layout.answers) + (slot - own_first) * run.layout.answer_words,
           send + slot * per_row);
  }
  std::fill_n(send + own_end * per_row, (run.layout.slots - own_end) * per_row, Element{0});
  return send;
}

template <typename Write>
Status ForEachRow(const HostRun& run, Write write) {
  int64_t slot = 0;
  for (size_t owner = 0; owner < static_cast<size_t>(run.job.world); ++owner) {
    for (int32_t row = run.rows[owner].begin; row < run.rows[owner].end; ++row, ++slot) {
      SPARSESEL_RETURN_IF_ERROR(write(row, slot));
    }
  }
  return {};
}

Status SumInt32(HostRun& run) {
  const int64_t words = run.layout.answer_words;
  const int32_t* const send = Contribute<int32_t>(
      run, words, [words](const int32_t* answer, int32_t* to) { std::copy_n(answer, words, to); });
  auto* const sums = run.At<int32_t>(run.layout.replicate_receive);
  SPARSESEL_RETURN_IF_ERROR(run.channel().sum_int32(
      run.channel_self(), send, sums, static_cast<uint64_t>(run.layout.slots * words)));
  return ForEachRow(run, [&](int32_t row, int64_t slot) {
    WriteAnswer(run, row, sums + slot * words);
    return Status();
  });
}

Status SumBf16(HostRun& run) {
  const int64_t words = run.layout.answer_words;
  const int64_t per_row = 4 * words;
  const uint16_t* const send =
      Contribute<uint16_t>(run, per_row, [words](const int32_t* answer, uint16_t* to) {
        EncodeBytes({answer, static_cast<size_t>(words)}, to);
      });
  auto* const sums = run.At<uint16_t>(run.layout.replicate_receive);
  SPARSESEL_RETURN_IF_ERROR(run.channel().sum_bf16(
      run.channel_self(), send, sums, static_cast<uint64_t>(run.layout.slots * per_row)));
  auto* const answer = run.At<int32_t>(run.layout.row_answer);
  return ForEachRow(run, [&](int32_t row, int64_t slot) {
    SPARSESEL_RETURN_IF_ERROR(
        DecodeBytes({sums + slot * per_row, static_cast<size_t>(per_row)}, answer));
    WriteAnswer(run, row, answer);
    return Status();
  });
}

}  // namespace

Status ReplicateTile(HostRun& run) {
  switch (run.choices.replicate) {
    case HostChoices::Replicate::kAllGather:
      return AllGatherAnswers(run);
    case HostChoices::Replicate::kInt32Sum:
      return SumInt32(run);
    case HostChoices::Replicate::kBf16:
      return SumBf16(run);
    case HostChoices::Replicate::kNone:
      break;
  }
  return {};
}

Status ProveLosslessBf16(const HostLayout& layout, const Job& job, const Slot& slot,
                         int64_t deadline) {
  const HostChannelTable& channel = *slot.channel.table;
  void* const self = slot.channel.self.get();
  const auto world = static_cast<uint64_t>(job.world);
  const auto count = static_cast<uint64_t>(layout.slots) * layout.answer_words * 4;
  auto* const send =
      reinterpret_cast<uint16_t*>(slot.memory->data() + layout.replicate_send.offset);
  auto* const sums =
      reinterpret_cast<uint16_t*>(slot.memory->data() + layout.replicate_receive.offset);
  // Element e, counted over all messages, is byte (e / world) % 256 of owner e % world: after
  // 256 * world elements every owner has pushed every byte.
  bool lossless = true;
  for (uint64_t base = 0; base < 256 * world; base += count) {
    channel.begin(self, CallMessage{}, deadline);
    SPARSESEL_RETURN_IF_ERROR(channel.drain(self));
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t e = base + i;
      const bool mine = e % world == static_cast<uint64_t>(job.rank);
      send[i] = mine ? ByteToBf16(static_cast<uint8_t>(e / world)) : uint16_t{0};
    }
    SPARSESEL_RETURN_IF_ERROR(channel.sum_bf16(self, send, sums, count));
    for (uint64_t i = 0; i < count; ++i) {
      lossless = lossless && sums[i] == ByteToBf16(static_cast<uint8_t>((base + i) / world));
    }
  }
  if (!lossless) {
    return Status::Error(SPARSESEL_WRONG_RESULT,
                         "the transport's bf16 sum changes bytes in messages of %d elements", count)
        .WithRank(job.rank);
  }
  return {};
}

}  // namespace sparsesel
