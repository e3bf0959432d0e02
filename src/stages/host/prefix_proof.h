// Whether the first records of sorted lists were enough to select from.
#ifndef SPARSESEL_STAGES_HOST_PREFIX_PROOF_H_
#define SPARSESEL_STAGES_HOST_PREFIX_PROOF_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "contract/order.h"
#include "stages/host/select.h"

namespace sparsesel {

// `prefixes` are the first records of each rank's list, in descending key order with absences last;
// cut[r] says that list r goes on after them. `selected` are the keys selected from the prefixes,
// at most k, descending. True iff the complete lists must give the same.
//
// What was not sent of a list is at or below its last record that was. So it cannot matter if that
// record is below the last selected key, or equal to it: equal keys are interchangeable. But where
// the source of each selected record is needed too, a record that was not sent could come before an
// equal one of a higher rank. While fewer than k are selected, any record at all would matter.
inline bool PrefixIsEnough(std::span<const RecordList> prefixes, std::span<const bool> cut,
                           std::span<const uint64_t> selected, int32_t k, bool needs_source) {
  const bool complete = selected.size() == static_cast<size_t>(k);
  // The least key of a last record that leaves the rest of its list in question.
  uint64_t doubtful = kAbsentKey + 1;
  if (complete && k > 0) doubtful = selected.back() + (needs_source ? 0 : 1);
  for (size_t r = 0; r < prefixes.size(); ++r) {
    if (!cut[r]) continue;
    const RecordList& prefix = prefixes[r];
    if (prefix.length == 0) return false;  // nothing was sent, so nothing is known
    if (CandidateKey(prefix.data[prefix.length - 1]) >= doubtful) return false;
  }
  return true;
}

}  // namespace sparsesel

#endif  // SPARSESEL_STAGES_HOST_PREFIX_PROOF_H_
