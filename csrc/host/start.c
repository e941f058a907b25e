/* start.c: from a kernel of a module, its code and arguments to a launch. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "checked.h"
#include "key.h"
#include "launch.h"
#include "processor.h"
#include "start.h"
#include "worker.h"

#define FRAMELESS_STACK ((1u << 20) - (32u << 10)) /* of the host, besides the frame of a kernel without real calls */

/* What a launch owns. */
typedef struct started {
  pe_module *module;
  const pe_kernel_facts *kernel;
  pe_code *code;
  pe_su_context surfaces;
} started;

static void release(void *keeps) {
  started *own = keeps;
  pe_code_release(own->code);
  pe_module_release(own->module);
  free(own);
}

static const started *started_of(const pe_launch *launch) {
  return launch->config.release == release ? launch->config.keeps : NULL;
}

const pe_module *pe_launch_module(const pe_launch *launch) {
  const started *own = started_of(launch);
  return own ? own->module : NULL;
}

const pe_kernel_facts *pe_launch_kernel(const pe_launch *launch) {
  const started *own = started_of(launch);
  return own ? own->kernel : NULL;
}

/* ---- arguments ---- */

void pe_start_pack(const pe_start *start, void *params) {
  uint8_t *out = params;
  uint64_t count;
  const pe_parameter_facts *all = pe_entry_section(pe_module_entry(start->module), PE_SECTION_PARAMETERS, &count);
  const pe_parameter_facts *parameters = all + start->kernel->parameter;
  for (uint32_t i = 0; i < start->kernel->parameters; i++)
    if (parameters[i].size) memcpy(out + parameters[i].offset, start->pointers[i], parameters[i].size);
}

static int check_arguments(const pe_start *start, char *message) {
  const pe_kernel_facts *kernel = start->kernel;
  const char *name = pe_entry_text(pe_module_entry(start->module), kernel->plain_name);
  if (kernel->param_bytes == 0) return 0;
  if (!start->pointers && (!start->buffer || start->buffer_size < kernel->param_bytes)) {
    snprintf(message, PE_MESSAGE_BYTES, "kernel %s takes %u bytes of arguments, not %llu", name, kernel->param_bytes,
             (unsigned long long)(start->buffer ? start->buffer_size : 0));
    return EFAULT;
  }
  for (uint32_t i = 0; start->pointers && i < kernel->parameters; i++) {
    if (start->pointers[i]) continue;
    snprintf(message, PE_MESSAGE_BYTES, "kernel %s takes %u arguments; number %u has no value", name, kernel->parameters, i);
    return EFAULT;
  }
  return 0;
}

/* ---- the launch ---- */

static const pe_code_facts *facts_of(const pe_start *start) {
  return start->facts ? start->facts : pe_code_facts_of(start->code);
}

void pe_start_config(const pe_start *start, pe_config *config) {
  const pe_device *device = pe_module_device(start->module);
  const pe_code_facts *facts = facts_of(start);
  uint64_t count;
  const pe_module_facts *module = pe_entry_section(pe_module_entry(start->module), PE_SECTION_MODULE, &count);
  uint64_t local = facts->stacked ? pe_sum(facts->local_bytes, device->stack) : facts->local_bytes;
  *config = (pe_config){
    .kernel = start->code ? pe_code_address(start->code) : 0,
    .grid = {start->grid[0], start->grid[1], start->grid[2]},
    .block = {start->block[0], start->block[1], start->block[2]},
    .params = start->buffer,
    .params_size = start->kernel->param_bytes,
    .static_shared = facts->static_shared,
    .dynamic_shared = start->dynamic_shared,
    .local_bytes = facts->stacked && local > PE_MAX_LOCAL ? PE_MAX_LOCAL : local,
    .stack_bytes = pe_sum(facts->frame_bytes, facts->calls ? device->host_stack : FRAMELESS_STACK),
    .global_base = pe_module_block(start->module, PE_BLOCK_GLOBAL),
    .const_base = pe_module_block(start->module, PE_BLOCK_CONST),
    .const_size = module->size[PE_BLOCK_CONST],
    .handles = (uint64_t)(uintptr_t)pe_module_handles(start->module),
    .surfaces = start->surfaces,
    .suspends = facts->suspends || facts->spins || start->cooperative,
    .looped = facts->looped,
    .rows = facts->rows,
    .abreast = facts->abreast,
    .spread = facts->spread,
    .spins = facts->spins,
    .daz = facts->daz,
    .cooperative = start->cooperative,
    .host_memory = start->host_memory || device->host_memory,
    .workers = device->workers,
    .brief = facts->brief,
    .joins = start->joins,
    .ended = start->ended,
    .context = start->context,
    .over = start->over,
  };
  const pe_entry *entry = pe_module_entry(start->module);
  pe_cluster_extent(entry, start->kernel, start->cluster, config->cluster);
  bool counted = pe_counts_clusters(entry, start->kernel);
  for (int axis = 0; counted && axis < 3; axis++) config->grid[axis] *= config->cluster[axis];
}

