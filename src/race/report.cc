#include "race/report.h"

#include <exception>
#include <new>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"

namespace sparsesel {
namespace {

using Json = nlohmann::ordered_json;

const char* CompositionName(int32_t composition) {
  switch (composition) {
    case SPARSESEL_COMPOSITION_REPLICATED:
      return "replicated";
    case SPARSESEL_COMPOSITION_OWNER:
      return "owner";
    default:
      return "none";
  }
}

const char* RuleName(int32_t rule) {
  switch (rule) {
    case SPARSESEL_RULE_POLICY:
      return "policy";
    case SPARSESEL_RULE_FASTER:
      return "faster";
    case SPARSESEL_RULE_NOT_FASTER:
      return "not_faster";
    case SPARSESEL_RULE_INCONCLUSIVE:
      return "inconclusive";
    case SPARSESEL_RULE_ONLY_EXACT:
      return "only_exact";
    case SPARSESEL_RULE_HOLDOUT:
      return "holdout";
    case SPARSESEL_RULE_INVALID_TIMING:
      return "invalid_timing";
    case SPARSESEL_RULE_NEIGHBOUR:
      return "neighbour";
    default:
      return "none";
  }
}

Json EntrantJson(const Entrant& entrant, double median, double spread) {
  Json spans = Json::array();
  for (const Entrant::Span& span : entrant.spans) {
    spans.push_back({{"stage", span.stage}, {"median", span.median}});
  }
  return {{"child_plans", entrant.child_plans},
          {"measured", entrant.measured},
          {"exact", entrant.exact},
          {"disqualified", entrant.disqualified},
          {"median", median},
          {"spread", spread},
          {"spans", std::move(spans)},
          {"samples", entrant.samples},
          {"train_lengths", entrant.train_lengths}};
}

Json CapacityJson(const CapacityReport& capacity) {
  const sparsesel_outcome& outcome = capacity.outcome;
  return {{"capacity", outcome.capacity},
          {"winner", CompositionName(outcome.winner)},
          {"rule", RuleName(outcome.rule)},
          {"pairs", outcome.pairs},
          {"ratio", outcome.ratio},
          {"ratio_low", outcome.ratio_low},
          {"ratio_high", outcome.ratio_high},
          {"replicated",
           EntrantJson(capacity.replicated, outcome.replicated_median, outcome.replicated_spread)},
          {"owner", EntrantJson(capacity.owner, outcome.owner_median, outcome.owner_spread)}};
}

Json ProblemJson(const Problem& problem) {
  Json json = {
      {"k", problem.k}, {"candidates", problem.candidates}, {"capacities", problem.capacities}};
  for (const SharedField& field : SharedFields(problem)) {
    if (!json.contains(field.name)) json[field.name] = field.value;
  }
  return json;
}

Json ReportJson(const Report& report) {
  Json capacities = Json::array();
  for (const CapacityReport& capacity : report.capacities) {
    capacities.push_back(CapacityJson(capacity));
  }
  return {{"rank", report.rank},
          {"world_size", report.world},
          {"transport", report.transport},
          {"raced", report.raced},
          {"note", report.note},
          {"margin", report.margin},
          {"error_level", report.error_level},
          {"seed", report.seed},
          // 64 bits, more than a JSON number keeps in many readers.
          {"digest", absl::StrFormat("%016x", report.digest)},
          {"duration", report.duration},
          {"control_calls", report.control_calls},
          {"trial_bytes_freed", report.trial_bytes_freed},
          {"holdouts", report.holdouts},
          {"problem", ProblemJson(report.problem)},
          {"capacities", std::move(capacities)}};
}

}  // namespace

Status ReportToJson(const Report& report, std::string* json) {
  json->clear();
  try {
    // NaN and infinities become null, bytes that are not UTF-8 the replacement character.
    *json = ReportJson(report).dump(1, ' ', false, Json::error_handler_t::replace);
    return Status();
  } catch (const std::bad_alloc&) {
    return Status::Error(SPARSESEL_OUT_OF_MEMORY, "no memory for the text of the report");
  } catch (const std::exception& error) {
    return Status::Error(SPARSESEL_INTERNAL, "the report could not be written: %s", error.what());
  }
}

}  // namespace sparsesel
