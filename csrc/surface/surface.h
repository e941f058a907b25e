/* surface.h: the surface engine and the atomic operations, one model for every front end.
 *
 * These functions are about one lane, return PE_OK, PE_SU_NONE or a fault kind, and can be called from anywhere.  The warp
 * entry points of ptxemu.h (pe_surface, pe_suq, pe_is_surface, pe_atomic) use them lane by lane and raise the fault.
 */
#ifndef PTXEMU_SURFACE_H
#define PTXEMU_SURFACE_H
#include "ptxemu.h"

#pragma GCC visibility push(default)
/* CDEF BEGIN */
/* Operations of an atomic update. */
enum {
  PE_ATOM_ADD,
  PE_ATOM_SUB,
  PE_ATOM_UMIN,
  PE_ATOM_UMAX,
  PE_ATOM_SMIN,
  PE_ATOM_SMAX,
  PE_ATOM_AND,
  PE_ATOM_OR,
  PE_ATOM_XOR,
  PE_ATOM_INC_WRAP,
  PE_ATOM_DEC_WRAP,
  PE_ATOM_INC,
  PE_ATOM_DEC,
  PE_ATOM_PREDEC,
  PE_ATOM_XCHG,
  PE_ATOM_CAS,
  PE_ATOM_FCAS,
  PE_ATOM_FADD,
  PE_ATOM_FMIN,
  PE_ATOM_FMAX
};

/* Variants of an atomic update (a set). */
enum {
  PE_ATOM_FTZ = 1,       /* FADD, FMIN, FMAX: subnormal inputs and results become same-signed zero */
  PE_ATOM_QUIET_NAN = 2, /* a NaN result is the IEEE default (0x7fc00000, 0x7e00) and not CUDA's (0x7fffffff, 0x7fff) */
  PE_ATOM_KEEP_OLD = 4,  /* FMIN, FMAX: a NaN operand leaves memory as it is */
  PE_ATOM_OLD_NAN = 8,   /* FADD of f64: NaN in memory counts before that of the operand, and all become quiet */
  PE_ATOM_NOFTZ = 16     /* FADD of f32: global memory keeps subnormals, too */
};

/* Kinds of surface access (pe_surface_site.kind). */
enum { PE_SULD_B, PE_SUST_B, PE_SUST_P, PE_SURED_B, PE_SURED_P, PE_SU_TYPED };

/* Geometries. ANY, as the geometry of an access, takes that of the surface. */
enum {
  PE_GEOM_1D,
  PE_GEOM_1D_BUFFER,
  PE_GEOM_2D,
  PE_GEOM_3D,
  PE_GEOM_A1D,
  PE_GEOM_A2D,
  PE_GEOM_CUBE,
  PE_GEOM_ACUBE,
  PE_GEOM_ANY,
  PE_GEOM_NEVER /* no geometry will do */
};

/* What happens out of bounds. */
enum { PE_CLAMP_TRAP, PE_CLAMP_NEAREST, PE_CLAMP_ZERO };

/* The unit of the x coordinate: bytes, access sizes, texels (the access size is then the texel's). */
enum { PE_COORD_BYTE, PE_COORD_SCALED, PE_COORD_TEXEL };

/* Which formats an access takes: any, one component of the access size, integers only in strict mode, those that it can
 * convert to. */
enum { PE_FORMAT_ANY, PE_FORMAT_SINGLE, PE_FORMAT_INTEGER, PE_FORMAT_CONVERTED, PE_FORMAT_NEVER /* no format will do */ };

/* suq queries. */
enum {
  PE_SUQ_WIDTH,
  PE_SUQ_HEIGHT,
  PE_SUQ_DEPTH,
  PE_SUQ_CHANNEL_DATA_TYPE,
  PE_SUQ_CHANNEL_ORDER,
  PE_SUQ_ARRAY_SIZE,
  PE_SUQ_MEMORY_LAYOUT,
  PE_SUQ_COUNT
};