static started *new_started(const pe_start *start) {
  const pe_device *device = pe_module_device(start->module);
  started *own = calloc(1, sizeof *own);
  if (!own) return NULL;
  own->module = pe_module_keep(start->module);
  own->kernel = start->kernel;
  own->code = pe_code_keep(start->code);
  own->surfaces = (pe_su_context){.table = device->surfaces, .textures = device->textures, .policy = device->policy};
  return own;
}

static int describe_failure(const pe_start *start, const pe_config *config, int error, char *message) {
  const char *name = pe_entry_text(pe_module_entry(start->module), start->kernel->plain_name);
  const uint32_t *grid = start->grid;
  if (error == ENOMEM)
    snprintf(message, PE_MESSAGE_BYTES, "out of device memory for the launch of `%s`: %llu bytes of local memory a thread",
             name, (unsigned long long)config->local_bytes);
  else if (error == E2BIG)
    snprintf(message, PE_MESSAGE_BYTES, "grid (%u, %u, %u) is too large for a cooperative launch of `%s`", grid[0], grid[1],
             grid[2], name);
  else
    snprintf(message, PE_MESSAGE_BYTES, "cannot start a thread for `%s`: %s", name, strerror(error));
  return error;
}

static int start_with(const pe_start *start, const void *params, pe_launch **launch, char *message) {
  started *own = new_started(start);
  if (!own) {
    snprintf(message, PE_MESSAGE_BYTES, "out of memory for a launch");
    return ENOMEM;
  }
  pe_config config;
  pe_start_config(start, &config);
  config.params = params;
  config.keeps = own;
  config.release = release;
  if (!config.surfaces) config.surfaces = &own->surfaces;
  int error = pe_launch_start(pe_module_device(start->module)->arena, &config, launch);
  if (!error) return 0;
  release(own);
  return describe_failure(start, &config, error, message);
}

static int start_packed(const pe_start *start, pe_launch **launch, char *message) {
  uint8_t *packed = calloc(1, start->kernel->param_bytes);
  if (!packed) {
    snprintf(message, PE_MESSAGE_BYTES, "out of memory for the arguments of a launch");
    return ENOMEM;
  }
  pe_start_pack(start, packed);
  int error = start_with(start, packed, launch, message);
  free(packed);
  return error;
}

int pe_start_should_join(const pe_start *start) {
  pe_config config;
  if (pe_self || pe_cpu_count() == 1) return true;
  pe_start_config(start, &config);
  return pe_launch_is_brief(&config);
}

/* Code for full warps relies on them, and on the bounds of small grids. */
static int check_code(const pe_start *start, const pe_code_facts *facts, char *message) {
  uint32_t served[3];
  pe_code_block(start->grid, start->block, served);
  if (!facts->full || pe_variant_number(served) >= PE_KINDS) return 0;
  snprintf(message, PE_MESSAGE_BYTES, "the code is for blocks of full warps in grids with less than %d blocks along x",
           PE_FEW_BLOCKS);
  return EINVAL;
}

int pe_start_check(const pe_start *start, char *message) {
  const pe_entry *entry = pe_module_entry(start->module);
  const pe_code_facts *facts = facts_of(start);
  if (!facts) {
    snprintf(message, PE_MESSAGE_BYTES, "nothing is known of the code");
    return EINVAL;
  }
  int error = pe_check_shape(entry, start->kernel, start->grid, start->block, message);
  if (!error) error = check_code(start, facts, message);
  if (!error) error = pe_check_shared(entry, start->kernel, facts->static_shared, start->dynamic_shared, message);
  if (!error) error = pe_check_cluster(entry, start->kernel, start->grid, start->cluster, PE_MAX_CLUSTER, message);
  return error ? error : check_arguments(start, message);
}

int pe_start_launch(const pe_start *start, pe_launch **launch, char *message) {
  *launch = NULL;
  int error = pe_start_check(start, message);
  if (error) return error;
  if (start->pointers && start->kernel->param_bytes) return start_packed(start, launch, message);
  return start_with(start, start->buffer, launch, message);
}
