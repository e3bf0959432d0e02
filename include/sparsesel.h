/* sparsesel: the same exact, ordered, global top-k on every rank.
 *
 * Every rank of a group holds, per query row, its own candidates: (score, id) pairs. sparsesel
 * gives every rank the same ordered ids of the k best candidates of all ranks. Two complete
 * compositions do it, `replicated` and `owner`; a plan prepares both, races them as wholes on this
 * machine and binds the winner.
 *
 *   join a group      sparsesel_comm_create_local, sparsesel_comm_create
 *   describe the job  sparsesel_plan_create, sparsesel_plan_memory
 *   choose            sparsesel_plan_prepare, sparsesel_plan_race
 *   bind              sparsesel_plan_bind
 *   run               sparsesel_execute, any number of times
 *   let go            sparsesel_*_release
 *
 * CONVENTIONS
 *
 *  1. Every function returns a sparsesel_status (0 is success) unless its comment says otherwise.
 *     No exception, abort, signal, output or change of the environment crosses this interface.
 *  2. The last parameter, `error`, is optional (NULL) and owned by the caller. It is filled on
 *     failure and cleared on success by the same call; nothing thread-local, nothing to free.
 *  3. An object is returned through the last out-parameter before `error`, NULL on failure.
 *     A handle is a number, not an address: a released, copied-and-released or forged handle is
 *     answered SPARSESEL_INVALID_ARGUMENT without touching memory. Each handle has its own type.
 *  4. Release functions take NULL and then do nothing. A release that meets a call in flight on
 *     another thread returns at once; the object goes when that call ends.
 *  5. Option structs begin with `struct_size`, set by SPARSESEL_..._INIT or sparsesel_..._init.
 *     *Zero means the default in every other field.* A larger struct from a newer caller is
 * accepted only if the bytes this library does not know are zero; else SPARSESEL_UNSUPPORTED.
 *  6. The library copies what options point to, unless a field says "borrowed".
 *  7. Words: `rank`, `world` (number of ranks), `row` (one query), `candidate`, `k`, `capacity` (a
 * row count that a plan prepares for). Strides count elements, sizes count bytes, times
 * nanoseconds.
 *  8. "Collective" calls are made by every rank of the group, in one order. They first compare what
 *     the ranks pass; disagreement is SPARSESEL_MISMATCH on every rank, and a rank that failed
 * gives every rank its own status, with `error->rank` naming it. Each of their waits ends within
 * the group's start-up limit, those of execute within its steady limit.
 *  9. Threads: functions on different handles may run at once. One handle is used by one thread at
 * a time, except in comm_status, comm_abort, binding_stats and the releases, which any thread may
 *     call at any time. Of these only the release that ends a workspace, or trials, may wait: until
 *     peers have read what this rank sent last, at most for the steady limit.
 * 10. Order of candidates: a number before a NaN; then the greater score (-0.0 equals +0.0); then
 * the smaller id; then the lower rank; then the lower position in that rank's list. NaNs are equal,
 *     whatever their sign and payload. Absence is never a score: a candidate is absent if and only
 * if its position is at or beyond the row's count or its id is negative.
 * 11. Device groups run on the device of the comm; the caller's current device is left as it was.
 * 12. Callbacks may be called from any thread that is inside a library call, never from a thread of
 *     the library's own. They must not call back into the library and must not throw.
 *
 * Every status can be returned by any function for these reasons, not repeated below:
 * INVALID_ARGUMENT (a NULL, stale or ill-sized argument), OUT_OF_MEMORY, INTERNAL.
 */
#ifndef SPARSESEL_H_
#define SPARSESEL_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define SPARSESEL_API __attribute__((visibility("default")))
#else
#define SPARSESEL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- version and status ---------- */

#define SPARSESEL_VERSION_MAJOR 0
#define SPARSESEL_VERSION_MINOR 1
#define SPARSESEL_VERSION_PATCH 0

typedef int32_t sparsesel_status;

enum {
  SPARSESEL_OK = 0,
  SPARSESEL_INVALID_ARGUMENT = 1, /* the call can never succeed as written */
  SPARSESEL_INVALID_STATE = 2,    /* right call, wrong moment */
  SPARSESEL_UNSUPPORTED = 3,      /* understood, and not offered by this version */
  SPARSESEL_UNAVAILABLE = 4,      /* offered, but this machine or group lacks what it needs */
  SPARSESEL_OUT_OF_MEMORY = 5,
  SPARSESEL_TIMEOUT = 6,       /* a peer did not come within the limit */
  SPARSESEL_PEER_FAILED = 7,   /* the group failed earlier or on another rank */
  SPARSESEL_ABORTED = 8,       /* sparsesel_comm_abort was called */
  SPARSESEL_MISMATCH = 9,      /* ranks disagree about what they are doing */
  SPARSESEL_WRONG_RESULT = 10, /* a composition did not reproduce the reference */
  SPARSESEL_IO = 11,           /* a file could not be read or written */
  SPARSESEL_INTERNAL = 12,     /* a fault of the library or of a callback */
  SPARSESEL_IN_PROGRESS = 13   /* only from callbacks that poll */
};

#define SPARSESEL_ERROR_TEXT_BYTES 496

/* What went wrong. Since 0.1. */
typedef struct sparsesel_error {
  uint32_t struct_size;
  int32_t status;       /* the returned status */
  int32_t rank;         /* the rank at fault, or -1 */
  int32_t backend_code; /* the CUDA, NCCL, errno or callback code behind it, or 0 */
  char text[SPARSESEL_ERROR_TEXT_BYTES]; /* UTF-8, one sentence, always terminated */
} sparsesel_error;

