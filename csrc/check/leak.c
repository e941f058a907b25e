/* leak.c: the checker `leak`: blocks that kernels have allocated and nobody has freed. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "checker.h"
#include "text.h"

enum { MOST_NUMBERS = 10 };

/* The blocks of one place of a kernel. */
typedef struct group {
  pe_heap_block first; /* of them */
  uint64_t count, bytes;
} group;

typedef struct groups {
  uint64_t kernel; /* the only one that is looked at, or 0 */
  group *items;
  size_t count, room, last; /* `last`: where the last block belongs */
} groups;

static bool is_place_of(const group *g, const pe_heap_block *block) {
  return g->first.kernel == block->kernel && g->first.pos == block->pos;
}

/* The group of a block, or NULL: there is no room. */
static group *group_of(groups *all, const pe_heap_block *block) {
  if (all->count && is_place_of(&all->items[all->last], block)) return &all->items[all->last];
  for (all->last = 0; all->last < all->count; all->last++)
    if (is_place_of(&all->items[all->last], block)) return &all->items[all->last];
  all->last = 0;
  if (all->count == all->room) {
    size_t room = 2 * all->room + 8;
    group *grown = room <= 2 * PE_MAX_PLACES ? realloc(all->items, room * sizeof *grown) : NULL;
    if (!grown) return NULL;
    all->items = grown;
    all->room = room;
  }
  all->last = all->count++;
  all->items[all->last] = (group){.first = *block};
  return &all->items[all->last];
}

static bool is_wanted(uint64_t kernel, const pe_heap_block *block) {
  return block->kernel && (!kernel || block->kernel == kernel);
}

static void add(void *context, pe_heap_block *block) {
  groups *all = context;
  group *found = is_wanted(all->kernel, block) ? group_of(all, block) : NULL;
  if (!found) return;
  found->count++;
  found->bytes += block->size;
}

static void forget(void *context, pe_heap_block *block) {
  if (is_wanted(*(uint64_t *)context, block)) block->kernel = 0;
}

static void add_never_freed(pe_text *t, uint64_t bytes, uint64_t count, const char *what, const char *of) {
  pe_add_bytes(t, bytes);
  pe_add(t, " in %" PRIu64 " %s%s of %s %s never freed", count, what, pe_plural(count), of, count == 1 ? "is" : "are");
}

void pe_checker_find_leaks(pe_checker *checker, uint64_t kernel) {
  groups all = {.kernel = kernel};
  if (!(checker->checks & PE_CHECK_LEAK)) return;
  pe_extents_heap(&checker->extents, add, &all);
  for (size_t i = 0; i < all.count; i++) {
    const group *g = &all.items[i];
    pe_finding f = {.check = PE_CHECK_LEAK, .pos = g->first.pos, .other_pos = PE_NO_POS};
    f.kernel = g->first.kernel;
    f.thread = g->first.thread;
    pe_text t = pe_text_in(f.text, sizeof f.text);
    add_never_freed(&t, g->bytes, g->count, "block", "`malloc`");
    pe_keep_finding(checker, &f, g->count);
  }
  free(all.items);
}

void pe_checker_forget_leaks(pe_checker *checker, uint64_t kernel) {
  if (checker->checks & PE_CHECK_LEAK) pe_extents_heap(&checker->extents, forget, &kernel);
}

/* ---- allocations of the host ---- */

/* The number of an allocation of a kind; 0: it is none. */
static unsigned long long number_of(const pe_allocation *allocation, const char *kind) {
  static const char begins[] = "allocation ", between[] = " of ";
  char *rest;
  if (strncmp(allocation->name, begins, strlen(begins))) return 0;
  unsigned long long number = strtoull(allocation->name + strlen(begins), &rest, 10);
  bool fits = !strncmp(rest, between, strlen(between)) && !strcmp(rest + strlen(between), kind);
  return fits ? number : 0;
}

void pe_checker_find_kept(pe_checker *checker, const char *kind) {
  unsigned long long numbers[MOST_NUMBERS], number;
  uint64_t count = 0, bytes = 0, first = 0;
  pe_allocation one = {0};
  if (!(checker->checks & PE_CHECK_LEAK)) return;
  while (pe_arena_next(checker->arena, one.address, &one)) {
    if (!(number = number_of(&one, kind))) continue;
    if (count < MOST_NUMBERS) numbers[count] = number;
    if (!count) first = one.address;
    count++;
    bytes += one.size;
  }
  if (!count) return;
  pe_finding f = {.check = PE_CHECK_LEAK, .pos = PE_NO_POS, .other_pos = PE_NO_POS};
  f.what = (uint32_t)(first / 16); /* kinds are told apart by it */
  pe_text t = pe_text_in(f.text, sizeof f.text);
  add_never_freed(&t, bytes, count, "allocation", kind);
  for (uint64_t i = 0; i < count && i < MOST_NUMBERS; i++)
    pe_add(&t, "%s%llu", i ? ", " : count == 1 ? ": number " : ": numbers ", numbers[i]);
  if (count > MOST_NUMBERS) pe_add(&t, " ...");
  pe_keep_finding(checker, &f, count);
}
