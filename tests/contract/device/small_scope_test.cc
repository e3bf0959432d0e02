// Small cases in few rows: for the kernel that does everything at once.
#include "contract/small_scope.h"

#include <catch2/catch.hpp>

namespace contract {
namespace {

// One kernel for everything, which thousands of rows do not fit.
TEST_CASE("small scope: cases of up to 5 candidates in few rows, sampled", "[device]") {
  const std::vector<SmallCandidate> alphabet = SmallAlphabet(2);
  for (int32_t world : {2, 3}) {
    Random random(static_cast<uint64_t>(world));
    SmallScope scope(world, 4, 8);
    for (int32_t candidates = 1; candidates <= 5; ++candidates) {
      scope.AddSampled(candidates, 400, alphabet, random);
    }
    scope.Finish();
    INFO(scope.combinations() << " combinations");
    INFO(scope.first_difference());
    CHECK(scope.wrong() == 0);
  }
}

}  // namespace
}  // namespace contract