#define SPARSESEL_ERROR_INIT                           \
  {                                                    \
    (uint32_t)sizeof(sparsesel_error), 0, -1, 0, { 0 } \
  }
SPARSESEL_API void sparsesel_error_init(sparsesel_error* error);

/* (major << 16) | (minor << 8) | patch of the loaded library. Never fails. Since 0.1. */
SPARSESEL_API uint32_t sparsesel_version(void);

/* "0.1.0+<git hash>", static storage. Never fails. Since 0.1. */
SPARSESEL_API const char* sparsesel_version_string(void);

/* "SPARSESEL_TIMEOUT" for 6 and so on, "SPARSESEL_UNKNOWN_STATUS" for others; static storage.
 * Since 0.1. */
SPARSESEL_API const char* sparsesel_status_name(sparsesel_status status);

/* ------------------------------------------------------------------------- handles ------------ */

typedef struct sparsesel_comm sparsesel_comm;           /* one rank's membership in a group */
typedef struct sparsesel_plan sparsesel_plan;           /* one job, and the choices made for it */
typedef struct sparsesel_report sparsesel_report;       /* the outcome of one race, read-only */
typedef struct sparsesel_workspace sparsesel_workspace; /* memory that bindings run in */
typedef struct sparsesel_binding sparsesel_binding;     /* what is executed */

/* ----------------------------------------------------------------------- callbacks ------------ */

enum { /* kinds of memory */
       SPARSESEL_MEMORY_HOST = 0,
       SPARSESEL_MEMORY_DEVICE = 1,
       SPARSESEL_MEMORY_PINNED = 2 /* host memory that the device can read; for allocators only */
};

/* Every workspace and trial array comes from here, except device memory that peers map; small
 * bookkeeping and what a race computes with comes from the process allocator. `allocate` returns
 * NULL when it cannot; `tag` names the use, static storage. Alignments are powers of two. Both or
 * neither. Since 0.1. */
typedef struct sparsesel_allocator {
  void* context;
  void* (*allocate)(void* context, int32_t memory, size_t bytes, size_t alignment, const char* tag);
  void (*deallocate)(void* context, int32_t memory, void* pointer, size_t bytes, size_t alignment,
                     const char* tag);
} sparsesel_allocator;

enum {
  SPARSESEL_LOG_ERROR = 1,
  SPARSESEL_LOG_WARNING = 2,
  SPARSESEL_LOG_INFO = 3,
  SPARSESEL_LOG_DEBUG = 4
};

/* `text` lives during the call only. Without a logger nothing is said. Since 0.1. */
typedef struct sparsesel_logger {
  void* context;
  void (*log)(void* context, int32_t level, int32_t rank, const char* text);
} sparsesel_logger;

/* A monotonic clock, in nanoseconds, used for deadlines and for timing on the host. Values that do
 * not advance, or go back, disqualify a timing; they never decide a race. Since 0.1. */
typedef struct sparsesel_clock {
  void* context;
  int64_t (*now)(void* context);
} sparsesel_clock;

/* The control plane of a group: an all-gather of `bytes` bytes per rank, started, polled and freed,
 * so that the library keeps the deadline (the form of UCC's out-of-band all-gather).
 * `receive` holds world x bytes, in rank order. `test` returns SPARSESEL_OK when complete,
 * SPARSESEL_IN_PROGRESS while not, anything else when failed. `free` ends a request, complete or
 * not; after it the library's buffers are no longer touched. One request is open at a time.
 * Since 0.1. */
typedef struct sparsesel_bootstrap {
  void* context;
  sparsesel_status (*start)(void* context, const void* send, void* receive, size_t bytes,
                            void** request);
  sparsesel_status (*test)(void* context, void* request);
  void (*free)(void* context, void* request);
} sparsesel_bootstrap;

/* A data plane of the caller's own. Calls are collective among the ranks' transports, in one order.
 * On host memory a call returns when the receive buffer is complete and the send buffer may be
 * reused, and `stream` is NULL; on device memory it enqueues on `stream`.
 * `timeout` is what is left of the limit; a call that cannot finish in it returns
 * SPARSESEL_TIMEOUT. Any status but SPARSESEL_OK fails the group. `all_gather` is required. Without
 * `all_to_all`, to-owner exchanges run over `all_gather`; without a sum, the variants that need it
 * are not offered. Since 0.1. */
typedef struct sparsesel_transport {
  uint32_t struct_size;
  int32_t memory;     /* SPARSESEL_MEMORY_HOST or _DEVICE: where buffers lie */
  int32_t capturable; /* non-zero: device calls may be captured into a CUDA graph */
  int32_t reserved;
  void* context;
  const char* identity; /* names this transport in remembered decisions; NULL is "custom" */
  /* receive[r * bytes ...] = rank r's send, `bytes` bytes each. */
  sparsesel_status (*all_gather)(void* context, const void* send, void* receive, uint64_t bytes,
                                 void* stream, uint64_t timeout);
  /* Sends send_bytes[r] bytes at send + send_offsets[r] to each rank r, receives receive_bytes[r]
   * at receive + receive_offsets[r] from each; arrays of `world`, any may be 0. */
  sparsesel_status (*all_to_all)(void* context, const void* send, const uint64_t* send_bytes,
                                 const uint64_t* send_offsets, void* receive,
                                 const uint64_t* receive_bytes, const uint64_t* receive_offsets,
                                 void* stream, uint64_t timeout);
  /* receive[i] = sum over ranks of send[i]; `count` elements of bfloat16, or of int32 (wrapping).
   */
  sparsesel_status (*sum_bf16)(void* context, const void* send, void* receive, uint64_t count,
                               void* stream, uint64_t timeout);
  sparsesel_status (*sum_int32)(void* context, const void* send, void* receive, uint64_t count,
                                void* stream, uint64_t timeout);
  /* Makes calls in flight on this rank return soon; any thread; optional. */
  void (*abort)(void* context);
} sparsesel_transport;

