/* texture_flat.h: a shorter way for the textures that kernels mostly read. */
#ifndef PTXEMU_TEXTURE_FLAT_H
#define PTXEMU_TEXTURE_FLAT_H
#include <stdbool.h>
#include "ptxemu.h"
#include "texture.h"

static inline bool pe_is_line(uint32_t geom) { return geom == PE_GEOM_1D || geom == PE_GEOM_1D_BUFFER; }

/* One fetch of the lanes of a mask. */
typedef struct pe_flat {
  const pe_texture *texture;
  const pe_sampler *sampler; /* in force */
  uint32_t mask;
  uint32_t wanted;       /* components to compute */
  const uint32_t *x, *y; /* coordinates of all lanes */
  const uint32_t *layer; /* or NULL */
  uint32_t *out;
} pe_flat;

/* Ways to fetch: by coordinates that a sampler reads, by indices of texels. */
enum { PE_FLAT_SAMPLED = 1, PE_FLAT_COUNTED = 2 };

/* Those that a texture has with a sampler in force, a set, and the one that an instruction takes, or 0. */
uint32_t pe_flat_ways(const pe_texture *texture, const pe_sampler *sampler);
uint32_t pe_flat_way(const pe_texture_site *site, const pe_texture *texture);

/* False, with nothing done, where a lane reads the border. */
bool pe_flat_fetch(const pe_flat *fetch, uint32_t way);

#endif
