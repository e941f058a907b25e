/* ptxemu.h: the C runtime's one public header.
 *
 * The part between the CDEF markers is also what cffi parses (tools/extension.py), so it holds plain declarations only.
 * JIT code calls the functions that take a pe_warp; Python calls the others.
 */
#ifndef PTXEMU_H
#define PTXEMU_H
#include <stdint.h>
#include <stddef.h>

#pragma GCC visibility push(default)
/* CDEF BEGIN */
typedef struct pe_launch pe_launch;

/* Where a worker has a twin (twin.h), which compiled code adds to by itself; all 0 without one. */
typedef struct pe_apart {
  uint64_t first, bytes; /* of the allocation that it is of */
  uint64_t twin;    /* where it is itself, less than 2**31 bytes: a host address. Behind it each lane has a word of waste */
  uint64_t sums[2]; /* the bytes again, of a twin of words of 4 bytes, and of 8; or 0: code must not add by itself */
  uint64_t stamps[2]; /* their stamps (stamp.h), host addresses: of 4 bytes at twice an offset, of 8 at it */
} pe_apart;

/* What one warp of JIT code sees.  Python reads the fields of all structs through cffi: never repeat them elsewhere. */
typedef struct pe_warp {
  /* constant during a launch */
  uint64_t arena_base;  /* host address of the arena's first byte */
  uint64_t arena_size;  /* its size in bytes; PROT_NONE margins of PE_ARENA_MARGIN lie on both sides */
  uint64_t global_base; /* address of the module's block of .global variables */
  uint64_t const_base;  /* address of the module's block of .const variables */
  uint64_t const_size;
  uint64_t param_base; /* address of the entry's parameter buffer */
  uint64_t param_size;
  uint64_t handles;               /* address of the module's table of surfref/texref/samplerref handles (u64 each) */
  const volatile uint32_t *asked; /* what is asked of all warps, PE_ASKED_TO ...; polled at loop back-edges */
  pe_launch *launch;
  uint32_t ntid[3];
  uint32_t nctaid[3];
  uint64_t grid_workspace; /* of a cooperative launch: address of the words that grid barriers use; else 0 */
  uint64_t gridid;         /* counts launches */
  uint64_t cached;         /* bytes of an array that the second cache of a core keeps beside what else goes through it */
  uint32_t smid;           /* the worker, and how many there are */
  uint32_t nsmid;
  /* constant during a CTA */
  uint64_t shared_base; /* address of the CTA's shared window */
  uint64_t shared_size; /* static + dynamic bytes */
  uint32_t ctaid[3];
  uint32_t dynamic_shared; /* bytes of dynamic shared memory */
  /* constant during a launch: the windows of a cluster's CTAs lie side by side, by their ranks */
  uint64_t cluster_base;      /* address of the first */
  uint64_t cluster_bytes;     /* of all */
  uint64_t cluster_shift;     /* log2 of the bytes from one to the next */
  uint32_t cluster_nctaid[3]; /* CTAs of a cluster in each dimension, */
  uint32_t cluster_nctarank;  /* and all of them */
  /* the warp */
  uint64_t local_base;  /* address of lane 0's local window */
  uint64_t local_size;  /* bytes a lane; as a rule lane i's window starts at local_base + i * local_size */
  uint32_t active;      /* lanes that exist (partial last warp) */
  uint32_t warpid;      /* index in its CTA */
  uint32_t pos;         /* source offset of the memory access under way, for faults that the signal handler finds */
  uint32_t space;       /* and its PE_GENERIC, PE_GLOBAL ...; JIT code stores both as one word */
  uint32_t exited;      /* lanes that have left the kernel: JIT code sets it before a barrier that not all lanes reach */
  uint32_t tid[3][32];  /* x, y, z of every lane */
  uint64_t stack_limit; /* device functions must not start with a host stack that ends below this address */
  /* for code that runs all warps of some CTAs: it is called for the first of one, and the others follow in memory */
  uint32_t ctas;        /* as many CTAs: in a row along x, from this one on, or abreast, so that their warps follow, too */
  uint32_t warps;       /* of the CTA */
  uint32_t warp_stride; /* bytes from one warp to the next */
  void **running;       /* where it says which warp runs */
  uint32_t watched;     /* PE_WATCH_...: somebody is to be told of barriers */
  uint64_t watch;       /* what its observer knows of the CTA */
  uint64_t ranges;      /* of an observed launch: address of its worker's pe_range[PE_ALL_RANGES] */
  /* of its worker */
  const pe_apart *apart;
  /* what pe_note_trip has told */
  const uint32_t *trip_table, *trips_left, *trips_more;
} pe_warp;

