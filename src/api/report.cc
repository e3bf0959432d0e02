// Reports: sparsesel_report_*.
#include "race/report.h"

#include <string>

#include "api/errors.h"
#include "api/handles.h"
#include "api/structs.h"
#include "api/text.h"
#include "sparsesel.h"

namespace sparsesel {
namespace {

Status ReportOutcome(const sparsesel_report* report, int32_t index, sparsesel_outcome* outcome) {
  Pinned<sparsesel_report> pinned;
  SPARSESEL_RETURN_IF_ERROR(pinned.Take(report));
  SPARSESEL_RETURN_IF_ERROR(CheckStructOut("outcome", outcome));
  const auto& capacities = pinned->capacities;
  if (index < 0 || static_cast<size_t>(index) >= capacities.size()) {
    return Status::Error(SPARSESEL_INVALID_ARGUMENT,
                         "index is %d, but the report has %d capacities", index, capacities.size());
  }
  CopyStructOut(&capacities[index].outcome, sizeof(sparsesel_outcome), outcome);
  return {};
}

Status ReportText(const sparsesel_report* report, char* text, size_t size, size_t* needed) {
  if (needed != nullptr) *needed = 0;
  Pinned<sparsesel_report> pinned;
  SPARSESEL_RETURN_IF_ERROR(pinned.Take(report));
  SPARSESEL_RETURN_IF_ERROR(CheckTextOut(text, size, needed));
  std::string json;
  SPARSESEL_RETURN_IF_ERROR(ReportToJson(*pinned.operator->(), &json));
  return CopyTextOut(json, text, size, needed);
}

}  // namespace
}  // namespace sparsesel

int32_t sparsesel_report_size(const sparsesel_report* report) {
  int32_t size = 0;
  const sparsesel_status status = sparsesel::Call(nullptr, [&]() -> sparsesel::Status {
    sparsesel::Pinned<sparsesel_report> pinned;
    SPARSESEL_RETURN_IF_ERROR(pinned.Take(report));
    size = static_cast<int32_t>(pinned->capacities.size());
    return {};
  });
  return status == SPARSESEL_OK ? size : 0;
}

sparsesel_status sparsesel_report_outcome(const sparsesel_report* report, int32_t index,
                                          sparsesel_outcome* outcome, sparsesel_error* error) {
  return sparsesel::Call(error, [&] { return sparsesel::ReportOutcome(report, index, outcome); });
}

sparsesel_status sparsesel_report_json(const sparsesel_report* report, char* text, size_t size,
                                       size_t* needed, sparsesel_error* error) {
  return sparsesel::Call(error, [&] { return sparsesel::ReportText(report, text, size, needed); });
}

sparsesel_status sparsesel_report_release(sparsesel_report* report, sparsesel_error* error) {
  return sparsesel::Call(error, [&] { return sparsesel::ReleaseHandle(report); });
}
