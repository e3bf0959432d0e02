// Receiving: waiting for packets and laying out what they carry. These kernels wait for peers, so
// their grids are capped by the caller to what can be resident beside the other ranks of a device.
#include "contract/ownership.h"
#include "kernels/peer.h"
#include "kernels/peer_packet.cuh"
#include "kernels/peer_prepare.h"

namespace sparsesel::kernels {
namespace {

constexpr int kThreads = 256;

__device__ __forceinline__ bool IsActive(const PeerRows& rows, int32_t row) {
  return rows.active_rows == nullptr || row < *rows.active_rows;
}

// Block 0 waits for every peer's header of this step, which carries what ranks must agree on.
__device__ void AwaitHeaders(const PeerEnd& end, const PeerHeader& header, int64_t place,
                             uint32_t epoch, bool compare) {
  for (int32_t source = threadIdx.x; source < end.world; source += blockDim.x) {
    uint4 packet;
    if (!AwaitHeader(end, InboxHalf(end, end.rank, epoch) + place + source, epoch, source,
                     &packet)) {
      continue;
    }
    if (compare && (packet.x != header.digest || packet.z != header.rows)) {
      FailPeers(end, SPARSESEL_MISMATCH, source);
    }
  }
}

// Waits for the headers alone, with as little of the device as can be.
__global__ void AwaitKernel(const __grid_constant__ PeerEnd end, int64_t place,
                            uint32_t* status_word) {
  AwaitHeaders(end, {}, place, LoadWord(&end.state->epoch), false);
  __syncthreads();
  const uint32_t failure = Failure(end);
  if (status_word != nullptr && threadIdx.x == 0 && failure != 0) *status_word = failure;
}

struct ListLengths {
  int32_t of[kMaxPeers];
};

__global__ void __launch_bounds__(kThreads)
    CollectRecordsKernel(const __grid_constant__ PeerEnd end, PeerHeader header, PeerRows rows,
                         const __grid_constant__ ListLengths candidates, bool owned_only,
                         Record* lists, uint32_t* status_word) {
  const uint32_t epoch = LoadWord(&end.state->epoch);
  if (blockIdx.x == 0) AwaitHeaders(end, header, end.shape.header(), epoch, true);
  const uint4* const inbox = InboxHalf(end, end.rank, epoch) + end.shape.records();
  const int32_t length = end.shape.length;
  const int32_t chunks = (length + kThreads - 1) / kThreads;
  const int64_t items = int64_t{rows.rows} * end.world * chunks;
  for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const int32_t at = static_cast<int32_t>(item % chunks) * kThreads + threadIdx.x;
    const int64_t list = item / chunks;
    // Neighbouring blocks take neighbouring sources of one row: early rows complete early.
    const auto source = static_cast<int32_t>(list % end.world);
    const auto slot = static_cast<int32_t>(list / end.world);
    const int32_t row = rows.begin + slot;
    if (at >= candidates.of[source] || !IsActive(rows, row)) continue;
    if (owned_only && OwnerOfRow(rows.deal_rows, end.world, row - rows.deal_begin) != end.rank) {
      continue;
    }
    uint4 packet;
    Record record{0, -1};
    if (Failure(end) == 0 &&
        AwaitPacket(end, inbox + (int64_t{source} * end.shape.rows + slot) * length + at, epoch,
                    source, &packet)) {
      record = {packet.x, static_cast<int32_t>(packet.z)};
    }
    lists[(int64_t{source} * rows.rows + slot) * length + at] = record;
  }
  if (status_word != nullptr && blockIdx.x == 0) {
    __syncthreads();
    const uint32_t failure = Failure(end);
    if (threadIdx.x == 0 && failure != 0) *status_word = failure;
  }
}

__global__ void __launch_bounds__(kThreads)
    CollectAnswersKernel(const __grid_constant__ PeerEnd end, PeerRows rows, AnswerOutput output,
                         uint32_t* status_word) {
  const uint32_t epoch = LoadWord(&end.state->epoch);
  if (blockIdx.x == 0) AwaitHeaders(end, {}, end.shape.answer_header(), epoch, false);
  const uint4* const answers = InboxHalf(end, end.rank, epoch) + end.shape.answers();
  const int32_t pairs = (end.shape.words + 1) / 2;
  const int32_t chunks = (pairs + kThreads - 1) / kThreads;
  for (int64_t item = blockIdx.x; item < int64_t{rows.rows} * chunks; item += gridDim.x) {
    const auto slot = static_cast<int32_t>(item / chunks);
    const int32_t pair = static_cast<int32_t>(item % chunks) * kThreads + threadIdx.x;
    const int64_t row = slot;
    if (pair >= pairs) continue;
    int32_t word[2] = {-1, -1};
    const bool active = IsActive(rows, rows.begin + slot);
    if (active) {
      uint4 packet;
      const int32_t owner =
          OwnerOfRow(rows.deal_rows, end.world, rows.begin + slot - rows.deal_begin);
      if (Failure(end) == 0 &&
          AwaitPacket(end, answers + int64_t{slot} * pairs + pair, epoch, owner, &packet)) {
        word[0] = static_cast<int32_t>(packet.x);
        word[1] = static_cast<int32_t>(packet.z);
      }
    }
#pragma unroll
    for (int32_t i = 0; i < 2; ++i) {
      const int32_t at = 2 * pair + i;
      if (at < output.k) {
        output.ids[row * output.id_stride + at] = word[i];
        // Ids are a dense prefix: the one slot where they end knows the count.
        if (output.counts != nullptr && word[i] >= 0 && at == output.k - 1) {
          output.counts[row] = output.k;
        }
        if (output.counts != nullptr && word[i] < 0) {
          int32_t before = -1;
          if (at > 0) {
            uint4 packet;
            const int64_t place = int64_t{slot} * pairs + (at - 1) / 2;
            if (i == 1) {
              before = word[0];
            } else if (active && Failure(end) == 0 &&
                       AwaitPacket(end, answers + place, epoch, 0, &packet)) {
              before = static_cast<int32_t>(packet.z);
            }
          }
          if (before >= 0 || at == 0) output.counts[row] = at;
        }
      } else if (output.score_bits != nullptr && at < 2 * output.k) {
        output.score_bits[row * output.score_stride + at - output.k] =
            active ? static_cast<uint32_t>(word[i]) : kMinusInfinityBits;
      }
    }
  }
  if (status_word != nullptr && blockIdx.x == 0) {
    __syncthreads();
    const uint32_t failure = Failure(end);
    if (threadIdx.x == 0 && failure != 0) *status_word = failure;
  }
}

__global__ void __launch_bounds__(kThreads)
    EmptyOnFailureKernel(const __grid_constant__ PeerEnd end, int32_t rows, AnswerOutput output,
                         uint32_t* status_word) {
  const uint32_t failure = Failure(end);
  if (failure == 0) return;
  if (status_word != nullptr && blockIdx.x == 0 && threadIdx.x == 0) *status_word = failure;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < int64_t{rows} * output.k;
       i += int64_t{gridDim.x} * kThreads) {
    const int64_t row = i / output.k;
    const int64_t at = i % output.k;
    output.ids[row * output.id_stride + at] = -1;
    if (output.score_bits != nullptr) {
      output.score_bits[row * output.score_stride + at] = kMinusInfinityBits;
    }
    if (output.counts != nullptr && at == 0) output.counts[row] = 0;
  }
}

