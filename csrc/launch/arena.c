/* arena.c: all device memory, one reserved mapping whose pages are committed per allocation.
 *
 * The arena is an ordered list of blocks, free or live.  A live block is [lead | committed pages | one unmapped page]; the
 * allocation ends as close to that page as its alignment allows, so running past the end faults.  Where the arena has slack, the
 * committed pages begin and end that much earlier and later.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "arena_blocks.h"
#include "exclusive.h"
#include "internal.h"

#define ALIGNMENT 256ull
#define SPARE (16ull << 30)          /* address space for windows of launches and for fragmentation */
#define MAX_IDLE_BYTES (64ull << 20) /* of windows kept for the next launch */
#define MAX_IDLE_WINDOW (16ull << 20)

static uint64_t committed_end(const pe_arena *arena, const block *b) { return b->start + b->length - arena->page; }

/* ---- what counts against the capacity ---- */

bool pe_arena_charge(pe_arena *arena, uint64_t bytes) {
  uint64_t used = atomic_load(&arena->used);
  do {
    if (!pe_within(used, bytes, arena->capacity)) return false;
  } while (!atomic_compare_exchange_weak(&arena->used, &used, used + bytes));
  return true;
}

void pe_arena_discharge(pe_arena *arena, uint64_t bytes) { atomic_fetch_sub(&arena->used, bytes); }

/* ---- the mapping ---- */