typedef void (*pe_kernel)(pe_warp *);

/* Memory spaces of an access, as recorded in faults. */
/* Which barriers somebody is to be told of: all, or those that not all lanes of a warp come to. */
enum { PE_WATCH_ALL = 1, PE_WATCH_PARTS = 2 };

enum { PE_GENERIC, PE_GLOBAL, PE_SHARED, PE_LOCAL, PE_CONST, PE_PARAM };

/* Bytes on both sides of a shared window: lanes that are off may lie there, and code may read them, and write what it has read. */
enum { PE_WINDOW_MARGIN = 1024 };

/* Fault kinds. */
enum {
  PE_OK,
  PE_ILLEGAL_ADDRESS,
  PE_MISALIGNED,
  PE_NULL,
  PE_SURFACE_TRAP,
  PE_INVALID_SURFACE,
  PE_UNBOUND_SURFACE,
  PE_GEOMETRY_MISMATCH,
  PE_FORMAT_MISMATCH,
  PE_INVALID_ADDRESS_SPACE,
  PE_TRAP,
  PE_ASSERT,
  PE_DEADLOCK,
  PE_STACK_OVERFLOW,
  PE_STOPPED,
  PE_BARRIER_MISUSE,
  PE_INVALID_BRANCH,
  PE_ILLEGAL_OP_TYPE,
  PE_ARITHMETIC,
  PE_INVALID_FREE,
  PE_INVALID_CALL,
  PE_PARTIAL_WARP,
  PE_INVALID_TEXTURE,
  PE_UNBOUND_TEXTURE,
  PE_TEXTURE_GEOMETRY,
  PE_TEXTURE_FORMAT,
  PE_UNSUPPORTED_FORMAT,
  PE_UNSUPPORTED_ANISOTROPY,
  PE_INVALID_TENSOR,
  PE_TMEM_MISUSE,
  PE_DIALECT_FAULTS = 64 /* from here on those of the program's dialect */
};

/* ---- called by JIT code ------------------------------------------------------------------------------------------ */

/* What may be asked of the warps of a launch: to leave the kernel; to leave the thread, if that is the program's. */
enum { PE_ASKED_TO_STOP = 1, PE_ASKED_TO_MOVE = 2 };

/* The warps are asked to stop: leave the kernel. Does not return. */
void pe_stop(pe_warp *w);

/* They are asked something: stop, or move; if it returns, this may be another thread. It changes no register but the flags, and needs
 * no alignment of the stack. Only on x86-64; elsewhere code that polls is asked to stop alone. */
void pe_attend(void);

/* Raise a fault for `lane` (or -1 for the whole warp). Does not return: the launch ends.  `pos` is the source offset
 * of the PTX instruction; Python turns it into file and line. */
void pe_fault(pe_warp *w, uint32_t kind, uint32_t pos, int32_t lane, uint32_t space, uint64_t address, uint32_t size);

/* A device function or an alloca has no room, for the lanes of `mask`.  w->pos is the call. Does not return. */
void pe_stack_overflow(pe_warp *w, uint32_t mask);

/* An indirect call of something that is not a function of its signature. Does not return. */
void pe_invalid_call(pe_warp *w, uint32_t pos, uint32_t lane, uint64_t target);

/* Accesses are about to be examined in a loop that makes the trips of another one as well: `left[i]` are those that lane i has
 * left, the last `more[i]` of which are the other's, in rounds of some copies.  `table` has the number of rows, that of copies, and
 * in each row the position of an access and of its copies, which faults name.  NULL when they have been examined. */
void pe_note_trip(pe_warp *w, const uint32_t *table, const uint32_t *left, const uint32_t *more);

/* Exact check of an access that failed the inline test.  addr[i] is lane i's address as the program wrote it (an offset
 * in shared/local space).  Faults if a lane of `mask` is misaligned or out of range; returns if all are fine. */
void pe_check(pe_warp *w, uint32_t pos, uint32_t space, uint32_t size, uint32_t mask, const uint64_t *addr);

