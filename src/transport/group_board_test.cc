#include "transport/group_board.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <utility>

namespace sparsesel {
namespace {

using Board = std::shared_ptr<GroupBoard>;

// Rank 0's view, and another rank's of the same process.
std::pair<Board, Board> TwoViews() {
  Board zero;
  Board one;
  GroupBoard::Name name;
  REQUIRE(GroupBoard::Create(0, &zero, &name).ok());
  REQUIRE(GroupBoard::Open(name, 1, &one).ok());
  zero->HideName();
  return {std::move(zero), std::move(one)};
}

TEST_CASE("board: the end of a group is seen by all, and its first reason stays") {
  const auto [zero, one] = TwoViews();
  REQUIRE_FALSE(one->aborted());
  REQUIRE(*one->abort_word() == 0);
  REQUIRE(one->failure() == 0);
  zero->Abort();
  one->Fail(7);
  zero->Fail(8);
  REQUIRE(one->aborted());
  REQUIRE(*one->abort_word() != 0);
  REQUIRE(zero->failure() == 7);
  REQUIRE(one->failure() == 7);
}

TEST_CASE("board: a name that was hidden, or is none, opens nothing") {
  Board board;
  Board other;
  GroupBoard::Name name;
  REQUIRE(GroupBoard::Create(0, &board, &name).ok());
  board->HideName();
  REQUIRE(GroupBoard::Open(name, 1, &other).code() == SPARSESEL_UNAVAILABLE);
  REQUIRE(GroupBoard::Open({}, 1, &other).code() == SPARSESEL_INTERNAL);
  name.fill('/');
  REQUIRE(GroupBoard::Open(name, 1, &other).code() == SPARSESEL_INTERNAL);
  REQUIRE(other == nullptr);
  // Whoever made it and lets go leaves no name behind.
  REQUIRE(GroupBoard::Create(0, &board, &name).ok());
  board.reset();
  REQUIRE(GroupBoard::Open(name, 1, &other).code() == SPARSESEL_UNAVAILABLE);
}

TEST_CASE("board: lent memory comes back by its borrowers' word, one by one") {
  const auto [zero, one] = TwoViews();
  const int32_t number = zero->TakeNumber();
  const int32_t other = zero->TakeNumber();
  REQUIRE(number != other);
  REQUIRE(zero->Returned(number, 0));
  REQUIRE_FALSE(zero->Returned(number, 2));
  one->Return(0, number);
  REQUIRE(zero->Returned(number, 2));
  REQUIRE_FALSE(zero->Returned(other, 2));
  REQUIRE_FALSE(zero->Returned(number, 2 | 4));  // rank 2 has never been heard of
  // A number that is used again begins anew.
  zero->FreeNumber(number);
  REQUIRE(zero->TakeNumber() == number);
  REQUIRE_FALSE(zero->Returned(number, 2));
}

TEST_CASE("board: a rank that lets go of everything has returned everything") {
  auto [zero, one] = TwoViews();
  const int32_t number = zero->TakeNumber();
  REQUIRE_FALSE(zero->Gone(1));
  one.reset();
  REQUIRE(zero->Gone(1));
  REQUIRE(zero->Returned(number, 2));
}

TEST_CASE("board: numbers end, and come back") {
  const auto [zero, one] = TwoViews();
  for (int32_t i = 0; i < GroupBoard::kMemories; ++i) REQUIRE(zero->TakeNumber() >= 0);
  REQUIRE(zero->TakeNumber() == -1);
  REQUIRE(one->TakeNumber() >= 0);  // each rank has its own
  zero->FreeNumber(9);
  REQUIRE(zero->TakeNumber() == 9);
}

TEST_CASE("board: a killed process is noticed, and what it borrowed is free") {
  Board board;
  GroupBoard::Name name;
  REQUIRE(GroupBoard::Create(0, &board, &name).ok());
  const int32_t number = board->TakeNumber();
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    Board view;
    const char said = GroupBoard::Open(name, 1, &view).ok() ? 'y' : 'n';
    if (write(ready[1], &said, 1) == 1) pause();
    _exit(1);
  }
  REQUIRE(child > 0);
  char said = 0;
  REQUIRE(read(ready[0], &said, 1) == 1);
  REQUIRE(said == 'y');
  REQUIRE_FALSE(board->Gone(1));
  REQUIRE_FALSE(board->Returned(number, 2));
  REQUIRE(kill(child, SIGKILL) == 0);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  REQUIRE(board->Gone(1));
  REQUIRE(board->Returned(number, 2));
  (void)close(ready[0]);
  (void)close(ready[1]);
}

}  // namespace
}  // namespace sparsesel
