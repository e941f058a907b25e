/* tensor_edit.c: programs change tensor maps, and copy them to where others find them. */
#include <string.h>
#include "atomic.h"
#include "fault.h"
#include "place.h"
#include "tensor_types.h"

/* Numbers that a field cannot hold become its greatest, which no map may have.  False: there is no such field. */
static bool set_field(pe_tensor_map *map, const pe_tensor_field_site *site, uint64_t value) {
  uint32_t d = site->ordinal;
  switch (site->field) {
    case PE_FIELD_GLOBAL_ADDRESS: map->address = value; return true;
    case PE_FIELD_RANK: map->rank = pe_tensor_narrow_8(value + 1); return true;
    case PE_FIELD_BOX_DIM: map->box[d] = pe_tensor_narrow_16(value); return true;
    case PE_FIELD_GLOBAL_DIM: map->dim[d] = (uint32_t)value; return true;
    case PE_FIELD_GLOBAL_STRIDE:
      if (d + 1 == PE_TENSOR_RANK) return false;
      map->stride[d] = value;
      return true;
    case PE_FIELD_ELEMENT_STRIDE: map->step[d] = pe_tensor_narrow_8(value); return true;
    case PE_FIELD_ELEMTYPE: map->type = pe_tensor_narrow_8(value); return true;
    case PE_FIELD_INTERLEAVE_LAYOUT: map->interleave = pe_tensor_narrow_8(value); return true;
    case PE_FIELD_SWIZZLE_MODE: map->swizzle = pe_tensor_narrow_8(value); return true;
    case PE_FIELD_SWIZZLE_ATOMICITY: map->atomicity = pe_tensor_narrow_8(value); return true;
    default: map->fill = pe_tensor_narrow_8(value); return true;
  }
}

/* For the handler of accesses to unmapped pages. */
static void note(pe_warp *w, uint32_t pos) {
  w->pos = pos;
  w->space = PE_GLOBAL;
}

void pe_tensor_replace(pe_warp *w, const pe_tensor_field_site *site, uint32_t mask, const uint64_t *addr,
                       const uint64_t *value) {
  pe_access access = {site->pos, site->space, PE_IN_GLOBAL | PE_IN_SHARED, PE_UPDATE, PE_TENSOR_MAP_ALIGNMENT, NULL};
  note(w, site->pos);
  PE_FOR_LANES(lane, mask) {
    pe_tensor_map map;
    uint8_t *host = pe_host(w, &access, lane, addr[lane], sizeof map);
    memcpy(&map, host, sizeof map);
    if (map.kind != PE_TENSOR_TILED || !set_field(&map, site, value[lane]))
      pe_fault_note(w, PE_INVALID_TENSOR, site->pos, (int32_t)lane, site->space, addr[lane], sizeof map,
                    "it has no such field");
    if (!map.magic) map.magic = PE_TENSOR_MAGIC; /* zeros become a map */
    memcpy(host, &map, sizeof map);
  }
}

void pe_tensor_publish(pe_warp *w, uint32_t pos, uint32_t mask, const uint64_t *target, const uint64_t *source) {
  pe_access read = {pos, PE_SHARED, PE_IN_SHARED, PE_READ, PE_TENSOR_MAP_ALIGNMENT, NULL};
  pe_access write = {pos, PE_GLOBAL, PE_IN_GLOBAL, PE_WRITE, PE_TENSOR_MAP_ALIGNMENT, NULL};
  uint64_t to_before = 0, from_before = 0;
  note(w, pos);
  PE_FOR_LANES(lane, mask) {
    if (target[lane] == to_before && source[lane] == from_before) continue; /* all lanes have one map as a rule */
    to_before = target[lane], from_before = source[lane];
    const uint8_t *from = pe_host(w, &read, lane, source[lane], PE_TENSOR_MAP_BYTES);
    memcpy(pe_host(w, &write, lane, target[lane], PE_TENSOR_MAP_BYTES), from, PE_TENSOR_MAP_BYTES);
  }
}