/* The same where the inline test is exact as well, and some lane of `mask` has failed it. Does not return. */
void pe_refuse_lanes(pe_warp *w, uint32_t pos, uint32_t space, uint32_t size, uint32_t mask, const uint64_t *addr);

/* The lanes of `mask` store at addresses that are no multiples of `size`, in parts that are aligned. Does not return. */
void pe_refuse_misaligned(pe_warp *w, uint32_t pos, uint32_t space, uint32_t size, uint32_t mask, const uint64_t *addr);

/* Bytes from an address on that can be read and written without a trap for as long as the program keeps the allocation; 0 if that is
 * not known. */
uint64_t pe_reach(const pe_warp *w, uint64_t address);

/* An access may be to memory of which the worker has a twin: add it to that memory, now and for good. */
void pe_twin_settle(const pe_warp *w);

/* bar/barrier.sync on barrier `id` for `count` threads (0: all threads of the CTA that have not exited).
 * `mask` are the arriving lanes.  arrive: do not wait.  An arrival counts for the whole warp, as the manual says of
 * .aligned; PE_BARRIER_PER_THREAD, or'ed into `arrive` or `op`, counts the lanes of `mask` alone. */
enum { PE_BARRIER_PER_THREAD = 16 };
void pe_barrier(pe_warp *w, uint32_t pos, uint32_t id, uint32_t count, uint32_t mask, uint32_t arrive);

/* bar.red: op 0 popc, 1 and, 2 or over `pred` (a lane mask); the result is the same for all. */
uint32_t pe_barrier_red(pe_warp *w, uint32_t pos, uint32_t id, uint32_t count, uint32_t mask, uint32_t op, uint32_t pred);

/* The same for lanes that progress independently: those of `mask` arrive, each at its own barrier, and nobody waits here.
 * action: PE_LANES_SYNC, PE_LANES_ARRIVE, or PE_LANES_RED plus the op of a reduction. */
enum { PE_LANES_SYNC, PE_LANES_ARRIVE, PE_LANES_RED };
void pe_barrier_lanes(pe_warp *w, uint32_t pos, const uint32_t *id, const uint32_t *count, uint32_t mask, uint32_t action,
                      uint32_t pred);
/* Which of the waiting lanes may go on: their barrier is complete. Each is told once. */
uint32_t pe_barrier_passed(pe_warp *w, uint32_t waiting);
/* No lane of the warp can go on: let other warps run until one can. */
void pe_barrier_idle(pe_warp *w);
/* Every lane's last result of a reduction. */
void pe_barrier_results(pe_warp *w, uint32_t *results);

/* Tell the observer of lanes that arrive at a barrier, in code that runs all warps of a CTA and has its barriers itself. */
void pe_barrier_watched(pe_warp *w, uint32_t pos, uint32_t id, uint32_t mask);
/* The same of its warps together, as all that have not exited have come to one and go on: `places` are negative of those that have. */
void pe_barrier_together(pe_warp *first, const int32_t *places);

/* vprintf(format, args) for every lane of `mask`; generic addresses; result[i] is the C return value of lane i. */
void pe_vprintf(pe_warp *w, uint32_t pos, uint32_t mask, const uint64_t *format, const uint64_t *args, uint32_t *result);

/* __assertfail of the first lane of `mask`. Does not return. */
void pe_assertfail(pe_warp *w, uint32_t pos, uint32_t mask, const uint64_t *message, const uint64_t *file,
                   const uint32_t *line, const uint64_t *function);

/* malloc and free on the device heap, for every lane of `mask`. result[i] is lane i's memory, or 0 when there is none.
 * Freeing 0 does nothing; freeing what malloc has not given, or twice, is a fault. */
void pe_malloc(pe_warp *w, uint32_t mask, const uint64_t *size, uint64_t *result);
void pe_free(pe_warp *w, uint32_t pos, uint32_t mask, const uint64_t *pointer);

/* cudaGraphSetConditional: a handle is the address of a word in global memory. */
void pe_set_condition(pe_warp *w, uint32_t pos, uint32_t mask, const uint64_t *handle, const uint32_t *value);

/* A step of a loop that spins on memory: let other warps run, and other CTAs when all warps of this one spin. */
void pe_yield(pe_warp *w);

