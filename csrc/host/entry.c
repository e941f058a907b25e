/* entry.c: entries, checked once when they are opened. */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "checked.h"
#include "entry.h"
#include "sha256.h"

#define ALIGNMENT 8
#define MAX_SIZE (1ull << 31)

struct pe_entry {
  uint8_t *data; /* pe_entry_head, for kinds that have sections */
  uint64_t size;
  _Atomic uint32_t owners;
};

static const uint8_t RECORD_BYTES[PE_SECTIONS] = {
  [PE_SECTION_TEXT] = 1,
  [PE_SECTION_MODULE] = sizeof(pe_module_facts),
  [PE_SECTION_KERNELS] = sizeof(pe_kernel_facts),
  [PE_SECTION_PARAMETERS] = sizeof(pe_parameter_facts),
  [PE_SECTION_USES] = sizeof(pe_use_facts),
  [PE_SECTION_LIMITS] = sizeof(pe_limit_facts),
  [PE_SECTION_PAIRS] = sizeof(pe_pair_facts),
  [PE_SECTION_VARIABLES] = sizeof(pe_variable_facts),
  [PE_SECTION_EXTENTS] = sizeof(uint64_t),
  [PE_SECTION_HANDLES] = sizeof(pe_handle_facts),
  [PE_SECTION_FIELDS] = sizeof(pe_field_facts),
  [PE_SECTION_RELOCATIONS] = sizeof(pe_relocation_facts),
  [PE_SECTION_CONTENTS] = sizeof(pe_contents_facts),
  [PE_SECTION_BYTES] = 1,
  [PE_SECTION_FILES] = sizeof(pe_file_facts),
  [PE_SECTION_LINES] = sizeof(uint32_t),
  [PE_SECTION_CODE] = sizeof(pe_code_facts),
  [PE_SECTION_OBJECT] = 1,
};

static const char MAGIC[8] = {'P', 'T', 'X', 'E', 'M', 'U', 0, PE_ENTRY_VERSION};

static const pe_entry_head *head_of(const pe_entry *entry) { return (const pe_entry_head *)(const void *)entry->data; }

const void *pe_entry_section(const pe_entry *entry, uint32_t section, uint64_t *count) {
  const pe_section *found = &head_of(entry)->section[section];
  *count = found->size / RECORD_BYTES[section];
  return entry->data + found->offset;
}

const void *pe_entry_bytes(const pe_entry *entry, uint64_t *size) {
  *size = entry->size - offsetof(pe_entry_head, section);
  return entry->data + offsetof(pe_entry_head, section);
}

const char *pe_entry_text(const pe_entry *entry, uint32_t name) {
  uint64_t size;
  return name == PE_NO_TEXT ? "" : (const char *)pe_entry_section(entry, PE_SECTION_TEXT, &size) + name;
}

const pe_kernel_facts *pe_entry_kernel(const pe_entry *entry, const char *name) {
  uint64_t count;
  const pe_kernel_facts *kernels = pe_entry_section(entry, PE_SECTION_KERNELS, &count);
  for (uint64_t i = 0; i < count; i++)
    if (strcmp(pe_entry_text(entry, kernels[i].name), name) == 0) return &kernels[i];
  return NULL;
}

/* ---- tests of sections ---- */

static uint64_t count_of(const pe_entry *entry, uint32_t section) {
  uint64_t count;
  pe_entry_section(entry, section, &count);
  return count;
}

#define RECORDS(type, entry, section, count) ((const type *)pe_entry_section(entry, section, count))

static bool is_text(const pe_entry *entry, uint32_t name) { return name < count_of(entry, PE_SECTION_TEXT); }

static bool is_range(const pe_entry *entry, uint32_t section, uint32_t first, uint32_t count) {
  return pe_within(first, count, count_of(entry, section));
}

static bool check_sections(const pe_entry *entry) {
  if (entry->size < sizeof(pe_entry_head) || head_of(entry)->sections != PE_SECTIONS) return false;
  for (int i = 0; i < PE_SECTIONS; i++) {
    const pe_section *section = &head_of(entry)->section[i];
    if (!pe_within(section->offset, section->size, entry->size)) return false;
    if (section->offset % ALIGNMENT || section->size % RECORD_BYTES[i]) return false;
  }
  uint64_t size;
  const char *text = pe_entry_section(entry, PE_SECTION_TEXT, &size);
  return size == 0 || text[size - 1] == 0;
}

/* ---- tests of records ---- */

