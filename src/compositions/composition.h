// A composition as data: which of the two ways, and the child plan of each span of its stages.
#ifndef SPARSESEL_COMPOSITIONS_COMPOSITION_H_
#define SPARSESEL_COMPOSITIONS_COMPOSITION_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "contract/status.h"
#include "stages/variant.h"

namespace sparsesel {

struct Composition {
  int32_t kind = SPARSESEL_COMPOSITION_REPLICATED;
  std::array<ChildPlan, kStages> children{};
  int32_t count = 0;

  // The child plan that covers `stage`; null if the composition has no such stage.
  const ChildPlan* At(Stage stage) const;
};

const char* CompositionName(int32_t kind);          // "replicated", "owner", "auto"
std::string ChildPlanName(const ChildPlan& child);  // "exchange.prefix:256"
std::vector<std::string> ChildPlanNames(const Composition& composition);

// Of names and configurations, independent of positions in any table.
uint64_t CompositionDigest(const Composition& composition);

// What a caller allows: for a stage that is mentioned, only what is mentioned.
struct ChildPlanFilter {
  std::vector<ChildPlan> allowed;
  std::vector<bool> any_configuration;  // parallel: no ":n" was given

  bool Allows(const ChildPlan& child) const;
};
// UNSUPPORTED names a variant or configuration that does not exist for this kind of memory.
Status ParseChildPlans(std::string_view text, int32_t memory, ChildPlanFilter* filter);

// Every composition of `kind` that can run the job: supported variants whose neighbours fit.
std::vector<Composition> EnumerateCompositions(int32_t kind, const Job& job,
                                               const Topology& topology,
                                               const ChildPlanFilter& filter);

}  // namespace sparsesel

#endif  // SPARSESEL_COMPOSITIONS_COMPOSITION_H_