#define SPARSESEL_TRANSPORT_INIT \
  { (uint32_t)sizeof(sparsesel_transport), 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL }
SPARSESEL_API void sparsesel_transport_init(sparsesel_transport* transport);

/* -------------------------------------------------------------------------- groups ------------ */

enum {                                    /* transports */
       SPARSESEL_TRANSPORT_AUTO = 0,      /* local groups: threads, or peer if `memory` is device;
                                             comm_create: custom if given, else peer if `memory` is
                                             device, else the bootstrap itself */
       SPARSESEL_TRANSPORT_THREADS = 1,   /* host memory, ranks in one process */
       SPARSESEL_TRANSPORT_CUSTOM = 2,    /* sparsesel_transport */
       SPARSESEL_TRANSPORT_BOOTSTRAP = 3, /* host memory, over the bootstrap's all-gather; slow,
                                             needs nothing else */
       SPARSESEL_TRANSPORT_MPI = 4,       /* host memory; UNSUPPORTED in this version */
       SPARSESEL_TRANSPORT_PEER =
           5, /* device memory, direct stores between GPUs or ranks of a GPU */
       SPARSESEL_TRANSPORT_NCCL = 6 /* device memory, a GPU per rank, on any hosts; NCCL 2.19 or a
                                       later 2.x is loaded at run time. Rows must be equal on all
                                       ranks: NCCL cannot tell, and hangs or mixes up data */
};

/* How to join a group. Since 0.1. */
typedef struct sparsesel_comm_options {
  uint32_t struct_size;
  int32_t transport;             /* SPARSESEL_TRANSPORT_... */
  int32_t memory;                /* where candidates and ids lie: host (default) or device */
  int32_t rank;                  /* comm_create only; 0 .. world_size - 1 */
  int32_t world_size;            /* comm_create only; 1 .. 64 */
  int32_t device_count;          /* entries of `devices`: 0 (the calling thread's current device for
                                    all), 1, or the world size of a local group */
  const int32_t* devices;        /* CUDA ordinals */
  uint64_t startup_timeout;      /* ns for each wait of a collective call but execute; 0 is 120 s */
  uint64_t steady_timeout;       /* ns for one execute, on devices for each wait in it; 0 is 30 s */
  sparsesel_bootstrap bootstrap; /* comm_create: required when world_size > 1 */
  const sparsesel_transport* custom; /* comm_create: for SPARSESEL_TRANSPORT_CUSTOM */
  void* borrowed_communicator; /* comm_create with NCCL: a blocking ncclComm_t of the same rank,
                                  world and device, on all ranks or none; borrowed until
                                  everything made from the comm and every graph that captured it
                                  is gone; never aborted or destroyed */
  void* nccl_library;          /* a dlopen handle of NCCL, for SPARSESEL_TRANSPORT_NCCL; NULL is
                                  libnccl.so.2; required if the process has another copy */
  sparsesel_allocator allocator;
  sparsesel_logger logger;
  sparsesel_clock clock;
} sparsesel_comm_options;

#define SPARSESEL_COMM_OPTIONS_INIT                                                                \
  {                                                                                                \
    (uint32_t)sizeof(sparsesel_comm_options), 0, 0, 0, 0, 0, NULL, 0, 0, {NULL, NULL, NULL, NULL}, \
        NULL, NULL, NULL, {NULL, NULL, NULL}, {NULL, NULL}, {                                      \
      NULL, NULL                                                                                   \
    }                                                                                              \
  }
SPARSESEL_API void sparsesel_comm_options_init(sparsesel_comm_options* options);

/* Makes a whole group in this process: `comms` receives `world` handles, one per rank; all NULL on
 * failure. Each rank is then driven by a thread of its own, since collective calls wait for all.
 * `options` may be NULL. Not collective; blocks on no peer; may not be captured; any thread.
 * Ownership: release each comm. world: 1 .. 64.
 * UNSUPPORTED: a transport that local groups do not have, or device memory in a build without CUDA.
 * UNAVAILABLE: device ranks that cannot all run at once, or no CUDA device; with NCCL also two
 * ranks on one device, no NCCL that serves, or one that cannot connect them. TIMEOUT: NCCL's
 * start-up did not end within the limit. Since 0.1. */
SPARSESEL_API sparsesel_status sparsesel_comm_create_local(int32_t world,
                                                           const sparsesel_comm_options* options,
                                                           sparsesel_comm** comms,
                                                           sparsesel_error* error);

