/* surface_table.c: handles of surfaces. */
#include "slots.h"
#include "surface.h"

static pe_slots *slots_of(const pe_surface_table *table) { return (pe_slots *)table; }

pe_surface_table *pe_surface_table_new(void) { return (pe_surface_table *)pe_slots_new(sizeof(pe_surface_desc)); }
void pe_surface_table_free(pe_surface_table *table) { pe_slots_free(slots_of(table)); }

static uint64_t below_sign(uint64_t extent) { return extent <= 1ull << 31 ? extent : 1ull << 31; }

static pe_surface_view view_of(const pe_surface_desc *d) {
  if (d->state != PE_SURFACE_VALID || d->layout == PE_LAYOUT_BLOCK_LINEAR) return (pe_surface_view){0};
  bool near = d->total_bytes < 1u << 31;
  return (pe_surface_view){
    .near_row = near ? d->level[0].row_bytes : 0,
    .row = below_sign(d->level[0].row_bytes),
    .height = below_sign(d->height),
    .depth = below_sign(d->depth),
    .layers = d->layers,
    .base = (uint64_t)(uintptr_t)d->base,
    .pitch = d->pitch,
    .slice_stride = d->slice_stride,
    .layer_stride = d->layer_stride,
  };
}

int pe_surface_table_set(pe_surface_table *table, uint32_t slot, uint32_t tag, const pe_surface_desc *desc) {
  pe_surface_desc placed = *desc;
  placed.view = view_of(desc);
  return pe_slots_set(slots_of(table), slot, tag, &placed);
}

void pe_surface_table_clear(pe_surface_table *table, uint32_t slot) { pe_slots_clear(slots_of(table), slot); }

uint64_t pe_surface_table_take(pe_surface_table *table, uint32_t elements) {
  return pe_slots_take(slots_of(table), elements);
}

uint32_t pe_surface_table_elements(const pe_surface_table *table, uint64_t handle) {
  return pe_slots_elements(slots_of(table), handle);
}

void pe_surface_table_retire(pe_surface_table *table, uint64_t handle) {
  uint32_t elements = pe_slots_elements(slots_of(table), handle);
  for (uint32_t i = 0; i < elements; i++) pe_surface_table_clear(table, (uint32_t)handle + PE_SLOT_STEP * i);
  pe_slots_retire(slots_of(table), handle);
}

const pe_surface_desc *pe_surface_lookup(const pe_surface_table *table, uint64_t handle) {
  uint32_t slot = handle & PE_SLOT_MASK, wanted = (uint32_t)(handle >> 32), tag;
  const pe_surface_desc *desc = table && slot ? pe_slots_find(slots_of(table), slot, &tag) : NULL;
  return desc && (!wanted || wanted == tag) ? desc : NULL;
}