/* Lanes wait at an instruction for lanes that cannot come. Does not return. */
void pe_stuck(pe_warp *w, uint32_t pos, uint32_t waiting);

/* The barrier of all threads of a cooperative launch. */
void pe_grid_sync(pe_warp *w, uint32_t pos, uint32_t mask);

/* Clock registers. */
uint64_t pe_clock(pe_warp *w);
uint64_t pe_globaltimer(pe_warp *w);

/* A red/atom or surface instruction: everything that is constant about it, emitted as constant data by the lowering. */
typedef struct pe_atom_site {
  uint32_t pos;    /* source offset */
  uint16_t op;     /* PE_ATOM_* */
  uint16_t type;   /* PE_TYPE_* */
  uint16_t space;  /* PE_GENERIC PE_GLOBAL PE_SHARED */
  uint16_t count;  /* vector elements, 1 2 4 8 */
  uint32_t system; /* of .sys scope: the program around the launch may take part */
  uint32_t order;  /* PE_NARROW, PE_CLUSTERED, PE_LOOSE, PE_LOCK (observer.h), or'ed */
  uint32_t sums;   /* nobody can tell when the kernel's sums come to device memory */
  uint32_t flags;  /* PE_ATOM_NOFTZ, or none */
} pe_atom_site;

/* Lane i: addr[i]; operands a, b and result `old` hold count * element bytes a lane, lane-major ([lane][element]).
 * old == NULL: the result is not wanted. b is only read by CAS (a = compare, b = new). */
void pe_atomic(pe_warp *w, const pe_atom_site *site, uint32_t mask, const uint64_t *addr, const void *a, const void *b,
               void *old);

/* The same on .shared memory at host addresses, which compiled code has tested for the lanes of `mask`; one element each. */
void pe_atomic_shared(pe_warp *w, const pe_atom_site *site, uint32_t mask, const uint64_t *host, const void *a,
                      const void *b, void *old);

/* A reduction on addresses of a program's own space: device memory lies from `bias` on; the windows are those of shared and
 * local memory, [first, last) each. */
typedef struct pe_red_site {
  uint32_t pos;
  uint16_t op;    /* PE_ATOM_* */
  uint16_t type;  /* PE_TYPE_* */
  uint32_t flags; /* PE_ATOM_FTZ ... */
  uint64_t bias;
  uint64_t window[4];
} pe_red_site;
void pe_red(pe_warp *w, const pe_red_site *site, uint32_t mask, const uint64_t *addr, const void *a);

typedef struct pe_surface_site {
  uint32_t pos;
  uint16_t kind;    /* PE_SULD_B PE_SUST_B PE_SUST_P PE_SURED_B PE_SURED_P PE_SU_TYPED */
  uint16_t geom;    /* PE_GEOM_* as written in the instruction */
  uint16_t clamp;   /* PE_CLAMP_TRAP, _NEAREST, _ZERO */
  uint16_t element; /* bytes of one element: 1 2 4 8 */
  uint16_t count;   /* vector elements 1 2 4 */
  uint16_t op;      /* PE_ATOM_* of a reduction */
  uint16_t type;    /* PE_TYPE_* of a reduction */
  uint16_t flags;   /* PE_ATOM_FTZ ..., PE_SITE_* */
  uint16_t channel; /* of the hardware threads that the lanes are, from 1; 0: a lane is a thread */
} pe_surface_site;

/* More flags of a surface site: x is unsigned; x y z of a typed atomic are u v r, whose meaning the surface's geometry says:
 * those that it lacks are ignored (else a fault), those that the instruction lacks are zero (else a fault); nobody can
 * tell when the kernel's sums come to device memory; formatted stores round as hardware does. */
enum {
  PE_SITE_UNSIGNED_X = 256,
  PE_SITE_UVR = 512,
  PE_SITE_SURPLUS_UVR = 1024,
  PE_SITE_MISSING_UVR = 2048,
  PE_SITE_SUMS = 4096,
  PE_SITE_MEASURED = 8192,
  PE_SITE_FLAGS = PE_SITE_UNSIGNED_X | PE_SITE_UVR | PE_SITE_SURPLUS_UVR | PE_SITE_MISSING_UVR | PE_SITE_SUMS |
      PE_SITE_MEASURED
};

