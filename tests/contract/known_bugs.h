// Faults that others have had at this job, replayed in this library's shape.
#ifndef SPARSESEL_TESTS_CONTRACT_KNOWN_BUGS_H_
#define SPARSESEL_TESTS_CONTRACT_KNOWN_BUGS_H_

#include <string>
#include <vector>

#include "contract/batch.h"
#include "contract/combinations.h"
#include "contract/rows.h"

namespace contract {

// Runs the batch through a few combinations in which every variant appears, `repeats` times each;
// empty if all of it was right.
std::string RunEverywhere(const Job& job, const Batch& batch, int repeats = 1,
                          const OutputLayout& layout = {});

// The same for rows of pairs.
std::string RunEverywhere(const Job& job, const std::vector<Row>& rows, int repeats = 1);

Job WithOutputs(Job job, uint32_t outputs);

}  // namespace contract

#endif  // SPARSESEL_TESTS_CONTRACT_KNOWN_BUGS_H_
