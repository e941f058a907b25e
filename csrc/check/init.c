/* init.c: the checker `init`: reads of memory that nobody has written. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "arena.h"
#include "atomic.h"
#include "bisect.h"
#include "checker.h"
#include "fault.h"
#include "init_bits.h"
#include "launch.h"
#include "place.h"
#include "text.h"

enum {
  MOST_WORDS = 64, /* that are looked at on each side of an access for what compiled code need not tell */
};

static size_t bitmap_bytes(const pe_init *init) { return init->size / PE_INIT_WORD_BYTES * sizeof *init->unset; }

bool pe_init_begin(pe_init *init, pe_arena *arena) {
  *init = (pe_init){.base = pe_arena_base(arena), .size = pe_round_up(pe_arena_extent(arena), PE_INIT_WORD_BYTES)};
  void *made = mmap(NULL, bitmap_bytes(init), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  init->unset = made == MAP_FAILED ? NULL : made;
  return pthread_rwlock_init(&init->lock, NULL) == 0 && init->unset;
}

void pe_init_end(pe_init *init) {
  if (init->unset) munmap(init->unset, bitmap_bytes(init));
  pthread_rwlock_destroy(&init->lock);
  free(init->blanks);
}

/* ---- bits ---- */

/* The bits of shared memory are its CTA's alone, as nothing else lies in the words that are about it. */
static void set_all_unset(const pe_init *init, uint64_t first, uint64_t size) {
  memset(&init->unset[first / PE_INIT_WORD_BYTES], 0xff,
         pe_round_up(size, PE_INIT_WORD_BYTES) / PE_INIT_WORD_BYTES * sizeof *init->unset);
}

static void set_unset(const pe_init *init, uint64_t first, uint64_t size) {
  for (uint64_t end = first + size; first < end;) {
    pe_init_part p = pe_init_part_at(init, first, end);
    __atomic_fetch_or(p.word, p.bits, __ATOMIC_RELAXED);
    first = p.next;
  }
}

static inline void set_written(const pe_init *init, uint64_t first, uint64_t size) {
  for (uint64_t end = first + size; first < end;) {
    pe_init_part p = pe_init_part_at(init, first, end);
    if (__atomic_load_n(p.word, __ATOMIC_RELAXED) & p.bits) __atomic_fetch_and(p.word, ~p.bits, __ATOMIC_RELAXED);
    first = p.next;
  }
}

/* How many bytes from an offset on, up to `end`, are written. */
static uint64_t written_from(const pe_init *init, uint64_t first, uint64_t end) {
  for (uint64_t at = first; at < end;) {
    pe_init_part p = pe_init_part_at(init, at, end);
    uint64_t unset = __atomic_load_n(p.word, __ATOMIC_RELAXED) & p.bits;
    if (unset) return at - at % PE_INIT_WORD_BYTES + (uint64_t)__builtin_ctzll(unset) - first;
    at = p.next;
  }
  return end - first;
}

/* And before it, down to `first`. */
static uint64_t written_before(const pe_init *init, uint64_t end, uint64_t first) {
  for (uint64_t at = end; at > first;) {
    uint64_t begin = (at - 1) / PE_INIT_WORD_BYTES * PE_INIT_WORD_BYTES;
    pe_init_part p = pe_init_part_at(init, begin < first ? first : begin, at);
    uint64_t unset = __atomic_load_n(p.word, __ATOMIC_RELAXED) & p.bits;
    if (unset) return end - (begin + PE_INIT_WORD_BYTES - (uint64_t)__builtin_clzll(unset));
    at = begin;
  }
  return end - first;
}

/* ---- blanks ---- */

/* How many begin at or before an address. */
static size_t blanks_up_to(const pe_init *init, uint64_t address) {
  return PE_FIRST_NOT(middle, init->count, init->blanks[middle].address <= address);
}

/* The blank that an address lies in, or NULL. */
static pe_blank *blank_at(const pe_init *init, uint64_t address) {
  size_t end = blanks_up_to(init, address);
  pe_blank *found = end ? &init->blanks[end - 1] : NULL;
  return found && address - found->address < found->size ? found : NULL;
}

bool pe_init_has_blanks(pe_init *init, uint64_t address, uint64_t size) {
  if (!size) return false;
  pthread_rwlock_rdlock(&init->lock);
  size_t before = blanks_up_to(init, address + size - 1);
  const pe_blank *last = before ? &init->blanks[before - 1] : NULL;
  bool any = last && pe_sum(last->address, last->size) > address;
  pthread_rwlock_unlock(&init->lock);
  return any;
}

static void remove_blank(pe_init *init, pe_blank *blank) {
  size_t after = init->count-- - (size_t)(blank - init->blanks) - 1;
  memmove(blank, blank + 1, after * sizeof *blank);
}

static bool add_blank(pe_init *init, uint64_t address, uint64_t size) {
  if (init->count == init->room) {
    size_t room = 2 * init->room + 16;
    pe_blank *grown = realloc(init->blanks, room * sizeof *grown);
    if (!grown) return false;
    init->blanks = grown;
    init->room = room;
  }
  size_t at = blanks_up_to(init, address);
  memmove(&init->blanks[at + 1], &init->blanks[at], (init->count++ - at) * sizeof *init->blanks);
  init->blanks[at] = (pe_blank){address, size, 0};
  return true;
}

/* Drop what has been written since. With the lock held. */
static bool is_filled(const pe_init *init, pe_blank *blank) {
  uint64_t first = blank->address - init->base;
  blank->clean += written_from(init, first + blank->clean, first + blank->size);
  return blank->clean == blank->size;
}

void pe_init_blank(pe_init *init, uint64_t address, uint64_t size) {
  if (!pe_within(address - init->base, size, init->size) || !size) return;
  pthread_rwlock_wrlock(&init->lock);
  if (blank_at(init, address) || add_blank(init, address, size)) set_unset(init, address - init->base, size);
  pthread_rwlock_unlock(&init->lock);
}

void pe_init_written(pe_init *init, uint64_t address, uint64_t size) {
  if (!pe_within(address - init->base, size, init->size)) return;
  pthread_rwlock_wrlock(&init->lock);
  set_written(init, address - init->base, size);
  pe_blank *blank = blank_at(init, address);
  if (blank && is_filled(init, blank)) remove_blank(init, blank);
  pthread_rwlock_unlock(&init->lock);
}

void pe_init_freed(pe_init *init, uint64_t address) {
  pthread_rwlock_wrlock(&init->lock);
  pe_blank *blank = blank_at(init, address);
  if (blank && blank->address == address) {
    set_written(init, address - init->base, blank->size);
    remove_blank(init, blank);
  }
  pthread_rwlock_unlock(&init->lock);
}

void pe_init_launch_ended(pe_init *init) {
  pthread_rwlock_wrlock(&init->lock);
  for (size_t i = init->count; i-- > 0;)
    if (is_filled(init, &init->blanks[i])) remove_blank(init, &init->blanks[i]);
  pthread_rwlock_unlock(&init->lock);
}

void pe_init_heap(pe_init *init, uint64_t address, uint64_t size) { set_unset(init, address - init->base, size); }

/* ---- a CTA begins ---- */

void pe_init_block(pe_init *init, const pe_warp *w) {
  uint64_t local = pe_product(pe_product(w->local_size, PE_WARP_LANES), pe_launch_windows_of_warps(w->launch));
  set_all_unset(init, w->shared_base - init->base, w->shared_size);
  if (w->local_size) set_unset(init, w->local_base - init->base, local);
  if (!w->ranges) return;
  *pe_shared_range(w) = (pe_range){0};
  *pe_blank_bits_of(w) = (pe_blank_bits){0, w->shared_base - init->base};
}

/* ---- what is told ---- */

static void add_where(pe_checker *checker, const pe_warp *w, const pe_memory_event *event, uint32_t lane, pe_text *t) {
  uint64_t address = event->address[lane];
  uint64_t shared = event->space == PE_SHARED ? w->shared_base + address : address;
  pe_extent at;
  bool absolute = event->space == PE_GENERIC || event->space == PE_GLOBAL;
  if (event->surface) {
    pe_add(t, "of ");
    pe_add_texel(checker, event->surface, address, t);
  } else if (event->space == PE_SHARED || (absolute && pe_in_window(shared, w->cluster_base, w->cluster_bytes))) {
    pe_add(t, "of ");
    pe_add_shared(w, shared, t);
  } else if (absolute && pe_extents_at(&checker->extents, address, &at)) {
    pe_add_bytes(t, address - at.address);
    pe_add(t, " into ");
    pe_add_name(t, at.name);
    pe_add(t, " (");
    pe_add_bytes(t, at.size);
    pe_add(t, ")");
  } else {
    pe_add(t, "of local memory");
  }
}

static void tell(pe_checker *checker, const pe_warp *w, const pe_memory_event *event, uint32_t lane, uint64_t unset) {
  pe_require_stack();
  pe_finding f = {.check = PE_CHECK_INIT, .pos = event->pos, .other_pos = PE_NO_POS, .what = unset == event->size};
  pe_text t = pe_text_in(f.text, sizeof f.text);
  pe_add(&t, "%" PRIu64 "-byte %s ", event->size, event->kind == PE_READ ? "read" : "update");
  add_where(checker, w, event, lane, &t);
  pe_add(&t, ", ");
  if (unset != event->size) pe_add(&t, "%" PRIu64 " byte%s of ", unset, pe_plural(unset));
  pe_add(&t, "which nobody has written");
  pe_report(checker, w, lane, &f);
}

/* ---- the check ---- */

/* From addresses of the program to offsets in the arena: `start` is that of address 0. Each lane may touch `size` bytes from `first` on,
 * and `stride` bytes further than the lane before. */
typedef struct frame {
  uint64_t start, first, size, stride;
} frame;

static bool frame_of(const pe_init *init, const pe_warp *w, uint32_t space, frame *out) {
  uint64_t shared = w->shared_base - init->base, local = w->local_base - init->base;
  switch (space) {
    case PE_GENERIC:
    case PE_TEXEL:
    case PE_GLOBAL: *out = (frame){-init->base, 0, init->size, 0}; return true;
    case PE_SHARED: *out = (frame){shared, shared, w->shared_size, 0}; return true;
    case PE_LOCAL: *out = (frame){local, local, w->local_size, w->local_size}; return true;
    default: return false;
  }
}

static inline bool offset_of(const frame *f, uint64_t address, uint32_t lane, uint64_t size, uint64_t *out) {
  uint64_t shift = lane * f->stride;
  *out = f->start + address + shift;
  return pe_within(*out - f->first - shift, size, f->size);
}

/* The bits of bytes that one word is about; false: there are two. */
static inline bool bits_of(const pe_init *init, uint64_t offset, uint64_t size, pe_init_part *out) {
  uint64_t from = offset % PE_INIT_WORD_BYTES;
  if (size == PE_INIT_WORD_BYTES || !pe_within(from, size, PE_INIT_WORD_BYTES)) return false;
  *out = (pe_init_part){&init->unset[offset / PE_INIT_WORD_BYTES], ((1ull << size) - 1) << from, 0};
  return true;
}

/* Look at bytes, and take them for written where that is what happens; how many of those that are read nobody has written. */
static inline uint64_t look(const pe_init *init, uint32_t kind, uint64_t offset, uint64_t size) {
  pe_init_part p;
  if (bits_of(init, offset, size, &p) && !(__atomic_load_n(p.word, __ATOMIC_RELAXED) & p.bits))
    return 0; /* as it mostly is */
  uint64_t unset = kind & PE_READ ? pe_init_count_unset(init, offset, size) : 0;
  if (kind & PE_WRITE) set_written(init, offset, size);
  return unset;
}

static bool is_wrong(uint64_t unset, uint64_t size) { return unset && (size <= PE_INIT_LARGEST || unset == size); }

/* Whether lanes of all a warp, each of whose bytes lie in one word, read what is written; false: that must be looked at. */
static bool are_written(const pe_init *init, const pe_memory_event *e, const frame *f) {
  const uint64_t *bits = init->unset, *address = e->address;
  uint64_t unset = 0, beyond = 0, last = f->size - e->size, odd = e->size - 1;
  if (e->mask != PE_ALL_LANES || e->kind != PE_READ || f->stride || e->size > PE_INIT_LARGEST || e->size & odd) return false;
  uint64_t low = (1ull << e->size) - 1;
  for (uint32_t i = 0; i < PE_WARP_LANES; i++) {
    uint64_t offset = f->start + address[i], wild = (offset - f->first > last) | (offset & odd);
    beyond |= wild;
    offset = wild ? f->first : offset;
    unset |= __atomic_load_n(&bits[offset / PE_INIT_WORD_BYTES], __ATOMIC_RELAXED) >> offset % PE_INIT_WORD_BYTES & low;
  }
  return !unset && !beyond;
}

static bool check_lanes(pe_checker *checker, const pe_warp *w, const pe_memory_event *e, const frame *f, uint32_t mask) {
  uint64_t offset, unset;
  bool clean = true;
  PE_FOR_LANES(i, mask) {
    if (!offset_of(f, e->address[i], i, e->size, &offset)) continue;
    unset = look(&checker->init, e->kind, offset, e->size);
    clean &= !unset;
    if (is_wrong(unset, e->size)) tell(checker, w, e, i, unset);
  }
  return clean;
}

/* ---- what need not be told again ---- */

/* Keep what is written around an offset, between two others. */
static void keep_around(const pe_init *init, pe_range *range, uint64_t offset, uint64_t low, uint64_t high) {
  uint64_t reach = MOST_WORDS * PE_INIT_WORD_BYTES;
  if (offset - low > reach) low = offset - reach;
  if (high - offset > reach) high = offset + reach;
  uint64_t first = init->base + offset - written_before(init, offset, low);
  uint64_t end = init->base + offset + written_from(init, offset, high);
  first = pe_round_up(first, PE_RANGE_ALIGN);
  *range = first < end ? (pe_range){first, end - first} : (pe_range){0};
}

static void keep_extent(pe_checker *checker, pe_range *range, uint64_t address) {
  pe_extent extent;
  bool usable = pe_extents_at(&checker->extents, address, &extent) && extent.lasting && extent.address % PE_RANGE_ALIGN == 0;
  *range = usable ? (pe_range){extent.address, extent.size} : (pe_range){0};
}

void pe_init_keep_shared(const pe_init *init, const pe_warp *w, uint64_t address) {
  uint64_t low = w->shared_base - init->base;
  pe_range around, *kept = pe_shared_range(w);
  keep_around(init, &around, low + address, low, low + w->shared_size);
  if (around.size > kept->size) *kept = around;
}

void pe_init_show_bits(const pe_init *init, const pe_warp *w) {
  pe_blank_bits_of(w)->bits = (uint64_t)(uintptr_t)init->unset;
}

static void keep_range(pe_checker *checker, const pe_warp *w, const pe_memory_event *e, uint64_t address) {
  pe_init *init = &checker->init;
  if (!w->ranges || e->space == PE_LOCAL) return;
  if (e->space == PE_SHARED && e->kind == PE_WRITE) return; /* most of a CTA's first writes stand alone */
  if (e->space == PE_SHARED) return pe_init_keep_shared(init, w, address);
  pe_range *range = pe_range_of(w, e->pos);
  pe_require_stack();
  pthread_rwlock_rdlock(&init->lock);
  const pe_blank *blank = blank_at(init, address);
  uint64_t low = blank ? blank->address - init->base : 0, high = blank ? low + blank->size : 0;
  pthread_rwlock_unlock(&init->lock);
  if (blank)
    keep_around(init, range, address - init->base, low, high);
  else
    keep_extent(checker, range, address);
}

void pe_init_access(pe_checker *checker, const pe_warp *w, const pe_memory_event *event, uint32_t mask) {
  const pe_init *init = &checker->init;
  frame f;
  uint64_t offset;
  bool absolute = event->space == PE_GENERIC || event->space == PE_GLOBAL || event->space == PE_TEXEL;
  if (absolute && w->ranges) *pe_range_of(w, event->pos) = (pe_range){0};
  if (!mask || !event->size || !frame_of(init, w, event->space, &f)) return;
  uint32_t first = (uint32_t)__builtin_ctz(mask);
  if (event->space != PE_LOCAL && mask != (mask & -mask) && pe_in_step(mask, event->address, 0)) mask &= -mask;
  bool run = !f.stride && mask == PE_ALL_LANES && pe_in_step(mask, event->address, event->size) &&
             offset_of(&f, event->address[0], 0, PE_WARP_LANES * event->size, &offset);
  bool clean = run && !(event->kind & PE_READ && pe_init_count_unset(init, offset, PE_WARP_LANES * event->size));
  if (!clean)
    clean = are_written(init, event, &f) || check_lanes(checker, w, event, &f, mask);
  else if (event->kind & PE_WRITE)
    set_written(init, offset, PE_WARP_LANES * event->size);
  if (clean && offset_of(&f, event->address[first], first, event->size, &offset))
    keep_range(checker, w, event, event->address[first]);
}
