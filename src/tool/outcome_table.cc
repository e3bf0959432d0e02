#include "tool/outcome_table.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "tool/table.h"

namespace sparsesel_tool {
namespace {

using Json = nlohmann::json;

constexpr const char* kStages[] = {"pack", "exchange", "select", "replicate"};

std::string RuleText(const sparsesel_outcome& outcome) {
  switch (outcome.rule) {
    case SPARSESEL_RULE_POLICY:
      return "not raced, by policy";
    case SPARSESEL_RULE_FASTER:
      return "owner faster";
    case SPARSESEL_RULE_NOT_FASTER:
      return "owner not faster";
    case SPARSESEL_RULE_INCONCLUSIVE:
      return outcome.pairs > 0 ? "inconclusive" : "the time budget was over";
    case SPARSESEL_RULE_ONLY_EXACT:
      return "only exact one";
    case SPARSESEL_RULE_HOLDOUT:
      return "other failed a holdout";
    case SPARSESEL_RULE_INVALID_TIMING:
      return "invalid timing";
    case SPARSESEL_RULE_NEIGHBOUR:
      return "as its neighbours";
    default:
      return "rule " + std::to_string(outcome.rule);
  }
}

// The report's entry of a capacity; null if it has none.
const Json* CapacityOf(const Json& report, int32_t capacity) {
  const auto list = report.find("capacities");
  if (list == report.end() || !list->is_array()) return nullptr;
  for (const Json& entry : *list) {
    if (entry.is_object() && entry.value("capacity", 0) == capacity) return &entry;
  }
  return nullptr;
}

// Times of the stages: a span of several stages is shown at its first.
std::vector<std::string> SpanCells(const Json* entrant) {
  std::vector<std::string> cells(std::size(kStages), "-");
  if (entrant == nullptr || !entrant->contains("spans")) return cells;
  for (const Json& span : entrant->at("spans")) {
    for (size_t i = 0; i < std::size(kStages); ++i) {
      const Json& median = span.at("median");
      if (span.value("stage", "") == kStages[i] && median.is_number()) {
        cells[i] = Microseconds(median.get<double>());
      }
    }
  }
  return cells;
}

struct Side {
  const char* name;
  int32_t composition;
  double median;
  double spread;
  int32_t exact;
};

void AddSide(const sparsesel_outcome& outcome, const Side& side, const Json* capacity, bool first,
             Table* table) {
  const Json* entrant = nullptr;
  if (capacity != nullptr && capacity->contains(side.name)) entrant = &capacity->at(side.name);
  const bool measured = side.median > 0;
  std::vector<std::string> cells = {first ? std::to_string(outcome.capacity) : "", side.name,
                                    measured ? Microseconds(side.median) : "-",
                                    measured ? Microseconds(side.spread) : "-"};
  for (std::string& cell : SpanCells(entrant)) cells.push_back(std::move(cell));
  cells.emplace_back(side.exact != 0 ? "yes" : "NO");
  cells.emplace_back(outcome.winner == side.composition ? "winner" : "");
  if (first) {
    cells.push_back(outcome.ratio > 0 ? Ratio(outcome.ratio) + " (" + Ratio(outcome.ratio_low) +
                                            " .. " + Ratio(outcome.ratio_high) + ")"
                                      : "-");
    cells.push_back(RuleText(outcome));
  }
  table->AddRow(std::move(cells));
}

std::string ChildPlans(const Json* capacity, const char* side) {
  std::string text;
  if (capacity == nullptr || !capacity->contains(side)) return text;
  for (const Json& name : capacity->at(side).value("child_plans", Json::array())) {
    text += (text.empty() ? "" : ",") + name.get<std::string>();
  }
  return text;
}

std::string Disqualified(const Json* capacity, int32_t rows) {
  std::string text;
  if (capacity == nullptr) return text;
  for (const char* side : {"replicated", "owner"}) {
    if (!capacity->contains(side)) continue;
    const std::string why = capacity->at(side).value("disqualified", "");
    if (!why.empty()) text += std::to_string(rows) + " rows, " + side + " is out: " + why + "\n";
  }
  return text;
}

// The winners' child plans, one line for each range of capacities that has the same.
class ChosenPlans {
 public:
  // Capacities come in descending order.
  void Add(int32_t capacity, const std::string& plans) {
    if (ranges_.empty() || ranges_.back().plans != plans) {
      ranges_.push_back({capacity, capacity, plans});
    }
    ranges_.back().last = capacity;
  }

  std::string ToString() const {
    std::string text;
    for (const Range& range : ranges_) {
      text += "rows " + std::to_string(range.first);
      if (range.last != range.first) text += " to " + std::to_string(range.last);
      text += ": " + range.plans + "\n";
    }
    return text;
  }

 private:
  struct Range {
    int32_t first;
    int32_t last;
    std::string plans;
  };
  std::vector<Range> ranges_;
};

Table NewTable() {
  Table table;
  const auto left = Table::Align::kLeft;
  const auto right = Table::Align::kRight;
  table.AddColumn("rows", right);
  table.AddColumn("composition", left);
  table.AddColumn("median us", right);
  table.AddColumn("spread", right);
  for (const char* stage : kStages) table.AddColumn(stage, right);
  table.AddColumn("exact", left);
  table.AddColumn("winner", left);
  table.AddColumn("replicated / owner", left);
  table.AddColumn("rule", left);
  return table;
}

}  // namespace

Result ReportText(const sparsesel_report* report, std::string* json) {
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  size_t needed = 0;
  sparsesel_status status = sparsesel_report_json(report, nullptr, 0, &needed, &error);
  if (status != SPARSESEL_OK) return LibraryResult("report_json", status, error);
  json->resize(needed);
  status = sparsesel_report_json(report, json->data(), json->size(), &needed, &error);
  if (needed > 0) json->resize(needed - 1);  // the terminator
  return LibraryResult("report_json", status, error);
}

Result OutcomeTable(const sparsesel_report* report, const std::string& json, std::string* table,
                    std::string* notes) {
  const Json parsed = Json::parse(json, nullptr, false);
  if (parsed.is_discarded()) return Failure("the report is not JSON");
  Table lines = NewTable();
  ChosenPlans chosen;
  const int32_t size = sparsesel_report_size(report);
  for (int32_t index = size - 1; index >= 0; --index) {
    sparsesel_error error = SPARSESEL_ERROR_INIT;
    sparsesel_outcome o = SPARSESEL_OUTCOME_INIT;
    const sparsesel_status status = sparsesel_report_outcome(report, index, &o, &error);
    if (status != SPARSESEL_OK) return LibraryResult("report_outcome", status, error);
    const Json* capacity = CapacityOf(parsed, o.capacity);
    AddSide(o,
            {"replicated", SPARSESEL_COMPOSITION_REPLICATED, o.replicated_median,
             o.replicated_spread, o.replicated_exact},
            capacity, true, &lines);
    AddSide(o,
            {"owner", SPARSESEL_COMPOSITION_OWNER, o.owner_median, o.owner_spread, o.owner_exact},
            capacity, false, &lines);
    *notes += Disqualified(capacity, o.capacity);
    const char* winner = o.winner == SPARSESEL_COMPOSITION_OWNER ? "owner" : "replicated";
    chosen.Add(o.capacity, std::string(winner) + " by " + ChildPlans(capacity, winner));
  }
  *table = lines.ToString();
  *notes += chosen.ToString();
  const std::string note = parsed.value("note", "");
  if (!note.empty()) *notes += note + "\n";
  return {};
}

}  // namespace sparsesel_tool
