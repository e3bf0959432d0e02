// select.loser_tree: one key after the other from the list that has the greatest. Reads no more
// than it takes, which is best where k is small.
#include "contract/order.h"
#include "stages/host/select_tournament.h"
#include "stages/host/select_variants.h"

namespace sparsesel {
namespace {

size_t ScratchBytes(int32_t lists, int64_t, int32_t) {
  const auto count = static_cast<size_t>(lists);
  return Tournament::ScratchBytes(count) + count * sizeof(int32_t);
}

uint64_t KeyAt(const RecordList& list, int32_t position) {
  return position < list.length ? CandidateKey(list.data[position]) : kAbsentKey;
}

int32_t Select(std::span<const RecordList> lists, int32_t k, std::span<std::byte> scratch,
               uint64_t* keys) {
  if (lists.empty()) return 0;
  Tournament tournament(lists.size(), scratch, [&](size_t list) { return KeyAt(lists[list], 0); });
  auto* const positions =
      reinterpret_cast<int32_t*>(scratch.data() + Tournament::ScratchBytes(lists.size()));
  for (size_t list = 0; list < lists.size(); ++list) positions[list] = 0;
  int32_t selected = 0;
  while (selected < k && tournament.key() != kAbsentKey) {
    keys[selected++] = tournament.key();
    const size_t list = tournament.list();
    tournament.Replace(KeyAt(lists[list], ++positions[list]));
  }
  return selected;
}

}  // namespace

constinit const HostSelectVariant kSelectLoserTree = {"select.loser_tree", 1, true, ScratchBytes,
                                                      Select};

}  // namespace sparsesel