/* Joins a group whose ranks may be anywhere. Collective over options->bootstrap; blocks until every
 * rank has joined or the start-up limit is over; may not be captured; any thread.
 * On device memory the ranks are processes of one machine, or several ranks of a process, with NCCL
 * on any machines; a rank's device is `devices[0]`. The bootstrap brings them together, then data
 * moves between the devices. Ownership: release the comm; callbacks and their contexts are borrowed
 * until everything made from it is gone, the allocator until the last graph that captured it is.
 * UNSUPPORTED: as comm_create_local. UNAVAILABLE, naming a rank: as comm_create_local; device ranks
 * of the peer transport on different machines or kinds of device, or that cannot map each other's
 * memory. INVALID_ARGUMENT: also a borrowed communicator of another rank, world or device. TIMEOUT,
 * PEER_FAILED, MISMATCH: convention 8. Since 0.1. */
SPARSESEL_API sparsesel_status sparsesel_comm_create(const sparsesel_comm_options* options,
                                                     sparsesel_comm** comm, sparsesel_error* error);

/* The state of a group as this rank sees it. Since 0.1. */
typedef struct sparsesel_comm_info {
  uint32_t struct_size;
  int32_t rank;
  int32_t world_size;
  int32_t transport;      /* the one in use */
  int32_t status;         /* SPARSESEL_OK, or why the group failed */
  int32_t failed_rank;    /* the rank at fault, or -1 */
  uint64_t control_calls; /* control-plane all-gathers so far */
} sparsesel_comm_info;

#define SPARSESEL_COMM_INFO_INIT \
  { (uint32_t)sizeof(sparsesel_comm_info), 0, 0, 0, 0, 0, 0 }
SPARSESEL_API void sparsesel_comm_info_init(sparsesel_comm_info* info);

/* Returns OK while the group works, else the status that ended it; `info` may be NULL.
 * Not collective; never blocks; may be called while capturing; any thread, any time. Since 0.1. */
SPARSESEL_API sparsesel_status sparsesel_comm_status(const sparsesel_comm* comm,
                                                     sparsesel_comm_info* info,
                                                     sparsesel_error* error);

/* Ends the group: every rank's waiting and later calls return ABORTED (on ranks that cannot be
 * told, TIMEOUT by their limit). A borrowed communicator is its owner's to abort. Idempotent. Not
 * collective; never blocks; any thread. Since 0.1. */
SPARSESEL_API sparsesel_status sparsesel_comm_abort(sparsesel_comm* comm, sparsesel_error* error);

/* Changes the limits, 0 keeps one. Holds for later calls, and for replays of graphs captured
 * before, but on NCCL, whose kernels know no limit. Not collective; never blocks; any thread. Since
 * 0.1. */
SPARSESEL_API sparsesel_status sparsesel_comm_set_timeouts(sparsesel_comm* comm,
                                                           uint64_t startup_timeout,
                                                           uint64_t steady_timeout,
                                                           sparsesel_error* error);

/* Gives up the membership. Plans, workspaces and bindings made from it go on; the group's memory is
 * freed after the last of them. Not collective; blocks on no peer; any thread. Since 0.1. */
SPARSESEL_API sparsesel_status sparsesel_comm_release(sparsesel_comm* comm, sparsesel_error* error);

/* ------------------------------------------------------------------------- problems ----------- */

enum {                                       /* compositions */
       SPARSESEL_COMPOSITION_AUTO = 0,       /* the race's winner; without a race, replicated */
       SPARSESEL_COMPOSITION_REPLICATED = 1, /* all-gather, then every rank selects every row */
       SPARSESEL_COMPOSITION_OWNER = 2       /* rows go to owners, which select and hand back ids */
};

enum { /* element type of scores */
       SPARSESEL_SCORE_FP32 = 0,
       SPARSESEL_SCORE_FP16 = 1, /* reserved: UNSUPPORTED */
       SPARSESEL_SCORE_BF16 = 2  /* reserved: UNSUPPORTED */
};

enum {                               /* what `ids` of the input are */
       SPARSESEL_INPUT_PAIRS = 0,    /* ids[row, i] belongs to scores[row, i] */
       SPARSESEL_INPUT_POSITIONS = 1 /* ids[row, i] is a position in the score row: its score is
                                        scores[row, row_starts[row] + ids[row, i]] */
};

enum { /* from this rank's id (or position) to the global id; a negative id stays absent */
       SPARSESEL_ID_IDENTITY = 0,
       SPARSESEL_ID_OFFSET = 1, /* id + id_offset */
       SPARSESEL_ID_INTERLEAVE =
           2 /* (id / id_block * id_shards + id_shard) * id_block + id % id_block */
};

enum { /* what the caller promises of each list, by position */
       SPARSESEL_ORDER_NONE = 0,
       SPARSESEL_ORDER_BY_SCORE =
           1,                   /* score descending, NaN last; ids of equal scores in any order */
       SPARSESEL_ORDER_FULL = 2 /* convention 10, absent candidates last */
};

enum { /* order of the ids in the output */
       SPARSESEL_OUTPUT_BY_SCORE = 0,
       SPARSESEL_OUTPUT_BY_ID = 1 /* the same set, ids ascending, ties by (rank, position) */
};

enum { /* what the output ids are */
       SPARSESEL_OUTPUT_GLOBAL_IDS = 0,
       SPARSESEL_OUTPUT_LOCAL_IDS = 1, /* reserved: UNSUPPORTED */
       SPARSESEL_OUTPUT_PAGE_SLOTS = 2 /* reserved: UNSUPPORTED */
};

enum {                              /* optional outputs, a bit set */
       SPARSESEL_OUTPUT_SCORES = 1, /* the original 32 bits of each score; unused slots are -inf */
       SPARSESEL_OUTPUT_COUNTS = 2  /* ids selected per row */
};