/* Descriptor fields. */
enum { PE_SURFACE_INVALID, PE_SURFACE_VALID, PE_SURFACE_DISABLED, PE_SURFACE_UNBOUND };
enum { PE_KIND_UNORM, PE_KIND_SNORM, PE_KIND_UINT, PE_KIND_SINT, PE_KIND_FLOAT };
enum {
  PE_ORDER_R,
  PE_ORDER_RG,
  PE_ORDER_RGBA,
  PE_ORDER_BGRA,
  PE_ORDER_A,
  PE_ORDER_RGB10A2 /* R, G and B of 10 bits and A of 2 in one word, R lowest: moved, never converted */
};
enum { PE_LAYOUT_LINEAR, PE_LAYOUT_PITCH, PE_LAYOUT_BLOCK_LINEAR };
enum { PE_GOB_SWIZZLED, PE_GOB_LINEAR };
enum { PE_ENUM_OPENCL, PE_ENUM_CUDA };

/* Policy values. */
enum { PE_ALIGN_FAULT, PE_ALIGN_MASK };
enum { PE_EDGE_REJECT, PE_EDGE_ALLOW };
enum { PE_HEADER_FAULT, PE_HEADER_DROP };
enum { PE_MISSING_ZERO, PE_MISSING_PRESERVE, PE_MISSING_POISON };

/* The access has no memory: a load gives 0, a store or reduction is dropped. */
enum { PE_SU_NONE = -1 };

/* Extents and placement of one mip level; pitch and slice of block linear are those of its GOB grid. */
typedef struct pe_surface_level {
  uint32_t width, height, depth;
  uint32_t block_h_log2, block_d_log2; /* effective */
  uint64_t row_bytes;                  /* width * elem_bytes */
  uint64_t stored_row_bytes;           /* bytes of a row that belong to the surface, padding included */
  uint64_t pitch;                      /* pitch, linear: bytes from row to row */
  uint64_t slice_stride;               /* pitch, linear: bytes from slice to slice */
  uint64_t blocks_x, blocks_y;         /* block linear: blocks in a row, rows of blocks in a slice */
  uint64_t offset;                     /* of the level in its layer */
} pe_surface_level;

/* Level 0 as compiled code sees it: coordinates below `row` (bytes), `height`, `depth` and `layers` are inside, and the texel
 * lies at base + layer * layer_stride + z * slice_stride + y * pitch + x.  All zero: nothing is inside that compiled code may
 * touch by itself.  `near_row` is `row` where offsets from base, and strides, are less than 2**31, and 0 elsewhere. */
typedef struct pe_surface_view {
  uint64_t row, height, depth, layers;
  uint64_t base, pitch, slice_stride, layer_stride;
  uint64_t near_row;
} pe_surface_view;

/* A surface. The first part is filled by the creator (0 = default for strides and alignments), the second derived. */
typedef struct pe_surface_desc {
  uint32_t state, geom;
  uint32_t width, height, depth, layers, levels;
  uint32_t components, bits, kind, order; /* bits of one component: 8 16 32; 10 of RGB10A2 */
  uint32_t layout, block_h_log2, block_d_log2, gob_order;
  uint32_t base_align, pitch_align; /* required alignments; default 16 */
  uint32_t enum_family;
  uint32_t inp_2x2; /* a read gives the texel and its neighbours */
  uint64_t pitch, slice_stride, layer_stride;
  uint8_t *base;
  uint64_t size;
  uint32_t suq_mask; /* bit q: suq_value[q] overrides query q */
  uint32_t suq_value[7];
  /* derived */
  uint32_t elem_bytes;
  uint64_t total_bytes;
  pe_surface_level level[16];
  pe_surface_view view; /* of a surface in a table */
} pe_surface_desc;

/* Choices where the instruction sets are silent; all zero is the default for PTX. */
typedef struct pe_su_policy {
  uint8_t align;             /* misaligned byte coordinate: PE_ALIGN_* */
  uint8_t partial_edge;      /* PE_EDGE_* */
  uint8_t layer_16bit;       /* only the low 16 bits of a layer count */
  uint8_t invalid_header;    /* bad handle: PE_HEADER_* */
  uint8_t missing_component; /* of a formatted store: PE_MISSING_* */
  uint8_t strict;
  uint8_t absent_dim;       /* what suq gives for a dimension the geometry lacks: 0 or 1 */
  uint8_t fminmax_keep_old; /* PE_ATOM_KEEP_OLD for every access */
  uint8_t float_to_uint;    /* UINT components read floats: rounded to nearest even, saturated */
} pe_su_policy;