static bool check_kernels(const pe_entry *entry) {
  uint64_t count;
  const pe_kernel_facts *kernels = RECORDS(pe_kernel_facts, entry, PE_SECTION_KERNELS, &count);
  for (uint64_t i = 0; i < count; i++) {
    const pe_kernel_facts *kernel = &kernels[i];
    if (!is_text(entry, kernel->name) || !is_text(entry, kernel->plain_name) ||
        !is_range(entry, PE_SECTION_PARAMETERS, kernel->parameter, kernel->parameters) ||
        !is_range(entry, PE_SECTION_LIMITS, kernel->limit, kernel->limits) ||
        !is_range(entry, PE_SECTION_PAIRS, kernel->pair, kernel->pairs))
      return false;
    const pe_parameter_facts *parameters = RECORDS(pe_parameter_facts, entry, PE_SECTION_PARAMETERS, &(uint64_t){0});
    for (uint32_t j = kernel->parameter; j < kernel->parameter + kernel->parameters; j++)
      if (!pe_within(parameters[j].offset, parameters[j].size, kernel->param_bytes)) return false;
  }
  return true;
}

static bool check_parts_of_kernels(const pe_entry *entry) {
  uint64_t count;
  const pe_parameter_facts *parameters = RECORDS(pe_parameter_facts, entry, PE_SECTION_PARAMETERS, &count);
  for (uint64_t i = 0; i < count; i++) {
    const pe_parameter_facts *item = &parameters[i];
    bool named = is_text(entry, item->name) && is_text(entry, item->type);
    if (!named || (item->pointer_space != PE_NO_TEXT && !is_text(entry, item->pointer_space))) return false;
    if (!is_range(entry, PE_SECTION_USES, item->use, item->uses)) return false;
  }
  const pe_use_facts *uses = RECORDS(pe_use_facts, entry, PE_SECTION_USES, &count);
  for (uint64_t i = 0; i < count; i++)
    if (!is_text(entry, uses[i].kind) || !is_text(entry, uses[i].element) || !is_text(entry, uses[i].geometry)) return false;
  const pe_limit_facts *limits = RECORDS(pe_limit_facts, entry, PE_SECTION_LIMITS, &count);
  for (uint64_t i = 0; i < count; i++)
    if (!is_text(entry, limits[i].name) || limits[i].count > 3) return false;
  const pe_pair_facts *pairs = RECORDS(pe_pair_facts, entry, PE_SECTION_PAIRS, &count);
  for (uint64_t i = 0; i < count; i++)
    if (!is_text(entry, pairs[i].written) || !is_text(entry, pairs[i].read)) return false;
  return true;
}

static bool is_block(uint64_t block) { return block == PE_BLOCK_GLOBAL || block == PE_BLOCK_CONST; }

static bool check_variables(const pe_entry *entry, const pe_module_facts *module) {
  uint64_t count;
  const pe_variable_facts *variables = RECORDS(pe_variable_facts, entry, PE_SECTION_VARIABLES, &count);
  for (uint64_t i = 0; i < count; i++) {
    const pe_variable_facts *item = &variables[i];
    if (!is_text(entry, item->name) || !is_text(entry, item->type) || !is_block(item->block) ||
        !is_range(entry, PE_SECTION_EXTENTS, item->extent, item->extents) ||
        !pe_within(item->offset, item->size, module->size[item->block]))
      return false;
  }
  return true;
}

static bool check_handles(const pe_entry *entry, const pe_module_facts *module) {
  uint64_t count, fields;
  const pe_handle_facts *handles = RECORDS(pe_handle_facts, entry, PE_SECTION_HANDLES, &count);
  const pe_field_facts *field = RECORDS(pe_field_facts, entry, PE_SECTION_FIELDS, &fields);
  for (uint64_t i = 0; i < fields; i++)
    if (!is_text(entry, field[i].name)) return false;
  for (uint64_t i = 0; i < count; i++) {
    const pe_handle_facts *item = &handles[i];
    bool named = is_text(entry, item->name) && is_text(entry, item->type);
    if (!named || item->count == 0 || !pe_within(item->first, item->count, module->handles) ||
        item->initialised > item->count || !is_range(entry, PE_SECTION_FIELDS, item->field, item->fields))
      return false;
    for (uint32_t j = item->field; j < item->field + item->fields; j++)
      if (field[j].element >= item->initialised) return false;
  }
  return true;
}