// Each rank greets all others and waits for their greetings: proof that all ranks' kernels run at
// once. Meeting number m is step m of an inbox of its own. A rank that has missed one comes to no
// later one.
__global__ void MeetKernel(const __grid_constant__ PeerEnd end, uint32_t meeting, uint64_t limit_ns,
                           uint32_t* met) {
  const auto peer = static_cast<int32_t>(threadIdx.x);
  bool came = LoadWord(met) == meeting - 1;
  if (came && peer < end.world) {
    const int64_t place = end.shape.header();
    StorePacket(InboxHalf(end, peer, meeting) + place + end.rank, 0, 0, meeting);
    const uint64_t begin = GlobalNanoseconds();
    while (!Arrived(LoadPacket(InboxHalf(end, end.rank, meeting) + place + peer), meeting)) {
      if (GlobalNanoseconds() - begin > limit_ns) {
        came = false;
        break;
      }
    }
  }
  if (__syncthreads_and(came) != 0 && threadIdx.x == 0) *met = meeting;
}

int32_t Grid(int64_t items, int32_t blocks) {
  return static_cast<int32_t>(items < 1 ? 1 : items < blocks ? items : blocks);
}

}  // namespace

cudaError_t LaunchCollectRecords(const PeerEnd& end, const PeerHeader& header, const PeerRows& rows,
                                 const int32_t* candidates, bool owned_only, Record* lists,
                                 uint32_t* status_word, int32_t blocks, cudaStream_t stream) {
  ListLengths lengths{};
  for (int32_t r = 0; r < end.world; ++r) lengths.of[r] = candidates[r];
  const int64_t items =
      int64_t{rows.rows} * end.world * ((end.shape.length + kThreads - 1) / kThreads);
  CollectRecordsKernel<<<Grid(items, blocks), kThreads, 0, stream>>>(
      end, header, rows, lengths, owned_only, lists, status_word);
  return cudaPeekAtLastError();
}

