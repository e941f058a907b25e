/* host.h: what Python calls to own device memory and to run launches. */
#ifndef PTXEMU_HOST_H
#define PTXEMU_HOST_H
#include "ptxemu.h"

#pragma GCC visibility push(default)
/* CDEF BEGIN */
/* ---- device memory ----------------------------------------------------------------------------------------------- */

typedef struct pe_arena pe_arena;

/* A live allocation. */
typedef struct pe_allocation {
  uint64_t address;
  uint64_t size;
  char name[64];
} pe_allocation;

/* Reserve address space for `capacity` bytes of device memory. NULL with errno set when there is none. */
pe_arena *pe_arena_create(uint64_t capacity);
void pe_arena_destroy(pe_arena *arena);
uint64_t pe_arena_base(const pe_arena *arena);
uint64_t pe_arena_extent(const pe_arena *arena);
uint64_t pe_arena_used(pe_arena *arena);

enum { PE_MAX_HEAP_LOG2 = 34, PE_DEFAULT_HEAP = 8 << 20 };
/* The size of the heap of kernels' malloc, at most 1 << PE_MAX_HEAP_LOG2, at first PE_DEFAULT_HEAP, as in CUDA; it counts as used
 * once a kernel has called malloc.  0, or -1 if that has happened. */
int pe_arena_set_heap(pe_arena *arena, uint64_t size);

/* Bytes of a block that a kernel's malloc has given, 0: the address is none; and to give it back. */
uint64_t pe_arena_heap_size(pe_arena *arena, uint64_t address);
void pe_arena_heap_free(pe_arena *arena, uint64_t address);

enum { PE_CUDA_SLACK = 64 << 10 };
/* Bytes before and behind each allocation, from now on, that can be read and written like it, as a GPU's pages can: at most
 * PE_CUDA_SLACK.  0, as at first: running past the end faults.  They count as used; memory of launches has none. */
void pe_arena_set_slack(pe_arena *arena, uint64_t bytes);

/* Zeroed memory, or 0 when the capacity, the host's memory or PE_MAX_ALLOCATIONS is exhausted. `align` is a power of two. */
uint64_t pe_arena_alloc(pe_arena *arena, uint64_t size, uint64_t align, const char *name);

/* 0, or -1 when `address` does not start an allocation.  What is held is given back when nobody holds it any more. */
int pe_arena_free(pe_arena *arena, uint64_t address);

/* Let the pages that an allocation lies in be those of a file, from offset 0 on, as long as it lives: processes share memory so. The
 * file, which never becomes shorter, is at least pe_arena_pages(size) long. `keep`: it gets what is in the allocation. Nobody may write
 * to it meanwhile. 0, or an errno value: EINVAL where no allocation of the host begins. */
int pe_arena_back(pe_arena *arena, uint64_t address, int file, int keep);

/* Bytes of the pages that an allocation at an address lies in. */
uint64_t pe_arena_pages(const pe_arena *arena, uint64_t address, uint64_t size);

enum { PE_MAX_ALLOCATIONS = 24000 }; /* each takes two of the process's 65,530 mappings (Linux's default) */

/* How many allocations there are, those of launches aside. */
uint32_t pe_arena_allocations(pe_arena *arena);

/* Reserve addresses, and give them back when nothing is mapped there: multiples of PE_MAP_UNIT; `align` is a power of two, or 0. They
 * take no memory. 0: there are not so many; or an errno value. */
enum { PE_MAP_UNIT = 2 << 20, PE_MAX_MAPPINGS = 8000 };
uint64_t pe_arena_reserve(pe_arena *arena, uint64_t size, uint64_t align);
int pe_arena_unreserve(pe_arena *arena, uint64_t address, uint64_t size);

/* Map a part of a file, which never becomes shorter, in reserved addresses. Nothing may be done there at first. The mappings of a range go
 * together, as many as they are; `gone` is told the owner of each. 0, or an errno value: EINVAL where something is mapped already, or
 * nothing is, or a mapping only partly lies in the range. */
enum { PE_MAP_READ = 1, PE_MAP_WRITE = 2 };
int pe_arena_map(pe_arena *arena, uint64_t address, uint64_t size, int file, uint64_t offset, void *owner);
int pe_arena_protect(pe_arena *arena, uint64_t address, uint64_t size, uint32_t access);
typedef void pe_gone_function(void *owner);
int pe_arena_unmap(pe_arena *arena, uint64_t address, uint64_t size, pe_gone_function *gone);

