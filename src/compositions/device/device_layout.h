// Where a device composition keeps what, and how many rows it handles at once.
#ifndef SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_LAYOUT_H_
#define SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_LAYOUT_H_

#include <cstddef>
#include <cstdint>

#include "contract/job.h"
#include "contract/status.h"
#include "kernels/peer.h"

namespace sparsesel {

// What a composition keeps besides lists.
struct DeviceParts {
  bool inbox = false;          // peers store into this rank's memory
  int32_t prefix = 0;          // records of each list that are sent there first, 0 for all
  bool answers = false;        // owners send what they selected
  bool answer_blocks = false;  // which has room for a block of the longest owner's size from each
  bool byte_floats = false;    // and is encoded as bfloat16
  size_t scratch_bytes = 0;    // of select's general variant, or of ordering by id
};

struct DeviceLayout {
  int32_t step = 1;          // rows of one tile
  int32_t answer_words = 0;  // of a row: k ids, then k scores if wanted
  // Offsets in the workspace.
  size_t lists = 0;     // [world, step, longest] records
  size_t answers = 0;   // [step, answer_words], or [world, block, answer_words]
  size_t floats = 0;    // [step, answer_words, 4] bfloat16
  size_t keys = 0;      // [step, k], for restoring scores
  size_t sources = 0;   // [step, k], for ordering by id what shows its scores
  size_t selected = 0;  // [step]
  size_t scratch = 0;   // of select's general variant, or of ordering by id
  size_t scratch_bytes = 0;
  size_t total = 0;
  size_t peer_visible = 0;
  kernels::PeerInboxShape inbox;
};

// The layout with the most rows a step, at most `capacity`, that fits the job's memory limit.
// UNSUPPORTED if not even one row fits.
Status FitDeviceLayout(const Job& job, int32_t capacity, const DeviceParts& parts,
                       DeviceLayout* layout);

}  // namespace sparsesel

#endif  // SPARSESEL_COMPOSITIONS_DEVICE_DEVICE_LAYOUT_H_