/* handle[i], x[i] y[i] z[i] layer[i] of lane i (arrays that the geometry lacks may be NULL).
 * data: lane-major [lane][element], each element `element` bytes; written by suld, read by the others. */
void pe_surface(pe_warp *w, const pe_surface_site *site, uint32_t mask, const uint64_t *handle, const int32_t *x,
                const int32_t *y, const int32_t *z, const uint32_t *layer, void *data);

/* The view of a surface for accesses of a geometry, the same as long as the launch; all zero unless compiled code may do them
 * by itself, lanes inside at aligned coordinates: else pe_surface_lanes does. */
const struct pe_surface_view *pe_surface_view_of(const pe_warp *w, uint64_t handle, uint32_t geom);
/* The same for code that tells the observer of a launch of texels. */
const struct pe_surface_view *pe_surface_watched_view_of(const pe_warp *w, uint64_t handle, uint32_t geom);

/* The first one where lanes outside have no texels, whatever the policies of the launch; else all zero. */
const struct pe_surface_view *pe_surface_plain_view_of(const pe_warp *w, uint64_t handle, uint32_t geom);

/* How coordinates vary over the lanes: what is added to each, modulo 2^32.  The lanes form `groups` equal groups (1 2 4), in
 * each of which x steps by the bytes of an access and the other coordinates are the same. */
typedef struct pe_surface_pattern {
  uint32_t groups;
  uint32_t x[32], y[32], z[32], layer[32];
} pe_surface_pattern;

/* pe_surface for all lanes on one surface, whose view is known; coordinates that the geometry lacks are zero. */
void pe_surface_lanes(pe_warp *w, const pe_surface_site *site, uint32_t mask, uint64_t handle,
                      const struct pe_surface_view *view, const pe_surface_pattern *pattern, uint32_t x, uint32_t y,
                      uint32_t z, uint32_t layer, void *data);

/* A typed atomic update of one texel a lane (PE_SU_TYPED): all coordinates are unsigned, b is the second operand, old takes
 * the results (zero where there is no texel); those that the instruction lacks may be NULL. */
typedef struct pe_typed_lanes {
  const uint64_t *handle;
  const uint32_t *x, *y, *z, *layer, *level;
  const void *a, *b;
  void *old;
} pe_typed_lanes;
void pe_typed_atomic(pe_warp *w, const pe_surface_site *site, uint32_t mask, const pe_typed_lanes *lanes);

/* The handles that n header words select by their bits 19:0; 0 for those that the pool lacks.  pool: the number of headers,
 * then the header index and the place in the module's table of handles of each, ascending. */
void pe_headers(pe_warp *w, const uint32_t *pool, uint32_t n, const uint32_t *word, uint64_t *handle);

/* suq: which = PE_SUQ_*; result[i] of lane i. */
void pe_suq(pe_warp *w, uint32_t pos, uint32_t which, uint32_t mask, const uint64_t *handle, uint32_t *result);

/* istypep.surfref: the lanes of `mask` whose handle is live. */
uint32_t pe_is_surface(pe_warp *w, uint32_t mask, const uint64_t *handle);

typedef struct pe_texture_site {
  uint32_t pos;
  uint16_t geom;    /* PE_GEOM_* as written in the instruction */
  uint16_t integer; /* coordinates are texel indices */
  uint16_t lod;     /* PE_LOD_* */
  uint16_t offsets; /* texel offsets are given */
  uint16_t result;  /* PE_RESULT_* */
  uint16_t gather;  /* tld4: 1 + the component, else 0 */
  uint16_t wanted;  /* the components that are used, a set */
} pe_texture_site;

/* tex and tld4.  texture[i] is lane i's handle, sampler[i] that of its sampler (NULL: the texture's own).  rows holds one
 * row of 32 lanes for each operand that the site has: x y z of the geometry, layer, sample, level or the gradients
 * dx/dPdx.. and dx/dPdy.., offsets.  Row k of out receives result k; of lanes in mask, where wanted. */
void pe_tex(pe_warp *w, const pe_texture_site *site, uint32_t mask, const uint64_t *texture, const uint64_t *sampler,
            const uint32_t *rows, uint32_t *out);
/* The same of lanes that share a texture and its own sampler. */
void pe_tex_lanes(pe_warp *w, const pe_texture_site *site, uint32_t mask, uint64_t texture, const uint32_t *rows,
                  uint32_t *out);

