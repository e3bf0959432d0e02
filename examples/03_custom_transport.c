/* A group of the caller's own making: the bootstrap (control plane) and the transport (data plane)
 * are a board of messages in shared memory, guarded by a mutex. In a real program they would be a
 * network. Three ranks, each a thread, that meet nowhere but on the boards. Exits with 0 if the
 * answer is right.
 *
 *   cc 03_custom_transport.c -lsparsesel -lpthread
 */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sparsesel.h"

enum { kWorld = 3, kRows = 4, kCandidates = 32, kK = 10 };

/* ------------------------------------------------------------------------------- a board ------ */

/* An all-gather in rounds. A rank posts its message for a round and may then look whether all have.
 * Two rounds are kept: a rank posts for round n + 2 only after all have posted for n + 1, so after
 * all have taken what they wanted of round n. */
struct board {
  pthread_mutex_t mutex;
  pthread_cond_t posted;
  struct {
    unsigned char* message[kWorld];
    int count; /* ranks that have posted */
  } round[2];
  unsigned rounds[kWorld]; /* posted so far, by rank */
  int closed;
};

static int board_init(struct board* board) {
  pthread_condattr_t monotonic;
  int failed;
  memset(board, 0, sizeof(*board));
  failed = pthread_condattr_init(&monotonic) != 0 ||
           pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) != 0 ||
           pthread_cond_init(&board->posted, &monotonic) != 0 ||
           pthread_mutex_init(&board->mutex, NULL) != 0;
  return !failed;
}

static void board_destroy(struct board* board) {
  int i, rank;
  for (i = 0; i < 2; ++i) {
    for (rank = 0; rank < kWorld; ++rank) free(board->round[i].message[rank]);
  }
  pthread_cond_destroy(&board->posted);
  pthread_mutex_destroy(&board->mutex);
}

/* Posts a copy of the message; the round's number, or -1 without memory. Under the mutex. */
static int board_post(struct board* board, int rank, const void* message, size_t bytes) {
  const int round = (int)(board->rounds[rank]++ % 2);
  unsigned char** place = &board->round[round].message[rank];
  free(*place);
  *place = (unsigned char*)malloc(bytes > 0 ? bytes : 1);
  if (*place == NULL) return -1;
  memcpy(*place, message, bytes);
  if (board->round[round].count == kWorld)
    board->round[round].count = 0; /* the round before last */
  ++board->round[round].count;
  pthread_cond_broadcast(&board->posted);
  return round;
}

static int board_complete(const struct board* board, int round) {
  return board->round[round].count == kWorld;
}

static void board_take(const struct board* board, int round, void* receive, size_t bytes) {
  int rank;
  for (rank = 0; rank < kWorld; ++rank) {
    memcpy((unsigned char*)receive + (size_t)rank * bytes, board->round[round].message[rank],
           bytes);
  }
}

/* --------------------------------------------------------------- bootstrap and transport ------ */

struct member {
  int rank;
  struct board* control;
  struct board* data;
  int ok;
};

/* One all-gather that has been started. */
struct request {
  void* receive;
  size_t bytes;
  int round;
};

static sparsesel_status control_start(void* context, const void* send, void* receive, size_t bytes,
                                      void** request) {
  struct member* self = (struct member*)context;
  struct request* made = (struct request*)malloc(sizeof(*made));
  if (made == NULL) return SPARSESEL_OUT_OF_MEMORY;
  made->receive = receive;
  made->bytes = bytes;
  pthread_mutex_lock(&self->control->mutex);
  made->round = board_post(self->control, self->rank, send, bytes);
  pthread_mutex_unlock(&self->control->mutex);
  if (made->round < 0) {
    free(made);
    return SPARSESEL_OUT_OF_MEMORY;
  }
  *request = made;
  return SPARSESEL_OK;
}

static sparsesel_status control_test(void* context, void* request) {
  struct member* self = (struct member*)context;
  struct request* pending = (struct request*)request;
  sparsesel_status status = SPARSESEL_IN_PROGRESS;
  pthread_mutex_lock(&self->control->mutex);
  if (board_complete(self->control, pending->round)) {
    board_take(self->control, pending->round, pending->receive, pending->bytes);
    status = SPARSESEL_OK;
  }
  pthread_mutex_unlock(&self->control->mutex);
  return status;
}

static void control_free(void* context, void* request) {
  (void)context;
  free(request);
}

/* Only all_gather: the library makes to-owner exchanges from it. */
static sparsesel_status data_all_gather(void* context, const void* send, void* receive,
                                        uint64_t bytes, void* stream, uint64_t timeout) {
  struct member* self = (struct member*)context;
  struct board* board = self->data;
  sparsesel_status status = SPARSESEL_OK;
  struct timespec deadline;
  int round, late = 0;
  (void)stream; /* host memory has none */
  clock_gettime(CLOCK_MONOTONIC, &deadline);
  deadline.tv_sec += (time_t)(timeout / 1000000000u);
  deadline.tv_nsec += (long)(timeout % 1000000000u);
  if (deadline.tv_nsec >= 1000000000) {
    deadline.tv_nsec -= 1000000000;
    ++deadline.tv_sec;
  }
  pthread_mutex_lock(&board->mutex);
  round = board_post(board, self->rank, send, (size_t)bytes);
  while (round >= 0 && !board_complete(board, round) && !board->closed && late != ETIMEDOUT) {
    late = pthread_cond_timedwait(&board->posted, &board->mutex, &deadline);
  }
  if (round < 0) {
    status = SPARSESEL_OUT_OF_MEMORY;
  } else if (board_complete(board, round)) {
    board_take(board, round, receive, (size_t)bytes);
  } else {
    status = board->closed ? SPARSESEL_ABORTED : SPARSESEL_TIMEOUT;
  }
  pthread_mutex_unlock(&board->mutex);
  return status;
}

