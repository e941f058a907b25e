/* arena_blocks.h: the blocks of an arena, for the files that it is made of. All with pe_lock held. */
#ifndef PTXEMU_ARENA_BLOCKS_H
#define PTXEMU_ARENA_BLOCKS_H
#include "arena.h"
#include "reserved.h"
#include "runtime.h"

#define MAX_IDLE 128 /* windows kept for the next launch */

typedef struct block {
  uint64_t start, length; /* the whole block */
  uint64_t address, size; /* the allocation; size 0: the block is free */
  uint64_t commit;        /* first committed byte */
  uint64_t slack;         /* committed bytes around the allocation */
  char *name;
  uint32_t holds; /* of those who need the memory though it may be freed */
  bool freed;     /* it is given back when they do not */
  bool window;    /* of a launch, or the heap: the host cannot free it */
  bool counted;   /* against the capacity */
  bool backed;    /* by a file */
  bool reserved;  /* addresses alone, where memory of files is mapped */
} block;

typedef struct idle_window {
  uint64_t address, committed;
} idle_window;

struct pe_arena {
  void *mapping;
  uint64_t mapped;
  uint64_t base, extent, page, capacity, slack;
  _Atomic uint64_t used;
  uint64_t cursor; /* where the next search starts: freed addresses are reused late */
  block *blocks;
  size_t count, room;
  uint32_t allocations; /* of the host that are not freed */
  idle_window idle[MAX_IDLE];
  size_t idle_count;
  uint64_t idle_bytes;
  pe_heap *heap;
  uint64_t heap_size;
  bool shared; /* with other processes, at some time */
  pe_mappings mappings;
  const pe_observer *observer;
};

static inline bool pe_block_is_live(const block *b) { return b->size != 0; }

/* An allocation that the host has made and not freed. */
static inline bool pe_block_is_hosts(const block *b) { return pe_block_is_live(b) && !b->window && !b->freed; }

/* Index of the block that contains the address; 0 or the last for addresses outside the arena. */
size_t pe_block_at(const pe_arena *arena, uint64_t address);

/* The allocation that begins at an address, or NULL. */
block *pe_block_of(pe_arena *arena, uint64_t address);

/* The allocation of the host that contains these bytes, or NULL. */
block *pe_block_around(pe_arena *arena, uint64_t address, uint64_t size);

#endif
