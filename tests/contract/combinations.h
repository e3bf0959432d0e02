// Which complete compositions there are: asked of the library, so that a new variant is tested as
// soon as it is in the table.
#ifndef SPARSESEL_TESTS_CONTRACT_COMBINATIONS_H_
#define SPARSESEL_TESTS_CONTRACT_COMBINATIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "contract/group_fixture.h"

namespace contract {

struct Combination {
  int32_t composition = SPARSESEL_COMPOSITION_REPLICATED;
  std::string child_plans;            // the whole list, for prepare
  std::vector<std::string> variants;  // its parts, with configuration

  std::string text() const;
};

// Any problem that runs at all has as many: on devices the packing and the exchange are one
// variant.
inline constexpr size_t kLeastCombinations = kOnDevice ? 2 : 4;

// The names of all variants for the groups' memory, with every configuration
// ("exchange.prefix:64").
std::vector<std::string> VariantNames(int32_t composition);

// Every combination of variants that can run problems like job.problems[0]. Those that are left out
// are UNSUPPORTED, with a sentence; anything else is thrown.
std::vector<Combination> AllCombinations(const Job& job);

// Few of them, in which every variant that can run appears, in both compositions.
std::vector<Combination> CoveringCombinations(const Job& job);

// The job, run by that combination.
Job With(Job job, const Combination& combination);

}  // namespace contract

#endif  // SPARSESEL_TESTS_CONTRACT_COMBINATIONS_H_
