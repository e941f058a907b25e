/* key.h: which entry of the cache is wanted, and where the cache is. */
#ifndef PTXEMU_KEY_H
#define PTXEMU_KEY_H
#include "entry.h"

#pragma GCC visibility push(default)
/* CDEF BEGIN */
enum { PE_KEY_BYTES = 65 };

/* The key of a list of parts, as hexadecimal digits: the SHA-256 of all, each behind its length in 8 bytes. */
typedef struct pe_part {
  const void *data;
  uint64_t size;
} pe_part;
void pe_key_of(const pe_part *parts, uint32_t count, char *key);

/* The same of texts. */
void pe_key_of_texts(const char *const *texts, uint32_t count, char *key);

/* What tells this machine's CPU from those that cannot run its code. */
const char *pe_machine_identity(void);

enum {
  PE_KINDS = 12,
  PE_FULL_KINDS = 8, /* the first of them, of which there are blocks of full warps */
  PE_VARIANTS = PE_KINDS + PE_FULL_KINDS,
  PE_FEW_BLOCKS = 1 << 21 /* so many blocks have fewer than 2^31 threads */
};

/* The kind of block shapes that a block belongs to, for which a kernel has code of its own, and its name: "warp" (a warp, which is a
 * row of threads), "row" (a warp lies in one row), "x1" to "x16" (rows of so many lanes), or "any"; with "full " before it where all
 * warps have all their lanes. "spread row" and "spread x4" to "spread x16" are these if threads are spread (spread.h), else "any".
 * Code for full warps is for grids with less than PE_FEW_BLOCKS blocks along x. */
uint32_t pe_variant_number(const uint32_t *block);
const char *pe_variant_of(const uint32_t *block);

/* A block whose code serves a launch: its own, or where the grid is too large for that one that is not full. */
void pe_code_block(const uint32_t *grid, const uint32_t *block, uint32_t *found);

/* A directory of entries that nobody else can change, by the rules of ssh; NULL: there is none, or it is not safe.  A NULL
 * `directory` is the user's, which PTXEMU_CACHE or XDG_CACHE_HOME may name. */
typedef struct pe_cache pe_cache;
pe_cache *pe_cache_open(const char *directory);

/* When an entry was made last, in seconds like those of time(); 0: it is not known. */
int64_t pe_cache_changed(const pe_cache *cache);
void pe_cache_close(pe_cache *cache);

/* The entry of a key. 0, ENOENT: there is none; ENOEXEC: the file holds something else; ENOMEM. */
int pe_cache_read(const pe_cache *cache, const char *key, uint32_t kind, pe_entry **entry);
/* CDEF END */
#pragma GCC visibility pop

#endif
