// The whole small scope: every case of up to 4 candidates with every score of an absent one, in all
// output modes, and half a million sampled cases of each size from 5 to 8.
//
// The fixture is a part of the contract tests; a target here has one source of its own.
#include "contract/small_scope.h"

#include <cstdio>

#include "contract/allocation_probe.cc"
#include "contract/batch.cc"
#include "contract/combinations.cc"
#include "contract/group_fixture.cc"
#include "contract/memory_host.cc"
#include "contract/rows.cc"
#include "contract/small_scope.cc"

namespace {

int64_t Run(int32_t world) {
  using contract::SmallScope;
  const auto alphabet = contract::SmallAlphabet(9);
  int64_t wrong = 0;
  SmallScope all(world, 4);
  for (int32_t candidates = 0; candidates <= 4; ++candidates) {
    all.AddAll(candidates, alphabet);
    all.Finish();
    std::printf("%d ranks, %d candidates: %lld cases, %lld wrong %s\n", world, candidates,
                static_cast<long long>(all.cases()), static_cast<long long>(all.wrong()),
                all.first_difference().c_str());
    std::fflush(stdout);
  }
  wrong += all.wrong();
  SmallScope sampled(world, 8);
  contract::Random random(static_cast<uint64_t>(world));
  for (int32_t candidates = 5; candidates <= 8; ++candidates) {
    sampled.AddSampled(candidates, 500'000, alphabet, random);
    sampled.Finish();
    std::printf("%d ranks, %d candidates sampled: %lld cases, %lld wrong %s\n", world, candidates,
                static_cast<long long>(sampled.cases()), static_cast<long long>(sampled.wrong()),
                sampled.first_difference().c_str());
    std::fflush(stdout);
  }
  return wrong + sampled.wrong();
}

}  // namespace

int main() { return Run(2) + Run(3) == 0 ? 0 : 1; }
