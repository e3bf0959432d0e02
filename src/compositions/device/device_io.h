// From one call's arrays to what kernels are given, tile by tile; the same for every transport.
#ifndef SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_IO_H_
#define SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_IO_H_

#include <cuda_runtime_api.h>

#include "contract/job.h"
#include "contract/ownership.h"
#include "contract/status.h"
#include "kernels/candidates.h"
#include "kernels/peer.h"
#include "sparsesel.h"

namespace sparsesel {

Status RefuseLegacyStream(cudaStream_t stream);

kernels::CandidateArrays InputOf(const Problem& problem, const sparsesel_io& io);

// The outputs, of which `row` is the first to be written.
kernels::AnswerOutput OutputOf(const Problem& problem, const sparsesel_io& io, int64_t row);

// The tile that begins with row `begin` and has up to `step` rows.
kernels::PeerRows TileRows(const Job& job, const sparsesel_io& io, int32_t begin, int32_t step);

// The rows of a tile that `owner` owns, counted from the tile's first; may be empty.
RowRange RowsOfOwner(const Job& job, const kernels::PeerRows& rows, int32_t owner);

// Where in the outputs the first of the `selected` rows of a tile stands: with owned-rows output,
// where it stands among this rank's.
int64_t OutputRow(const Job& job, const kernels::PeerRows& rows, RowRange selected);

}  // namespace sparsesel

#endif  // SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_IO_H_