/* Who owns the mapping at an address, NULL: there is none; and what may be done there. */
void *pe_arena_mapping_owner(pe_arena *arena, uint64_t address, uint32_t *access);

/* Whether no part of a range is mapped so that it cannot be written. */
int pe_arena_may_write(pe_arena *arena, uint64_t address, uint64_t size);

/* Count memory outside of allocations as used, and give it back. 0: there is not enough. */
int pe_arena_take(pe_arena *arena, uint64_t bytes);
void pe_arena_give(pe_arena *arena, uint64_t bytes);

/* Other processes may have memory of it from now on. */
void pe_arena_share(pe_arena *arena);

/* The allocation or mapping that contains `address` and is not freed, or the first such one that begins behind it, those of launches aside.
 * 0 when there is none. */
int pe_arena_find(pe_arena *arena, uint64_t address, pe_allocation *out);
int pe_arena_next(pe_arena *arena, uint64_t address, pe_allocation *out);

/* Keep the memory of the allocation that contains `size` bytes from `address` on; where that starts, or 0: there is none. */
uint64_t pe_arena_hold(pe_arena *arena, uint64_t address, uint64_t size);
/* End one such time. */
void pe_arena_unhold(pe_arena *arena, uint64_t start);

/* The allocation that contains `address`, else the nearest one. 0 when there is none at all. */
int pe_arena_nearest(pe_arena *arena, uint64_t address, pe_allocation *out);

/* ---- launches ---------------------------------------------------------------------------------------------------- */

/* Bytes of shared memory of a block, and of local memory of a thread; blocks of a cluster, and where kernels say nothing of that. */
enum { PE_MAX_SHARED = 227 << 10, PE_MAX_LOCAL = 512 << 10, PE_MAX_CLUSTER = 16, PE_MAX_PORTABLE_CLUSTER = 8 };

typedef struct pe_config {
  uint64_t kernel; /* address of a pe_kernel */
  uint32_t grid[3], block[3];
  uint32_t cluster[3];    /* CTAs of a cluster in each dimension, which divide those of the grid; 0: 1 */
  uint64_t first, blocks; /* of the grid's CTAs, so many from the first on are run; 0 blocks: all */
  const void *params;
  uint64_t params_size;
  uint64_t static_shared, dynamic_shared;
  uint64_t local_bytes; /* of one thread */
  uint64_t stack_bytes; /* of a fiber; 0: the default */
  uint64_t global_base, const_base, const_size, handles;
  void *surfaces;       /* the pe_su_context, or NULL */
  uint32_t suspends;    /* warps may wait or give way: each gets local memory and a fiber of its own, */
  uint32_t looped;      /* but no fiber if the code runs all warps of a CTA when it is called for the first, */
  uint32_t rows;        /* and of as many CTAs along x as it is told, */
  uint32_t abreast;     /* or those of as many CTAs as it is given the warps of */
  uint32_t spread;      /* rows of threads begin at places of their own in warps */
  uint32_t spins;       /* the kernel may spin on memory that another CTA writes: CTAs are taken one by one */
  uint32_t daz;         /* the kernel expects the processor to read subnormal numbers as zeros and to make none (x86) */
  uint32_t cooperative; /* all CTAs may wait for each other: each is held until it ends */
  uint32_t host_memory; /* kernels may touch all memory of the process; what is not mapped is a fault */
  uint32_t workers;     /* most threads to use; 0: one for each CPU */
  uint32_t brief;       /* about how many instructions a warp takes, if the kernel has no loops and is short; else 0 */
  uint32_t joins;       /* the caller's thread may run a part of the launch, or all, for up to twenty milliseconds */
  /* NULL, or called when the launch has ended, on a thread of the pool that holds no lock; it must not wait.  Nobody but it, or whom
   * it tells, may destroy the launch.  If the caller's thread may join, `over` says of a launch that has started whether it has ended
   * meanwhile: then it is the caller's, and nobody calls `ended`. */
  void (*ended)(void *context, pe_launch *launch);
  void *context;
  uint32_t *over;
  /* NULL, or called with `keeps` when the launch is destroyed: what it needed until then. */
  void (*release)(void *keeps);
  void *keeps;
} pe_config;

