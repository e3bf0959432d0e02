#include "compositions/composition.h"

#include <algorithm>
#include <charconv>

#include "stages/host/select.h"
#include "xxhash.h"

namespace sparsesel {
namespace {

bool Named(const ChildPlan* child, std::string_view name) {
  return child != nullptr && name == child->variant->name;
}

bool NeedsSortedLists(const ChildPlan& select) {
  for (const HostSelectVariant& variant : HostSelectVariants()) {
    if (std::string_view(variant.name) == select.variant->name) return variant.needs_sorted_lists;
  }
  return false;
}

// What neighbouring host child plans must agree on.
bool Fit(const Composition& composition) {
  const ChildPlan* pack = composition.At(Stage::kPack);
  const ChildPlan* exchange = composition.At(Stage::kExchange);
  const ChildPlan* select = composition.At(Stage::kSelect);
  const bool unsorted = Named(pack, "pack.plain");
  const bool top_only = Named(pack, "pack.top");
  if (Named(exchange, "exchange.prefix")) {
    if (unsorted) return false;
    if (top_only && pack->configuration != exchange->configuration) return false;
  } else if (top_only) {
    return false;
  }
  return select == nullptr || !unsorted || !NeedsSortedLists(*select);
}

void Extend(const Composition& partial, int32_t stage, int32_t last, const Job& job,
            const Topology& topology, const ChildPlanFilter& filter,
            std::vector<Composition>* found) {
  if (stage > last) {
    if (Fit(partial)) found->push_back(partial);
    return;
  }
  for (const Variant& variant : Variants()) {
    if (static_cast<int32_t>(variant.first) != stage || static_cast<int32_t>(variant.last) > last ||
        variant.memory != topology.memory || (variant.compositions & (1u << partial.kind)) == 0) {
      continue;
    }
    for (const int32_t configuration : variant.configurations) {
      const ChildPlan child{&variant, configuration};
      if (!filter.Allows(child) || !variant.supports(job, topology, configuration)) continue;
      Composition longer = partial;
      longer.children[static_cast<size_t>(longer.count++)] = child;
      Extend(longer, static_cast<int32_t>(variant.last) + 1, last, job, topology, filter, found);
    }
  }
}

}  // namespace

const ChildPlan* Composition::At(Stage stage) const {
  for (int32_t i = 0; i < count; ++i) {
    const ChildPlan& child = children[static_cast<size_t>(i)];
    if (child.variant->first <= stage && stage <= child.variant->last) return &child;
  }
  return nullptr;
}

const char* CompositionName(int32_t kind) {
  switch (kind) {
    case SPARSESEL_COMPOSITION_REPLICATED:
      return "replicated";
    case SPARSESEL_COMPOSITION_OWNER:
      return "owner";
    default:
      return "auto";
  }
}

std::string ChildPlanName(const ChildPlan& child) {
  std::string name = child.variant->name;
  if (child.variant->configurations.size() > 1) {
    name += ':' + std::to_string(child.configuration);
  }
  return name;
}

std::vector<std::string> ChildPlanNames(const Composition& composition) {
  std::vector<std::string> names;
  names.reserve(static_cast<size_t>(composition.count));
  for (int32_t i = 0; i < composition.count; ++i) {
    names.push_back(ChildPlanName(composition.children[static_cast<size_t>(i)]));
  }
  return names;
}

uint64_t CompositionDigest(const Composition& composition) {
  std::string text = CompositionName(composition.kind);
  for (const std::string& name : ChildPlanNames(composition)) text += '|' + name;
  return XXH64(text.data(), text.size(), 0);
}

bool ChildPlanFilter::Allows(const ChildPlan& child) const {
  bool stage_is_mentioned = false;
  for (size_t i = 0; i < allowed.size(); ++i) {
    const Variant& other = *allowed[i].variant;
    if (other.last < child.variant->first || child.variant->last < other.first) continue;
    stage_is_mentioned = true;
    if (&other == child.variant &&
        (any_configuration[i] || allowed[i].configuration == child.configuration)) {
      return true;
    }
  }
  return !stage_is_mentioned;
}

Status ParseChildPlans(std::string_view text, int32_t memory, ChildPlanFilter* filter) {
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
    const size_t colon = item.find(':');
    const std::string_view name = item.substr(0, colon);
    const Variant* variant = FindVariant(name.data(), name.size());
    if (variant == nullptr || variant->memory != memory) {
      return Status::Error(SPARSESEL_UNSUPPORTED, "child plan \"%s\": there is no such variant",
                           item);
    }
    ChildPlan child{variant, 0};
    if (colon != std::string_view::npos) {
      const std::string_view number = item.substr(colon + 1);
      const auto [end, error] =
          std::from_chars(number.data(), number.data() + number.size(), child.configuration);
      const auto known = variant->configurations;
      if (error != std::errc() || end != number.data() + number.size() ||
          std::find(known.begin(), known.end(), child.configuration) == known.end()) {
        return Status::Error(SPARSESEL_UNSUPPORTED,
                             "child plan \"%s\": there is no such configuration", item);
      }
    }
    filter->allowed.push_back(child);
    filter->any_configuration.push_back(colon == std::string_view::npos);
  }
  return {};
}

std::vector<Composition> EnumerateCompositions(int32_t kind, const Job& job,
                                               const Topology& topology,
                                               const ChildPlanFilter& filter) {
  std::vector<Composition> found;
  Composition empty;
  empty.kind = kind;
  // With owned-rows output the owner already holds its answer: nothing is replicated.
  const bool replicates = kind == SPARSESEL_COMPOSITION_OWNER && job.everywhere();
  Extend(empty, 0, static_cast<int32_t>(replicates ? Stage::kReplicate : Stage::kSelect), job,
         topology, filter, &found);
  return found;
}

}  // namespace sparsesel
