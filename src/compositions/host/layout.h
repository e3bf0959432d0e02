// Where a host composition keeps what in its workspace.
#ifndef SPARSESEL_COMPOSITIONS_HOST_LAYOUT_H_
#define SPARSESEL_COMPOSITIONS_HOST_LAYOUT_H_

#include <cstddef>
#include <cstdint>

#include "compositions/composition.h"
#include "contract/job.h"
#include "stages/host/select.h"

namespace sparsesel {

// The variants of a host composition, taken apart once.
struct HostChoices {
  bool owner = false;
  bool sorts = false;    // pack sorts each list, or its top
  int32_t prefix = 0;    // records sent of each list at first
  int32_t rest = 0;      // records that may have to follow
  int32_t pack_top = 0;  // places that pack brings into order
  const HostSelectVariant* select = nullptr;
  const HostSelectVariant* refetch_select = nullptr;  // for rows whose prefix was not enough
  enum class Replicate { kNone, kAllGather, kBf16, kInt32Sum } replicate = Replicate::kNone;
};
HostChoices ChooseHost(const Job& job, const Composition& composition);

struct Region {
  size_t offset = 0;
  size_t size = 0;
};

// All sizes are those of the largest tile: up to `step` rows of each owner, `slots` in all. Sizes
// do not depend on the rank, so that all ranks cut the same tiles.
struct HostLayout {
  int32_t step = 1;
  int32_t slots = 1;
  int32_t answer_words = 0;  // int32 words that replicate moves per row
  Region send;               // [slots, prefix] records
  Region send_rest;          // [slots, rest] records
  Region receive;            // from every rank, unless the channel reads peers directly
  Region receive_rest;
  Region answers;         // owner: [step, answer_words], what replicate sends
  Region replicate_send;  // reductions: [slots, answer_words], int32 or 4 bf16 each
  Region replicate_receive;
  Region row_bits;  // owner, prefix: one bit per owned row, own then received
  Region row_bits_receive;
  Region flagged;  // [slots] int32: selected slots whose prefix was not enough
  Region wanted;   // owner, prefix: [slots] int32: those of all owners
  Region row;      // one unsorted list, before it is split into prefix and rest
  Region sort_scratch;
  Region keys;  // [k] keys
  Region select_scratch;
  Region restore_scratch;
  Region row_answer;  // [answer_words] of one row
  size_t total = 0;
  size_t peer_visible = 0;
};

HostLayout LayOutHost(const Job& job, int32_t capacity, int32_t step, const HostChoices& choices,
                      bool reads_peers_directly);

// The layout with the largest step that fits the memory limit of the job. UNSUPPORTED if not even
// one row per owner fits.
Status FitHost(const Job& job, int32_t capacity, const HostChoices& choices,
               bool reads_peers_directly, HostLayout* layout);

}  // namespace sparsesel

#endif  // SPARSESEL_COMPOSITIONS_HOST_LAYOUT_H_
