/* reserved.c: memory of files in addresses that a program has reserved. */
#include "reserved.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "arena.h"
#include "bisect.h"
#include "checked.h"
#include "internal.h"
#include "runtime.h"

/* ---- the list ---- */

/* The index of the first mapping that ends behind an address. */
static size_t first_behind(const pe_mappings *all, uint64_t address) {
  return PE_FIRST_NOT(middle, all->count, pe_sum(all->mapping[middle].start, all->mapping[middle].size) <= address);
}

const pe_mapping *pe_mapping_at(const pe_mappings *all, uint64_t address) {
  size_t at = first_behind(all, address);
  return at < all->count && all->mapping[at].start <= address ? &all->mapping[at] : NULL;
}

uint64_t pe_mappings_reach(const pe_mappings *all, uint64_t address) {
  uint64_t end = address;
  for (size_t at = first_behind(all, address); at < all->count; at++) {
    const pe_mapping *next = &all->mapping[at];
    if (next->start > end || !next->access) break;
    end = pe_sum(next->start, next->size);
  }
  return end - address;
}

bool pe_mappings_spare(const pe_mappings *all, uint64_t start, uint64_t size) {
  size_t at = first_behind(all, start);
  return at == all->count || (all->mapping[at].start > start && all->mapping[at].start - start >= size);
}

void pe_mapping_describe(const pe_mapping *mapping, pe_allocation *out) {
  *out = (pe_allocation){.address = mapping->start, .size = mapping->size, .name = "mapped memory"};
}

static bool insert(pe_mappings *all, pe_mapping made) {
  if (all->count == all->room) {
    size_t room = 2 * all->room + 16;
    pe_mapping *grown = realloc(all->mapping, room * sizeof *grown);
    if (!grown) return false;
    all->mapping = grown;
    all->room = room;
  }
  size_t at = first_behind(all, made.start);
  memmove(&all->mapping[at + 1], &all->mapping[at], (all->count - at) * sizeof made);
  all->mapping[at] = made;
  all->count++;
  return true;
}

static void forget(pe_mappings *all, size_t at) {
  memmove(&all->mapping[at], &all->mapping[at + 1], (--all->count - at) * sizeof *all->mapping);
}

/* The mappings that make up a range; 0: there is a gap, or one that lies partly outside. */
static size_t whole(const pe_mappings *all, uint64_t start, uint64_t size, size_t *first) {
  uint64_t end = start, count = 0;
  *first = first_behind(all, start);
  for (size_t at = *first; at < all->count && end - start < size; at++, count++) {
    if (all->mapping[at].start != end) return 0;
    end += all->mapping[at].size;
  }
  return end - start == size ? count : 0;
}

/* ---- what programs ask for ---- */

static void *pages(uint64_t start) { return (void *)(uintptr_t)start; }

static int map(pe_arena *arena, uint64_t start, uint64_t size, int file, uint64_t offset, void *owner) {
  pe_mappings *all = pe_arena_mappings(arena);
  if (!size || (start | size | offset) % PE_MAP_UNIT || !pe_arena_is_reserved(arena, start, size) ||
      !pe_mappings_spare(all, start, size))
    return EINVAL;
  if (all->count >= PE_MAX_MAPPINGS || !insert(all, (pe_mapping){start, size, 0, owner})) return ENOMEM;
  if (mmap(pages(start), size, PROT_NONE, MAP_SHARED | MAP_FIXED, file, (off_t)offset) != MAP_FAILED) return 0;
  int error = errno;
  forget(all, first_behind(all, start));
  return error;
}

int pe_arena_map(pe_arena *arena, uint64_t start, uint64_t size, int file, uint64_t offset, void *owner) {
  pe_lock();
  int error = map(arena, start, size, file, offset, owner);
  pe_unlock();
  if (error) return error;
  pe_tell_allocated(pe_arena_observer(arena), start, size, NULL, 0);
  pe_arena_filled(arena, start, size, PE_CONTENTS); /* it may have been written elsewhere */
  return 0;
}

int pe_arena_protect(pe_arena *arena, uint64_t start, uint64_t size, uint32_t access) {
  int protection = (access & PE_MAP_READ ? PROT_READ : 0) | (access & PE_MAP_WRITE ? PROT_WRITE : 0);
  size_t first;
  pe_lock();
  pe_mappings *all = pe_arena_mappings(arena);
  size_t count = whole(all, start, size, &first);
  int error = !count ? EINVAL : mprotect(pages(start), size, protection) ? errno : 0;
  for (size_t i = 0; !error && i < count; i++) all->mapping[first + i].access = access;
  pe_unlock();
  return error;
}

/* Take the mapping that begins at an address away. */
static int unmap(pe_arena *arena, uint64_t start, pe_mapping *out) {
  pe_mappings *all = pe_arena_mappings(arena);
  size_t at = first_behind(all, start);
  if (at == all->count || all->mapping[at].start != start) return EINVAL;
  *out = all->mapping[at];
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (mmap(pages(start), out->size, PROT_NONE, flags, -1, 0) == MAP_FAILED) return errno;
  forget(all, at);
  return 0;
}

int pe_arena_unmap(pe_arena *arena, uint64_t start, uint64_t size, pe_gone_function *gone) {
  size_t first;
  pe_lock();
  size_t count = whole(pe_arena_mappings(arena), start, size, &first);
  pe_unlock();
  int error = count ? 0 : EINVAL;
  for (; !error && count; count--) {
    pe_mapping mapping;
    pe_tell_freed(pe_arena_observer(arena), start);
    pe_lock();
    error = unmap(arena, start, &mapping);
    pe_unlock();
    if (!error) gone(mapping.owner);
    start += error ? 0 : mapping.size;
  }
  return error;
}

void *pe_arena_mapping_owner(pe_arena *arena, uint64_t address, uint32_t *access) {
  pe_lock();
  const pe_mapping *found = pe_mapping_at(pe_arena_mappings(arena), address);
  void *owner = found ? found->owner : NULL;
  *access = found ? found->access : 0;
  pe_unlock();
  return owner;
}

int pe_arena_may_write(pe_arena *arena, uint64_t address, uint64_t size) {
  pe_lock();
  const pe_mappings *all = pe_arena_mappings(arena);
  bool may = true;
  for (size_t at = first_behind(all, address); may && at < all->count; at++) {
    if (all->mapping[at].start > address && all->mapping[at].start - address >= size) break;
    may = all->mapping[at].access & PE_MAP_WRITE;
  }
  pe_unlock();
  return may;
}

/* ---- the memory of files ---- */

int pe_arena_take(pe_arena *arena, uint64_t bytes) { return pe_arena_charge(arena, bytes); }

void pe_arena_give(pe_arena *arena, uint64_t bytes) { pe_arena_discharge(arena, bytes); }
