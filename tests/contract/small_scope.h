// Every small case: k up to 3, two or three ranks, a few candidates made of the scores and ids that
// meet in ties, absences and special values. Many cases are the rows of one execute.
#ifndef SPARSESEL_TESTS_CONTRACT_SMALL_SCOPE_H_
#define SPARSESEL_TESTS_CONTRACT_SMALL_SCOPE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "contract/batch.h"
#include "contract/combinations.h"
#include "contract/rows.h"

namespace contract {

struct SmallCandidate {
  uint32_t score_bits;
  int32_t id;
};

// Every present pair of a score and an id, and `absences` scores with the id -1.
std::vector<SmallCandidate> SmallAlphabet(int absences);

// What is asked of the output; each goes its own way through the library.
struct OutputMode {
  const char* name;
  uint32_t outputs;
  int32_t output_order;
};
inline constexpr OutputMode kOutputModes[] = {
    {"ids", 0, SPARSESEL_OUTPUT_BY_SCORE},
    {"ids, scores and counts", SPARSESEL_OUTPUT_SCORES | SPARSESEL_OUTPUT_COUNTS,
     SPARSESEL_OUTPUT_BY_SCORE},
    {"all by id", SPARSESEL_OUTPUT_SCORES | SPARSESEL_OUTPUT_COUNTS, SPARSESEL_OUTPUT_BY_ID},
};

// Runs cases through every k, composition and variant, and counts what was wrong.
class SmallScope {
 public:
  // Lists of `length` candidates on each of `world` ranks.
  SmallScope(int32_t world, int32_t length, int32_t rows_per_execute = 2048);

  // One case: which candidates each rank has, in order. Judged when enough are together.
  void Add(const std::vector<std::vector<SmallCandidate>>& lists);
  // Every case of exactly `candidates` candidates in total, dealt to the ranks in every way.
  void AddAll(int32_t candidates, const std::vector<SmallCandidate>& alphabet);
  // `cases` cases of `candidates` candidates.
  void AddSampled(int32_t candidates, int64_t cases, const std::vector<SmallCandidate>& alphabet,
                  Random& random);
  // Judges what is left. Each batch goes through all output modes, or through one in turn.
  void Finish();
  void set_all_modes(bool all) { Finish(), all_modes_ = all; }

  int64_t cases() const { return cases_; }
  int64_t wrong() const { return wrong_; }
  size_t combinations() const { return entries_.size(); }
  const std::string& first_difference() const { return first_difference_; }

 private:
  struct Entry {
    size_t mode;
    Job job;
    std::string text;
    std::unique_ptr<Bound> bound;
  };
  void Judge(size_t mode);

  const int32_t world_;
  const int32_t length_;
  const int32_t rows_per_execute_;
  Group group_;
  std::vector<Entry> entries_;
  bool all_modes_ = true;
  size_t turn_ = 0;
  Batch batch_;
  int32_t filled_ = 0;
  int64_t cases_ = 0;
  int64_t wrong_ = 0;
  std::string first_difference_;
};

}  // namespace contract

#endif  // SPARSESEL_TESTS_CONTRACT_SMALL_SCOPE_H_
