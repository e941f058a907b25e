/* observer.h: what those who watch launches are told. */
#ifndef PTXEMU_OBSERVER_H
#define PTXEMU_OBSERVER_H
#include "host.h"
#include "ptxemu.h"

#pragma GCC visibility push(default)
/* CDEF BEGIN */
/* An access of memory; an update is both. */
enum { PE_READ = 1, PE_WRITE = 2, PE_UPDATE = PE_READ | PE_WRITE };

/* What else is known of an access: other threads may take part (PTX ISA, "Memory Consistency Model": strong); what came
 * before it in the thread is released by it; a copy makes it that goes on until somebody waits for it, or an mbarrier object begins to
 * track the lane's copies by it; the copy is one in bulk; it is strong among threads of its CTA alone; it takes a lock, as a
 * compare-and-swap does, and is loose; it is strong among threads of its cluster alone; the async proxy makes it, as it does copies in
 * bulk; and it is loose: it does not acquire, which is left to a fence behind it. */
enum {
  PE_STRONG = 4,
  PE_RELEASE = 8,
  PE_ASYNC = 16,
  PE_BULK = 32,
  PE_NARROW = 64,
  PE_LOCK = 128,
  PE_CLUSTERED = 256,
  PE_PROXY = 512,
  PE_LOOSE = 1024
};

/* What puts accesses of a warp in an order: fences of its lanes, those between the generic and the async proxy among them, and their
 * meeting at bar.warp.sync; where lanes end a group of copies, or wait until groups are complete, or have read all that they read;
 * and where they arrive at barrier.cluster, and go on behind a wait for it. */
enum {
  PE_FENCE_CTA,
  PE_FENCE_CLUSTER,
  PE_FENCE,
  PE_FENCE_ASYNC,
  PE_WARP_SYNC,
  PE_COPIES_GROUP,
  PE_COPIES_WAIT,
  PE_COPIES_WAIT_READ,
  PE_CLUSTER_ARRIVE,
  PE_CLUSTER_WAIT,
  PE_ORDERS = 15 /* the bits of these */
};

/* What is or'ed to those of copies: that they are those in bulk, and how many of the last groups nobody waits for, from bit PE_BUT_AT
 * on. To those of the cluster: that an arrival releases nothing, and from bit PE_PHASE_AT on the number of the phase. */
enum { PE_OF_BULK = 16, PE_BUT_AT = 8, PE_RELAXED = 16, PE_PHASE_AT = 8 };

/* How lanes arrive at a barrier: it is one of the whole CTA; they do not wait; each arrives for itself, not for its warp; and when
 * all have come, `together` is told, and not `left`. */
enum { PE_BARRIER_WHOLE = 1, PE_BARRIER_ARRIVES = 2, PE_BARRIER_LANES = 4, PE_BARRIER_TOGETHER = 8 };

/* What depends on a register that nobody has written: a branch or a guard, an address, or a value that is stored. */
enum { PE_UNSET_CHOICE, PE_UNSET_ADDRESS, PE_UNSET_VALUE };

/* The space of texels of surfaces and textures: the addresses are where they lie in device memory.  Of a texture, each texel
 * that goes into a result is told. */
enum { PE_TEXEL = 6 };

/* Barriers beyond those of a CTA, which are 0 to 15: barrier.cluster, the barrier of a cooperative grid and, from
 * PE_BARRIER_WARPGROUP on, the warpgroups' at wgmma.wait_group. */
enum { PE_BARRIER_CLUSTER = 16, PE_BARRIER_GRID = 17, PE_BARRIER_WARPGROUP = 18, PE_BARRIERS_TOLD = 26 };

/* An access that the lanes of `mask` are about to make: `size` bytes each at address[i], as the program writes it. */
typedef struct pe_memory_event {
  uint32_t pos;
  uint32_t kind;  /* PE_READ ... */
  uint32_t order; /* PE_STRONG ..., or'ed */
  uint32_t space; /* PE_GENERIC ... PE_TEXEL */
  uint32_t mask;
  uint32_t align; /* what the instruction asks of addresses */
  uint64_t size;
  const uint64_t *address;
  const void *values;  /* of a store of one element for each lane: 32 of them; or NULL */
  const void *surface; /* the pe_surface_desc of texels, which lie in it one after another; or NULL */
} pe_memory_event;

/* An access whose addresses are a base plus constant offsets, of 64 bits or, if `narrow` is set, of 32.  Lanes go in groups of `width`,
 * in each of which addresses grow by `step`; with a `width` of 1 they lie anywhere.  All lie in `span` bytes from the offset `low`
 * on.  Accesses of one `family`, if that is not 0, have no word for two lanes if theirs begin, `first` bytes from the base, at one address. */
