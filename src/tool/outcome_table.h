// The outcome of a race as a table.
#ifndef SPARSESEL_TOOL_OUTCOME_TABLE_H_
#define SPARSESEL_TOOL_OUTCOME_TABLE_H_

#include <string>

#include "sparsesel.h"
#include "tool/result.h"

namespace sparsesel_tool {

// The report's JSON text.
Result ReportText(const sparsesel_report* report, std::string* json);

// `table`: two lines per capacity. `notes`: what else there is to say, lines.
Result OutcomeTable(const sparsesel_report* report, const std::string& json, std::string* table,
                    std::string* notes);

}  // namespace sparsesel_tool

#endif  // SPARSESEL_TOOL_OUTCOME_TABLE_H_