enum { /* which rows a rank receives */
       SPARSESEL_SCOPE_ALL_ROWS = 0,
       SPARSESEL_SCOPE_OWNED_ROWS =
           1 /* its contiguous block of the call's rows, see sparsesel_owned_rows */
};

enum { SPARSESEL_PHASE_DECODE = 0, SPARSESEL_PHASE_PREFILL = 1 };

enum { /* how a workload departs from the one that is raced by default, a bit set */
       SPARSESEL_WORKLOAD_DYNAMIC_SHAPE = 1,
       SPARSESEL_WORKLOAD_NO_TUNING = 2,
       SPARSESEL_WORKLOAD_DYNAMIC_COLLECTIVES = 4
};

enum {
  SPARSESEL_RACE_CONSERVATIVE = 0, /* race single-request, static decode; else keep replicated */
  SPARSESEL_RACE_ANY_STATIC = 1,   /* race every static shape with tuning allowed */
  SPARSESEL_RACE_OFF = 2
};

/* One job. Fields marked * may differ between ranks, all others must agree. Since 0.1. */
typedef struct sparsesel_problem {
  uint32_t struct_size;
  int32_t k;                 /* ids wanted per row, 1 .. 65536; 0 is 2048 */
  const int32_t* capacities; /* row counts to prepare for, 1 .. 1048576 each, any order, no
                                duplicate; NULL is one capacity of 1 */
  int32_t capacity_count;    /* at most 1024 */
  int32_t candidates;        /* * length of this rank's lists, 1 .. 65536; 0 is 2048 */
  int32_t alignment; /* * bytes that pointers and row strides of io are multiples of; a power
                        of two, 4 .. 256; 0 is 4 */
  int32_t score_type;
  int64_t score_stride;     /* * least row stride that io will have; 0 is `candidates`, or
                               `score_row_length` for positions */
  int64_t id_stride;        /* * 0 is `candidates` */
  int64_t output_stride;    /* * 0 is k; of out_ids and out_scores */
  int64_t score_row_length; /* * INPUT_POSITIONS: scores in a row, required there, else 0 */
  int32_t input_kind;       /* * */
  int32_t input_order;      /* * a broken promise costs time, never exactness */
  int32_t id_map;           /* * */
  int32_t id_offset;        /* * ID_OFFSET: 0 or more */
  int32_t id_block;         /* * ID_INTERLEAVE: 1 or more */
  int32_t id_shard;         /* * ID_INTERLEAVE: 0 .. id_shards - 1 */
  int32_t id_shards;        /* * ID_INTERLEAVE: 1 or more */
  int32_t output_order;
  int32_t output_kind;
  uint32_t outputs; /* SPARSESEL_OUTPUT_SCORES | SPARSESEL_OUTPUT_COUNTS */
  int32_t output_scope;
  int32_t phase;
  int32_t requests;  /* requests batched in a call; 0 is 1 */
  uint32_t workload; /* SPARSESEL_WORKLOAD_... */
  int32_t race_policy;
  int32_t reserved;
  uint64_t memory_limit; /* * bytes a slot of a workspace may take, 0 is no limit; the smallest of
                            all ranks holds: rows are tiled inside execute to fit it */
} sparsesel_problem;

#define SPARSESEL_PROBLEM_INIT                                                                    \
  {                                                                                               \
    (uint32_t)sizeof(sparsesel_problem), 0, NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
        0, 0, 0, 0, 0, 0, 0, 0, 0                                                                 \
  }
SPARSESEL_API void sparsesel_problem_init(sparsesel_problem* problem);

/* The rows [*begin, *end) that `rank` of `world` owns in a call of `rows` rows: contiguous blocks,
 * as even as possible, the longer ones first. INVALID_ARGUMENT outside 0 <= rank < world <= 64,
 * rows >= 0. Never blocks; any thread. Since 0.1. */
SPARSESEL_API sparsesel_status sparsesel_owned_rows(int32_t rows, int32_t world, int32_t rank,
                                                    int32_t* begin, int32_t* end,
                                                    sparsesel_error* error);

/* Checks the problem and makes a plan for it; takes no memory that depends on the problem's size.
 * Not collective (ranks are compared by prepare); blocks on nobody; may not be captured.
 * Ownership: release the plan; it keeps the group alive.
 * INVALID_ARGUMENT: a field out of its range, named with its value. UNSUPPORTED: a reserved kind,
 * or a memory_limit that not even one row per owner fits. Since 0.1. */
SPARSESEL_API sparsesel_status sparsesel_plan_create(sparsesel_comm* comm,
                                                     const sparsesel_problem* problem,
                                                     sparsesel_plan** plan, sparsesel_error* error);

/* What a plan takes on this rank, in bytes. Since 0.1. */
typedef struct sparsesel_memory {
  uint32_t struct_size;
  int32_t tile_rows;     /* the fewest rows that any composition in question handles at once at
                            the largest capacity */
  uint64_t persistent;   /* held by a binding with a workspace of its own, all told */
  uint64_t scratch;      /* the part of it that holds nothing between executes */
  uint64_t peer_visible; /* the part of it that peers read or write */
  uint64_t trial_peak;   /* the most that prepare and race hold of the allocator's at once, given
                            back by race */
} sparsesel_memory;

#define SPARSESEL_MEMORY_INIT \
  { (uint32_t)sizeof(sparsesel_memory), 0, 0, 0, 0, 0 }