static void data_abort(void* context) {
  struct member* self = (struct member*)context;
  pthread_mutex_lock(&self->data->mutex);
  self->data->closed = 1;
  pthread_cond_broadcast(&self->data->posted);
  pthread_mutex_unlock(&self->data->mutex);
}

/* ------------------------------------------------------------------------------ the ranks ----- */

static int failed(int rank, const char* call, sparsesel_status status,
                  const sparsesel_error* error) {
  if (status == SPARSESEL_OK) return 0;
  fprintf(stderr, "rank %d: %s: %s: %s\n", rank, call, sparsesel_status_name(status), error->text);
  return 1;
}

/* Rank r holds ids r, r + 3, ...; the score of an id is its number, so the best are the greatest.
 */
static int execute_and_check(sparsesel_binding* binding, int rank, int rows) {
  float scores[kRows * kCandidates];
  int32_t ids[kRows * kCandidates];
  int32_t out[kRows * kK];
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  sparsesel_io io = SPARSESEL_IO_INIT;
  int i;
  for (i = 0; i < rows * kCandidates; ++i) {
    ids[i] = i % kCandidates * kWorld + rank;
    scores[i] = (float)ids[i];
  }
  io.rows = rows;
  io.scores = scores;
  io.ids = ids;
  io.out_ids = out;
  if (failed(rank, "execute", sparsesel_execute(binding, &io, NULL, &error), &error)) return 0;
  for (i = 0; i < rows * kK; ++i) {
    if (out[i] != kWorld * kCandidates - 1 - i % kK) return 0;
  }
  return 1;
}

static void* run(void* argument) {
  struct member* self = (struct member*)argument;
  const int rank = self->rank;
  const int32_t capacities[] = {1, kRows};
  const int32_t compositions[] = {SPARSESEL_COMPOSITION_REPLICATED, SPARSESEL_COMPOSITION_OWNER};
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  sparsesel_transport transport = SPARSESEL_TRANSPORT_INIT;
  sparsesel_comm_options options = SPARSESEL_COMM_OPTIONS_INIT;
  sparsesel_problem problem = SPARSESEL_PROBLEM_INIT;
  sparsesel_prepare_options prepare = SPARSESEL_PREPARE_OPTIONS_INIT;
  sparsesel_comm* comm = NULL;
  sparsesel_plan* plan = NULL;
  int i, rows, ok;

  transport.context = self;
  transport.identity = "board";
  transport.all_gather = data_all_gather;
  transport.abort = data_abort;
  options.transport = SPARSESEL_TRANSPORT_CUSTOM;
  options.custom = &transport;
  options.rank = rank;
  options.world_size = kWorld;
  options.bootstrap.context = self;
  options.bootstrap.start = control_start;
  options.bootstrap.test = control_test;
  options.bootstrap.free = control_free;
  problem.k = kK;
  problem.candidates = kCandidates;
  problem.capacities = capacities;
  problem.capacity_count = 2;
  prepare.time_budget = 100000000; /* 0.1 s */

  ok = !failed(rank, "comm_create", sparsesel_comm_create(&options, &comm, &error), &error) &&
       !failed(rank, "plan_create", sparsesel_plan_create(comm, &problem, &plan, &error), &error) &&
       !failed(rank, "plan_prepare", sparsesel_plan_prepare(plan, &prepare, &error), &error);
  for (i = 0; i < 2 && ok; ++i) { /* both compositions, on the same transport */
    sparsesel_binding* binding = NULL;
    ok = !failed(rank, "plan_bind",
                 sparsesel_plan_bind(plan, NULL, compositions[i], &binding, &error), &error);
    for (rows = kRows; rows >= 0 && ok; --rows) ok = execute_and_check(binding, rank, rows);
    sparsesel_binding_release(binding, NULL);
  }
  if (!ok) sparsesel_comm_abort(comm, NULL);
  sparsesel_plan_release(plan, NULL);
  sparsesel_comm_release(comm, NULL);
  self->ok = ok;
  return NULL;
}

int main(void) {
  static struct board control, data;
  struct member members[kWorld];
  pthread_t threads[kWorld];
  int rank, ok = 1;
  if (!board_init(&control) || !board_init(&data)) return 1;
  for (rank = 0; rank < kWorld; ++rank) {
    members[rank].rank = rank;
    members[rank].control = &control;
    members[rank].data = &data;
    members[rank].ok = 0;
    if (pthread_create(&threads[rank], NULL, run, &members[rank]) != 0) return 1;
  }
  for (rank = 0; rank < kWorld; ++rank) {
    pthread_join(threads[rank], NULL);
    ok = ok && members[rank].ok;
  }
  board_destroy(&control);
  board_destroy(&data);
  puts(ok ? "all ranks have the same right ids" : "WRONG");
  return ok ? 0 : 1;
}