/* txq: which = PE_TXQ_*; level[i] of lane i, or NULL; result[i]. */
void pe_txq(pe_warp *w, uint32_t pos, uint32_t which, uint32_t mask, const uint64_t *handle, const int32_t *level,
            uint32_t *result);

/* istypep: the lanes of `mask` whose handle is that of a bound texture (or sampler). */
uint32_t pe_is_texture(pe_warp *w, uint32_t sampler, uint32_t mask, const uint64_t *handle);

/* Directed rounding: n results of one operation under a rounding mode.  op: 0 add 1 sub 2 mul 3 fma 4 div 5 sqrt 6 rcp;
 * mode: 0 rn 1 rz 2 rm 3 rp; bits: 32 or 64.  b, c may be NULL where the op has fewer operands. */
void pe_round(uint32_t op, uint32_t mode, uint32_t bits, uint32_t n, void *d, const void *a, const void *b, const void *c);

/* Conversions under a rounding mode: from/to are PE_TYPE_* (f32 f64 and integers). n values. */
void pe_round_convert(uint32_t from, uint32_t to, uint32_t mode, uint32_t n, void *d, const void *a);

/* mma, mma.sp and wmma.mma: one multiplication of a warp.  Its registers are in memory: a register of 32 lanes takes one slot
 * of 128 bytes, or two slots if it is an f64. */
enum { PE_MMA_OPERANDS = 4, PE_MMA_REGISTERS = 8 };

typedef struct pe_mma_site {
  uint32_t pos;
  uint16_t m, n, k;
  uint16_t a, b, c, d;                               /* PE_TYPE_* of the elements */
  uint16_t flags;                                    /* PE_MMA_* */
  uint16_t round;                                    /* of f64, as in pe_round */
  uint16_t selector;                                 /* of sparse metadata */
  uint16_t slots[PE_MMA_OPERANDS][PE_MMA_REGISTERS]; /* of the registers of d, a, b and c */
  uint16_t metadata;                                 /* its slot, of a sparse form */
  uint16_t fraction;                                 /* bits of aligned terms behind the point; 0: sums are exact */
  uint16_t block;                                    /* products that are added at once */
  uint16_t result;                                   /* bits of an f32 sum behind the point */
  int16_t least;                                     /* exponent to which terms are aligned */
} pe_mma_site;

enum {
  PE_MMA_QUADS = 1, /* m8n8k4 of f16: four multiplications, one for each pair of quads of lanes */
  PE_MMA_SPARSE = 2,
  PE_MMA_SATURATE = 4,
  PE_MMA_AND = 8,
  PE_MMA_A_COL = 16,
  PE_MMA_B_ROW = 32,  /* of PE_MMA_QUADS, whose layouts change the fragments */
  PE_MMA_PAIRS = 64,  /* of every four elements of A, the first two are added before all others, and c at the end */
  PE_MMA_CHAIN = 128, /* f32 operations one after another */
  PE_MMA_NEGATE = 256 /* all products */
};

/* d = a * b + c.  Faults unless all lanes execute it. */
void pe_mma(pe_warp *w, const pe_mma_site *site, uint32_t mask, void *slots);

/* mma with .block_scale, m16n8k32 and m16n8k64, and tcgen05.mma also of k 96: `each` elements of a row of A, or of a column of B,
 * have a scale factor. Of a sparse A k counts the elements that it holds, of which each meets one of two of B. */
typedef struct pe_scaled_site {
  uint32_t pos;
  uint16_t k, a, b; /* k, and PE_TYPE_* of multiplicands: of more than 32 each is a PE_TYPE_E2M1 in four bits */
  uint16_t each;    /* elements */
  uint16_t e4m3;    /* factors are e4m3 without a sign; 0: powers of two (ue8m0) */
  uint16_t slots[PE_MMA_OPERANDS][4]; /* of the registers of d, a, b and c */
  uint16_t factors[2];                /* of those of factors, of A and of B */
  uint16_t sparse, metadata;          /* A is sparse; the slot of its metadata */
} pe_scaled_site;

/* Factors of A are from the byte `a_byte` on of one of two pairs of every four lanes, those of B of one of four. Faults unless all lanes
 * execute it. */
