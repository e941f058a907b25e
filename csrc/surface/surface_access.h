/* surface_access.h: shared by the scalar and the warp access paths. */
#ifndef PTXEMU_SURFACE_ACCESS_H
#define PTXEMU_SURFACE_ACCESS_H
#include <stdbool.h>
#include <string.h>
#include "surface.h"

/* Loops over lanes: the widest vectors of this CPU.  A resolver runs too early for the sanitizers. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define PE_WIDE __attribute__((target_clones("avx2", "default")))
#define PE_WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define PE_WIDE
#define PE_WIDEST
#endif

/* Whether a lane has a texel only where its coordinates are those of one. */
static inline bool pe_edges_are_plain(const pe_su_policy *policy) {
  return policy->align == PE_ALIGN_FAULT && policy->partial_edge == PE_EDGE_REJECT && !policy->layer_16bit;
}

static inline bool pe_geom_has_y(uint32_t geom) {
  return geom != PE_GEOM_1D && geom != PE_GEOM_1D_BUFFER && geom != PE_GEOM_A1D;
}
static inline bool pe_geom_has_z(uint32_t geom) { return geom == PE_GEOM_3D; }
static inline bool pe_geom_is_array(uint32_t geom) { return geom >= PE_GEOM_A1D && geom <= PE_GEOM_ACUBE; }

/* May an instruction of geometry `access` touch a surface of geometry `surface`?  Cubes are layered 2d surfaces. */
static inline bool pe_geom_fits(uint32_t access, uint32_t surface) {
  if (access == surface || access == PE_GEOM_ANY) return true;
  if (access == PE_GEOM_A2D) return surface == PE_GEOM_CUBE || surface == PE_GEOM_ACUBE;
  return access == PE_GEOM_1D && surface == PE_GEOM_1D_BUFFER;
}

/* PE_OK, PE_SU_NONE or a fault: everything about an access but its coordinates. */
int pe_su_admit(pe_su_context *ctx, const pe_surface_desc *desc, const pe_su_access *access);

/* The operation and format rule that a surface gives to a reduction of an untyped element. */
uint32_t pe_su_signed_op(const pe_surface_desc *desc, uint32_t op, uint32_t type, uint32_t *format);

/* Convert n register elements to component bits, in place. */
void pe_format_convert(const pe_su_policy *policy, const pe_surface_desc *desc, bool measured, uint32_t *v, uint32_t n);

/* Store the components of one texel.  Those that channels lacks follow the policy; v is read where channels has a bit. */
void pe_format_pack(const pe_su_policy *policy, const pe_surface_desc *desc, uint8_t *texel, const uint32_t *v,
                    uint32_t channels);

/* The same of 32 lanes that have `count` components each, one texel behind another; where they fill it, as pe_format_fills says. */
void pe_format_pack_lanes(const pe_su_policy *policy, const pe_surface_desc *desc, uint8_t *texels, const uint32_t *v,
                          uint32_t count);

/* Whether a store of `count` components leaves nothing of what was there. */
bool pe_format_fills(const pe_su_policy *policy, const pe_surface_desc *desc, uint32_t count);

/* Move an element of an access size; one instruction up to 8 bytes, so it does not tear. */
static inline void pe_move(void *dst, const void *src, uint32_t size) {
  switch (size) {
    case 1: memcpy(dst, src, 1); break;
    case 2: memcpy(dst, src, 2); break;
    case 4: memcpy(dst, src, 4); break;
    case 8: memcpy(dst, src, 8); break;
    default: memcpy(dst, src, 16); break;
  }
}

#endif
