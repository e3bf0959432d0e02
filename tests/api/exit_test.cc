// A process that ends, or lets go of the library, while it still has handles.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>

#include "sparsesel.h"

namespace {

// A plan, a binding and a group that are never released; false if they could not be made.
bool LeaveAll() {
  static sparsesel_comm* comm;
  static sparsesel_plan* plan;
  static sparsesel_binding* binding;
  sparsesel_problem problem = SPARSESEL_PROBLEM_INIT;
  problem.k = 2;
  problem.candidates = 4;
  return sparsesel_comm_create_local(1, nullptr, &comm, nullptr) == SPARSESEL_OK &&
         sparsesel_plan_create(comm, &problem, &plan, nullptr) == SPARSESEL_OK &&
         sparsesel_plan_prepare(plan, nullptr, nullptr) == SPARSESEL_OK &&
         sparsesel_plan_bind(plan, nullptr, 0, &binding, nullptr) == SPARSESEL_OK;
}

// Runs `body` in a process of its own; its exit status, or -1.
template <typename Body>
int InChild(Body body) {
  std::fflush(nullptr);  // what is buffered would be written twice
  const pid_t child = fork();
  if (child == 0) body();
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

TEST_CASE("bug_G09: a process may end with handles that were never released") {
  CHECK(InChild([] { std::exit(LeaveAll() ? 0 : 1); }) == 0);
}

TEST_CASE("bug_G09: a release in an atexit handler, after main's objects are gone") {
  CHECK(InChild([] {
          static sparsesel_comm* comm;
          std::atexit([] { _exit(sparsesel_comm_release(comm, nullptr) == SPARSESEL_OK ? 0 : 2); });
          std::exit(sparsesel_comm_create_local(1, nullptr, &comm, nullptr) == SPARSESEL_OK ? 0
                                                                                            : 1);
        }) == 0);
}

}  // namespace
