/* module.c: the memory and the handles of a module. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "arena.h"
#include "declared.h"
#include "module.h"
#include "start.h"
#include "surface.h"

struct pe_module {
  pe_device device;
  pe_entry *entry;
  uint64_t block[2];
  uint64_t *handles;
  uint32_t taken; /* opaque variables that have a handle */
  _Atomic uint32_t owners;
};

static const pe_module_facts *facts_of(const pe_entry *entry) {
  uint64_t count;
  return pe_entry_section(entry, PE_SECTION_MODULE, &count);
}

/* ---- handles ---- */

static const char *declare_elements(const pe_module *module, const pe_handle_facts *item, uint64_t handle) {
  uint32_t slot = (uint32_t)handle, tag = (uint32_t)(handle >> 32);
  bool surface = pe_is_surface_type(pe_entry_text(module->entry, item->type));
  for (uint32_t i = 0; i < item->count; i++, slot += PE_SLOT_STEP) {
    if (surface) {
      pe_surface_desc desc;
      pe_declared_surface(module->entry, item, i, &desc);
      pe_surface_table_set(module->device.surfaces, slot, tag, &desc);
    } else {
      pe_texture texture;
      const char *problem = pe_declared_texture(module->entry, item, i, &texture);
      if (problem) return problem;
      pe_texture_table_set(module->device.textures, slot, tag, &texture);
    }
  }
  return NULL;
}

static int take_handles(pe_module *module, const char **problem) {
  uint64_t count;
  const pe_handle_facts *items = pe_entry_section(module->entry, PE_SECTION_HANDLES, &count);
  for (; module->taken < count; module->taken++) {
    const pe_handle_facts *item = &items[module->taken];
    bool surface = pe_is_surface_type(pe_entry_text(module->entry, item->type));
    uint64_t handle = surface ? pe_surface_table_take(module->device.surfaces, item->count)
                              : pe_texture_table_take(module->device.textures, item->count);
    *problem = surface ? "the surface table is full" : "the texture table is full";
    if (!handle) return ENOMEM;
    for (uint32_t i = 0; i < item->count; i++) module->handles[item->first + i] = handle + PE_SLOT_STEP * (uint64_t)i;
    *problem = declare_elements(module, item, handle);
    if (!*problem) continue;
    module->taken++;
    return ENOTSUP;
  }
  return 0;
}

static void retire_handles(const pe_module *module) {
  uint64_t count;
  const pe_handle_facts *items = pe_entry_section(module->entry, PE_SECTION_HANDLES, &count);
  for (uint32_t i = 0; i < module->taken; i++) {
    uint64_t handle = module->handles[items[i].first];
    if (pe_is_surface_type(pe_entry_text(module->entry, items[i].type)))
      pe_surface_table_retire(module->device.surfaces, handle);
    else
      pe_texture_table_retire(module->device.textures, handle);
  }
}

/* ---- variables ---- */

static int take_block(pe_module *module, uint32_t block, const char *name, const char **problem) {
  static const char *const spaces[] = {"global", "const"};
  const pe_module_facts *facts = facts_of(module->entry);
  char text[sizeof((pe_allocation *)0)->name];
  if (facts->size[block] == 0) return 0;
  snprintf(text, sizeof text, "%s .%s", name, spaces[block]);
  module->block[block] = pe_arena_alloc(module->device.arena, facts->size[block], facts->align[block], text);
  if (module->block[block]) return 0;
  static _Thread_local char said[PE_MESSAGE_BYTES];
  snprintf(said, sizeof said, "out of device memory: %llu bytes wanted for the .%s variables of the module",
           (unsigned long long)facts->size[block], spaces[block]);
  *problem = said;
  return ENOMEM;
}

static void write_variables(const pe_module *module) {
  uint64_t count, bytes;
  const uint8_t *data = pe_entry_section(module->entry, PE_SECTION_BYTES, &bytes);
  const pe_contents_facts *contents = pe_entry_section(module->entry, PE_SECTION_CONTENTS, &count);
  for (uint64_t i = 0; i < count; i++) {
    const pe_contents_facts *item = &contents[i];
    if (item->size) memcpy((uint8_t *)(uintptr_t)module->block[item->block] + item->offset, data + item->start, item->size);
  }
  const pe_relocation_facts *relocations = pe_entry_section(module->entry, PE_SECTION_RELOCATIONS, &count);
  for (uint64_t i = 0; i < count; i++) {
    const pe_relocation_facts *item = &relocations[i];
    uint64_t base = item->base == PE_BLOCK_HANDLE ? module->handles[item->index] : module->block[item->base];
    uint64_t value = (base + (uint64_t)item->addend) >> item->shift;
    memcpy((uint8_t *)(uintptr_t)module->block[item->block] + item->offset, &value, item->size);
  }
}

