/* The library loaded by name while the program runs, as a host language would do it: nothing of it
 * is needed to link. argv[1] is the library, by default libsparsesel.so.0 wherever the loader finds
 * it. Exits with 0 if the answer is right.
 *
 *   cc 02_dlopen.c -ldl
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "sparsesel.h"

/* The functions used here, each with the type that the header declares. */
static struct {
  const char* (*version_string)(void);
  const char* (*status_name)(sparsesel_status);
  sparsesel_status (*comm_create_local)(int32_t, const sparsesel_comm_options*, sparsesel_comm**,
                                        sparsesel_error*);
  sparsesel_status (*comm_release)(sparsesel_comm*, sparsesel_error*);
  sparsesel_status (*plan_create)(sparsesel_comm*, const sparsesel_problem*, sparsesel_plan**,
                                  sparsesel_error*);
  sparsesel_status (*plan_prepare)(sparsesel_plan*, const sparsesel_prepare_options*,
                                   sparsesel_error*);
  sparsesel_status (*plan_bind)(sparsesel_plan*, sparsesel_workspace*, int32_t, sparsesel_binding**,
                                sparsesel_error*);
  sparsesel_status (*plan_release)(sparsesel_plan*, sparsesel_error*);
  sparsesel_status (*execute)(sparsesel_binding*, const sparsesel_io*, void*, sparsesel_error*);
  sparsesel_status (*binding_release)(sparsesel_binding*, sparsesel_error*);
} api;

static int load(void* library, const char* name, void* function, size_t size) {
  /* C has no conversion from dlsym's pointer to a function's; POSIX says that its bits are one. */
  void* symbol = dlsym(library, name);
  if (symbol == NULL) {
    fprintf(stderr, "%s is missing\n", name);
    return 0;
  }
  memcpy(function, &symbol, size);
  return 1;
}

#define LOAD(name) load(library, "sparsesel_" #name, &api.name, sizeof(api.name))

static int load_all(void* library) {
  return LOAD(version_string) && LOAD(status_name) && LOAD(comm_create_local) &&
         LOAD(comm_release) && LOAD(plan_create) && LOAD(plan_prepare) && LOAD(plan_bind) &&
         LOAD(plan_release) && LOAD(execute) && LOAD(binding_release);
}

static int failed(const char* call, sparsesel_status status, const sparsesel_error* error) {
  if (status == SPARSESEL_OK) return 0;
  fprintf(stderr, "%s: %s: %s\n", call, api.status_name(status), error->text);
  return 1;
}

/* A group of one rank, the 3 best of 5. */
static int select_three(void) {
  const float scores[] = {0.5f, 2.0f, -1.0f, 2.0f, 1.0f};
  const int32_t ids[] = {10, 11, 12, 13, 14};
  const int32_t expected[] = {11, 13, 14};
  int32_t out[3] = {0, 0, 0};
  sparsesel_error error = SPARSESEL_ERROR_INIT;
  sparsesel_problem problem = SPARSESEL_PROBLEM_INIT;
  sparsesel_io io = SPARSESEL_IO_INIT;
  sparsesel_comm* comm = NULL;
  sparsesel_plan* plan = NULL;
  sparsesel_binding* binding = NULL;
  int ok;

  problem.k = 3;
  problem.candidates = 5;
  io.rows = 1;
  io.scores = scores;
  io.ids = ids;
  io.out_ids = out;
  ok = !failed("comm_create_local", api.comm_create_local(1, NULL, &comm, &error), &error) &&
       !failed("plan_create", api.plan_create(comm, &problem, &plan, &error), &error) &&
       !failed("plan_prepare", api.plan_prepare(plan, NULL, &error), &error) &&
       !failed("plan_bind", api.plan_bind(plan, NULL, SPARSESEL_COMPOSITION_AUTO, &binding, &error),
               &error) &&
       !failed("execute", api.execute(binding, &io, NULL, &error), &error) &&
       memcmp(out, expected, sizeof(out)) == 0;
  api.binding_release(binding, NULL);
  api.plan_release(plan, NULL);
  api.comm_release(comm, NULL);
  return ok;
}

int main(int argc, char** argv) {
  const char* name = argc > 1 ? argv[1] : "libsparsesel.so.0";
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  int ok;
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  ok = load_all(library) && select_three();
  if (ok) printf("sparsesel %s, loaded by name, is right\n", api.version_string());
  dlclose(library);
  return ok ? 0 : 1;
}
