/* children.c: launches that kernels have made (CUDA C++ Programming Guide, "CUDA Dynamic Parallelism").
 *
 * A grid leaves them in a list in device memory (ptxemu/serve/device_runtime.py). They are done behind it, one after another, each with all
 * that it has launched itself, those for the tail last; the item is done when all of them are. What is in device memory kernels may have
 * spoiled.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "px_queue.h"
#include "px_launch.h"
#include "px_runtime.h"

enum { TAIL = 3, LARGEST = 64 << 10 };

/* How a launch begins in device memory; the arguments follow. */
typedef struct child_head {
  uint64_t next, kernel, grid_id, stream;
  uint32_t grid[3], block[3], shared, unused;
} child_head;

_Static_assert(sizeof(child_head) == 64, "as the device runtime has it");

typedef struct px_child {
  struct px_child *next;
  uint64_t size; /* of head and arguments */
  child_head head;
  uint8_t arguments[];
} px_child;

/* What has been taken, and belongs to grids that have not ended. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static px_child *others;

/* ---- from device memory ---- */

/* A launch at an address, whose memory is given back; NULL: there is none. */
static px_child *take(uint64_t address) {
  pe_arena *arena = px_device_get()->parts.arena;
  uint64_t size = pe_arena_heap_size(arena, address);
  bool fits = size >= sizeof(child_head) && size <= LARGEST;
  px_child *made = fits ? calloc(1, sizeof *made + size - sizeof(child_head)) : NULL;
  if (!made) return NULL;
  memcpy(&made->head, (const void *)(uintptr_t)address, size);
  made->size = size;
  pe_arena_heap_free(arena, address);
  return made;
}

/* All that is in a list; the last one made comes first there, and last here. */
static px_child *take_all(uint64_t list) {
  px_child *first = NULL;
  uint64_t address = __atomic_exchange_n((uint64_t *)(uintptr_t)list, 0, __ATOMIC_SEQ_CST);
  while (address) {
    px_child *made = take(address);
    if (!made) break;
    address = made->head.next;
    made->next = first;
    first = made;
  }
  return first;
}

static px_child **end_of(px_child **list) {
  while (*list) list = &(*list)->next;
  return list;
}

/* Take those of a grid away, for the tail or not. */
static px_child *of_grid(px_child **list, uint64_t grid_id, bool tail) {
  px_child *first = NULL, **end = &first;
  while (*list) {
    px_child *one = *list;
    if (one->head.grid_id != grid_id || (one->head.stream == TAIL) != tail) {
      list = &one->next;
      continue;
    }
    *list = one->next;
    one->next = NULL;
    *end = one;
    end = &one->next;
  }
  return first;
}

void px_children_collect(px_item *item, const pe_launch *launch) {
  uint64_t list = item->work->launches, grid_id = pe_launch_number(launch);
  if (!list) return;
  pthread_mutex_lock(&lock);
  *end_of(&others) = take_all(list);
  px_child *first = of_grid(&others, grid_id, false);
  *end_of(&first) = of_grid(&others, grid_id, true);
  pthread_mutex_unlock(&lock);
  *end_of(&first) = item->children;
  item->children = first;
}

/* ---- doing them ---- */

static px_kernel *kernel_of(px_kernel *parent, uint64_t address) {
  px_module *module = px_is_kernel(parent) ? parent->module : NULL;
  for (uint64_t i = 0; module && i < module->count; i++)
    if (PE_FUNCTION_UNIT * (module->kernels[i].facts->function + 1ull) == address) return &module->kernels[i];
  return NULL;
}

static cudaError_t run(px_item *item, const px_child *child) {
  const child_head *head = &child->head;
  PX_CALL();
  px_kernel *kernel = kernel_of(item->work->kernel, head->kernel);
  if (!kernel) return cudaErrorInvalidDeviceFunction;
  uint64_t room = child->size - sizeof *head;
  if (kernel->facts->param_bytes > room) return cudaErrorInvalidValue;
  const px_geometry g = {.grid = {head->grid[0], head->grid[1], head->grid[2]},
                         .block = {head->block[0], head->block[1], head->block[2]},
                         .shared = head->shared,
                         .host_memory = item->work->start.host_memory};
  pe_start what;
  cudaError_t error = px_launch_prepare(kernel, &g, NULL, child->arguments, &what);
  what.waited = 1;
  if (!error) px_perform_launch(item, &what);
  return error;
}

static void *run_all(void *argument) {
  px_item *item = argument;
  for (px_child *child = item->children; child; child = item->children) {
    item->children = child->next;
    cudaError_t error = px_is_dropped(item) ? cudaSuccess : run(item, child);
    if (error) fprintf(stderr, "ptxemu: a launch that a kernel has made cannot be done (%s)\n", cudaGetErrorName(error));
    if (error) px_stay_in(item->context, cudaErrorLaunchFailure);
    free(child);
  }
  px_perform_all(px_item_finish(item, NULL));
  return NULL;
}

bool px_children_begin(px_item *item) {
  if (!item->children) return false;
  if (pe_thread_start(run_all, item)) run_all(item);
  return true;
}
