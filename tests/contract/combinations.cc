#include "contract/combinations.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <utility>

namespace contract {
namespace {

constexpr const char* kStages[] = {"pack", "exchange", "select", "replicate"};
constexpr int32_t kCompositions[] = {SPARSESEL_COMPOSITION_REPLICATED, SPARSESEL_COMPOSITION_OWNER};

struct Variant {
  std::string name;  // with configuration
  size_t first_stage;
  size_t last_stage;
};

size_t StageIndex(const std::string& name) {
  return static_cast<size_t>(std::find(std::begin(kStages), std::end(kStages), name) -
                             std::begin(kStages));
}

std::vector<Variant> Variants(int32_t composition) {
  const char* memory = kOnDevice ? "device" : "host";
  const char* wanted = composition == SPARSESEL_COMPOSITION_OWNER ? "owner" : "replicated";
  std::vector<Variant> variants;
  const nlohmann::json system = nlohmann::json::parse(TextOf(sparsesel_system_json));
  for (const nlohmann::json& entry : system.at("variants")) {
    const nlohmann::json& compositions = entry.at("compositions");
    if (std::find(compositions.begin(), compositions.end(), wanted) == compositions.end()) continue;
    if (entry.value("memory", "host") != memory) continue;
    const std::string name = entry.at("name");
    Variant variant{name, StageIndex(entry.at("stages").front()),
                    StageIndex(entry.at("stages").back())};
    if (!entry.contains("configurations")) variants.push_back(variant);
    for (const nlohmann::json& value : entry.value("configurations", nlohmann::json::array())) {
      variant.name = name + ":" + value.dump();
      variants.push_back(variant);
    }
  }
  return variants;
}

bool CanRun(const Group& group, const Job& job) {
  std::vector<sparsesel_plan*> plans;
  Outcomes outcomes = CreatePlans(group, job, &plans);
  std::vector<sparsesel_binding*> bindings;
  if (AllOk(outcomes)) outcomes = Prepare(plans, job.child_plans);
  if (AllOk(outcomes)) {
    outcomes = Bind(plans, job.composition, &bindings);
    Release(&bindings);
  }
  Release(&plans);
  if (AllOk(outcomes)) return true;
  for (const Outcome& outcome : outcomes) {
    if (outcome.status != SPARSESEL_UNSUPPORTED || outcome.text().empty()) {
      throw std::runtime_error(job.child_plans + " cannot run, but is not refused:\n" +
                               Describe(outcomes));
    }
  }
  return false;
}

void Extend(const std::vector<Variant>& variants, size_t stage, size_t last_stage,
            const Combination& partial, std::vector<Combination>* found) {
  if (stage > last_stage) {
    found->push_back(partial);
    return;
  }
  for (const Variant& variant : variants) {
    if (variant.first_stage != stage || variant.last_stage > last_stage) continue;
    Combination longer = partial;
    longer.variants.push_back(variant.name);
    longer.child_plans += (partial.child_plans.empty() ? "" : ",") + variant.name;
    Extend(variants, variant.last_stage + 1, last_stage, longer, found);
  }
}

// Every list of variants that covers the stages, whether or not its parts fit.
std::vector<Combination> Conceivable(const Job& job) {
  std::vector<Combination> found;
  for (int32_t composition : kCompositions) {
    const bool replicates = composition == SPARSESEL_COMPOSITION_OWNER &&
                            job.problems[0].output_scope == SPARSESEL_SCOPE_ALL_ROWS;
    Combination empty;
    empty.composition = composition;
    Extend(Variants(composition), 0, StageIndex(replicates ? "replicate" : "select"), empty,
           &found);
  }
  return found;
}

// Two ranks, whatever the job's world: variants depend on the problem, hardly on the world. But on
// a device all ranks must find room at once, and one kernel for everything may not.
Job Probe(const Job& job) {
  Job probe = job;
  if (kOnDevice) return probe;
  probe.problems.assign(2, job.problems[0]);
  probe.capacities = {1};
  return probe;
}

using Covered = std::set<std::pair<int32_t, std::string>>;

size_t Gain(const Combination& combination, const Covered& covered) {
  size_t gain = 0;
  for (const std::string& variant : combination.variants) {
    gain += covered.count({combination.composition, variant}) == 0;
  }
  return gain;
}

}  // namespace

std::string Combination::text() const {
  return (composition == SPARSESEL_COMPOSITION_OWNER ? "owner " : "replicated ") + child_plans;
}

std::vector<std::string> VariantNames(int32_t composition) {
  std::vector<std::string> names;
  for (const Variant& variant : Variants(composition)) names.push_back(variant.name);
  return names;
}

std::vector<Combination> AllCombinations(const Job& job) {
  const Job probe = Probe(job);
  const Group group(probe.world());
  std::vector<Combination> found = Conceivable(job);
  std::erase_if(found, [&](const Combination& combination) {
    return !CanRun(group, With(probe, combination));
  });
  return found;
}

std::vector<Combination> CoveringCombinations(const Job& job) {
  const Job probe = Probe(job);
  const Group group(probe.world());
  std::vector<Combination> left = Conceivable(job);
  std::vector<Combination> chosen;
  Covered covered;
  // Those first that add most; each is tried once.
  for (size_t gain = std::size(kStages); gain > 0; --gain) {
    std::erase_if(left, [&](const Combination& combination) {
      if (Gain(combination, covered) < gain) return false;
      if (!CanRun(group, With(probe, combination))) return true;
      for (const std::string& variant : combination.variants) {
        covered.emplace(combination.composition, variant);
      }
      chosen.push_back(combination);
      return true;
    });
  }
  return chosen;
}

Job With(Job job, const Combination& combination) {
  job.composition = combination.composition;
  job.child_plans = combination.child_plans;
  return job;
}

}  // namespace contract
