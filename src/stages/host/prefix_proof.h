// Whether the first records of sorted lists were enough to select exactly.
#ifndef SPARSESEL_STAGES_HOST_PREFIX_PROOF_H_
#define SPARSESEL_STAGES_HOST_PREFIX_PROOF_H_

#include <cstdint>
#include <span>

#include "contract/order.h"
#include "stages/host/select.h"

namespace sparsesel {

// `lists` are prefixes of sorted lists; cut[i] says that more may follow in list i. `selected` are
// the keys chosen from them, descending, at most k. What follows in a cut list is no better than its
// last record sent, so the choice stands iff no such record precedes the k-th selected one; with
// fewer than k selected, iff no cut list ended in a present record. Where records of one key can be
// told apart (`needs_source`), a hidden record with the k-th key might precede it by its source, so
// equality is not enough either.
inline bool PrefixIsEnough(std::span<const RecordList> lists, std::span<const bool> cut,
                           std::span<const uint64_t> selected, int32_t k, bool needs_source) {
  const bool full = selected.size() == static_cast<size_t>(k);
  for (size_t i = 0; i < lists.size(); ++i) {
    if (!cut[i] || lists[i].length == 0) continue;
    const uint64_t last = CandidateKey(lists[i].data[lists[i].length - 1]);
    if (last == kAbsentKey) continue;
    if (!full || last > selected.back() || (needs_source && last == selected.back())) return false;
  }
  return true;
}

}  // namespace sparsesel

#endif  // SPARSESEL_STAGES_HOST_PREFIX_PROOF_H_
