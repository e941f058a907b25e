/* members.c: the checker `sync`: lanes that a membermask names and that go elsewhere.
 *
 * Here lanes do not wait at such an instruction for others, which may come later, by another branch. Of two lanes that both name each
 * other, each must come to the same masks in the same order, as each waits for the other: who has to come to a mask yet, and comes to
 * another one that names those who wait there, or to a barrier of the block, does not come.  A lane that exits need not come.
 */
#include <stdlib.h>
#include <string.h>
#include "checker.h"
#include "atomic.h"
#include "launch.h"
#include "text.h"

enum { GOES_ELSEWHERE = 16, GOES_TO_BARRIER }; /* what is found */

/* ---- the meetings of a warp ---- */

static bool is_of(const pe_warp_meetings *m, const pe_warp *w) {
  return m->launch == w->launch->gridid && !memcmp(m->ctaid, w->ctaid, sizeof m->ctaid);
}

/* Those of a warp, or NULL. With the mutex held. */
static pe_warp_meetings *find(pe_members *members, const pe_warp *w) {
  for (size_t i = 0; i < members->count; i++) {
    pe_warp_meetings *m = &members->warps[i];
    if (m->warp != w) continue;
    if (!is_of(m, w)) m->count = 0; /* of a CTA that has ended */
    return m;
  }
  return NULL;
}

static pe_warp_meetings *make(pe_members *members, const pe_warp *w) {
  pe_warp_meetings *m = find(members, w);
  if (!m && members->count == members->room) {
    size_t room = 2 * members->room + 16;
    pe_warp_meetings *grown = realloc(members->warps, room * sizeof *grown);
    if (!grown) return NULL;
    members->warps = grown;
    members->room = room;
  }
  if (!m) {
    m = &members->warps[members->count];
    members->any = ++members->count;
  }
  if (m->warp == w && is_of(m, w)) return m;
  *m = (pe_warp_meetings){.warp = w, .launch = w->launch->gridid};
  memcpy(m->ctaid, w->ctaid, sizeof m->ctaid);
  return m;
}

/* Let the warp tell of all barriers, as one where all its lanes come may be wrong. */
static void watch(const pe_warp *w) { ((pe_warp *)(uintptr_t)w)->watched |= PE_WATCH_ALL; }

static void drop(pe_warp_meetings *m, uint32_t index) {
  memmove(&m->of[index], &m->of[index + 1], (--m->count - index) * sizeof *m->of);
}

/* The first meeting to which a lane has to come yet, of those where others wait that are among `named`; -1: there is none. */
static int owed(const pe_warp_meetings *m, uint32_t lane, uint32_t named) {
  for (uint32_t i = 0; i < m->count; i++) {
    const pe_warp_meeting *at = &m->of[i];
    if (at->members >> lane & 1 && !(at->came >> lane & 1) && at->came & named) return (int)i;
  }
  return -1;
}

/* ---- what is told ---- */

static void tell(pe_checker *checker, const pe_warp *w, const pe_warp_meeting *at, uint32_t lane, uint32_t pos,
                 uint32_t what, uint32_t other) {
  uint32_t waits = (uint32_t)__builtin_ctz(at->came);
  pe_finding f = {.check = PE_CHECK_SYNC, .pos = at->pos, .other_pos = pos, .what = what, .other = pe_place_of(w, lane)};
  pe_text t = pe_text_in(f.text, sizeof f.text);
  pe_add(&t, "membermask 0x%08x of lane %u names lane %u, which does not come, but to ", at->members, waits, lane);
  pe_add(&t, what == GOES_TO_BARRIER ? "barrier %u" : "membermask 0x%08x", other);
  pe_report(checker, w, waits, &f);
}

/* ---- lanes come ---- */

/* The lanes that come to meetings where others of their mask wait already; what is wrong is told. */
static uint32_t settle(pe_checker *checker, const pe_warp *w, pe_warp_meetings *m, uint32_t pos, uint32_t group,
                       uint32_t mask) {
  uint32_t settled = 0;
  PE_FOR_LANES(lane, group) {
    int at = owed(m, lane, mask);
    if (at < 0) continue;
    if (m->of[at].members == mask) {
      m->of[at].came |= 1u << lane;
      settled |= 1u << lane;
    } else {
      tell(checker, w, &m->of[at], lane, pos, GOES_ELSEWHERE, mask);
      drop(m, (uint32_t)at);
    }
  }
  return settled;
}

static void drop_complete(const pe_warp *w, pe_warp_meetings *m) {
  for (uint32_t i = m->count; i-- > 0;)
    if (!(m->of[i].members & w->active & ~w->exited & ~m->of[i].came)) drop(m, i);
}

/* Lanes with the same mask come together. */
static void come(pe_checker *checker, const pe_warp *w, uint32_t pos, uint32_t group, uint32_t mask) {
  pe_members *members = &checker->members;
  uint32_t missing = mask & w->active & ~w->exited & ~group;
  if (!missing && !members->any) return;
  pthread_mutex_lock(&members->mutex);
  pe_warp_meetings *m = missing ? make(members, w) : find(members, w);
  if (m) {
    uint32_t settled = m->count ? settle(checker, w, m, pos, group, mask) : 0;
    drop_complete(w, m);
    if (m->count == PE_MOST_MEETINGS) drop(m, 0);
    if (missing) watch(w);
    if (missing && group & ~settled) m->of[m->count++] = (pe_warp_meeting){mask, group & ~settled, pos};
  }
  pthread_mutex_unlock(&members->mutex);
}

void pe_sync_come(pe_checker *checker, const pe_warp *w, uint32_t pos, uint32_t mask, const uint32_t *given) {
  for (uint32_t left = mask; left;) {
    uint32_t members = given[__builtin_ctz(left)], group = 0;
    PE_FOR_LANES(lane, left) group |= (uint32_t)(given[lane] == members) << lane;
    left &= ~group;
    if (group & members) come(checker, w, pos, group & members, members);
  }
}

void pe_sync_wait(pe_checker *checker, const pe_warp *w, uint32_t pos, uint32_t id, uint32_t mask, uint32_t how) {
  pe_members *members = &checker->members;
  if (!members->any || how & (PE_BARRIER_LANES | PE_BARRIER_ARRIVES)) return;
  pthread_mutex_lock(&members->mutex);
  pe_warp_meetings *m = find(members, w);
  if (m) drop_complete(w, m);
  if (m) {
    PE_FOR_LANES(lane, mask) {
      int at = owed(m, lane, PE_ALL_LANES & ~w->exited);
      if (at < 0) continue;
      tell(checker, w, &m->of[at], lane, pos, GOES_TO_BARRIER, id);
      drop(m, (uint32_t)at);
    }
  }
  pthread_mutex_unlock(&members->mutex);
}

void pe_members_end(pe_members *members) {
  pthread_mutex_destroy(&members->mutex);
  free(members->warps);
}
