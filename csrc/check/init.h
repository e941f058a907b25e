/* init.h: what the checker `init` knows: a bit for each byte of device memory says that nobody has written it. */
#ifndef PTXEMU_INIT_H
#define PTXEMU_INIT_H
#include <pthread.h>
#include <stdbool.h>
#include "observer.h"

/* Memory in which there may be such bytes: up to `clean` there are none. */
typedef struct pe_blank {
  uint64_t address, size, clean;
} pe_blank;

typedef struct pe_init {
  uint64_t base, size; /* the arena */
  uint64_t *unset;     /* the bits */
  pthread_rwlock_t lock;
  pe_blank *blanks; /* in the order of their addresses; not those of CTAs and of the heap of kernels */
  size_t count, room;
} pe_init;

enum {
  PE_INIT_LARGEST = 8
}; /* bytes of an access all of which must have been written; of larger ones, which are vectors, one must */

bool pe_init_begin(pe_init *init, pe_arena *arena);
void pe_init_end(pe_init *init);

/* The host has made memory whose contents mean nothing, has written some, or frees it. */
void pe_init_blank(pe_init *init, uint64_t address, uint64_t size);
void pe_init_written(pe_init *init, uint64_t address, uint64_t size);
void pe_init_freed(pe_init *init, uint64_t address);

/* Whether any of some bytes may be blank: not of the heap of kernels. */
bool pe_init_has_blanks(pe_init *init, uint64_t address, uint64_t size);

/* A kernel has made a block of the heap. */
void pe_init_heap(pe_init *init, uint64_t address, uint64_t size);

/* A CTA begins with its first warp: its shared memory and its local memory are blank. A launch has ended. */
void pe_init_block(pe_init *init, const pe_warp *w);
void pe_init_launch_ended(pe_init *init);

/* Keep what is written around an address of shared memory, of which compiled code need not tell, then. */
void pe_init_keep_shared(const pe_init *init, const pe_warp *w, uint64_t address);
/* There are blanks between what is read in the CTA's shared memory: compiled code looks for itself where it reads patterns. */
void pe_init_show_bits(const pe_init *init, const pe_warp *w);

#endif
