// Every function with NULL where something is needed; and what is left behind.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "contract/group_fixture.h"
#include "sparsesel.h"

namespace contract {
namespace {

constexpr sparsesel_status kInvalid = SPARSESEL_INVALID_ARGUMENT;

// A handle that is no handle, to see that failing calls set it to NULL.
template <typename Handle>
Handle* Garbage() {
  return reinterpret_cast<Handle*>(uintptr_t{0x1234});
}

TEST_CASE("api: groups refuse what is missing or out of range") {
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  sparsesel_comm* comms[2] = {Garbage<sparsesel_comm>(), Garbage<sparsesel_comm>()};
  sparsesel_comm_options options = ShortLimits();
  options.transport = 99;
  CHECK(sparsesel_comm_create_local(2, &options, comms, &error) == kInvalid);
  CHECK(comms[0] == nullptr);
  CHECK(comms[1] == nullptr);
  CHECK(sparsesel_comm_create_local(0, nullptr, comms, &error) == kInvalid);
  CHECK(sparsesel_comm_create_local(65, nullptr, comms, &error) == kInvalid);
  CHECK(sparsesel_comm_create_local(-1, nullptr, comms, &error) == kInvalid);
  CHECK(sparsesel_comm_create_local(2, nullptr, nullptr, &error) == kInvalid);

  sparsesel_comm* comm = Garbage<sparsesel_comm>();
  CHECK(sparsesel_comm_create(nullptr, &comm, &error) == kInvalid);
  CHECK(comm == nullptr);
  options = ShortLimits();
  options.world_size = 1;
  CHECK(sparsesel_comm_create(&options, nullptr, &error) == kInvalid);
  CHECK(sparsesel_comm_create(&options, &comm, &error) == SPARSESEL_OK);
  sparsesel_comm_info info = SPARSESEL_COMM_INFO_INIT;
  CHECK(sparsesel_comm_status(comm, &info, &error) == SPARSESEL_OK);
  CHECK(info.world_size == 1);
  CHECK(info.failed_rank == -1);
  info.struct_size = 1;
  CHECK(sparsesel_comm_status(comm, &info, &error) == kInvalid);
  CHECK(sparsesel_comm_status(comm, nullptr, &error) == SPARSESEL_OK);
  CHECK(sparsesel_comm_set_timeouts(comm, UINT64_MAX, 0, &error) == SPARSESEL_OK);
  CHECK(sparsesel_comm_set_timeouts(nullptr, 1, 1, &error) == kInvalid);
  CHECK(sparsesel_comm_release(comm, &error) == SPARSESEL_OK);
}

TEST_CASE("api: plans, workspaces and bindings refuse what is missing") {
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  const Group group(1);
  sparsesel_comm* const comm = group.comm(0);
  sparsesel_problem problem = SPARSESEL_PROBLEM_INIT;
  problem.k = 2;
  problem.candidates = 4;

  sparsesel_plan* plan = Garbage<sparsesel_plan>();
  CHECK(sparsesel_plan_create(comm, nullptr, &plan, &error) == kInvalid);
  CHECK(plan == nullptr);
  CHECK(sparsesel_plan_create(comm, &problem, nullptr, &error) == kInvalid);
  plan = Garbage<sparsesel_plan>();
  CHECK(sparsesel_plan_create(nullptr, &problem, &plan, &error) == kInvalid);
  CHECK(plan == nullptr);
  REQUIRE(sparsesel_plan_create(comm, &problem, &plan, &error) == SPARSESEL_OK);

  CHECK(sparsesel_plan_memory(plan, nullptr, &error) == kInvalid);
  sparsesel_binding* binding = Garbage<sparsesel_binding>();
  CHECK(sparsesel_plan_bind(plan, nullptr, 0, &binding, &error) == SPARSESEL_INVALID_STATE);
  CHECK(binding == nullptr);
  REQUIRE(sparsesel_plan_prepare(plan, nullptr, &error) == SPARSESEL_OK);
  CHECK(sparsesel_plan_race(plan, nullptr, nullptr, &error) == kInvalid);
  CHECK(sparsesel_plan_bind(plan, nullptr, 0, nullptr, &error) == kInvalid);
  binding = Garbage<sparsesel_binding>();
  CHECK(sparsesel_plan_bind(plan, Garbage<sparsesel_workspace>(), 0, &binding, &error) == kInvalid);
  CHECK(binding == nullptr);
  sparsesel_workspace* workspace = Garbage<sparsesel_workspace>();
  CHECK(sparsesel_workspace_create(comm, nullptr, nullptr, &error) == kInvalid);
  CHECK(sparsesel_workspace_create(nullptr, nullptr, &workspace, &error) == kInvalid);
  CHECK(workspace == nullptr);

  // None of this spoiled the plan.
  sparsesel_report* report = nullptr;
  REQUIRE(sparsesel_plan_race(plan, nullptr, &report, &error) == SPARSESEL_OK);
  REQUIRE(sparsesel_plan_bind(plan, nullptr, 0, &binding, &error) == SPARSESEL_OK);
  sparsesel_outcome outcome = SPARSESEL_OUTCOME_INIT;
  CHECK(sparsesel_report_outcome(report, 0, nullptr, &error) == kInvalid);
  CHECK(sparsesel_report_outcome(report, -1, &outcome, &error) == kInvalid);
  CHECK(sparsesel_report_outcome(report, 1, &outcome, &error) == kInvalid);
  CHECK(sparsesel_report_outcome(report, 0, &outcome, &error) == SPARSESEL_OK);
  CHECK(outcome.capacity == 1);
  CHECK(sparsesel_binding_stats(binding, nullptr, &error) == kInvalid);
  CHECK(sparsesel_execute(binding, nullptr, nullptr, &error) == kInvalid);
  CHECK(std::string(error.text).find("io is NULL") != std::string::npos);
  sparsesel_io io = SPARSESEL_IO_INIT;
  CHECK(sparsesel_execute(binding, &io, nullptr, &error) == SPARSESEL_OK);  // no rows
  io.struct_size = 7;
  CHECK(sparsesel_execute(binding, &io, nullptr, &error) == kInvalid);

  size_t needed = 1;
  CHECK(sparsesel_plan_export_decision(plan, nullptr, 0, &needed, &error) == SPARSESEL_UNSUPPORTED);
  CHECK(needed == 0);
  CHECK(sparsesel_plan_import_decision(plan, "{}", &error) == SPARSESEL_UNSUPPORTED);
  CHECK(sparsesel_plan_import_decision(plan, nullptr, &error) == kInvalid);

  CHECK(sparsesel_binding_release(binding, &error) == SPARSESEL_OK);
  CHECK(sparsesel_report_release(report, &error) == SPARSESEL_OK);
  CHECK(sparsesel_plan_release(plan, &error) == SPARSESEL_OK);
}

// The rules of all functions that write a text.
template <typename Function>
void CheckTextRules(Function function) {
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  size_t needed = 0;
  REQUIRE(function(nullptr, 0, &needed, &error) == SPARSESEL_OK);
  REQUIRE(needed > 2);
  std::vector<char> text(needed + 1, 'x');
  size_t again = 0;
  CHECK(function(text.data(), needed - 1, &again, &error) == kInvalid);
  CHECK(again == needed);
  CHECK(text == std::vector<char>(needed + 1, 'x'));
  CHECK(function(text.data(), needed, &again, &error) == SPARSESEL_OK);
  CHECK(again == needed);
  CHECK(text[needed - 1] == '\0');
  CHECK(text[needed] == 'x');
  CHECK(text[0] == '{');
  CHECK(std::string(text.data()).size() == needed - 1);
  CHECK(function(text.data(), needed, nullptr, nullptr) == SPARSESEL_OK);
  CHECK(function(nullptr, needed, &again, &error) == kInvalid);
  CHECK(function(nullptr, 0, nullptr, &error) == kInvalid);
}

TEST_CASE("api: texts are written whole or not at all") {
  CheckTextRules(sparsesel_system_json);
  const Group group(1);
  std::vector<sparsesel_plan*> plans;
  std::vector<sparsesel_report*> reports;
  std::vector<sparsesel_binding*> bindings;
  REQUIRE(AllOk(CreatePlans(group, MakeJob(1, 4, 4, {1, 2}), &plans)));
  REQUIRE(AllOk(Prepare(plans)));
  REQUIRE(AllOk(Race(plans, &reports)));
  REQUIRE(AllOk(Bind(plans, SPARSESEL_COMPOSITION_AUTO, &bindings)));
  CheckTextRules([&](char* text, size_t size, size_t* needed, sparsesel_error* error) {
    return sparsesel_report_json(reports[0], text, size, needed, error);
  });
  CheckTextRules([&](char* text, size_t size, size_t* needed, sparsesel_error* error) {
    return sparsesel_binding_json(bindings[0], text, size, needed, error);
  });
  Release(&bindings);
  Release(&reports);
  Release(&plans);
}

TEST_CASE("api: the system says what there is and why something is not") {
  std::string text = TextOf(sparsesel_system_json);
  // How it is laid out is nobody's business.
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
  for (const char* part : {"\"version\":\"0.1.0+", "\"backends\":[\"host\"", "\"name\":\"threads\"",
                           "\"name\":\"mpi\"", "\"available\":false,\"reason\":",
                           "\"name\":\"pack.plain\"", "\"devices\":["}) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
}

}  // namespace
}  // namespace contract
