// What runs: sparsesel_workspace_*, sparsesel_execute, sparsesel_binding_*.
#include "plan/binding.h"

#include <memory>
#include <string>

#include "api/errors.h"
#include "api/handles.h"
#include "api/options.h"
#include "api/structs.h"
#include "api/text.h"
#include "plan/workspace.h"
#include "sparsesel.h"

namespace sparsesel {
namespace {

Status CreateWorkspace(sparsesel_comm* comm, const sparsesel_workspace_options* options,
                       sparsesel_workspace** workspace) {
  if (workspace != nullptr) *workspace = nullptr;
  Pinned<sparsesel_comm> pinned;
  SPARSESEL_RETURN_IF_ERROR(pinned.Take(comm));
  int32_t slots = 1;
  Reserved<sparsesel_workspace> reserved;
  Status invalid = ParseWorkspaceOptions(options, &slots);
  if (invalid.ok()) invalid = reserved.Take();
  if (invalid.ok() && workspace == nullptr) {
    invalid = Status::Error(SPARSESEL_INVALID_ARGUMENT, "workspace is NULL");
  }
  std::shared_ptr<Workspace> made;
  SPARSESEL_RETURN_IF_ERROR(Workspace::Create(pinned.share(), slots, invalid, &made));
  if (workspace != nullptr) *workspace = reserved.Publish(std::move(made));
  return {};
}

Status Execute(sparsesel_binding* binding, const sparsesel_io* io, void* stream) {
  Pinned<sparsesel_binding> pinned;
  SPARSESEL_RETURN_IF_ERROR(pinned.Take(binding));
  if (io != nullptr && io->struct_size == sizeof(*io)) {  // as good as always: no copy
    return pinned->Execute(*io, stream, Status());
  }
  sparsesel_io copy;
  const Status invalid = ReadStruct("io", io, &copy);
  if (!invalid.ok()) copy = SPARSESEL_IO_INIT;
  return pinned->Execute(copy, stream, invalid);
}

Status BindingStats(const sparsesel_binding* binding, sparsesel_stats* stats) {
  Pinned<sparsesel_binding> pinned;
  SPARSESEL_RETURN_IF_ERROR(pinned.Take(binding));
  SPARSESEL_RETURN_IF_ERROR(CheckStructOut("stats", stats));
  sparsesel_stats filled = SPARSESEL_STATS_INIT;
  SPARSESEL_RETURN_IF_ERROR(pinned->Stats(&filled));
  CopyStructOut(&filled, sizeof(filled), stats);
  return {};
}

Status BindingText(const sparsesel_binding* binding, char* text, size_t size, size_t* needed) {
  if (needed != nullptr) *needed = 0;
  Pinned<sparsesel_binding> pinned;
  SPARSESEL_RETURN_IF_ERROR(pinned.Take(binding));
  SPARSESEL_RETURN_IF_ERROR(CheckTextOut(text, size, needed));
  std::string json;
  SPARSESEL_RETURN_IF_ERROR(pinned->ToJson(&json));
  return CopyTextOut(json, text, size, needed);
}

}  // namespace
}  // namespace sparsesel

using sparsesel::Call;

sparsesel_status sparsesel_workspace_create(sparsesel_comm* comm,
                                            const sparsesel_workspace_options* options,
                                            sparsesel_workspace** workspace,
                                            sparsesel_error* error) {
  return Call(error, [&] { return sparsesel::CreateWorkspace(comm, options, workspace); });
}

sparsesel_status sparsesel_workspace_release(sparsesel_workspace* workspace,
                                             sparsesel_error* error) {
  return Call(error, [&] { return sparsesel::ReleaseHandle(workspace); });
}

sparsesel_status sparsesel_execute(sparsesel_binding* binding, const sparsesel_io* io, void* stream,
                                   sparsesel_error* error) {
  return Call(error, [&] { return sparsesel::Execute(binding, io, stream); });
}

sparsesel_status sparsesel_binding_stats(const sparsesel_binding* binding, sparsesel_stats* stats,
                                         sparsesel_error* error) {
  return Call(error, [&] { return sparsesel::BindingStats(binding, stats); });
}

sparsesel_status sparsesel_binding_json(const sparsesel_binding* binding, char* text, size_t size,
                                        size_t* needed, sparsesel_error* error) {
  return Call(error, [&] { return sparsesel::BindingText(binding, text, size, needed); });
}

sparsesel_status sparsesel_binding_release(sparsesel_binding* binding, sparsesel_error* error) {
  return Call(error, [&] { return sparsesel::ReleaseHandle(binding); });
}