void pe_mma_scaled(pe_warp *w, const pe_scaled_site *site, uint32_t mask, void *slots, uint32_t a_byte, uint32_t a_pair,
                   uint32_t b_byte, uint32_t b_lane);

/* wgmma.mma_async: the 16 rows of a warp, as an m16nNkK of `mma`, of which only registers are missing: up to 128 of d and c, and of a
 * unless that is in memory, too.  A matrix in memory is given by a descriptor, and is `across` if consecutive elements do not go
 * along k. */
enum { PE_WGMMA_REGISTERS = 128 };

typedef struct pe_wgmma_site {
  uint32_t pos;
  uint16_t in_memory; /* A is */
  uint16_t a_across, b_across;
  uint16_t d[PE_WGMMA_REGISTERS], c[PE_WGMMA_REGISTERS], a[4]; /* the slots of registers */
  pe_mma_site mma;
} pe_wgmma_site;

/* d = a * b, + c unless `scale` is 0.  Faults unless all lanes execute it. */
void pe_wgmma(pe_warp *w, const pe_wgmma_site *site, uint32_t mask, uint32_t scale, uint64_t a, uint64_t b, void *slots);

/* tcgen05: tensor memory, whose addresses have the lane in the upper 16 bits and the column in the lower ones (matrix/tmem.c). The
 * whole warp executes what is not a multiplication; its lane 0 gives the operands. */
enum { PE_TMEM_32X32B, PE_TMEM_16X32BX2, PE_TMEM_16X64B, PE_TMEM_16X128B, PE_TMEM_16X256B };

typedef struct pe_tmem_site {
  uint32_t pos;
  uint16_t shape, registers;
  uint16_t packed; /* a register holds the lower halves of two columns */
  uint16_t apart;  /* columns from one half of 16x32bx2 to the other */
  uint16_t op;     /* of a load that reduces: PE_ATOM_*, a minimum or maximum */
  uint16_t type;   /* its PE_TYPE_* */
  uint16_t flags;  /* PE_TMEM_ABS, PE_TMEM_NAN */
} pe_tmem_site;

/* Of a load that reduces f32: magnitudes count; of several numbers one NaN is enough for the result to be NaN. */
enum { PE_TMEM_ABS = 1, PE_TMEM_NAN = 2 };

/* `ctas`: 2 if both CTAs of a pair allocate together. 0: the other one has yet to come, and then this is to be called again; only
 * where a call cannot wait (interpret.h). */
uint32_t pe_tmem_alloc(pe_warp *w, uint32_t pos, uint32_t ctas, uint32_t space, uint32_t mask, uint32_t columns,
                       uint64_t address);
void pe_tmem_dealloc(pe_warp *w, uint32_t pos, uint32_t mask, uint32_t address, uint32_t columns);
void pe_tmem_give_up(pe_warp *w, uint32_t pos, uint32_t mask);
void pe_tmem_load(pe_warp *w, const pe_tmem_site *site, uint32_t mask, uint32_t address, uint32_t *slots);
/* The same, and in one more register what each thread's registers are reduced to. */
void pe_tmem_load_reduced(pe_warp *w, const pe_tmem_site *site, uint32_t mask, uint32_t address, uint32_t *slots);
void pe_tmem_store(pe_warp *w, const pe_tmem_site *site, uint32_t mask, uint32_t address, const uint32_t *slots);

/* tcgen05.cp: rows of lines of 16 bytes in shared memory go to lanes, each `every` lanes after the one before, those of the second half
 * `behind` more lanes on, and again `copies` times. */
typedef struct pe_tmem_copy_site {
  uint32_t pos;
  uint16_t rows, lines;           /* of 16 bytes each row has */
  uint16_t bits;                  /* of elements that become bytes; or 8 */
  uint16_t copies, apart, behind; /* how often rows are stored, how many lanes apart */
  uint16_t every;
  uint16_t ctas; /* 2: in both CTAs of a pair, each from its own shared memory */
} pe_tmem_copy_site;

/* Each lane copies on its own: where to, and a descriptor of the matrix. */
void pe_tmem_copy(pe_warp *w, const pe_tmem_copy_site *site, uint32_t mask, const uint32_t *to, const uint64_t *from);

/* tcgen05.shift: each lane moves the rows of a matrix to the lanes before theirs, `ctas` of 2 in both CTAs of a pair. */
void pe_tmem_shift(pe_warp *w, uint32_t pos, uint32_t ctas, uint32_t mask, const uint32_t *at);

