// Variants: the named implementations of a contiguous span of stages. A composition is a list of
// them. CONTRIBUTING says which files adding one touches.
#ifndef SPARSESEL_STAGES_VARIANT_H_
#define SPARSESEL_STAGES_VARIANT_H_

#include <cstdint>
#include <span>

#include "contract/job.h"

namespace sparsesel {

enum class Stage : int32_t { kPack = 0, kExchange, kSelect, kReplicate };
inline constexpr int32_t kStages = 4;
const char* StageName(Stage stage);  // "pack", ...

inline constexpr uint32_t kInReplicated = 1u << SPARSESEL_COMPOSITION_REPLICATED;
inline constexpr uint32_t kInOwner = 1u << SPARSESEL_COMPOSITION_OWNER;
inline constexpr uint32_t kInBoth = kInReplicated | kInOwner;

// What a transport offers that variants depend on.
struct Topology {
  int32_t memory = SPARSESEL_MEMORY_HOST;
  bool sum_bf16 = false;
  bool sum_int32 = false;
  int32_t transport = SPARSESEL_TRANSPORT_AUTO;  // SPARSESEL_TRANSPORT_..., of device groups
};

struct Variant {
  const char* name;  // "select.threshold": stable, decisions and callers name variants by it
  Stage first;
  Stage last;
  uint32_t compositions;  // kIn...
  int32_t memory;         // SPARSESEL_MEMORY_...
  int32_t revision;       // raised whenever the code behind the name changes its behaviour
  std::span<const int32_t> configurations;  // values of its one parameter; {0} if it has none
  // Alone: whether it can run this job at all. What neighbours must agree on is
  // for EnumerateCompositions.
  bool (*supports)(const Job& job, const Topology& topology, int32_t configuration);
};

// A variant chosen for its span.
struct ChildPlan {
  const Variant* variant = nullptr;
  int32_t configuration = 0;
};

std::span<const Variant> Variants();
const Variant* FindVariant(const char* name, size_t length);  // null if there is none

}  // namespace sparsesel

#endif  // SPARSESEL_STAGES_VARIANT_H_
