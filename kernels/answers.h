// Answers, as they have come from their owners, into the caller's outputs.
#ifndef SPARSESEL_KERNELS_ANSWERS_H_
#define SPARSESEL_KERNELS_ANSWERS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/peer.h"

namespace sparsesel::kernels {

// The answers of `rows` rows, dealt to `world` owners. An answer is `words` words: k ids, of which
// the present ones come first, then k scores if wanted.
struct Answers {
  const void* data = nullptr;
  bool floats = false;  // each word is four bytes as bfloat16, see kernels/byte_floats.h
  int32_t words = 0;
  int32_t rows = 0;
  int32_t world = 1;
  // Answers from the first row of an owner to that of the next; 0: rows stand one after another.
  int32_t block = 0;
};

// Row 0 of `output` is the first row. A word that is no byte, of floats, sets *status_word, which
// may be null, to INTERNAL.
cudaError_t LaunchWriteAnswers(const Answers& answers, const AnswerOutput& output,
                               uint32_t* status_word, cudaStream_t stream);

// Loads the kernels on the current device.
cudaError_t PrepareAnswers();

}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_ANSWERS_H_
