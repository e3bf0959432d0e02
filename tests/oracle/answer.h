// What a row's answer must be, by two programs written apart from each other and from the library.
#ifndef SPARSESEL_TESTS_ORACLE_ANSWER_H_
#define SPARSESEL_TESTS_ORACLE_ANSWER_H_

#include <cstdint>
#include <vector>

namespace oracle {

// One rank's list of one row, with global ids.
struct List {
  std::vector<uint32_t> score_bits;
  std::vector<int32_t> ids;
  int64_t count = 0;  // as given: may be negative or beyond the list
};

struct Answer {
  std::vector<int32_t> ids;          // k, then -1
  std::vector<uint32_t> score_bits;  // k, then -inf
  int32_t count = 0;

  bool operator==(const Answer&) const = default;
};

// A stable sort with the contract's comparison, on floats.
Answer SortOracle(const std::vector<List>& lists, int32_t k, bool by_id);

// Every candidate's place is the number of candidates before it, counted on integers.
Answer CountingOracle(const std::vector<List>& lists, int32_t k, bool by_id);

// Both; throws std::logic_error if they disagree.
Answer Expect(const std::vector<List>& lists, int32_t k, bool by_id = false);

}  // namespace oracle

#endif  // SPARSESEL_TESTS_ORACLE_ANSWER_H_
