/* texels.c: what findings say of texels. */
#include <inttypes.h>
#include "checker.h"
#include "surface_access.h"
#include "text.h"

static void add_name(pe_checker *checker, uint64_t address, pe_text *t) {
  pe_extent at;
  if (pe_extents_at(&checker->extents, address, &at) && at.name[0])
    pe_add(t, " of `%s`", at.name);
  else
    pe_add(t, " of the memory at 0x%" PRIx64, address);
}

/* Its coordinates are told where one row lies behind another. */
void pe_add_texel(pe_checker *checker, const pe_surface_desc *d, uint64_t address, pe_text *t) {
  uint64_t offset = address - (uint64_t)(uintptr_t)d->base, layer = d->layer_stride ? offset / d->layer_stride : 0;
  uint64_t in_layer = offset - layer * d->layer_stride;
  uint32_t index = 0;
  while (index + 1 < d->levels && in_layer >= d->level[index + 1].offset) index++;
  const pe_surface_level *level = &d->level[index];
  if (d->layout == PE_LAYOUT_BLOCK_LINEAR || !level->slice_stride || !level->pitch) {
    pe_add(t, "a texel");
    add_name(checker, address, t);
    return;
  }
  uint64_t rest = in_layer - level->offset, z = rest / level->slice_stride, y = rest % level->slice_stride / level->pitch;
  pe_add(t, "texel (%" PRIu64, rest % level->slice_stride % level->pitch / d->elem_bytes);
  if (pe_geom_has_y(d->geom)) pe_add(t, ",%" PRIu64, y);
  if (pe_geom_has_z(d->geom)) pe_add(t, ",%" PRIu64, z);
  pe_add(t, ")");
  if (d->layers > 1) pe_add(t, " of layer %" PRIu64, layer);
  if (index) pe_add(t, " of level %u", index);
  add_name(checker, address, t);
}