typedef struct pe_pattern_site {
  uint32_t pos;
  uint32_t kind; /* PE_READ ..., or'ed with PE_STRONG */
  uint32_t space, size, width, step, narrow, span;
  uint64_t low, first, family;
  uint64_t offset[32];
} pe_pattern_site;

/* An access of columns of 32 bits side by side in one lane of tensor memory, by a lane of the warp, or by all: `lane` is -1.  `written`:
 * bits of the columns of that lane, the first of which are in the first word, which are for the observer alone; they are clear when columns
 * are allocated.  `each`: what an instruction reads there is computed with, column by column. */
typedef struct pe_columns_event {
  uint32_t pos, kind; /* PE_READ or PE_WRITE */
  int32_t lane;
  uint32_t at, first, count; /* the lane there, the first column, and how many */
  uint32_t each, peer;       /* nonzero: it is that of the other CTA of the pair */
  uint32_t *written;
} pe_columns_event;

/* Memory in which an access of an instruction was: code that tells only of strays does not tell of what else lies there. */
typedef struct pe_range {
  uint64_t first, size;
} pe_range;

/* Positions in a row that have one range, in which hardly two instructions begin; how many ranges a worker keeps; behind them one for
 * all accesses of shared memory, as many of memory that the launch only reads, and a place for where the bits are of what is blank in
 * shared memory (pe_blank_bits); and what divides their first addresses. */
enum {
  PE_POSITIONS = 16,
  PE_RANGES = 512,
  PE_SHARED_RANGE = PE_RANGES,
  PE_QUIET_RANGES,
  PE_BLANK_BITS = PE_QUIET_RANGES + PE_RANGES,
  PE_ALL_RANGES,
  PE_RANGE_ALIGN = 32
};

/* A bit for each byte of memory, set where nobody has written it, or 0: code does not look there; and which of them is that of the
 * first byte of shared memory. */
typedef struct pe_blank_bits {
  uint64_t bits, first;
} pe_blank_bits;

/* What the host fills memory with: what kernels may read; or nothing that they should read, although it is zeros. */
enum { PE_BLANKS, PE_CONTENTS };

/* What compiled code that tells of accesses does where it adds to a twin (twin.h) by itself: it tells of each sum as of other accesses;
 * it need not; or it leaves a stamp (stamp.h) of its own beside the word. */
enum { PE_SUMS_TOLD, PE_SUMS_UNTOLD, PE_SUMS_STAMPED };

/* Functions that are called when something happens; may be NULL.  Those with a warp are called on its worker's
 * thread and its fiber, so several at the same time; none may call the runtime. Accesses of compiled code are told by code
 * that is compiled for it. */
typedef struct pe_observer {
  void *context;
  uint32_t no_texels;      /* nonzero: `memory` need not be told of texels */
  uint32_t no_whole_warps; /* nonzero: `barrier` need not be told where all lanes of a warp arrive */
  uint32_t rows; /* nonzero: of CTAs that code runs together, along a row, `block` need be told of the first only */
  /* The lanes that go on: in the others the access is not made, and loads give zeros; or, where an instruction cannot do
   * without, it is a fault. */
  uint32_t (*memory)(void *context, const pe_warp *w, const pe_memory_event *event);
  /* The same of a pattern.  Zero: it is to be told to `memory`; else all lanes go on. */
  uint32_t (*pattern)(void *context, const pe_warp *w, const pe_pattern_site *site, uint32_t mask, uint64_t base);
  /* Code that leaves stamps (stamp.h) is about to leave one of an access of the CTA's shared memory, in which accesses are listed that
   * have left none. */
  void (*listed)(void *context, const pe_warp *w);
  /* Such code makes an access that is to be listed, or a number of reads off one base, whose sites lie one after another, unless
   * another one that is may race with it.  Zero: it is not. */
  uint32_t (*claimed)(void *context, const pe_warp *w, const pe_pattern_site *site, uint32_t number, uint32_t mask,
                      uint64_t base);
  /* An access of tensor memory. */
  void (*columns)(void *context, const pe_warp *w, const pe_columns_event *event);
  /* How many bytes from an address on stay what they are as long as the launch runs, so that `memory` need not be told of accesses
   * there.  NULL: all of an allocation. */
  uint64_t (*reach)(void *context, const pe_warp *w, uint64_t address);
  /* A worker makes a twin of an allocation: PE_SUMS_TOLD ...  NULL: PE_SUMS_UNTOLD. */
  uint32_t (*apart)(void *context, const pe_warp *w, uint64_t address, uint64_t size);
  /* What a worker has added by itself belongs to the allocation from now on. Of each word, of `each` bytes, the stamp of the last sum, or 0. */
  void (*joined)(void *context, const pe_launch *launch, uint64_t address, uint64_t size, uint32_t each,
                 const uint64_t *stamps);
  void (*allocated)(void *context, uint64_t address, uint64_t size, const pe_warp *w,
                    uint32_t lane); /* by the host (w is NULL), or by malloc in a lane of a kernel, at w->pos */
  void (*named)(void *context, uint64_t address, uint64_t size, const char *name); /* a variable in an allocation */
  void (*filled)(void *context, uint64_t address, uint64_t size,
                 uint32_t with);                  /* by the host, in an allocation: PE_CONTENTS ... */
  void (*freed)(void *context, uint64_t address); /* what the host has allocated: soon */
  void (*barrier)(void *context, const pe_warp *w, uint32_t pos, uint32_t id, uint32_t mask,
                  uint32_t how);                 /* lanes arrive */
  void (*left)(void *context, const pe_warp *w); /* a warp goes on behind a barrier of a CTA that it has waited at as one */
  void (*together)(void *context, const pe_warp *first,
                   uint32_t warps); /* so do these warps of a CTA, which have come to one */
  void (*order)(void *context, const pe_warp *w, uint32_t pos, uint32_t what,
                uint32_t mask); /* PE_FENCE ..., if all is told */
  void (*members)(void *context, const pe_warp *w, uint32_t pos, uint32_t mask,
                  const uint32_t *members); /* lanes execute an instruction together, each with its membermask: 32 of them */
  void (*unset)(void *context, const pe_warp *w, uint32_t pos, uint32_t use,
                uint32_t mask); /* lanes use a register that nobody has written, PE_UNSET_CHOICE ... */
  /* A CTA begins, w is its first warp; `first` is that of the first CTA of its cluster, if they run beside each other, or w: the `watch`
   * of all its warps. */
  uint64_t (*block)(void *context, const pe_warp *w, const pe_warp *first);
  void (*begun)(void *context, const pe_config *config);
  void (*ended)(void *context, const pe_config *config, const pe_record *record); /* of each that has begun */
  void (*gone)(void *context);                                                    /* the arena is about to be destroyed */
} pe_observer;