/* tcgen05.mma: what its kind and its constants say; the rest is in an instruction descriptor. Each lane multiplies on its own. */
enum { PE_KIND_F16, PE_KIND_TF32, PE_KIND_F8F6F4, PE_KIND_I8, PE_KIND_MXF8F6F4, PE_KIND_MXF4, PE_KIND_MXF4NVF4 };

typedef struct pe_tmem_mma_site {
  uint32_t pos;
  uint16_t kind;
  uint16_t a_columns; /* A is in tensor memory */
  uint16_t shift;     /* sums are divided by 2 to the power of this before others are added */
  uint16_t fraction, block, result;
  int16_t least, least_half; /* as those of pe_mma_site, of results f32 and f16 */
  uint16_t each;             /* elements that have a factor, of a kind with factors */
  uint16_t ctas;             /* 2: of a pair, each of which has half of the rows and half of the columns */
  uint16_t stationary;       /* .ws: of few rows, the columns are spread over all lanes */
  uint16_t moves_a;          /* .ashift: the rows of A move on afterwards, as those of pe_tmem_shift do */
} pe_tmem_mma_site;

/* Of each lane: where the sums are, A, B, the instruction descriptor; the lanes that add to what is there; lanes of the result that stay as
 * they are, or NULL: the first word of every lane, the second ...; where factors of A and B are, or NULL; where metadata of a sparse A
 * are, or NULL; descriptors of columns that are zero, or NULL. */
void pe_tmem_mma(pe_warp *w, const pe_tmem_mma_site *site, uint32_t mask, const uint32_t *sums, const uint64_t *a,
                 const uint64_t *b, const uint32_t *descriptor, uint32_t adds, const uint32_t *disabled,
                 const uint32_t *a_factors, const uint32_t *b_factors, const uint32_t *metadata, const uint64_t *zeros);

/* wgmma.wait_group: wait until the four warps of the warpgroup have come. */
void pe_warpgroup_wait(pe_warp *w, uint32_t pos, uint32_t mask);

/* wmma.load and wmma.store: a matrix in memory and its fragment, whose registers lie one after the other.  Rows and columns are
 * those of the fragment's tiles: a multiplicand has k along its columns. */
typedef struct pe_wmma_site {
  uint32_t pos;
  uint16_t space, rows, columns;
  uint16_t bits;      /* of an element */
  uint16_t role;      /* PE_WMMA_* */
  uint16_t across;    /* consecutive elements in memory lie in one column */
  uint16_t registers; /* of the fragment */
} pe_wmma_site;

enum { PE_WMMA_A, PE_WMMA_B, PE_WMMA_C };

void pe_wmma_load(pe_warp *w, const pe_wmma_site *site, uint32_t mask, uint64_t address, uint32_t stride, void *fragment);
void pe_wmma_store(pe_warp *w, const pe_wmma_site *site, uint32_t mask, uint64_t address, uint32_t stride,
                   const void *fragment);

/* ldmatrix and stmatrix: `count` 8x8 matrices of 16-bit elements, rows at the addresses of lanes 0 to 8 * count - 1. */
void pe_ldmatrix(pe_warp *w, uint32_t pos, uint32_t space, uint32_t count, uint32_t transpose, uint32_t mask,
                 const uint64_t *address, void *fragment);
void pe_stmatrix(pe_warp *w, uint32_t pos, uint32_t space, uint32_t count, uint32_t transpose, uint32_t mask,
                 const uint64_t *address, const void *fragment);
void pe_movmatrix(pe_warp *w, uint32_t pos, uint32_t mask, const void *from, void *to);
/* Matrices of lines of 16 elements of `bits` bits; the second function stores lines of bytes. */
void pe_ldmatrix_lines(pe_warp *w, uint32_t pos, uint32_t space, uint32_t count, uint32_t lines, uint32_t bits,
                       uint32_t mask, const uint64_t *address, void *fragment);
void pe_stmatrix_lines(pe_warp *w, uint32_t pos, uint32_t space, uint32_t count, uint32_t mask, const uint64_t *address,
                       const void *fragment);
/* CDEF END */
#pragma GCC visibility pop

#define PE_ARENA_MARGIN (1ull << 31)

#endif