static void tell_variables(const pe_module *module) {
  uint64_t count;
  const pe_variable_facts *items = pe_entry_section(module->entry, PE_SECTION_VARIABLES, &count);
  const pe_observer *observer = pe_arena_observer(module->device.arena);
  for (uint64_t i = 0; i < count; i++)
    pe_tell_named(observer, module->block[items[i].block] + items[i].offset, items[i].size,
                  pe_entry_text(module->entry, items[i].name));
}

/* ---- life ---- */

static int fill(pe_module *module, const char *name, const char **problem) {
  uint64_t handles = facts_of(module->entry)->handles;
  *problem = "the handle table is full";
  if (handles > PE_MAX_SLOT) return ENOMEM;
  *problem = "out of memory for the module";
  module->handles = calloc(handles + 1, sizeof *module->handles);
  if (!module->handles) return ENOMEM;
  int error = take_handles(module, problem);
  if (!error) error = take_block(module, PE_BLOCK_GLOBAL, name, problem);
  if (!error) error = take_block(module, PE_BLOCK_CONST, name, problem);
  if (error) return error;
  write_variables(module);
  tell_variables(module);
  *problem = NULL;
  return 0;
}

int pe_module_create(const pe_device *device, pe_entry *entry, const char *name, pe_module **out, const char **problem) {
  *problem = "out of memory for the module";
  *out = NULL;
  pe_module *module = calloc(1, sizeof *module);
  if (!module) return ENOMEM;
  module->device = *device;
  module->entry = pe_entry_keep(entry);
  atomic_init(&module->owners, 1);
  int error = fill(module, name, problem);
  if (error)
    pe_module_release(module);
  else
    *out = module;
  return error;
}

pe_module *pe_module_keep(pe_module *module) {
  atomic_fetch_add(&module->owners, 1);
  return module;
}

void pe_module_release(pe_module *module) {
  if (!module || atomic_fetch_sub(&module->owners, 1) != 1) return;
  retire_handles(module);
  for (int i = 0; i < 2; i++)
    if (module->block[i]) pe_arena_free(module->device.arena, module->block[i]);
  pe_entry_release(module->entry);
  free(module->handles);
  free(module);
}

void pe_module_orphan(pe_module *module) { module->block[0] = module->block[1] = 0; }

/* ---- questions ---- */

pe_entry *pe_module_entry(const pe_module *module) { return module->entry; }

const pe_device *pe_module_device(const pe_module *module) { return &module->device; }

uint64_t pe_module_block(const pe_module *module, uint32_t block) { return block < 2 ? module->block[block] : 0; }

const uint64_t *pe_module_handles(const pe_module *module) { return module->handles; }

#define FIND(type, section)                                                               \
  uint64_t count;                                                                         \
  const type *items = pe_entry_section(module->entry, section, &count);                   \
  for (uint64_t i = 0; i < count; i++)                                                    \
    if (strcmp(pe_entry_text(module->entry, items[i].name), name) == 0) return &items[i]; \
  return NULL

const pe_kernel_facts *pe_module_kernel(const pe_module *module, const char *name) {
  return pe_entry_kernel(module->entry, name);
}

const pe_variable_facts *pe_module_variable(const pe_module *module, const char *name) {
  FIND(pe_variable_facts, PE_SECTION_VARIABLES);
}

const pe_handle_facts *pe_module_handle(const pe_module *module, const char *name) {
  FIND(pe_handle_facts, PE_SECTION_HANDLES);
}

/* How many of the numbers, which ascend, are at most `value`. */
static uint32_t count_up_to(const uint32_t *numbers, uint32_t count, uint32_t value) {
  uint32_t low = 0;
  while (low < count) {
    uint32_t middle = low + (count - low) / 2;
    if (numbers[middle] <= value)
      low = middle + 1;
    else
      count = middle;
  }
  return low;
}

int pe_module_locate(const pe_module *module, uint32_t pos, uint32_t *file, uint32_t *line) {
  uint64_t count, lines;
  const pe_file_facts *files = pe_entry_section(module->entry, PE_SECTION_FILES, &count);
  const uint32_t *starts = pe_entry_section(module->entry, PE_SECTION_LINES, &lines);
  const pe_file_facts *found = NULL;
  for (uint64_t i = 0; i < count && files[i].start <= pos; i++) found = &files[i];
  if (!found) return -1;
  *file = (uint32_t)(found - files);
  *line = count_up_to(starts + found->line, found->lines, pos);
  return 0;
}
