// Selection on the device: which kernel, and its launches.
#ifndef SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_SELECT_H_
#define SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_SELECT_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "compositions/device/device_layout.h"
#include "contract/job.h"
#include "contract/ownership.h"
#include "contract/status.h"
#include "kernels/peer.h"
#include "kernels/select.h"

namespace sparsesel {

struct DeviceSelect {
  Job job;
  DeviceLayout layout;
  kernels::SelectDevice device;
  kernels::SelectConfig config;  // cluster 0: the general variant

  // Selects rows [selected.begin, selected.end) of the step, whose lists lie in `memory`, a slot's,
  // into `output`, whose row 0 is the first of them. Scores and order by id as the job asks.
  Status Launch(std::byte* memory, const kernels::PeerRows& rows, RowRange selected,
                const kernels::AnswerOutput& output, cudaStream_t stream) const;
};

// Loads and sets up every kernel, once per device: the driver may wait for the device to be idle,
// and a peer's kernel there for this rank.
Status PrepareSelectKernels(int32_t ordinal, const kernels::SelectDevice& device);

// The default configuration, or the first that leaves room beside what waits for it; cluster 0 if
// there is none, and the general variant serves.
kernels::SelectConfig ChooseSelect(const kernels::SelectDevice& device,
                                   const kernels::SelectShape& shape, bool shared);

// A configuration of the fused kernel with which all ranks of a device, waiting for each other, fit
// on it; cluster 0 if there is none.
Status ChooseFused(const kernels::SelectDevice& device, const kernels::SelectShape& shape,
                   int32_t ranks_on_device, kernels::SelectConfig* chosen);

// Scratch that selecting and ordering by id want.
size_t SelectScratchBytes(const Job& job, const kernels::SelectDevice& device,
                          const kernels::SelectShape& shape, const kernels::SelectConfig& config);

}  // namespace sparsesel

#endif  // SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_SELECT_H_