SPARSESEL_API void sparsesel_memory_init(sparsesel_memory* memory);

/* Upper bounds, exact after prepare, when all ranks' lengths and limits are known; before it the
 * other ranks are taken to be like this one. Not collective; never blocks. Since 0.1. */
SPARSESEL_API sparsesel_status sparsesel_plan_memory(const sparsesel_plan* plan,
                                                     sparsesel_memory* memory,
                                                     sparsesel_error* error);

/* ---------------------------------------------------------------- prepare, race, bind --------- */

/* One call's arrays, in the group's memory. Rows are `rows` x list, row r at r * stride.
 * Since 0.1. */
typedef struct sparsesel_io {
  uint32_t struct_size;
  int32_t rows;               /* 0 .. the largest capacity; the same on all ranks */
  const float* scores;        /* [rows, candidates], or [rows, score_row_length] for positions */
  const int32_t* ids;         /* [rows, candidates] */
  const int32_t* counts;      /* [rows], optional: candidates present by position; clamped to
                                 0 .. candidates */
  const int32_t* row_starts;  /* [rows], optional, INPUT_POSITIONS only */
  const int32_t* active_rows; /* [1], optional: rows at or beyond it are inactive; the same on all
                                 ranks. Negative is 0 */
  int32_t* out_ids;      /* [rows or owned rows, k]; then -1. May be exactly `ids` (same stride);
                            any other overlap with another array is refused */
  float* out_scores;     /* the same shape; required iff asked for in the problem */
  int32_t* out_counts;   /* [rows or owned rows]; required iff asked for in the problem */
  uint32_t* status_word; /* [1], optional, device groups: receives the sparsesel_status of an
                            execute that fails; never cleared */
  int64_t score_stride;  /* elements from row to row; 0 is the problem's */
  int64_t id_stride;
  int64_t out_id_stride;
  int64_t out_score_stride;
  uint64_t tag; /* compared between ranks on host transports, e.g. a layer number */
} sparsesel_io;

#define SPARSESEL_IO_INIT                                                                          \
  {                                                                                                \
    (uint32_t)sizeof(sparsesel_io), 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, \
        0, 0, 0                                                                                    \
  }
SPARSESEL_API void sparsesel_io_init(sparsesel_io* io);

/* Called between steps of prepare and race on the calling thread, with a fraction 0 .. 1 and a
 * short phrase that lives during the call. Since 0.1. */
typedef struct sparsesel_progress {
  void* context;
  void (*step)(void* context, double fraction, const char* text);
} sparsesel_progress;

/* How to choose child plans. Since 0.1. */
typedef struct sparsesel_prepare_options {
  uint32_t struct_size;
  int32_t reserved;
  uint64_t seed;           /* of the trial inputs; the same on all ranks */
  uint64_t time_budget;    /* ns for tuning; 0 is 1 s; when it is over, untried child plans are
                              left out */
  const char* child_plans; /* NULL: tune. Else a comma-separated list of variant names; only those
                              are considered for the stages they cover, e.g.
                              "pack.sorted,exchange.prefix:256,select.loser_tree" */
  const char* cache_directory; /* where decisions are remembered; UNSUPPORTED in this version */
  sparsesel_progress progress;
} sparsesel_prepare_options;

#define SPARSESEL_PREPARE_OPTIONS_INIT                                               \
  {                                                                                  \
    (uint32_t)sizeof(sparsesel_prepare_options), 0, 0, 0, NULL, NULL, { NULL, NULL } \
  }
SPARSESEL_API void sparsesel_prepare_options_init(sparsesel_prepare_options* options);

/* Compares the ranks' problems, chooses child plans for both compositions at every capacity, makes
 * both ready to be measured and proves the bf16 reduction lossless. Collective; blocks on all ranks
 * up to the start-up limit; may not be captured. `options` may be NULL. Once per plan.
 * INVALID_STATE: prepared before. MISMATCH: names the field that differs. UNSUPPORTED: child_plans
 * names a variant that does not exist or cannot run this problem, or no tile fits all ranks'
 * limits. Since 0.1. */
SPARSESEL_API sparsesel_status sparsesel_plan_prepare(sparsesel_plan* plan,
                                                      const sparsesel_prepare_options* options,
                                                      sparsesel_error* error);

/* How to race. Since 0.1. */
typedef struct sparsesel_race_options {
  uint32_t struct_size;
  uint32_t margin_ppm;      /* owner must be faster by this; 0 is 20000 (2%) */
  uint64_t seed;            /* of the order of trials and of the holdouts; the same on all ranks */
  uint64_t time_budget;     /* ns for the whole call's measuring; 0 is 2 s */
  uint64_t sample_duration; /* least ns of one sample; 0 is 200 us */
  int32_t max_pairs;        /* 16, 32, 64 or 128; 0 is 128 */
  int32_t confidence_ppm;   /* the error level over all looks; 0 is 50000 (5%) */
  const sparsesel_io* trial_io; /* optional: this rank's input to time on, all ranks or none; its
                                   first rows, at most 61, repeat to fill a capacity; outputs are
                                   ignored. No stream is waited for: device memory must have been
                                   written before the call */
  sparsesel_progress progress;
} sparsesel_race_options;

#define SPARSESEL_RACE_OPTIONS_INIT                                                  \
  {                                                                                  \
    (uint32_t)sizeof(sparsesel_race_options), 0, 0, 0, 0, 0, 0, NULL, { NULL, NULL } \
  }
