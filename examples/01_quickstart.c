/* The whole lifecycle: four ranks, each a thread of this process, pick the 8 best of 64 candidates
 * per row, in one order on all ranks. Exits with 0 if the answer is right.
 *
 *   cc 01_quickstart.c -lsparsesel -lpthread
 */
#include <pthread.h>
#include <stdio.h>

#include "sparsesel.h"

enum { kWorld = 4, kRows = 3, kCandidates = 16, kK = 8 };

/* Prints what went wrong; non-zero if something did. */
static int failed(int rank, const char* call, sparsesel_status status,
                  const sparsesel_error* error) {
  if (status == SPARSESEL_OK) return 0;
  fprintf(stderr, "rank %d: %s: %s: %s\n", rank, call, sparsesel_status_name(status), error->text);
  return 1;
}

/* Rank r holds the ids r, r + 4, r + 8, ... of each row; id i has score -|i - 20 - row|, so the
 * best are those next to 20 + row, and of two that are equally near the smaller id comes first. */
static void fill(int rank, float* scores, int32_t* ids) {
  int row, i;
  for (row = 0; row < kRows; ++row) {
    for (i = 0; i < kCandidates; ++i) {
      const int id = i * kWorld + rank;
      const int distance = id < 20 + row ? 20 + row - id : id - 20 - row;
      ids[row * kCandidates + i] = id;
      scores[row * kCandidates + i] = (float)-distance;
    }
  }
}

static int is_right(const int32_t* out) {
  int row, i;
  for (row = 0; row < kRows; ++row) {
    const int32_t* ids = out + row * kK;
    if (ids[0] != 20 + row) return 0;
    for (i = 1; i < kK; ++i) { /* 19, 21, 18, 22, ... */
      if (ids[i] != 20 + row + (i % 2 != 0 ? -(i + 1) / 2 : i / 2)) return 0;
    }
  }
  return 1;
}

struct rank {
  int rank;
  sparsesel_comm* comm;
  int ok;
};

static void* run(void* argument) {
  struct rank* self = (struct rank*)argument;
  const int rank = self->rank;
  const int32_t capacities[] = {1, kRows};
  float scores[kRows * kCandidates];
  int32_t ids[kRows * kCandidates];
  int32_t out[kRows * kK];
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  sparsesel_problem problem = SPARSESEL_PROBLEM_INIT;
  sparsesel_race_options race = SPARSESEL_RACE_OPTIONS_INIT;
  sparsesel_io io = SPARSESEL_IO_INIT;
  sparsesel_plan* plan = NULL;
  sparsesel_report* report = NULL;
  sparsesel_binding* binding = NULL;
  int call;

  /* Describe the job, choose how to do it, bind the choice. */
  problem.k = kK;
  problem.candidates = kCandidates;
  problem.capacities = capacities;
  problem.capacity_count = 2;
  race.time_budget = 200000000; /* 0.2 s */
  if (failed(rank, "plan_create", sparsesel_plan_create(self->comm, &problem, &plan, &error),
             &error) ||
      failed(rank, "plan_prepare", sparsesel_plan_prepare(plan, NULL, &error), &error) ||
      failed(rank, "plan_race", sparsesel_plan_race(plan, &race, &report, &error), &error) ||
      failed(rank, "plan_bind",
             sparsesel_plan_bind(plan, NULL, SPARSESEL_COMPOSITION_AUTO, &binding, &error),
             &error)) {
    sparsesel_comm_abort(self->comm, NULL); /* so that no rank waits for this one */
  } else {
    /* Run it, as often as there is something to select. */
    fill(rank, scores, ids);
    io.rows = kRows;
    io.scores = scores;
    io.ids = ids;
    io.out_ids = out;
    self->ok = 1;
    for (call = 0; call < 100 && self->ok; ++call) {
      self->ok = !failed(rank, "execute", sparsesel_execute(binding, &io, NULL, &error), &error) &&
                 is_right(out);
    }
  }
  sparsesel_binding_release(binding, NULL);
  sparsesel_report_release(report, NULL);
  sparsesel_plan_release(plan, NULL);
  return NULL;
}

int main(void) {
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  sparsesel_comm* comms[kWorld];
  struct rank ranks[kWorld];
  pthread_t threads[kWorld];
  int rank, ok = 1;

  if (failed(0, "comm_create_local", sparsesel_comm_create_local(kWorld, NULL, comms, &error),
             &error)) {
    return 1;
  }
  for (rank = 0; rank < kWorld; ++rank) {
    ranks[rank].rank = rank;
    ranks[rank].comm = comms[rank];
    ranks[rank].ok = 0;
    if (pthread_create(&threads[rank], NULL, run, &ranks[rank]) != 0) return 1;
  }
  for (rank = 0; rank < kWorld; ++rank) {
    pthread_join(threads[rank], NULL);
    sparsesel_comm_release(comms[rank], NULL);
    ok = ok && ranks[rank].ok;
  }
  puts(ok ? "all ranks have the same right ids" : "WRONG");
  return ok ? 0 : 1;
}
