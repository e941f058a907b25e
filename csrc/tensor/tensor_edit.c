/* tensor_edit.c: programs change tensor maps, and copy them to where others find them. */
#include <string.h>
#include "atomic.h"
#include "fault.h"
#include "place.h"
#include "tensor_types.h"

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
    pe_tensor_set(&map, site->field, site->ordinal, value[lane]);
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
