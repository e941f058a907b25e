/* ocelot.c: libgpuocelot's one function, as tinygrad calls it: a PTX text with one kernel, run on the host's memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "check.h"
#include "core.h"
#include "px_check.h"
#include "px_launch.h"
#include "px_stream.h"

/* Modules by the texts that they were made of. */
typedef struct loaded {
  struct loaded *next;
  char *text;
  size_t size;
  px_module *module;
} loaded;

enum { BUCKETS = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static loaded *buckets[BUCKETS];

/* The caller cannot be told: it must not go on with results that nobody has computed. */
static _Noreturn void give_up(const char *what) {
  fprintf(stderr, "ptxemu: ptx_run: %s\n", what);
  abort();
}

static uint64_t hash_of(const char *text, size_t size) {
  uint64_t hash = 0xcbf29ce484222325ull; /* FNV-1a */
  for (size_t i = 0; i < size; i++) hash = (hash ^ (uint8_t)text[i]) * 0x100000001b3ull;
  return hash;
}

static loaded *load(const char *text, size_t size) {
  loaded *made = calloc(1, sizeof *made);
  if (!made || !(made->text = strdup(text))) give_up("out of memory");
  made->size = size;
  if (px_module_open(made->text, size, &made->module)) give_up("the module cannot be loaded");
  return made;
}

static px_module *module_of(const char *text) {
  size_t size = strlen(text);
  loaded **bucket = &buckets[hash_of(text, size) % BUCKETS];
  pthread_mutex_lock(&lock);
  loaded *found = *bucket;
  while (found && (found->size != size || memcmp(found->text, text, size))) found = found->next;
  if (!found) {
    found = load(text, size);
    found->next = *bucket;
    *bucket = found;
  }
  pthread_mutex_unlock(&lock);
  return found->module;
}

/* Each argument is the value itself; pointers are the host's. Faults and wrong launches end the program. */
PX_API void ptx_run(const char *text, int count, void *arguments[], int block_x, int block_y, int block_z, int grid_x,
                    int grid_y, int grid_z, int shared) {
  px_checks_allow(PE_CHECK_SYNC | PE_CHECK_LEAK);
  if (!px_device_get()) give_up("the device cannot be started");
  px_module *module = module_of(text);
  if (module->count != 1) give_up("the text must have one kernel");
  px_kernel *kernel = module->kernels;
  void **places = calloc(kernel->facts->parameters + 1u, sizeof *places);
  if (!places) give_up("out of memory");
  if (count < 0 || (uint32_t)count != kernel->facts->parameters) give_up("the kernel takes another number of arguments");
  for (int i = 0; i < count; i++) {
    if (kernel->parameters[i].size > sizeof *arguments) give_up("a parameter is larger than 8 bytes");
    places[i] = &arguments[i];
  }
  px_geometry geometry = {.grid = {(unsigned)grid_x, (unsigned)grid_y, (unsigned)grid_z},
                          .block = {(unsigned)block_x, (unsigned)block_y, (unsigned)block_z},
                          .shared = (size_t)shared,
                          .host_memory = true};
  if (px_launch(kernel, &geometry, places) || px_wait_all() || px_enter()) give_up("the launch failed");
  free(places);
}
