/* texture.h: the texture engine: what tex, tld4 and txq do (docs/semantics.md, "Textures").
 *
 * A texture is a surface's memory, how its texels are read, and a sampler.  All lanes of a warp are served by one call.
 */
#ifndef PTXEMU_TEXTURE_H
#define PTXEMU_TEXTURE_H
#include "surface.h"

#pragma GCC visibility push(default)
/* CDEF BEGIN */
/* Address and filter modes, numbered as in CUDA. */
enum { PE_ADDRESS_WRAP, PE_ADDRESS_CLAMP, PE_ADDRESS_MIRROR, PE_ADDRESS_BORDER };
enum { PE_FILTER_POINT, PE_FILTER_LINEAR };

/* Geometries that only textures have, beside PE_GEOM_*. */
enum { PE_GEOM_2DMS = 16, PE_GEOM_A2DMS };

/* How a fetch finds its mip level (pe_texture_site.lod): the least allowed one, a level, gradients. */
enum { PE_LOD_LEAST, PE_LOD_LEVEL, PE_LOD_GRADIENT };

/* What lies in a result (pe_texture_site.result): 32 bits a component, f16 in the low half, two f16. */
enum { PE_RESULT_B32, PE_RESULT_F16, PE_RESULT_F16X2 };

/* txq queries. */
enum {
  PE_TXQ_WIDTH,
  PE_TXQ_HEIGHT,
  PE_TXQ_DEPTH,
  PE_TXQ_CHANNEL_DATA_TYPE,
  PE_TXQ_CHANNEL_ORDER,
  PE_TXQ_NORMALIZED_COORDS,
  PE_TXQ_ARRAY_SIZE,
  PE_TXQ_NUM_MIPMAP_LEVELS,
  PE_TXQ_NUM_SAMPLES,
  PE_TXQ_FORCE_UNNORMALIZED_COORDS,
  PE_TXQ_FILTER_MODE,
  PE_TXQ_ADDR_MODE_0,
  PE_TXQ_ADDR_MODE_1,
  PE_TXQ_ADDR_MODE_2,
  PE_TXQ_COUNT
};

/* How coordinates become texels. */
typedef struct pe_sampler {
  uint32_t address[3]; /* PE_ADDRESS_*, for x y z */
  uint32_t filter;     /* PE_FILTER_* in a level */
  uint32_t mip_filter; /* and between levels */
  uint32_t normalized; /* coordinates are fractions of the extents */
  uint32_t seamless;   /* cubes: a footprint goes on over the edge of a face */
  uint32_t anisotropy; /* the most; what would filter so is a fault if it is above one */
  float bias, min_level, max_level;
  float border[4];           /* R G B A */
  uint8_t encoded_border[4]; /* the same as sRGB bytes, which its slot in a table gives it */
} pe_sampler;

/* What a handle stands for. */
enum { PE_TEXTURE_UNBOUND = 1, PE_TEXTURE_IMAGE, PE_TEXTURE_SAMPLER };

/* An entry of the handle table: a texture with its own sampler, a sampler alone, or an unbound variable. */
typedef struct pe_texture {
  uint32_t state;      /* PE_TEXTURE_* */
  uint32_t geom;       /* PE_GEOM_* */
  uint32_t kind;       /* PE_KIND_* that texels are read as; integers and FLOAT are not scaled */
  uint32_t srgb;       /* 8-bit UNORM texels are sRGB encoded (pe_is_srgb) */
  uint32_t samples;    /* of a multi-sample texture, else 1 */
  uint32_t is_sampler; /* an unbound variable is a .samplerref */
  pe_sampler sampler;
  pe_surface_desc memory; /* layers: of every sample or face */
  uint32_t query_mask;    /* bit q: query_value[q] overrides query q */
  uint32_t query_value[14];
  /* derived, of a texture in a table */
  pe_sampler own; /* its sampler in force */
  uint32_t ways;  /* how it can be fetched with it (texture_flat.h) */
} pe_texture;

/* The sampler is one that hardware has, and takes the texture: NULL, or what is wrong. */
const char *pe_texture_check(const pe_texture *texture);

/* Handles: bits 19:0 slot, bits 63:32 generation tag, never 0. */
pe_texture_table *pe_texture_table_new(void);
void pe_texture_table_free(pe_texture_table *table);

/* Put a copy of texture into a slot (1..0xfffff). 0, or -1 when the slot is bad or memory is short. */
int pe_texture_table_set(pe_texture_table *table, uint32_t slot, uint32_t tag, const pe_texture *texture);
void pe_texture_table_clear(pe_texture_table *table, uint32_t slot);

/* A handle for an array of so many elements, which are unused until they are set. 0: there is no room for them. */
uint64_t pe_texture_table_take(pe_texture_table *table, uint32_t elements);
/* How many elements a handle has that was taken; 0: it is none. */
uint32_t pe_texture_table_elements(const pe_texture_table *table, uint64_t handle);
/* Forget it: its elements are unused again. */
void pe_texture_table_retire(pe_texture_table *table, uint64_t handle);

/* The entry of a handle in use, or NULL. */
const pe_texture *pe_texture_lookup(const pe_texture_table *table, uint64_t handle);

/* One query; level is -1 unless the instruction names one. */
uint32_t pe_texture_query(const pe_texture *texture, uint32_t which, int32_t level);
/* CDEF END */
#pragma GCC visibility pop

#endif