static bool map_reservation(pe_arena *arena, uint64_t extent) {
  arena->extent = pe_round_up(extent, PE_HUGE_PAGE);
  arena->mapped = arena->extent + 2 * PE_ARENA_MARGIN + PE_HUGE_PAGE;
  arena->mapping = mmap(NULL, arena->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (arena->mapping == MAP_FAILED) return false;
  arena->base = pe_round_up((uint64_t)(uintptr_t)arena->mapping + PE_ARENA_MARGIN, PE_HUGE_PAGE);
  return true;
}

void pe_prefer_huge_pages(void *pages, uint64_t bytes) {
#ifdef MADV_HUGEPAGE
  madvise(pages, bytes, MADV_HUGEPAGE);
#else
  (void)pages, (void)bytes;
#endif
}

static bool commit(uint64_t start, uint64_t length) {
  void *pages = (void *)(uintptr_t)start;
  if (mprotect(pages, length, PROT_READ | PROT_WRITE)) return false;
  if (length >= 2 * PE_HUGE_PAGE) pe_prefer_huge_pages(pages, length);
  return true;
}

/* Mapping anew gives the pages back and makes the next allocation here read as zeros. false: the host's limit on mappings is reached;
 * protection and contents were still dropped, but for those of a file. */
static bool decommit(uint64_t start, uint64_t length) {
  void *pages = (void *)(uintptr_t)start;
  if (mmap(pages, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED)
    return true;
  madvise(pages, length, MADV_DONTNEED);
  mprotect(pages, length, PROT_NONE);
  return false;
}

/* ---- the block list ---- */

static bool grow(pe_arena *arena, size_t extra) {
  if (arena->count + extra <= arena->room) return true;
  size_t room = arena->room * 2 + extra;
  block *blocks = realloc(arena->blocks, room * sizeof *blocks);
  if (!blocks) return false;
  arena->blocks = blocks;
  arena->room = room;
  return true;
}

static void remove_block(pe_arena *arena, size_t index) {
  arena->count--;
  memmove(&arena->blocks[index], &arena->blocks[index + 1], (arena->count - index) * sizeof *arena->blocks);
}

/* Cut a free block so that it is `length` bytes long; there is room for one more. */
static void split_block(pe_arena *arena, size_t index, uint64_t length) {
  block *b = &arena->blocks[index];
  if (b->length == length) return;
  memmove(b + 1, b, (arena->count - index) * sizeof *b);
  arena->count++;
  b[1].start += length;
  b[1].length -= length;
  b->length = length;
}

static void join_free(pe_arena *arena, size_t index) {
  block *b = &arena->blocks[index];
  if (index + 1 < arena->count && !pe_block_is_live(b + 1)) {
    b->length += b[1].length;
    remove_block(arena, index + 1);
  }
  if (index > 0 && !pe_block_is_live(b - 1)) {
    b[-1].length += b->length;
    remove_block(arena, index);
  }
}

/* Place an allocation with out->slack in a free block: fills `out` and returns whether it fits. */
static bool place(const pe_arena *arena, const block *b, uint64_t size, uint64_t align, block *out) {
  uint64_t page = arena->page, lead = b->start + out->slack;
  uint64_t first = align > page ? pe_round_up(lead, align) : lead;
  uint64_t end = pe_round_up(first + pe_round_up(size, ALIGNMENT), page);
  out->address = align > page ? first : end - pe_round_up(size, align);
  out->commit = (out->address - out->slack) & ~(page - 1);
  out->start = b->start;
  out->length = end + out->slack + page - b->start;
  out->size = size;
  return first >= b->start && out->length <= b->length;
}

/* Place an allocation in the part behind the cursor of the free block that the cursor lies in. */
static bool place_at_cursor(pe_arena *arena, uint64_t size, uint64_t align, size_t index, block *out) {
  block *b = &arena->blocks[index];
  uint64_t skipped = arena->cursor - b->start;
  if (pe_block_is_live(b) || skipped == 0 || skipped >= b->length) return false;
  block rest = {.start = arena->cursor, .length = b->length - skipped};
  if (!place(arena, &rest, size, align, out)) return false;
  split_block(arena, index, skipped);
  return true;
}

/* Next fit; there is room for two more blocks. */
static bool find_place(pe_arena *arena, uint64_t size, uint64_t align, size_t *index, block *out) {
  size_t from = pe_block_at(arena, arena->cursor);
  if (place_at_cursor(arena, size, align, from, out)) {
    *index = from + 1;
    return true;
  }
  for (size_t i = 0; i < arena->count; i++) {
    size_t at = (from + i) % arena->count;
    if (pe_block_is_live(&arena->blocks[at]) || !place(arena, &arena->blocks[at], size, align, out)) continue;
    *index = at;
    return true;
  }
  return false;
}

static void release(pe_arena *arena, size_t index) {
  block *b = &arena->blocks[index];
  uint64_t bytes = committed_end(arena, b) - b->commit;
  bool empty = decommit(b->commit, bytes);
  if (b->backed && !empty) return; /* its addresses are not used again */
  if (b->counted) pe_arena_discharge(arena, bytes);
  free(b->name);
  b->name = NULL;
  b->size = 0;
  b->backed = false;
  join_free(arena, index);
}

static bool release_idle(pe_arena *arena) {
  bool any = arena->idle_count != 0;
  while (arena->idle_count) release(arena, pe_block_at(arena, arena->idle[--arena->idle_count].address));
  arena->idle_bytes = 0;
  return any;
}

/* `wanted` says what else the block is to be. */
static uint64_t allocate_once(pe_arena *arena, uint64_t size, uint64_t align, const char *name, block wanted) {
  wanted.slack = wanted.window ? 0 : arena->slack;
  size_t index;
  if (!grow(arena, 2) || !find_place(arena, size, align, &index, &wanted)) return 0;
  uint64_t bytes = committed_end(arena, &wanted) - wanted.commit;
  bool allowed = !wanted.counted || pe_arena_charge(arena, bytes);
  wanted.name = strndup(name, sizeof((pe_allocation *)0)->name - 1);
  if (!allowed || !wanted.name || (!wanted.reserved && !commit(wanted.commit, bytes))) {
    free(wanted.name);
    if (wanted.counted && allowed) pe_arena_discharge(arena, bytes);
    join_free(arena, index);
    return 0;
  }
  split_block(arena, index, wanted.length);
  arena->blocks[index] = wanted;
  arena->cursor = wanted.start + wanted.length;
  return wanted.address;
}

static uint64_t allocate(pe_arena *arena, uint64_t size, uint64_t align, const char *name, block wanted) {
  if (size == 0) size = 1;
  if (align < ALIGNMENT) align = ALIGNMENT;
  if ((align & (align - 1)) || size > arena->extent || align > arena->extent) return 0;
  uint64_t address = allocate_once(arena, size, align, name, wanted);
  if (!address && release_idle(arena)) address = allocate_once(arena, size, align, name, wanted);
  return address;
}

/* ---- windows ---- */

static uint64_t take_idle(pe_arena *arena, uint64_t size, uint64_t align, const char *name, bool counted) {
  uint64_t committed = pe_round_up(pe_round_up(size, align), arena->page);
  for (size_t i = 0; i < arena->idle_count; i++) {
    if (arena->idle[i].committed != committed) continue;
    char *copy = strdup(name);
    if (!copy || (counted && !pe_arena_charge(arena, committed))) {
      free(copy);
      return 0;
    }
    block *b = pe_block_of(arena, arena->idle[i].address);
    arena->idle[i] = arena->idle[--arena->idle_count];
    arena->idle_bytes -= committed;
    b->counted = counted;
    free(b->name);
    b->name = copy;
    b->size = size;
    b->address = committed_end(arena, b) - pe_round_up(size, align);
    return b->address;
  }
  return 0;
}

uint64_t pe_window_take(pe_arena *arena, uint64_t size, const char *name, bool counted) {
  if (size == 0) size = 1;
  uint64_t address = take_idle(arena, size, PE_WINDOW_ALIGNMENT, name, counted);
  return address ? address : allocate(arena, size, PE_WINDOW_ALIGNMENT, name, (block){.window = true, .counted = counted});
}

/* An idle window does not count, so there cannot be many. */
static bool may_idle(const pe_arena *arena, uint64_t committed) {
  uint64_t most = arena->capacity / 4 < MAX_IDLE_BYTES ? arena->capacity / 4 : MAX_IDLE_BYTES;
  return arena->idle_count < MAX_IDLE && committed <= MAX_IDLE_WINDOW && pe_within(arena->idle_bytes, committed, most);
}

void pe_window_return(pe_arena *arena, uint64_t address) {
  size_t index = pe_block_at(arena, address);
  block *b = &arena->blocks[index];
  uint64_t committed = committed_end(arena, b) - b->commit;
  if (!may_idle(arena, committed)) {
    release(arena, index);
    return;
  }
  if (b->counted) pe_arena_discharge(arena, committed);
  b->counted = false;
  arena->idle[arena->idle_count++] = (idle_window){address, committed};
  arena->idle_bytes += committed;
}

/* ---- the heap of kernels ---- */

pe_heap *pe_arena_heap(pe_arena *arena) {
  if (arena->heap || arena->heap_size == 0) return arena->heap;
  uint64_t base = allocate(arena, arena->heap_size, ALIGNMENT, "device heap", (block){.window = true, .counted = true});
  if (base) arena->heap = pe_heap_create(base, arena->heap_size);
  if (base && !arena->heap) release(arena, pe_block_at(arena, base));
  return arena->heap;
}

void pe_arena_set_slack(pe_arena *arena, uint64_t bytes) {
  pe_lock();
  arena->slack = pe_round_up(bytes < PE_CUDA_SLACK ? bytes : PE_CUDA_SLACK, arena->page);
  pe_unlock();
}

int pe_arena_set_heap(pe_arena *arena, uint64_t size) {
  pe_lock();
  int made = arena->heap ? -1 : 0;
  if (!made) arena->heap_size = size >> PE_MAX_HEAP_LOG2 ? 1ull << PE_MAX_HEAP_LOG2 : size;
  pe_unlock();
  return made;
}

/* ---- the public functions ---- */

pe_arena *pe_arena_create(uint64_t capacity) {
  pe_runtime_init();
  if (capacity > 1ull << 45) {
    errno = ENOMEM;
    return NULL;
  }
  pe_arena *arena = calloc(1, sizeof *arena);
  if (!arena) return NULL;
  arena->page = (uint64_t)sysconf(_SC_PAGESIZE);
  arena->capacity = pe_round_up(capacity, arena->page);
  if (!grow(arena, 16) ||
      (!map_reservation(arena, 2 * capacity + SPARE) && !map_reservation(arena, capacity + SPARE / 16))) {
    free(arena->blocks);
    free(arena);
    errno = ENOMEM;
    return NULL;
  }
  arena->blocks[0] = (block){.start = arena->base, .length = arena->extent};
  arena->count = 1;
  arena->cursor = arena->base;
  arena->heap_size = PE_DEFAULT_HEAP;
  return arena;
}

void pe_arena_destroy(pe_arena *arena) {
  if (!arena) return;
  if (arena->observer && arena->observer->gone) arena->observer->gone(arena->observer->context);
  munmap(arena->mapping, arena->mapped);
  pe_heap_destroy(arena->heap);
  for (size_t i = 0; i < arena->count; i++) free(arena->blocks[i].name);
  free(arena->blocks);
  free(arena->mappings.mapping);
  free(arena);
}

uint64_t pe_arena_base(const pe_arena *arena) { return arena->base; }

uint64_t pe_arena_extent(const pe_arena *arena) { return arena->extent; }

uint64_t pe_arena_used(pe_arena *arena) { return atomic_load(&arena->used); }

void pe_arena_observe(pe_arena *arena, const pe_observer *observer) { arena->observer = observer; }

void pe_arena_filled(pe_arena *arena, uint64_t address, uint64_t size, uint32_t with) {
  const pe_observer *observer = arena->observer;
  if (observer && observer->filled) observer->filled(observer->context, address, size, with);
}

const pe_observer *pe_arena_observer(const pe_arena *arena) { return arena->observer; }

uint64_t pe_arena_alloc(pe_arena *arena, uint64_t size, uint64_t align, const char *name) {
  pe_lock();
  bool allowed = arena->allocations < PE_MAX_ALLOCATIONS;
  uint64_t address = allowed ? allocate(arena, size, align, name ? name : "", (block){.counted = true}) : 0;
  arena->allocations += address != 0;
  pe_unlock();
  if (address) pe_tell_allocated(arena->observer, address, size, NULL, 0);
  return address;
}

uint64_t pe_arena_hold(pe_arena *arena, uint64_t address, uint64_t size) {
  pe_lock();
  block *b = pe_block_around(arena, address, size);
  uint64_t start = b ? b->address : 0;
  if (b) b->holds++;
  pe_unlock();
  return start;
}

void pe_arena_unhold(pe_arena *arena, uint64_t start) {
  pe_lock();
  block *b = pe_block_of(arena, start);
  if (b && b->holds && --b->holds == 0 && b->freed) release(arena, (size_t)(b - arena->blocks));
  pe_unlock();
}

int pe_arena_free(pe_arena *arena, uint64_t address) {
  pe_allocation own;
  if (arena->observer && pe_arena_find(arena, address, &own) && own.address == address)
    pe_tell_freed(arena->observer, address);
  pe_lock();
  block *b = pe_block_of(arena, address);
  bool found = b && pe_block_is_hosts(b);
  if (found) {
    arena->allocations--;
    b->freed = true;
    if (b->holds == 0) release(arena, (size_t)(b - arena->blocks));
  }
  pe_unlock();
  return found ? 0 : -1;
}

/* ---- addresses without memory ---- */

pe_mappings *pe_arena_mappings(pe_arena *arena) { return &arena->mappings; }

bool pe_arena_is_reserved(const pe_arena *arena, uint64_t start, uint64_t size) {
  const block *b = &arena->blocks[pe_block_at(arena, start)];
  return b->reserved && start >= b->address && pe_within(start - b->address, size, b->size);
}

uint64_t pe_arena_reserve(pe_arena *arena, uint64_t size, uint64_t align) {
  pe_lock();
  bool allowed = arena->allocations < PE_MAX_ALLOCATIONS;
  const block wanted = {.window = true, .reserved = true};
  uint64_t unit = align > PE_MAP_UNIT ? align : PE_MAP_UNIT;
  uint64_t address = allowed ? allocate(arena, size, unit, "reserved addresses", wanted) : 0;
  arena->allocations += address != 0;
  pe_unlock();
  return address;
}

int pe_arena_unreserve(pe_arena *arena, uint64_t address, uint64_t size) {
  pe_lock();
  block *b = pe_block_of(arena, address);
  bool fits = b && b->reserved && b->size == size && pe_mappings_spare(&arena->mappings, address, size);
  if (fits) {
    arena->allocations--;
    b->reserved = false;
    release(arena, (size_t)(b - arena->blocks));
  }
  pe_unlock();
  return fits ? 0 : EINVAL;
}
