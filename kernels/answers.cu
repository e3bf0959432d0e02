#include <cuda_runtime.h>

#include <algorithm>

#include "contract/ownership.h"
#include "kernels/answers.h"
#include "kernels/byte_floats.cuh"
#include "sparsesel.h"

namespace sparsesel::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 1 << 14;

__device__ __forceinline__ int64_t PlaceOf(const Answers& answers, int32_t row) {
  if (answers.block == 0) return row;
  const int32_t owner = OwnerOfRow(answers.rows, answers.world, row);
  const int32_t first = OwnedRows(answers.rows, answers.world, owner).begin;
  return int64_t{owner} * answers.block + (row - first);
}

__device__ __forceinline__ int32_t WordAt(const Answers& answers, int64_t at, bool* bad) {
  if (!answers.floats) return static_cast<const int32_t*>(answers.data)[at];
  return static_cast<int32_t>(DecodeWord(static_cast<const uint2*>(answers.data)[at], bad));
}

__global__ void __launch_bounds__(kThreads)
    WriteAnswersKernel(const Answers answers, const AnswerOutput output, uint32_t* status_word) {
  const int32_t chunks = (answers.words + kThreads - 1) / kThreads;
  bool bad = false;
  for (int64_t item = blockIdx.x; item < int64_t{answers.rows} * chunks; item += gridDim.x) {
    const auto row = static_cast<int32_t>(item / chunks);
    const int32_t at = static_cast<int32_t>(item % chunks) * kThreads + threadIdx.x;
    if (at >= answers.words) continue;
    const int64_t base = PlaceOf(answers, row) * answers.words;
    const int32_t word = WordAt(answers, base + at, &bad);
    if (at >= output.k) {
      if (output.score_bits != nullptr) {
        output.score_bits[row * output.score_stride + at - output.k] = static_cast<uint32_t>(word);
      }
      continue;
    }
    output.ids[row * output.id_stride + at] = word;
    if (output.counts == nullptr) continue;
    // Ids are a dense prefix: the one slot where they end knows the count.
    if (word < 0) {
      if (at == 0) output.counts[row] = 0;
    } else if (at == output.k - 1 || WordAt(answers, base + at + 1, &bad) < 0) {
      output.counts[row] = at + 1;
    }
  }
  if (bad && status_word != nullptr) *status_word = SPARSESEL_INTERNAL;
}

}  // namespace

cudaError_t LaunchWriteAnswers(const Answers& answers, const AnswerOutput& output,
                               uint32_t* status_word, cudaStream_t stream) {
  if (answers.rows <= 0 || answers.words <= 0) return cudaSuccess;
  const int64_t items = int64_t{answers.rows} * ((answers.words + kThreads - 1) / kThreads);
  WriteAnswersKernel<<<static_cast<unsigned>(std::min(items, kMaxBlocks)), kThreads, 0, stream>>>(
      answers, output, status_word);
  return cudaPeekAtLastError();
}

cudaError_t PrepareAnswers() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, WriteAnswersKernel);
}

}  // namespace sparsesel::kernels