SPARSESEL_API void sparsesel_race_options_init(sparsesel_race_options* options);

/* Measures both compositions at every capacity, checks the winner on inputs the race never timed,
 * makes all ranks agree and frees the trials. If the problem's policy keeps it out of the race, the
 * report says so and the winner is replicated. Collective; blocks on all ranks up to the start-up
 * limit; may not be captured. `options` may be NULL. Once per plan, after prepare.
 * Uses at most ten control-plane all-gathers.
 * INVALID_STATE: not prepared, raced before, or bound before. WRONG_RESULT: no composition was
 * exact. MISMATCH: ranks did not reach one decision. Since 0.1. */
SPARSESEL_API sparsesel_status sparsesel_plan_race(sparsesel_plan* plan,
                                                   const sparsesel_race_options* options,
                                                   sparsesel_report** report,
                                                   sparsesel_error* error);

/* How one capacity was decided. Since 0.1. */
enum {
  SPARSESEL_RULE_POLICY = 1,       /* not raced, by policy: replicated */
  SPARSESEL_RULE_FASTER = 2,       /* the interval of the ratio lies beyond the margin: owner */
  SPARSESEL_RULE_NOT_FASTER = 3,   /* it lies below the margin: replicated */
  SPARSESEL_RULE_INCONCLUSIVE = 4, /* neither, after the last look: replicated */
  SPARSESEL_RULE_ONLY_EXACT = 5,   /* the other one was wrong, failed or cannot run this problem */
  SPARSESEL_RULE_HOLDOUT = 6,      /* the first choice failed a holdout; this one passed all */
  SPARSESEL_RULE_INVALID_TIMING = 7, /* the clock did not advance: replicated */
  SPARSESEL_RULE_NEIGHBOUR = 8       /* not measured: as the capacities around it */
};

typedef struct sparsesel_outcome {
  uint32_t struct_size;
  int32_t capacity;
  int32_t winner; /* SPARSESEL_COMPOSITION_... */
  int32_t rule;   /* SPARSESEL_RULE_... */
  int32_t pairs;  /* samples of each composition */
  int32_t
      replicated_exact; /* on the trial input and, if checked, the holdouts; 0 if not measured */
  int32_t owner_exact;
  int32_t reserved;
  double replicated_median; /* ns of one execute, maximum over ranks; 0 if not measured */
  double owner_median;
  double replicated_spread; /* ns, half the distance of the quartiles */
  double owner_spread;
  double ratio;     /* median of replicated / owner over pairs */
  double ratio_low; /* its confidence bounds */
  double ratio_high;
} sparsesel_outcome;