static bool check_memory(const pe_entry *entry, const pe_module_facts *module) {
  uint64_t count;
  const pe_relocation_facts *relocations = RECORDS(pe_relocation_facts, entry, PE_SECTION_RELOCATIONS, &count);
  for (uint64_t i = 0; i < count; i++) {
    const pe_relocation_facts *item = &relocations[i];
    bool valued = is_block(item->base) || (item->base == PE_BLOCK_HANDLE && item->index < module->handles);
    if (!valued || !is_block(item->block) || item->size == 0 || item->size > 8 || item->shift > 63 ||
        !pe_within(item->offset, item->size, module->size[item->block]))
      return false;
  }
  const pe_contents_facts *contents = RECORDS(pe_contents_facts, entry, PE_SECTION_CONTENTS, &count);
  for (uint64_t i = 0; i < count; i++) {
    const pe_contents_facts *item = &contents[i];
    if (!is_block(item->block) || !pe_within(item->offset, item->size, module->size[item->block]) ||
        !pe_within(item->start, item->size, count_of(entry, PE_SECTION_BYTES)))
      return false;
  }
  return true;
}

static bool check_lines(const pe_entry *entry) {
  uint64_t count;
  const pe_file_facts *files = RECORDS(pe_file_facts, entry, PE_SECTION_FILES, &count);
  for (uint64_t i = 0; i < count; i++)
    if (!is_range(entry, PE_SECTION_LINES, files[i].line, files[i].lines)) return false;
  return true;
}

static bool check_module(const pe_entry *entry) {
  uint64_t count;
  const pe_module_facts *module = RECORDS(pe_module_facts, entry, PE_SECTION_MODULE, &count);
  if (count != 1 || module->handles > UINT32_MAX) return false;
  return check_kernels(entry) && check_parts_of_kernels(entry) && check_variables(entry, module) &&
         check_handles(entry, module) && check_memory(entry, module) && check_lines(entry);
}

static bool check_code(const pe_entry *entry) {
  uint64_t count;
  const pe_code_facts *code = RECORDS(pe_code_facts, entry, PE_SECTION_CODE, &count);
  return count == 1 && is_text(entry, code->symbol) && is_text(entry, code->variant) && is_text(entry, code->maker);
}

static bool check(const pe_entry *entry, uint32_t kind) {
  if (kind == PE_ENTRY_BYTES) return head_of(entry)->sections == 0;
  return check_sections(entry) && (kind == PE_ENTRY_MODULE ? check_module(entry) : check_code(entry));
}

/* ---- opening ---- */

void pe_entry_digest(const char *key, const void *data, uint64_t size, uint8_t *digest) {
  pe_sha256 hash;
  pe_sha256_begin(&hash);
  pe_sha256_add(&hash, key, strlen(key) + 1);
  pe_sha256_add(&hash, data, size);
  pe_sha256_end(&hash, digest);
}

static bool is_intact(const uint8_t *data, uint64_t size, const char *key, uint32_t kind) {
  uint64_t least = offsetof(pe_entry_head, section) + PE_ENTRY_DIGEST;
  if (size < least || size > MAX_SIZE || memcmp(data, MAGIC, sizeof MAGIC) != 0) return false;
  uint32_t stored;
  memcpy(&stored, data + offsetof(pe_entry_head, kind), sizeof stored);
  uint8_t digest[PE_ENTRY_DIGEST];
  pe_entry_digest(key, data, size - PE_ENTRY_DIGEST, digest);
  return stored == kind && memcmp(digest, data + size - PE_ENTRY_DIGEST, sizeof digest) == 0;
}

int pe_entry_open(const void *data, uint64_t size, const char *key, uint32_t kind, pe_entry **out) {
  *out = NULL;
  if (!is_intact(data, size, key, kind)) return ENOEXEC;
  pe_entry *entry = calloc(1, sizeof *entry);
  uint8_t *copy = entry ? malloc(size) : NULL;
  if (!copy) {
    free(entry);
    return ENOMEM;
  }
  memcpy(copy, data, size);
  *entry = (pe_entry){.data = copy, .size = size - PE_ENTRY_DIGEST};
  atomic_init(&entry->owners, 1);
  if (!check(entry, kind)) {
    pe_entry_release(entry);
    return ENOEXEC;
  }
  *out = entry;
  return 0;
}

pe_entry *pe_entry_keep(pe_entry *entry) {
  atomic_fetch_add(&entry->owners, 1);
  return entry;
}

void pe_entry_release(pe_entry *entry) {
  if (!entry || atomic_fetch_sub(&entry->owners, 1) != 1) return;
  free(entry->data);
  free(entry);
}
