/* declared.c: opaque variables before anything is bound to them. */
#include <string.h>
#include "declared.h"

#define MAX_LEVEL 15 /* of a sampler that says nothing of levels */

static const char *const SURFACE_FIELDS[PE_SUQ_COUNT] = {
  "width", "height", "depth", "channel_data_type", "channel_order", "array_size", "memory_layout",
};
static const char *const TEXTURE_FIELDS[PE_TXQ_COUNT] = {
  "width",         "height",
  "depth",         "channel_data_type",
  "channel_order", "normalized_coords",
  "array_size",    "num_mipmap_levels",
  "num_samples",   "force_unnormalized_coords",
  "filter_mode",   "addr_mode_0",
  "addr_mode_1",   "addr_mode_2",
};

/* A field of one element. */
typedef struct field {
  const char *name;
  int64_t value;
} field;

/* The next field of an element from number `at` on, and the number after it. */
static bool next_field(const pe_entry *entry, const pe_handle_facts *handle, uint32_t index, uint32_t *at, field *out) {
  uint64_t count;
  const pe_field_facts *fields = pe_entry_section(entry, PE_SECTION_FIELDS, &count);
  for (; *at < handle->fields; (*at)++) {
    const pe_field_facts *item = &fields[handle->field + *at];
    if (item->element != index) continue;
    *out = (field){pe_entry_text(entry, item->name), item->value};
    (*at)++;
    return true;
  }
  return false;
}

/* The number of a name, or -1. */
static int find(const char *const *names, int count, const char *name) {
  for (int i = 0; i < count; i++)
    if (strcmp(names[i], name) == 0) return i;
  return -1;
}

bool pe_is_surface_type(const char *type) { return strcmp(type, "surfref") == 0; }

void pe_declared_surface(const pe_entry *entry, const pe_handle_facts *handle, uint32_t index, pe_surface_desc *out) {
  field item;
  *out = (pe_surface_desc){.state = PE_SURFACE_UNBOUND};
  for (uint32_t at = 0; next_field(entry, handle, index, &at, &item);) {
    int which = find(SURFACE_FIELDS, PE_SUQ_COUNT, item.name);
    if (which < 0) continue;
    out->suq_mask |= 1u << which;
    out->suq_value[which] = (uint32_t)item.value;
  }
}

/* The state that the fields of a .samplerref give. */
static const char *declared_sampler(const int64_t fields[PE_TXQ_COUNT], pe_texture *out) {
  static const uint32_t modes[] = {PE_ADDRESS_WRAP, PE_ADDRESS_CLAMP, PE_ADDRESS_BORDER, PE_ADDRESS_MIRROR};
  *out = (pe_texture){.state = PE_TEXTURE_SAMPLER, .sampler = {.max_level = MAX_LEVEL}};
  for (int axis = 0; axis < 3; axis++) {
    uint64_t mode = (uint64_t)fields[PE_TXQ_ADDR_MODE_0 + axis];
    if (mode > 3 || (uint64_t)fields[PE_TXQ_FILTER_MODE] > 1)
      return "address mode clamp_ogl, or one that has no name, is not supported";
    out->sampler.address[axis] = modes[mode];
  }
  out->sampler.filter = fields[PE_TXQ_FILTER_MODE] ? PE_FILTER_LINEAR : PE_FILTER_POINT;
  out->sampler.normalized = !fields[PE_TXQ_FORCE_UNNORMALIZED_COORDS];
  return pe_texture_check(out);
}

const char *pe_declared_texture(const pe_entry *entry, const pe_handle_facts *handle, uint32_t index, pe_texture *out) {
  int64_t values[PE_TXQ_COUNT] = {0};
  uint32_t mask = 0;
  bool any = false;
  field item;
  for (uint32_t at = 0; next_field(entry, handle, index, &at, &item); any = true) {
    int which = find(TEXTURE_FIELDS, PE_TXQ_COUNT, item.name);
    if (which < 0) continue;
    mask |= 1u << which;
    values[which] = item.value;
  }
  bool sampler = strcmp(pe_entry_text(entry, handle->type), "samplerref") == 0;
  if (sampler && any) return declared_sampler(values, out);
  *out = (pe_texture){.state = PE_TEXTURE_UNBOUND, .is_sampler = sampler, .query_mask = mask};
  for (int i = 0; i < PE_TXQ_COUNT; i++) out->query_value[i] = (uint32_t)values[i];
  return NULL;
}
