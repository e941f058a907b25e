#include "watch.h"

#include "jump.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct {
  void (*found)(const struct link_map *);
  const struct link_map **known; /* in the loader's order, in which new ones are last */
  size_t count, room;
} watched; /* the loader's lock protects it: whoever loads has it */

/* Put an object at a place of the list of those that are known; false: there is no memory. */
static bool know(size_t at, const struct link_map *one) {
  if (at == watched.room) {
    size_t room = watched.room ? 2 * watched.room : 64;
    void *more = realloc(watched.known, room * sizeof *watched.known);
    if (!more) return false;
    watched.known = more;
    watched.room = room;
  }
  watched.known[at] = one;
  return true;
}

/* The place at which an object is known, from a place on, or the number of those that are. */
static size_t known_at(const struct link_map *one, size_t from) {
  while (from < watched.count && watched.known[from] != one) from++;
  return from;
}

/* Go through the loader's list, and note it. Those that are gone are left out: the place in the old list never falls behind
 * that in the new one. */
static void compare(void (*found)(const struct link_map *)) {
  size_t old = 0, now = 0;
  for (const struct link_map *one = _r_debug.r_map; one; one = one->l_next) {
    old = known_at(one, old);
    bool is_new = old >= watched.count;
    if (!is_new) old++;
    if (is_new && found) found(one);
    if (know(now, one)) now++;
  }
  watched.count = now;
}

static void changed(void) {
  int error = errno;
  if (_r_debug.r_state == RT_CONSISTENT) compare(watched.found);
  errno = error;
}

/* Whether a function returns at once. */
static bool does_nothing(const void *function) {
#if defined __x86_64__
  static const unsigned char landing[] = {0xf3, 0x0f, 0x1e, 0xfa}, returns[] = {0xc3};
#else
  static const unsigned landing[] = {0xd503245f}, returns[] = {0xd65f03c0};
#endif
  unsigned char code[sizeof landing + sizeof returns];
  px_copy_recorded(code, function, sizeof code);
  const bool lands = !memcmp(code, landing, sizeof landing);
  return !memcmp(lands ? code + sizeof landing : code, returns, sizeof returns);
}

void px_watch(void (*found)(const struct link_map *)) {
  const uintptr_t place = _r_debug.r_brk, page = (uintptr_t)sysconf(_SC_PAGESIZE);
  if (!place || place % PX_FUNCTION_ALIGNMENT || !does_nothing((const void *)place)) return;
  void *start = (void *)(place / page * page);
  const size_t size = (place % page + PX_JUMP_BYTES + page - 1) / page * page;
  compare(NULL);
  watched.found = found;
  if (mprotect(start, size, PROT_READ | PROT_WRITE | PROT_EXEC))
    return; /* executable still: other threads may be in this page */
  (void)px_write_jump((void *)place, (const void *)changed, px_copy_recorded); /* debuggers stop there, too */
  mprotect(start, size, PROT_READ | PROT_EXEC);
}
