// A tree of losers: which of many lists has the greatest key next.
#ifndef SPARSESEL_STAGES_HOST_SELECT_TOURNAMENT_H_
#define SPARSESEL_STAGES_HOST_SELECT_TOURNAMENT_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "contract/order.h"

namespace sparsesel {

// Holds one key of each list; a list that has ended plays on with kAbsentKey. Knuth, The Art of
// Computer Programming, volume 3, 5.4.1. Replacing the winner's key asks one comparison of each
// level, on a path known beforehand, and takes no branch that depends on keys.
class Tournament {
 public:
  static size_t ScratchBytes(size_t lists) {
    return 3 * std::bit_ceil(lists + 1) * (sizeof(uint64_t) + sizeof(uint64_t));
  }

  // `first(list)` gives each list's first key.
  template <typename FirstKey>
  Tournament(size_t lists, std::span<std::byte> scratch, FirstKey first)
      : leaves_(std::bit_ceil(lists)), losers_(reinterpret_cast<Entry*>(scratch.data())) {
    Entry* const winners = losers_ + leaves_;  // of every subtree, needed only while building
    for (size_t leaf = 0; leaf < leaves_; ++leaf) {
      winners[leaves_ + leaf] = {leaf < lists ? first(leaf) : kAbsentKey, leaf};
    }
    for (size_t node = leaves_ - 1; node > 0; --node) {
      const Entry& left = winners[2 * node];
      const Entry& right = winners[2 * node + 1];
      const bool right_wins = left.key < right.key;
      winners[node] = right_wins ? right : left;
      losers_[node] = right_wins ? left : right;
    }
    winner_ = winners[1];
  }

  uint64_t key() const { return winner_.key; }
  size_t list() const { return winner_.list; }

  // The winner's list goes on with `key`.
  void Replace(uint64_t key) {
    uint64_t winner_key = key;
    uint64_t winner_list = winner_.list;
    for (size_t node = (leaves_ + winner_list) / 2; node > 0; node /= 2) {
      Entry& loser = losers_[node];
      // Masks, because compilers make a branch of a conditional swap.
      const uint64_t swap = uint64_t{0} - (winner_key < loser.key);
      const uint64_t keys = (winner_key ^ loser.key) & swap;
      const uint64_t lists = (winner_list ^ loser.list) & swap;
      winner_key ^= keys;
      loser.key ^= keys;
      winner_list ^= lists;
      loser.list ^= lists;
    }
    winner_ = {winner_key, winner_list};
  }

 private:
  struct Entry {
    uint64_t key;
    uint64_t list;
  };

  size_t leaves_;
  Entry* losers_;
  Entry winner_;
};

}  // namespace sparsesel

#endif  // SPARSESEL_STAGES_HOST_SELECT_TOURNAMENT_H_