#define SPARSESEL_OUTCOME_INIT \
  { (uint32_t)sizeof(sparsesel_outcome), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
SPARSESEL_API void sparsesel_outcome_init(sparsesel_outcome* outcome);

/* The number of capacities in the report, ascending; 0 for a stale handle. Since 0.1. */
SPARSESEL_API int32_t sparsesel_report_size(const sparsesel_report* report);

/* One capacity's outcome, 0 <= index < report_size. Never blocks; any thread. Since 0.1. */
SPARSESEL_API sparsesel_status sparsesel_report_outcome(const sparsesel_report* report,
                                                        int32_t index, sparsesel_outcome* outcome,
                                                        sparsesel_error* error);

/* The whole report as JSON (every sample, span times, child plans, margins, reasons) into `text`,
 * at most `size` bytes with the terminator; `*needed` receives the bytes wanted. INVALID_ARGUMENT
 * and nothing written if `size` is less, except that text == NULL with size 0 asks for `*needed`
 * only. Never blocks; any thread. Since 0.1. */
SPARSESEL_API sparsesel_status sparsesel_report_json(const sparsesel_report* report, char* text,
                                                     size_t size, size_t* needed,
                                                     sparsesel_error* error);

SPARSESEL_API sparsesel_status sparsesel_report_release(sparsesel_report* report,
                                                        sparsesel_error* error);

/* Memory for bindings. Since 0.1. */
typedef struct sparsesel_workspace_options {
  uint32_t struct_size;
  int32_t slots; /* executes that may overlap, 1 .. 16; 0 is 1 */
} sparsesel_workspace_options;

#define SPARSESEL_WORKSPACE_OPTIONS_INIT \
  { (uint32_t)sizeof(sparsesel_workspace_options), 0 }
SPARSESEL_API void sparsesel_workspace_options_init(sparsesel_workspace_options* options);

/* Makes a workspace that several bindings may share; binding to it sizes it. The i-th execute on
 * it, in the order the calls are made, which must be one order on all ranks, runs in slot i %
 * slots; a slot still busy is INVALID_STATE. Memory a binding uses never moves. Collective; may not
 * be captured. `options` may be NULL. UNAVAILABLE: that many slots cannot be reserved. Since 0.1.
 */
SPARSESEL_API sparsesel_status
sparsesel_workspace_create(sparsesel_comm* comm, const sparsesel_workspace_options* options,
                           sparsesel_workspace** workspace, sparsesel_error* error);

/* Bindings made on it keep its memory. Whoever lets go of it last waits, at most for the steady
 * limit per slot, until peers have read what this rank sent last. Not collective. Since 0.1. */
SPARSESEL_API sparsesel_status sparsesel_workspace_release(sparsesel_workspace* workspace,
                                                           sparsesel_error* error);

/* Makes what will be executed: for each capacity the raced (or named) composition with the child
 * plans that prepare chose, checked by digest on all ranks. `workspace` NULL gives the binding one
 * of its own. Frees the trials if no race did. Collective; blocks on all ranks up to the start-up
 * limit; may not be captured. A plan may be bound many times. Ownership: release the binding; it
 * outlives its plan. INVALID_STATE: not prepared. INVALID_ARGUMENT: another comm's workspace.
 * UNSUPPORTED: no composition of that name can run a capacity. MISMATCH: ranks bind different
 * decisions. Since 0.1. */
SPARSESEL_API sparsesel_status sparsesel_plan_bind(sparsesel_plan* plan,
                                                   sparsesel_workspace* workspace,
                                                   int32_t composition, sparsesel_binding** binding,
                                                   sparsesel_error* error);

/* Not collective; trials that neither race nor bind has freed are, see workspace_release. Since
 * 0.1. */
SPARSESEL_API sparsesel_status sparsesel_plan_release(sparsesel_plan* plan, sparsesel_error* error);

/* Decisions of a raced plan as text, to be given to another replica of the same kind.
 * UNSUPPORTED in this version. Since 0.1. */
SPARSESEL_API sparsesel_status sparsesel_plan_export_decision(const sparsesel_plan* plan,
                                                              char* text, size_t size,
                                                              size_t* needed,
                                                              sparsesel_error* error);
SPARSESEL_API sparsesel_status sparsesel_plan_import_decision(sparsesel_plan* plan,
                                                              const char* text,
                                                              sparsesel_error* error);

/* --------------------------------------------------------------------------- execute ---------- */

/* Runs one call. Uses the smallest capacity that holds io->rows. Allocates nothing (but for a small
 * object by which a graph that is being captured keeps what it uses).
 * Host memory: `stream` is NULL; returns when the outputs are complete on this rank; blocks on all
 * ranks up to the steady limit. Device memory: `stream` is a cudaStream_t (not the legacy stream);
 * enqueues kernels only, and may be captured.
 * Every rank calls it, in one order over the whole group (or workspace slot). Two executes that use
 * one slot never run at once: INVALID_STATE, on this rank alone.
 * INVALID_ARGUMENT: rows beyond the capacities, a pointer or stride that breaks the problem's
 * promise, overlap, a position or mapped id out of range; on host memory every rank gets it from
 * the rank at fault; on device memory pointers and strides are refused on this rank alone, and a
 * position or id out of range becomes absent and sets the status word. MISMATCH: ranks differ in
 * binding, rows or tag, on host memory also in sequence or active rows; on device memory that ends
 * the group; NCCL compares nothing, so ranks that differ hang or mix up their data. TIMEOUT,
 * PEER_FAILED, ABORTED: the group has failed, and so do all later executes. After any of these the
 * outputs are unspecified, or -1 where a device wait of the peer transport expired. Since 0.1. */
SPARSESEL_API sparsesel_status sparsesel_execute(sparsesel_binding* binding, const sparsesel_io* io,
                                                 void* stream, sparsesel_error* error);

typedef struct sparsesel_stats {
  uint32_t struct_size;
  int32_t world_size;
  uint64_t executes;         /* started; with the peer transport also in replayed graphs */
  uint64_t failures;         /* executes that did not return OK */
  uint64_t prefix_refetches; /* rows whose prefix was not enough and were completed */
  uint64_t timeouts;
  uint64_t wait[64]; /* ns that this rank has waited for each rank, where the transport can tell:
                        threads, peer */
} sparsesel_stats;

#define SPARSESEL_STATS_INIT                                \
  {                                                         \
    (uint32_t)sizeof(sparsesel_stats), 0, 0, 0, 0, 0, { 0 } \
  }
SPARSESEL_API void sparsesel_stats_init(sparsesel_stats* stats);

/* Counts since the binding was made; with `threads`, `wait` since its workspace was. With `peer`
 * they are what kernels have counted until now, replays included, and copied from the device;
 * `failures` are of launches. With `nccl` only calls are counted. Waits for no peer and no stream,
 * but for a trial that another thread runs on the same comm; any thread, also while a stream is
 * captured. INTERNAL: the copy failed. Since 0.1. */
SPARSESEL_API sparsesel_status sparsesel_binding_stats(const sparsesel_binding* binding,
                                                       sparsesel_stats* stats,
                                                       sparsesel_error* error);

/* What is bound at each capacity (composition, child plans, tile rows, workspace bytes), as JSON;
 * the buffer rules of report_json. Never blocks; any thread. Since 0.1. */
SPARSESEL_API sparsesel_status sparsesel_binding_json(const sparsesel_binding* binding, char* text,
                                                      size_t size, size_t* needed,
                                                      sparsesel_error* error);

/* Not collective. A workspace of the binding's own goes with it, see workspace_release. Graphs that
 * captured it keep what they use. Since 0.1. */
SPARSESEL_API sparsesel_status sparsesel_binding_release(sparsesel_binding* binding,
                                                         sparsesel_error* error);

/* --------------------------------------------------------------------------- machine ---------- */

/* What the library sees: version, variants, transports and why some are not possible, devices;
 * JSON, the buffer rules of report_json. Not collective; blocks on nobody. Since 0.1. */
SPARSESEL_API sparsesel_status sparsesel_system_json(char* text, size_t size, size_t* needed,
                                                     sparsesel_error* error);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* SPARSESEL_H_ */
