#include "race/report.h"

#include <array>
#include <new>
#include <string_view>

#include "absl/strings/str_format.h"
#include "contract/json_writer.h"

namespace sparsesel {
namespace {

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

// Into fixed memory: absl::StrFormat ends the process when its string cannot grow.
std::array<char, 17> Hexadecimal(uint64_t number) {
  std::array<char, 17> digits;
  absl::SNPrintF(digits.data(), digits.size(), "%016x", number);
  return digits;
}

void Write(const Entrant& entrant, double median, double spread, JsonWriter* json) {
  json->BeginObject();
  json->ArrayMember("child_plans", entrant.child_plans);
  json->Member("measured", entrant.measured);
  json->Member("exact", entrant.exact);
  json->Member("disqualified", entrant.disqualified);
  json->Member("median", median);
  json->Member("spread", spread);
  json->Key("spans");
  json->BeginArray();
  for (const Entrant::Span& span : entrant.spans) {
    json->BeginObject();
    json->Member("stage", span.stage);
    json->Member("median", span.median);
    json->EndObject();
  }
  json->EndArray();
  json->ArrayMember("samples", entrant.samples);
  json->ArrayMember("train_lengths", entrant.train_lengths);
  json->EndObject();
}

void Write(const CapacityReport& capacity, JsonWriter* json) {
  const sparsesel_outcome& outcome = capacity.outcome;
  json->BeginObject();
  json->Member("capacity", outcome.capacity);
  json->Member("winner", CompositionName(outcome.winner));
  json->Member("rule", RuleName(outcome.rule));
  json->Member("pairs", outcome.pairs);
  json->Member("ratio", outcome.ratio);
  json->Member("ratio_low", outcome.ratio_low);
  json->Member("ratio_high", outcome.ratio_high);
  json->Key("replicated");
  Write(capacity.replicated, outcome.replicated_median, outcome.replicated_spread, json);
  json->Key("owner");
  Write(capacity.owner, outcome.owner_median, outcome.owner_spread, json);
  json->EndObject();
}

void Write(const Problem& problem, JsonWriter* json) {
  json->BeginObject();
  json->Member("candidates", problem.candidates);
  json->ArrayMember("capacities", problem.capacities);
  for (const SharedField& field : SharedFields(problem)) {
    // Of capacities the list itself stands there already, instead of its digest.
    if (!std::string_view(field.name).starts_with("capacities")) {
      json->Member(field.name, field.value);
    }
  }
  json->EndObject();
}

void Write(const Report& report, JsonWriter* json) {
  json->BeginObject();
  json->Member("rank", report.rank);
  json->Member("world_size", report.world);
  json->Member("transport", report.transport);
  json->Member("raced", report.raced);
  json->Member("note", report.note);
  json->Member("margin", report.margin);
  json->Member("error_level", report.error_level);
  json->Member("seed", report.seed);
  // 64 bits, more than a JSON number keeps in many readers.
  json->Member("digest", Hexadecimal(report.digest).data());
  json->Member("duration", report.duration);
  json->Member("control_calls", report.control_calls);
  json->Member("trial_bytes_freed", report.trial_bytes_freed);
  json->ArrayMember("holdouts", report.holdouts);
  json->Key("problem");
  Write(report.problem, json);
  json->Key("capacities");
  json->BeginArray();
  for (const CapacityReport& capacity : report.capacities) Write(capacity, json);
  json->EndArray();
  json->EndObject();
}

}  // namespace

Status ReportToJson(const Report& report, std::string* json) {
  json->clear();
  try {
    JsonWriter writer(json);
    Write(report, &writer);
    return Status();
  } catch (const std::bad_alloc&) {
    return Status::Error(SPARSESEL_OUT_OF_MEMORY, "no memory for the text of the report");
  }
}

}  // namespace sparsesel