/* The first fault of a launch; or, where it was stopped (PE_STOPPED), where a warp was then. */
typedef struct pe_record {
  uint32_t kind; /* PE_OK: none */
  uint32_t pos;  /* source offset, or PE_NO_POS: then `pc` tells */
  uint64_t pc;   /* address in JIT code, or 0 */
  uint32_t ctaid[3], tid[3];
  int32_t lane; /* -1: the whole warp, tid is that of its first thread */
  uint32_t warp;
  uint32_t space; /* PE_GENERIC ... */
  uint32_t size;
  uint64_t address;
  uint32_t slot; /* surface faults: slot and coordinates */
  uint32_t has_coordinates;
  int64_t coordinates[4];
  uint32_t channel; /* of the lane's hardware thread, from 1; 0: it has none */
  uint32_t others;  /* lanes that fail beside it in the same instruction, as far as that is known */
  char note[1024];  /* more about it, or empty */
} pe_record;

enum { PE_NO_POS = 0xffffffff };

/* Where lanes of a warp stood when a launch was stopped, or was deadlocked, and what they waited for: nothing (then `pos` is that
 * of the last access of memory or call, or PE_NO_POS), barrier `number`, at which `arrived` of `expected` threads were, or others. */
enum { PE_STANDS, PE_STANDS_AT_BARRIER, PE_STANDS_AT_MBARRIER, PE_STANDS_AT_CLUSTER, PE_STANDS_AT_GRID };

typedef struct pe_stand {
  uint32_t ctaid[3], warp, lanes;
  uint32_t pos, waits; /* PE_STANDS ... */
  uint32_t number, arrived, expected;
} pe_stand;

enum { PE_MOST_STANDS = 16 }; /* that a launch keeps */

typedef struct pe_counters {
  uint64_t ctas;           /* completed */
  uint64_t faults;         /* raised, the recorded one included */
  uint64_t output_dropped; /* bytes of printf output beyond the buffer */
  uint32_t workers;        /* threads used */
  uint32_t no_memory;      /* 1: there was no memory for the stacks of its warps */
  uint32_t kind;           /* of the record */
  uint32_t orphaned;       /* 1: this is a forked child, and the launch its parent's */
  uint32_t ended;          /* 1: it has */
  uint32_t output;         /* 1: there is printf output to take */
} pe_counters;

/* Whether the thread that starts a launch will run all of it, unless that takes longer than expected. */
int pe_launch_is_brief(const pe_config *config);

/* Start a launch, and run a part of it if the caller joins. 0, or an errno value. */
int pe_launch_start(pe_arena *arena, const pe_config *config, pe_launch **launch);

/* Wait up to `milliseconds`, UINT32_MAX without a limit. 1: the launch has ended. */
int pe_launch_wait(pe_launch *launch, uint32_t milliseconds);
void pe_launch_request_stop(pe_launch *launch);

/* How many CTAs are done by now. */
uint64_t pe_launch_completed(const pe_launch *launch);

/* What the kernel finds in %gridid. */
uint64_t pe_launch_number(const pe_launch *launch);

/* Whether there is printf output to take. */
int pe_launch_has_output(pe_launch *launch);
/* Take up to `size` bytes of it; the number taken. */
size_t pe_launch_output(pe_launch *launch, char *buffer, size_t size);

/* After the end only.  Until it is destroyed, a launch keeps its windows, which faults may name. */
void pe_launch_result(pe_launch *launch, pe_record *record, pe_counters *counters); /* record: or NULL */

/* A launch that is waited for: what the kernel finds in %gridid, and the result. */
typedef struct pe_waited {
  pe_launch *launch;
  uint64_t number;
  pe_counters counters;
} pe_waited;

/* Start as pe_launch_start does, wait up to `milliseconds`, and tell the result, which is zeros if it has not ended. */
int pe_launch_run(pe_arena *arena, const pe_config *config, uint32_t milliseconds, pe_waited *waited);

/* How many stands there are, of launches whose warps have turns of their own, and the first PE_MOST_STANDS. */
uint32_t pe_launch_stands(const pe_launch *launch, pe_stand *out);
void pe_launch_destroy(pe_launch *launch);

/* Stop a launch if there is one, wait for its threads to leave it, and destroy it: all in one call, which no interrupt cuts. */
void pe_launch_end(pe_launch **launch);
void pe_waited_end(pe_waited *waited);

/* Start a thread that nobody joins. As the pool's, it takes no signals but those of its own making. 0, or an errno value. */
typedef void *pe_thread_function(void *argument);
int pe_thread_start(pe_thread_function *function, void *argument);

/* ---- symbols that JIT code may bind ------------------------------------------------------------------------------- */

typedef struct pe_symbol {
  const char *name;
  void (*address)(void);
} pe_symbol;

/* The table; ends with a NULL name. */
const pe_symbol *pe_symbols(void);
/* CDEF END */
#pragma GCC visibility pop

#endif