/* Tell `observer` of allocations from now on, and of launches that start from now on; NULL ends that.  It must stay where it is
 * until the arena and these launches have ended. */
void pe_arena_observe(pe_arena *arena, const pe_observer *observer);

/* Tell the observer that the host has filled memory, PE_BLANKS ... */
void pe_arena_filled(pe_arena *arena, uint64_t address, uint64_t size, uint32_t with);

/* Called by compiled code that is to be observed, before each access of its own, or before its strays.  The lanes that go on. */
uint32_t pe_observe(pe_warp *w, uint32_t pos, uint32_t kind, uint32_t space, uint32_t size, uint32_t mask,
                    const uint64_t *addr, const void *values);
uint32_t pe_observe_pattern(pe_warp *w, const pe_pattern_site *site, uint32_t mask, uint64_t base, const void *values);
void pe_observe_listed(pe_warp *w);
uint32_t pe_observe_claimed(pe_warp *w, const pe_pattern_site *site, uint32_t number, uint32_t mask, uint64_t base);
void pe_observe_order(pe_warp *w, uint32_t pos, uint32_t what, uint32_t mask);
void pe_observe_members(pe_warp *w, uint32_t pos, uint32_t mask, const uint32_t *members);
/* `place`: generic addresses, of which those in global memory matter; or NULL. */
void pe_observe_unset(pe_warp *w, uint32_t pos, uint32_t use, uint32_t mask, const uint64_t *place);
/* CDEF END */
#pragma GCC visibility pop

/* A lane's address. */
static inline uint64_t pe_pattern_address(const pe_pattern_site *site, uint64_t base, uint32_t lane) {
  return (base + site->offset[lane]) & (site->narrow ? UINT32_MAX : UINT64_MAX);
}

/* The range of a position, at a worker that keeps ranges: compiled code finds it in the same way (lower/core/telling.py). */
static inline pe_range *pe_range_of(const pe_warp *w, uint32_t pos) {
  return (pe_range *)(uintptr_t)w->ranges + pos / PE_POSITIONS % PE_RANGES;
}

/* The same of memory that the launch only reads. */
static inline pe_range *pe_quiet_range_of(const pe_warp *w, uint32_t pos) { return pe_range_of(w, pos) + PE_QUIET_RANGES; }

/* That of shared memory. */
static inline pe_range *pe_shared_range(const pe_warp *w) { return (pe_range *)(uintptr_t)w->ranges + PE_SHARED_RANGE; }

static inline pe_blank_bits *pe_blank_bits_of(const pe_warp *w) {
  return (pe_blank_bits *)((pe_range *)(uintptr_t)w->ranges + PE_BLANK_BITS);
}

#endif