typedef struct pe_surface_table pe_surface_table;
typedef struct pe_texture_table pe_texture_table;

enum { PE_DIALECT_COUNTS = 4 };

/* What a launch knows about surfaces and textures. */
typedef struct pe_su_context {
  pe_surface_table *table;
  pe_texture_table *textures;
  pe_su_policy policy;
  uint64_t dropped;                   /* accesses dropped because of a bad handle */
  uint64_t format_mismatches;         /* reductions whose signedness the format does not give */
  uint64_t counts[PE_DIALECT_COUNTS]; /* whatever the program's dialect counts */
} pe_su_context;

/* What is constant about an access. */
typedef struct pe_su_access {
  uint32_t geom, coord, size, clamp, format;
} pe_su_access;

typedef struct pe_su_coord {
  int64_t x, y, z, layer;
  uint32_t level;
} pe_su_coord;

/* ---- creation: NULL, or what is wrong --------------------------------------------------------------------------- */

/* Derive elem_bytes, strides, levels and total_bytes from the creator's fields. */
const char *pe_surface_layout(pe_surface_desc *desc);

/* Check base and size against the derived layout. */
const char *pe_surface_check(const pe_surface_desc *desc);

/* Byte offset of (x_byte, y, z, layer) from base; no checks. */
uint64_t pe_surface_offset(const pe_surface_desc *desc, uint32_t level, uint64_t x_byte, uint64_t y, uint64_t z,
                           uint64_t layer);

/* Copy the whole of a level between the surface and dense rows ordered [layer][slice][row][byte]. */
void pe_surface_upload(const pe_surface_desc *desc, uint32_t level, const void *dense);
void pe_surface_download(const pe_surface_desc *desc, uint32_t level, void *dense);

/* ---- handle table ------------------------------------------------------------------------------------------------ */

/* A handle: bits 19:0 slot, bits 63:32 generation tag (0 in a handle: not checked).  Element k of an array has the handle
 * of the first plus k * PE_SLOT_STEP. */
enum { PE_SLOT_STEP = 8, PE_MAX_SLOT = 0xfffff };
pe_surface_table *pe_surface_table_new(void);
void pe_surface_table_free(pe_surface_table *table);

/* Put a copy of desc into a slot (1..0xfffff). 0, or -1 when the slot is bad or memory is short. */
int pe_surface_table_set(pe_surface_table *table, uint32_t slot, uint32_t tag, const pe_surface_desc *desc);
void pe_surface_table_clear(pe_surface_table *table, uint32_t slot);

/* A handle for an array of so many elements, which are unused until they are set. 0: there is no room for them. */
uint64_t pe_surface_table_take(pe_surface_table *table, uint32_t elements);
/* How many elements a handle has that was taken; 0: it is none. */
uint32_t pe_surface_table_elements(const pe_surface_table *table, uint64_t handle);
/* Forget it: its elements are unused again. */
void pe_surface_table_retire(pe_surface_table *table, uint64_t handle);

/* The live descriptor of a handle, or NULL. */
const pe_surface_desc *pe_surface_lookup(const pe_surface_table *table, uint64_t handle);

/* ---- access: PE_OK, PE_SU_NONE or a fault kind -------------------------------------------------------------------- */

int pe_su_resolve(pe_su_context *ctx, const pe_surface_desc *desc, const pe_su_access *access, const pe_su_coord *coord,
                  uint8_t **addr);

uint32_t pe_su_query(const pe_su_context *ctx, const pe_surface_desc *desc, uint32_t which);

/* ---- atomics ------------------------------------------------------------------------------------------------------ */

/* Bytes of one element of a PE_TYPE_*. */
uint32_t pe_atom_bytes(uint32_t type);

/* Is op defined for type? */
int pe_atom_legal(uint32_t op, uint32_t type);

/* One update of a naturally aligned element in memory.  old, where not NULL, receives the value that op returns.
 * locked = 0: no other thread can reach the element. */
void pe_atom_update(void *memory, uint32_t op, uint32_t type, uint32_t flags, const void *a, const void *b, void *old,
                    int locked);

/* Round to nearest even. */
uint16_t pe_f16_from_f32(float value);
uint16_t pe_bf16_from_f32(float value);
float pe_f32_from_f16(uint16_t bits);
/* CDEF END */
#pragma GCC visibility pop

#endif
