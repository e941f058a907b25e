/* children.c: doing the launches that kernels have made (host/nested.h): they are done behind their grid, whose item is done when all of
 * them are.
 */
#include <stdio.h>
#include "nested.h"
#include "px_launch.h"
#include "px_queue.h"
#include "px_runtime.h"

void px_children_collect(px_item *item, const pe_launch *launch) {
  if (!item->work->launches) return;
  pe_child *first = pe_children_collect(px_device_get()->parts.arena, item->work->launches, pe_launch_number(launch));
  pe_child **end = &first;
  while (*end) end = &(*end)->next;
  *end = item->children;
  item->children = first;
}

static px_kernel *kernel_of(px_kernel *parent, const pe_child *child) {
  px_module *module = px_is_kernel(parent) ? parent->module : NULL;
  const pe_kernel_facts *facts = module ? pe_child_kernel(module->resident, child) : NULL;
  for (uint64_t i = 0; facts && i < module->count; i++)
    if (module->kernels[i].facts == facts) return &module->kernels[i];
  return NULL;
}

static cudaError_t run(px_item *item, const pe_child *child) {
  const pe_child_head *head = &child->head;
  PX_CALL();
  px_kernel *kernel = kernel_of(item->work->kernel, child);
  if (!kernel) return cudaErrorInvalidDeviceFunction;
  const px_geometry g = {.grid = {head->grid[0], head->grid[1], head->grid[2]},
                         .block = {head->block[0], head->block[1], head->block[2]},
                         .shared = head->shared,
                         .host_memory = item->work->start.host_memory};
  pe_start what;
  cudaError_t error = px_launch_prepare(kernel, &g, NULL, child->arguments, &what);
  what.joins = 1;
  if (!error) px_perform_launch(item, &what);
  return error;
}

static void *run_all(void *argument) {
  px_item *item = argument;
  for (pe_child *child = item->children; child; child = item->children) {
    item->children = child->next;
    cudaError_t error = px_is_dropped(item) ? cudaSuccess : run(item, child);
    if (error) fprintf(stderr, "ptxemu: a launch that a kernel has made cannot be done (%s)\n", cudaGetErrorName(error));
    if (error) px_stay_in(item->context, cudaErrorLaunchFailure);
    pe_child_free(child);
  }
  px_perform_all(px_item_finish(item, NULL));
  return NULL;
}

bool px_children_begin(px_item *item) {
  if (!item->children) return false;
  if (pe_thread_start(run_all, item)) run_all(item);
  return true;
}
