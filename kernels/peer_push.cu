// Sending: records to all ranks or to owners, answers to all ranks.
#include "contract/ownership.h"
#include "kernels/candidates.cuh"
#include "kernels/peer.h"
#include "kernels/peer_packet.cuh"
#include "kernels/peer_prepare.h"

namespace sparsesel::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kChunk = kThreads;  // records of one list that a block sends at a time

__device__ __forceinline__ bool IsActive(const PeerRows& rows, int32_t row) {
  return rows.active_rows == nullptr || row < *rows.active_rows;
}

__device__ __forceinline__ void SendHeaders(const PeerEnd& end, int64_t place,
                                            const PeerHeader& header, uint32_t epoch) {
  for (int32_t peer = threadIdx.x; peer < end.world; peer += kThreads) {
    StorePacket(InboxHalf(end, peer, epoch) + place + end.rank, header.digest, header.rows, epoch);
  }
}

// Whether this block is the last of its launch to come here; all that the others have stored is
// then visible to whoever sees what this one stores.
__device__ bool IsLastBlock(PeerState* own) {
  __shared__ bool last;
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(&own->blocks_done, 1u) + 1 == gridDim.x;
    if (last) own->blocks_done = 0;
    __threadfence_system();
  }
  __syncthreads();
  return last;
}

__global__ void __launch_bounds__(kThreads)
    PushRecordsKernel(const __grid_constant__ PeerEnd end, PeerHeader header, PeerRows rows,
                      const __grid_constant__ CandidateArrays input, bool to_owner,
                      bool headers_last, uint32_t* status_word) {
  PeerState* const own = end.state;
  const uint32_t epoch = NextEpoch(LoadWord(&own->epoch));
  const int64_t list = int64_t{end.rank} * end.shape.rows * end.shape.length;

  if (blockIdx.x == 0 && !headers_last) SendHeaders(end, end.shape.header(), header, epoch);
  const int32_t chunks = (input.candidates + kChunk - 1) / kChunk;
  const int64_t items = int64_t{rows.rows} * chunks;
  for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const auto slot = static_cast<int32_t>(item / chunks);
    const int32_t row = rows.begin + slot;
    const int32_t at = static_cast<int32_t>(item % chunks) * kChunk + threadIdx.x;
    if (!IsActive(rows, row)) continue;
    if (at >= input.candidates) continue;
    bool bad = false;
    const Record record =
        at < PresentCount(input, row) ? PackCandidate(input, row, at, &bad) : Record{0, -1};
    if (bad && status_word != nullptr) *status_word = SPARSESEL_INVALID_ARGUMENT;
    const int64_t place = end.shape.records() + list + int64_t{slot} * end.shape.length + at;
    const auto bits = static_cast<uint32_t>(record.id);
    if (to_owner) {
      const int32_t owner = OwnerOfRow(rows.deal_rows, end.world, row - rows.deal_begin);
      StorePacket(InboxHalf(end, owner, epoch) + place, record.score_bits, bits, epoch);
    } else {
      // Begin with oneself and go round, so that ranks do not all store to the same one at once.
      for (int32_t i = 0, peer = end.rank; i < end.world; ++i) {
        StorePacket(InboxHalf(end, peer, epoch) + place, record.score_bits, bits, epoch);
        peer = peer + 1 == end.world ? 0 : peer + 1;
      }
    }
  }
  // The last block to finish begins the epoch for the kernels that follow in the stream.
  if (!IsLastBlock(own)) return;
  if (headers_last) SendHeaders(end, end.shape.header(), header, epoch);
  if (threadIdx.x != 0) return;
  own->epoch = epoch;
  CountStep(end, rows);
}

__global__ void __launch_bounds__(kThreads)
    PushAnswersKernel(const __grid_constant__ PeerEnd end, PeerRows rows, const int32_t* answers,
                      bool headers_last) {
  PeerState* const own = end.state;
  const uint32_t epoch = LoadWord(&own->epoch);
  if (Failure(end) != 0) return;  // what it would send may be wrong
  if (blockIdx.x == 0 && !headers_last) SendHeaders(end, end.shape.answer_header(), {}, epoch);
  const int32_t pairs = (end.shape.words + 1) / 2;
  const int32_t chunks = (pairs + kChunk - 1) / kChunk;
  const int64_t items = int64_t{rows.rows} * chunks;
  for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    const auto slot = static_cast<int32_t>(item / chunks);
    const int32_t row = rows.begin + slot;
    const int32_t pair = static_cast<int32_t>(item % chunks) * kChunk + threadIdx.x;
    if (pair >= pairs || !IsActive(rows, row) ||
        OwnerOfRow(rows.deal_rows, end.world, row - rows.deal_begin) != end.rank) {
      continue;
    }
    const int32_t* const answer = answers + int64_t{slot} * end.shape.words + 2 * pair;
    const uint32_t second = 2 * pair + 1 < end.shape.words ? answer[1] : 0;
    const int64_t place = end.shape.answers() + int64_t{slot} * pairs + pair;
    for (int32_t i = 0, peer = end.rank; i < end.world; ++i) {
      StorePacket(InboxHalf(end, peer, epoch) + place, answer[0], second, epoch);
      peer = peer + 1 == end.world ? 0 : peer + 1;
    }
  }
  if (headers_last && IsLastBlock(own)) SendHeaders(end, end.shape.answer_header(), {}, epoch);
}

int32_t Grid(int64_t items, int32_t blocks) {
  return static_cast<int32_t>(items < 1 ? 1 : items < blocks ? items : blocks);
}

}  // namespace

cudaError_t LaunchPushRecords(const PeerEnd& end, const PeerHeader& header, const PeerRows& rows,
                              const CandidateArrays& input, bool to_owner, bool headers_last,
                              uint32_t* status_word, int32_t blocks, cudaStream_t stream) {
  const int64_t items = int64_t{rows.rows} * ((input.candidates + kChunk - 1) / kChunk);
  PushRecordsKernel<<<Grid(items, blocks), kThreads, 0, stream>>>(
      end, header, rows, input, to_owner, headers_last, status_word);
  return cudaPeekAtLastError();
}

cudaError_t PreparePeer() {
  cudaFuncAttributes attributes;
  cudaError_t error = cudaFuncGetAttributes(&attributes, PushRecordsKernel);
  if (error == cudaSuccess) error = cudaFuncGetAttributes(&attributes, PushAnswersKernel);
  return error == cudaSuccess ? PreparePeerCollect() : error;
}

cudaError_t LaunchPushAnswers(const PeerEnd& end, const PeerRows& rows, const int32_t* answers,
                              bool headers_last, int32_t blocks, cudaStream_t stream) {
  const int64_t items = int64_t{rows.rows} * (((end.shape.words + 1) / 2 + kChunk - 1) / kChunk);
  PushAnswersKernel<<<Grid(items, blocks), kThreads, 0, stream>>>(end, rows, answers, headers_last);
  return cudaPeekAtLastError();
}

}  // namespace sparsesel::kernels
