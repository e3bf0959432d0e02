// Plans: sparsesel_plan_*. The phases and their order are Plan's.
#include "plan/plan.h"

#include <memory>

#include "api/errors.h"
#include "api/handles.h"
#include "api/options.h"
#include "api/structs.h"
#include "api/text.h"
#include "sparsesel.h"

namespace sparsesel {
namespace {

Status CreatePlan(sparsesel_comm* comm, const sparsesel_problem* problem, sparsesel_plan** plan) {
  if (plan == nullptr) return Status::Error(SPARSESEL_INVALID_ARGUMENT, "plan is NULL");
  *plan = nullptr;
  Pinned<sparsesel_comm> pinned;
  SPARSESEL_RETURN_IF_ERROR(pinned.Take(comm));
  Problem parsed;
  SPARSESEL_RETURN_IF_ERROR(ParseProblemStruct(problem, &parsed));
  Reserved<sparsesel_plan> reserved;
  SPARSESEL_RETURN_IF_ERROR(reserved.Take());
  std::shared_ptr<Plan> made;
  SPARSESEL_RETURN_IF_ERROR(Plan::Create(pinned.share(), parsed, &made));
  *plan = reserved.Publish(std::move(made));
  return {};
}

Status PlanMemory(const sparsesel_plan* plan, sparsesel_memory* memory) {
  Pinned<sparsesel_plan> pinned;
  SPARSESEL_RETURN_IF_ERROR(pinned.Take(plan));
  SPARSESEL_RETURN_IF_ERROR(CheckStructOut("memory", memory));
  sparsesel_memory filled = SPARSESEL_MEMORY_INIT;
  SPARSESEL_RETURN_IF_ERROR(pinned->Memory(&filled));
  CopyStructOut(&filled, sizeof(filled), memory);
  return {};
}

Status PreparePlan(sparsesel_plan* plan, const sparsesel_prepare_options* options) {
  Pinned<sparsesel_plan> pinned;
  SPARSESEL_RETURN_IF_ERROR(pinned.Take(plan));
  PrepareOptions parsed = ParsePrepareOptions(options);
  ProgressGuard guard(parsed.progress);
  parsed.progress = guard.Guarded();
  return pinned->Prepare(parsed);
}

Status RacePlan(sparsesel_plan* plan, const sparsesel_race_options* options,
                sparsesel_report** report) {
  if (report != nullptr) *report = nullptr;
  Pinned<sparsesel_plan> pinned;
  SPARSESEL_RETURN_IF_ERROR(pinned.Take(plan));
  RaceOptions parsed = ParseRaceOptions(options);
  ProgressGuard guard(parsed.progress);
  parsed.progress = guard.Guarded();
  Reserved<sparsesel_report> reserved;
  if (parsed.invalid.ok()) parsed.invalid = reserved.Take();
  if (parsed.invalid.ok() && report == nullptr) {
    parsed.invalid = Status::Error(SPARSESEL_INVALID_ARGUMENT, "report is NULL");
  }
  std::shared_ptr<const Report> made;
  SPARSESEL_RETURN_IF_ERROR(pinned->Race(parsed, &made));
  if (report != nullptr) *report = reserved.Publish(std::move(made));
  return {};
}

Status BindPlan(sparsesel_plan* plan, sparsesel_workspace* workspace, int32_t composition,
                sparsesel_binding** binding) {
  if (binding != nullptr) *binding = nullptr;
  Pinned<sparsesel_plan> pinned;
  SPARSESEL_RETURN_IF_ERROR(pinned.Take(plan));
  Pinned<sparsesel_workspace> place;
  Reserved<sparsesel_binding> reserved;
  Status invalid = CheckComposition(composition);
  if (invalid.ok() && workspace != nullptr) invalid = place.Take(workspace);
  if (invalid.ok()) invalid = reserved.Take();
  if (invalid.ok() && binding == nullptr) {
    invalid = Status::Error(SPARSESEL_INVALID_ARGUMENT, "binding is NULL");
  }
  std::shared_ptr<Binding> made;
  SPARSESEL_RETURN_IF_ERROR(pinned->Bind(place.share(), composition, invalid, &made));
  if (binding != nullptr) *binding = reserved.Publish(std::move(made));
  return {};
}

}  // namespace
}  // namespace sparsesel

using sparsesel::Call;
using sparsesel::Pinned;
using sparsesel::Status;

sparsesel_status sparsesel_plan_create(sparsesel_comm* comm, const sparsesel_problem* problem,
                                       sparsesel_plan** plan, sparsesel_error* error) {
  return Call(error, [&] { return sparsesel::CreatePlan(comm, problem, plan); });
}

sparsesel_status sparsesel_plan_memory(const sparsesel_plan* plan, sparsesel_memory* memory,
                                       sparsesel_error* error) {
  return Call(error, [&] { return sparsesel::PlanMemory(plan, memory); });
}

sparsesel_status sparsesel_plan_prepare(sparsesel_plan* plan,
                                        const sparsesel_prepare_options* options,
                                        sparsesel_error* error) {
  return Call(error, [&] { return sparsesel::PreparePlan(plan, options); });
}

sparsesel_status sparsesel_plan_race(sparsesel_plan* plan, const sparsesel_race_options* options,
                                     sparsesel_report** report, sparsesel_error* error) {
  return Call(error, [&] { return sparsesel::RacePlan(plan, options, report); });
}

sparsesel_status sparsesel_plan_bind(sparsesel_plan* plan, sparsesel_workspace* workspace,
                                     int32_t composition, sparsesel_binding** binding,
                                     sparsesel_error* error) {
  return Call(error, [&] { return sparsesel::BindPlan(plan, workspace, composition, binding); });
}

sparsesel_status sparsesel_plan_release(sparsesel_plan* plan, sparsesel_error* error) {
  return Call(error, [&] { return sparsesel::ReleaseHandle(plan); });
}

sparsesel_status sparsesel_plan_export_decision(const sparsesel_plan* plan, char* text, size_t size,
                                                size_t* needed, sparsesel_error* error) {
  return Call(error, [&]() -> Status {
    if (needed != nullptr) *needed = 0;
    Pinned<sparsesel_plan> pinned;
    SPARSESEL_RETURN_IF_ERROR(pinned.Take(plan));
    SPARSESEL_RETURN_IF_ERROR(sparsesel::CheckTextOut(text, size, needed));
    return Status::Error(SPARSESEL_UNSUPPORTED, "decisions cannot be exported by this version");
  });
}

sparsesel_status sparsesel_plan_import_decision(sparsesel_plan* plan, const char* text,
                                                sparsesel_error* error) {
  return Call(error, [&]() -> Status {
    Pinned<sparsesel_plan> pinned;
    SPARSESEL_RETURN_IF_ERROR(pinned.Take(plan));
    if (text == nullptr) return Status::Error(SPARSESEL_INVALID_ARGUMENT, "text is NULL");
    return Status::Error(SPARSESEL_UNSUPPORTED, "decisions cannot be imported by this version");
  });
}