cudaError_t LaunchAwait(const PeerEnd& end, PeerPhase phase, uint32_t* status_word,
                        cudaStream_t stream) {
  const int64_t place =
      phase == PeerPhase::kRecords ? end.shape.header() : end.shape.answer_header();
  AwaitKernel<<<1, kMaxPeers, 0, stream>>>(end, place, status_word);
  return cudaPeekAtLastError();
}

cudaError_t LaunchCollectAnswers(const PeerEnd& end, const PeerRows& rows,
                                 const AnswerOutput& output, uint32_t* status_word, int32_t blocks,
                                 cudaStream_t stream) {
  const int64_t items =
      int64_t{rows.rows} * (((end.shape.words + 1) / 2 + kThreads - 1) / kThreads);
  CollectAnswersKernel<<<Grid(items, blocks), kThreads, 0, stream>>>(end, rows, output,
                                                                     status_word);
  return cudaPeekAtLastError();
}

cudaError_t LaunchEmptyOnFailure(const PeerEnd& end, int32_t rows, const AnswerOutput& output,
                                 uint32_t* status_word, int32_t blocks, cudaStream_t stream) {
  const int64_t items = (int64_t{rows} * output.k + kThreads - 1) / kThreads;
  EmptyOnFailureKernel<<<Grid(items, blocks), kThreads, 0, stream>>>(end, rows, output,
                                                                     status_word);
  return cudaPeekAtLastError();
}

cudaError_t PreparePeerCollect() {
  cudaFuncAttributes attributes;
  cudaError_t error = cudaSuccess;
  const auto load = [&](auto* kernel) {
    if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, kernel);
  };
  load(AwaitKernel);
  load(CollectRecordsKernel);
  load(CollectAnswersKernel);
  load(EmptyOnFailureKernel);
  load(MeetKernel);
  return error;
}

cudaError_t PeerResidentBlocks(int32_t* blocks) {
  int device = 0;
  int processors = 0;
  int records = 0;
  int answers = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  }
  if (error == cudaSuccess) {
    error =
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&records, CollectRecordsKernel, kThreads, 0);
  }
  if (error == cudaSuccess) {
    error =
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&answers, CollectAnswersKernel, kThreads, 0);
  }
  *blocks = processors * (records < answers ? records : answers);
  return error;
}

cudaError_t LaunchMeetings(const PeerEnd& end, uint64_t limit_ns, uint32_t* met,
                           cudaStream_t stream) {
  for (uint32_t meeting = 1; meeting <= kMeetings; ++meeting) {
    MeetKernel<<<1, kMaxPeers, 0, stream>>>(end, meeting, limit_ns, met);
  }
  return cudaPeekAtLastError();
}

}  // namespace sparsesel::kernels
