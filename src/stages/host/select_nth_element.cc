// select.nth_element: the standard library's partition and sort, to judge the others by.
#include <algorithm>
#include <functional>

#include "contract/order.h"
#include "stages/host/select_filter.h"
#include "stages/host/select_variants.h"

namespace sparsesel {
namespace {

size_t ScratchBytes(int32_t, int64_t total_records, int32_t) {
  return (static_cast<size_t>(total_records) + kFilterSlack) * sizeof(uint64_t);
}

int32_t Select(std::span<const RecordList> lists, int32_t k, std::span<std::byte> scratch,
               uint64_t* keys) {
  auto* const all = reinterpret_cast<uint64_t*>(scratch.data());
  const size_t present = KeysAtLeast(lists, kAbsentKey + 1, all);
  const size_t selected = std::min(present, static_cast<size_t>(k));
  if (selected < present) {
    std::nth_element(all, all + selected, all + present, std::greater<>());
  }
  std::sort(all, all + selected, std::greater<>());
  std::copy_n(all, selected, keys);
  return static_cast<int32_t>(selected);
}

}  // namespace

constinit const HostSelectVariant kSelectNthElement = {"select.nth_element", 1, false, ScratchBytes,
                                                       Select};

}  // namespace sparsesel
