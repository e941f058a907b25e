/* texture_flat.h: a shorter way for the textures that kernels mostly read. */
#ifndef PTXEMU_TEXTURE_FLAT_H
#define PTXEMU_TEXTURE_FLAT_H
#include <stdbool.h>
#include "ptxemu.h"
#include "texture.h"

/* One fetch of the lanes of a mask. */
typedef struct pe_flat {
  const pe_texture *texture;
  const pe_sampler *sampler; /* in force */
  uint32_t mask;
  uint32_t wanted;       /* components to compute */
  const uint32_t *x, *y; /* coordinates of all lanes */
  uint32_t *out;
} pe_flat;

/* Whether an instruction on a texture is of that kind. */
bool pe_flat_fits(const pe_texture_site *site, const pe_texture *texture, const pe_sampler *sampler);

/* False, with nothing done, where a lane reads the border. */
bool pe_flat_fetch(const pe_flat *fetch);

#endif
