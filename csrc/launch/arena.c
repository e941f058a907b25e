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
#include "arena.h"
#include "exclusive.h"
#include "internal.h"
#include "reserved.h"
#include "runtime.h"
#include "bisect.h"

#define ALIGNMENT 256ull
#define HUGE_PAGE (2ull << 20)
#define SPARE (16ull << 30) /* address space for windows of launches and for fragmentation */
#define MAX_IDLE 128        /* windows kept for the next launch, and their bytes */
#define MAX_IDLE_BYTES (64ull << 20)
#define MAX_IDLE_WINDOW (16ull << 20)

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

static bool is_live(const block *b) { return b->size != 0; }

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
  arena->extent = pe_round_up(extent, HUGE_PAGE);
  arena->mapped = arena->extent + 2 * PE_ARENA_MARGIN + HUGE_PAGE;
  arena->mapping = mmap(NULL, arena->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (arena->mapping == MAP_FAILED) return false;
  arena->base = pe_round_up((uint64_t)(uintptr_t)arena->mapping + PE_ARENA_MARGIN, HUGE_PAGE);
  return true;
}

static bool commit(uint64_t start, uint64_t length) {
  void *pages = (void *)(uintptr_t)start;
  if (mprotect(pages, length, PROT_READ | PROT_WRITE)) return false;
#ifdef MADV_HUGEPAGE
  if (length >= 2 * HUGE_PAGE) madvise(pages, length, MADV_HUGEPAGE);
#endif
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

/* Index of the block that contains the address; 0 or the last for addresses outside the arena. */
static size_t find_block(const pe_arena *arena, uint64_t address) {
  size_t above = PE_FIRST_NOT(middle, arena->count, arena->blocks[middle].start <= address);
  return above ? above - 1 : 0;
}

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
  if (index + 1 < arena->count && !is_live(b + 1)) {
    b->length += b[1].length;
    remove_block(arena, index + 1);
  }
  if (index > 0 && !is_live(b - 1)) {
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
  if (is_live(b) || skipped == 0 || skipped >= b->length) return false;
  block rest = {.start = arena->cursor, .length = b->length - skipped};
  if (!place(arena, &rest, size, align, out)) return false;
  split_block(arena, index, skipped);
  return true;
}

/* Next fit; there is room for two more blocks. */
static bool find_place(pe_arena *arena, uint64_t size, uint64_t align, size_t *index, block *out) {
  size_t from = find_block(arena, arena->cursor);
  if (place_at_cursor(arena, size, align, from, out)) {
    *index = from + 1;
    return true;
  }
  for (size_t i = 0; i < arena->count; i++) {
    size_t at = (from + i) % arena->count;
    if (is_live(&arena->blocks[at]) || !place(arena, &arena->blocks[at], size, align, out)) continue;
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
  while (arena->idle_count) release(arena, find_block(arena, arena->idle[--arena->idle_count].address));
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

static block *find_allocation(pe_arena *arena, uint64_t address) {
  block *b = &arena->blocks[find_block(arena, address)];
  return is_live(b) && b->address == address ? b : NULL;
}

/* ---- windows ---- */

static uint64_t take_idle(pe_arena *arena, uint64_t size, const char *name, bool counted) {
  uint64_t committed = pe_round_up(pe_round_up(size, ALIGNMENT), arena->page);
  for (size_t i = 0; i < arena->idle_count; i++) {
    if (arena->idle[i].committed != committed) continue;
    char *copy = strdup(name);
    if (!copy || (counted && !pe_arena_charge(arena, committed))) {
      free(copy);
      return 0;
    }
    block *b = find_allocation(arena, arena->idle[i].address);
    arena->idle[i] = arena->idle[--arena->idle_count];
    arena->idle_bytes -= committed;
    b->counted = counted;
    free(b->name);
    b->name = copy;
    b->size = size;
    b->address = committed_end(arena, b) - pe_round_up(size, ALIGNMENT);
    return b->address;
  }
  return 0;
}

uint64_t pe_window_take(pe_arena *arena, uint64_t size, const char *name, bool counted) {
  if (size == 0) size = 1;
  uint64_t address = take_idle(arena, size, name, counted);
  return address ? address : allocate(arena, size, ALIGNMENT, name, (block){.window = true, .counted = counted});
}

/* An idle window does not count, so there cannot be many. */
static bool may_idle(const pe_arena *arena, uint64_t committed) {
  uint64_t most = arena->capacity / 4 < MAX_IDLE_BYTES ? arena->capacity / 4 : MAX_IDLE_BYTES;
  return arena->idle_count < MAX_IDLE && committed <= MAX_IDLE_WINDOW && pe_within(arena->idle_bytes, committed, most);
}

void pe_window_return(pe_arena *arena, uint64_t address) {
  size_t index = find_block(arena, address);
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

static bool is_idle(const pe_arena *arena, const block *b) {
  for (size_t i = 0; b->window && i < arena->idle_count; i++)
    if (arena->idle[i].address == b->address) return true;
  return false;
}

/* ---- the heap of kernels ---- */

pe_heap *pe_arena_heap(pe_arena *arena) {
  if (arena->heap || arena->heap_size == 0) return arena->heap;
  uint64_t base = allocate(arena, arena->heap_size, ALIGNMENT, "device heap", (block){.window = true, .counted = true});
  if (base) arena->heap = pe_heap_create(base, arena->heap_size);
  if (base && !arena->heap) release(arena, find_block(arena, base));
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

static void describe(const block *b, pe_allocation *out) {
  *out = (pe_allocation){.address = b->address, .size = b->size};
  strncpy(out->name, b->name, sizeof out->name - 1);
}

uint64_t pe_arena_alloc(pe_arena *arena, uint64_t size, uint64_t align, const char *name) {
  pe_lock();
  bool allowed = arena->allocations < PE_MAX_ALLOCATIONS;
  uint64_t address = allowed ? allocate(arena, size, align, name ? name : "", (block){.counted = true}) : 0;
  arena->allocations += address != 0;
  pe_unlock();
  if (address) pe_tell_allocated(arena->observer, address, size, NULL, 0);
  return address;
}

/* An allocation that the host has made and not freed. */
static bool is_hosts(const block *b) { return is_live(b) && !b->window && !b->freed; }

uint32_t pe_arena_allocations(pe_arena *arena) {
  pe_lock();
  uint32_t count = arena->allocations;
  pe_unlock();
  return count;
}

/* The allocation of the host that contains these bytes, or NULL. */
static block *find_hosts(pe_arena *arena, uint64_t address, uint64_t size) {
  block *b = &arena->blocks[find_block(arena, address)];
  bool inside = is_hosts(b) && address >= b->address && address - b->address < b->size;
  return inside && pe_within(address - b->address, size, b->size) ? b : NULL;
}

int pe_arena_find(pe_arena *arena, uint64_t address, pe_allocation *out) {
  pe_lock();
  const block *b = find_hosts(arena, address, 0);
  const pe_mapping *mapping = pe_mapping_at(&arena->mappings, address);
  bool mapped = mapping && mapping->access;
  if (b) describe(b, out);
  if (mapped) pe_mapping_describe(mapping, out);
  pe_unlock();
  return b || mapped;
}

int pe_arena_next(pe_arena *arena, uint64_t address, pe_allocation *out) {
  pe_lock();
  size_t i = address < arena->base ? 0 : find_block(arena, address);
  while (i < arena->count && !(is_hosts(&arena->blocks[i]) && arena->blocks[i].address > address)) i++;
  bool found = i < arena->count;
  if (found) describe(&arena->blocks[i], out);
  pe_unlock();
  return found;
}

uint64_t pe_arena_hold(pe_arena *arena, uint64_t address, uint64_t size) {
  pe_lock();
  block *b = find_hosts(arena, address, size);
  uint64_t start = b ? b->address : 0;
  if (b) b->holds++;
  pe_unlock();
  return start;
}

void pe_arena_unhold(pe_arena *arena, uint64_t start) {
  pe_lock();
  block *b = find_allocation(arena, start);
  if (b && b->holds && --b->holds == 0 && b->freed) release(arena, (size_t)(b - arena->blocks));
  pe_unlock();
}

int pe_arena_free(pe_arena *arena, uint64_t address) {
  pe_allocation own;
  if (arena->observer && pe_arena_find(arena, address, &own) && own.address == address)
    pe_tell_freed(arena->observer, address);
  pe_lock();
  block *b = find_allocation(arena, address);
  bool found = b && is_hosts(b);
  if (found) {
    arena->allocations--;
    b->freed = true;
    if (b->holds == 0) release(arena, (size_t)(b - arena->blocks));
  }
  pe_unlock();
  return found ? 0 : -1;
}

/* ---- memory of a file ---- */

static uint64_t first_page(const pe_arena *arena, uint64_t address) { return address & ~(arena->page - 1); }

uint64_t pe_arena_pages(const pe_arena *arena, uint64_t address, uint64_t size) {
  return pe_round_up(pe_sum(address - first_page(arena, address), size), arena->page);
}

static int write_all(int file, uint64_t start, uint64_t length) {
  for (uint64_t done = 0; done < length;) {
    ssize_t written = pwrite(file, (const void *)(uintptr_t)(start + done), length - done, (off_t)done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written ? errno : EIO;
    done += (uint64_t)written;
  }
  return 0;
}

bool pe_arena_is_shared(const pe_arena *arena) { return arena->shared; }

bool pe_arena_shares(pe_arena *arena) {
  pe_lock();
  bool shares = pe_arena_is_shared(arena);
  pe_unlock();
  return shares;
}

static void share(pe_arena *arena) {
  arena->shared = true;
  pe_flight_share(arena);
}

void pe_arena_share(pe_arena *arena) {
  pe_lock();
  share(arena);
  pe_unlock();
}

static int back(pe_arena *arena, block *b, int file, bool keep) {
  uint64_t start = first_page(arena, b->address), length = pe_arena_pages(arena, b->address, b->size);
  share(arena);
  int error = keep ? write_all(file, start, length) : 0;
  if (error) return error;
  void *pages = mmap((void *)(uintptr_t)start, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
  if (pages == MAP_FAILED) return errno;
  b->backed = true;
  return 0;
}

int pe_arena_back(pe_arena *arena, uint64_t address, int file, int keep) {
  pe_lock();
  block *b = find_allocation(arena, address);
  int error = b && is_hosts(b) ? back(arena, b, file, keep) : EINVAL;
  pe_unlock();
  return error;
}

/* ---- addresses without memory ---- */

pe_mappings *pe_arena_mappings(pe_arena *arena) { return &arena->mappings; }

bool pe_arena_is_reserved(const pe_arena *arena, uint64_t start, uint64_t size) {
  const block *b = &arena->blocks[find_block(arena, start)];
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
  block *b = find_allocation(arena, address);
  bool fits = b && b->reserved && b->size == size && pe_mappings_spare(&arena->mappings, address, size);
  if (fits) {
    arena->allocations--;
    b->reserved = false;
    release(arena, (size_t)(b - arena->blocks));
  }
  pe_unlock();
  return fits ? 0 : EINVAL;
}

static uint64_t distance(const block *b, uint64_t address) {
  if (address < b->address) return b->address - address;
  return address - b->address < b->size ? 0 : address - b->address - b->size + 1;
}

int pe_arena_nearest(pe_arena *arena, uint64_t address, pe_allocation *out) {
  const block *best = NULL;
  pe_lock();
  size_t center = find_block(arena, address);
  for (size_t i = center + 1; i-- > 0;) { /* the nearest live one at or below ... */
    const block *b = &arena->blocks[i];
    if (!is_live(b) || is_idle(arena, b)) continue;
    best = b;
    break;
  }
  for (size_t i = center + 1; i < arena->count; i++) { /* ... and above */
    const block *b = &arena->blocks[i];
    if (!is_live(b) || is_idle(arena, b)) continue;
    if (!best || distance(b, address) < distance(best, address)) best = b;
    break;
  }
  const pe_mapping *mapping = pe_mapping_at(&arena->mappings, address);
  if (mapping)
    pe_mapping_describe(mapping, out);
  else if (best)
    describe(best, out);
  pe_unlock();
  return best != NULL;
}

/* The live allocation that contains an address, or NULL. */
static const block *find_live(const pe_arena *arena, uint64_t address) {
  const block *b = &arena->blocks[find_block(arena, address)];
  return is_live(b) && !is_idle(arena, b) && address - b->address < b->size ? b : NULL;
}

uint64_t pe_arena_remaining(pe_arena *arena, uint64_t address) {
  pe_lock();
  const block *b = find_live(arena, address);
  uint64_t remaining = !b            ? 0
                       : b->reserved ? pe_mappings_reach(&arena->mappings, address)
                                     : b->size - (address - b->address);
  pe_unlock();
  return remaining;
}

uint64_t pe_arena_lasting(pe_arena *arena, uint64_t address) {
  pe_lock();
  const block *b = find_live(arena, address);
  uint64_t remaining = b && !b->reserved && !b->backed ? b->size - (address - b->address) : 0;
  pe_unlock();
  return remaining;
}
