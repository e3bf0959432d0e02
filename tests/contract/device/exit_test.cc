// A process that ends while it still has bindings and graphs. CUDA does not survive fork, so the
// child is this program once more, which runs one of the hidden cases below.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <memory>
#include <string>

#include "contract/device/graphs.h"
#include "contract/rows.h"

extern char** environ;

namespace contract {
namespace {

constexpr int kAsExpected = 42;

// What this program ends with when it runs one case; -1 if it dies otherwise.
int ExitStatusOf(std::string test_case) {
  std::string program = "/proc/self/exe";
  char* arguments[] = {program.data(), test_case.data(), nullptr};
  pid_t child = 0;
  if (posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, environ) != 0) return -1;
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

// A group with a binding that executes and a graph that is replayed; never destroyed.
struct Life {
  Job job = MakeJob(2, 100, 150, {4});
  Group group{2};
  Bound bound{group, job};
  Batch batch = BatchOfKinds(job, 4, 1);
  std::vector<RankArrays> arrays = MakeArrays(job, batch);
  GroupGraph graph{bound, arrays, group.streams()};

  bool Works() {
    return ReplayAndCompare(graph, job, ExpectRows(job, batch), &arrays, group.streams()) == "";
  }
};

TEST_CASE("child: ends with live plans and graphs", "[device][.child]") {
  auto* const life = new Life;
  std::exit(life->Works() ? kAsExpected : 1);
}

TEST_CASE("child: ends while its graph is replayed", "[device][.child]") {
  auto* const life = new Life;
  const bool works = life->Works();
  for (int i = 0; i < 200; ++i) life->graph.Launch(life->group.streams());
  std::exit(works ? kAsExpected : 1);
}

TEST_CASE("child: lets go of everything at exit", "[device][.child]") {
  static std::unique_ptr<Life> life;
  life = std::make_unique<Life>();
  const bool works = life->Works();
  std::exit(works ? kAsExpected : 1);
}

TEST_CASE("bug_G09_a_process_may_end_with_live_plans_and_graphs", "[device]") {
  CHECK(ExitStatusOf("child: ends with live plans and graphs") == kAsExpected);
  CHECK(ExitStatusOf("child: ends while its graph is replayed") == kAsExpected);
  CHECK(ExitStatusOf("child: lets go of everything at exit") == kAsExpected);
}

}  // namespace
}  // namespace contract
