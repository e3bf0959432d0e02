// The whole replicated composition in one kernel: pack, push to all ranks, wait for theirs, select.
#ifndef SPARSESEL_KERNELS_PEER_FUSED_H_
#define SPARSESEL_KERNELS_PEER_FUSED_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/peer.h"
#include "kernels/select.h"

namespace sparsesel::kernels {

struct FusedArgs {
  PeerEnd end;
  PeerHeader header;
  PeerRows rows;
  CandidateArrays input;                // this rank's
  const int32_t* candidates = nullptr;  // host: list length of each rank
  uint32_t* status_word = nullptr;      // may be null; set when the step fails
  SelectOutput output;                  // row 0 is rows.begin
  int32_t k = 0;
  // Lists are in order: end.shape.length records of each are sent first, and end.shape.kept hold
  // the longest. 0 in end.shape.kept: all are sent.
};

// How many rows a launch may have so that the blocks of `ranks` ranks on one device, all waiting
// for each other, fit on it together; 0 if the configuration does not support the shape.
cudaError_t FusedRows(const SelectDevice& device, const SelectConfig& config,
                      const SelectShape& shape, int32_t ranks, int32_t* rows);

// Call once per device before capturing.
cudaError_t PrepareFused(const SelectDevice& device);
cudaError_t LaunchFused(const SelectDevice& device, const SelectConfig& config,
                        const FusedArgs& args, cudaStream_t stream);

}  // namespace sparsesel::kernels

#endif  // SPARSESEL_KERNELS_PEER_FUSED_H_
