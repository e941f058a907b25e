/* waits.c: the checker `sync`: accesses of shared memory that an asynchronous copy is still reading or writing, for nobody has waited for
 * it.
 *
 * Code of kernels with such copies tells of accesses that leave the range of shared memory that its worker keeps (observer.h): here, that
 * without copies under way around the last access. A copy that is issued ends it, so that the next access is looked at.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "race_access.h"
#include "text.h"

enum { NOT_AWAITED = 32 }; /* what is found */

/* ---- whose copies ---- */

static void clear(pe_waits_cta *cta) {
  for (uint32_t i = 0; cta->any && i < PE_MAX_WARPS; i++) {
    cta->of[i].count = 0;
    memset(cta->of[i].groups, 0, sizeof cta->of[i].groups);
  }
  cta->any = false;
}

/* That of a warp, or NULL. With the mutex held. */
static pe_waits_cta *find(pe_waits *waits, const pe_warp *w) {
  for (size_t i = 0; i < waits->count; i++) {
    pe_waits_cta *cta = waits->ctas[i];
    if (cta->shared != w->shared_base) continue;
    bool same = cta->launch == w->launch->gridid && !memcmp(cta->ctaid, w->ctaid, sizeof cta->ctaid);
    if (!same) clear(cta); /* it has ended */
    cta->launch = w->launch->gridid;
    memcpy(cta->ctaid, w->ctaid, sizeof cta->ctaid);
    return cta;
  }
  return NULL;
}

static pe_waits_cta *make(pe_waits *waits, const pe_warp *w) {
  pe_waits_cta *found = find(waits, w);
  if (found) return found;
  if (waits->count == waits->room) {
    size_t room = 2 * waits->room + 8;
    pe_waits_cta **grown = realloc((void *)waits->ctas, room * sizeof *grown);
    if (!grown) return NULL;
    waits->ctas = grown;
    waits->room = room;
  }
  pe_waits_cta *made = calloc(1, sizeof *made);
  if (!made) return NULL;
  made->shared = w->shared_base;
  waits->ctas[waits->count++] = made;
  return find(waits, w);
}

static void free_all(pe_waits *waits) {
  for (size_t i = 0; i < waits->count; i++) {
    for (uint32_t warp = 0; warp < PE_MAX_WARPS; warp++) free(waits->ctas[i]->of[warp].sides);
    free(waits->ctas[i]);
  }
  waits->count = 0;
}

void pe_waits_end(pe_waits *waits) {
  free_all(waits);
  free((void *)waits->ctas);
  pthread_mutex_destroy(&waits->mutex);
}

/* Others that run have their copies forgotten, which are not looked at any more. */
void pe_waits_launch_ended(pe_waits *waits) {
  pthread_mutex_lock(&waits->mutex);
  free_all(waits);
  pthread_mutex_unlock(&waits->mutex);
}

/* ---- where accesses are ---- */

/* The range of shared memory around an address that no copy of a CTA touches. */
static void narrow(const pe_waits_cta *cta, uint64_t address, uint64_t *first, uint64_t *end) {
  for (uint32_t warp = 0; warp < PE_MAX_WARPS; warp++) {
    for (uint32_t i = 0; i < cta->of[warp].count; i++) {
      const pe_copy_side *side = &cta->of[warp].sides[i];
      uint64_t last = side->address + side->size;
      if (last <= address)
        *first = last > *first ? last : *first;
      else if (side->address < *end)
        *end = side->address;
    }
  }
}

/* Let compiled code know of it. Blocks of a cluster copy to each other's, of which other workers do not know. */
static void keep_range(const pe_warp *w, const pe_waits_cta *cta, uint64_t address) {
  uint64_t first = w->shared_base, end = w->shared_base + w->shared_size;
  if (!w->ranges || w->cluster_nctarank > 1) return;
  if (cta) narrow(cta, address, &first, &end);
  first = pe_round_up(first, PE_RANGE_ALIGN);
  *pe_shared_range(w) = first < end ? (pe_range){first, end - first} : (pe_range){0};
}

/* ---- what is told ---- */

static void tell(pe_checker *checker, const pe_warp *w, const pe_memory_event *e, uint32_t lane, uint64_t address,
                 const pe_waits_cta *cta, uint32_t warp, const pe_copy_side *side) {
  uint32_t thread = warp * PE_WARP_LANES + side->lane;
  pe_finding f = {.check = PE_CHECK_SYNC, .what = NOT_AWAITED | e->kind, .pos = e->pos, .other_pos = side->pos};
  pe_text t = pe_text_in(f.text, sizeof f.text);
  pe_require_stack();
  f.other = (pe_thread_place){
    .warp = warp,
    .tid = {thread % w->ntid[0], thread / w->ntid[0] % w->ntid[1], thread / w->ntid[0] / w->ntid[1]},
  };
  memcpy(f.other.ctaid, cta->ctaid, sizeof f.other.ctaid);
  pe_add(&t, "%" PRIu64 "-byte %s of ", e->size,
         e->kind == PE_READ    ? "read"
         : e->kind == PE_WRITE ? "write"
                               : "atomic update");
  pe_add_shared(w, address, &t);
  pe_add(&t, ", which a copy is %s that nobody has waited for", side->writes ? "writing" : "reading");
  pe_report(checker, w, lane, &f);
}

/* Whether an access of a lane is of what a copy of a CTA touches, one of both writing; it is told. */
static bool meets(pe_checker *checker, const pe_warp *w, const pe_memory_event *e, uint32_t lane, uint64_t address,
                  const pe_waits_cta *cta) {
  for (uint32_t warp = 0; cta->any && warp < PE_MAX_WARPS; warp++) {
    for (uint32_t i = 0; i < cta->of[warp].count; i++) {
      const pe_copy_side *side = &cta->of[warp].sides[i];
      bool apart = address >= pe_sum(side->address, side->size) || pe_sum(address, e->size) <= side->address;
      if (apart || !(side->writes || e->kind & PE_WRITE)) continue;
      tell(checker, w, e, lane, address, cta, warp, side);
      return true;
    }
  }
  return false;
}

/* Copies of others of its cluster may touch the shared memory of a CTA. */
static void look(pe_checker *checker, const pe_warp *w, const pe_memory_event *e, uint32_t lane, uint64_t address) {
  bool met = false;
  for (size_t i = 0; i < checker->waits.count && !met; i++) {
    const pe_waits_cta *cta = checker->waits.ctas[i];
    bool near = cta->shared == w->shared_base || (w->cluster_nctarank > 1 && cta->launch == w->launch->gridid);
    met = near && meets(checker, w, e, lane, address, cta);
  }
}

/* ---- events ---- */

static void issue(pe_waits *waits, const pe_warp *w, const pe_memory_event *e, uint32_t lane, uint64_t address) {
  pe_waits_cta *cta = make(waits, w);
  if (!cta) return;
  pe_copies *copies = &cta->of[w->warpid];
  pe_copy_side side = pe_copies_side(copies, e, lane, address);
  cta->any = true;
  pe_copies_keep(copies, &side);
  if (w->ranges) *pe_shared_range(w) = (pe_range){0};
}

/* An mbarrier object is used, which may track copies of any block of the cluster. */
static void use(pe_waits *waits, const pe_warp *w, const pe_memory_event *e, uint32_t lane, uint64_t address) {
  uint8_t phase = pe_mbarrier_phase(address);
  pe_copies_wait wait = {.mbarrier = address};
  for (size_t i = 0; i < waits->count; i++) {
    for (uint32_t warp = 0; waits->ctas[i]->any && warp < PE_MAX_WARPS; warp++) {
      pe_copies_notice(&waits->ctas[i]->of[warp], address, phase);
      if (e->kind == PE_READ) pe_copies_settle(&waits->ctas[i]->of[warp], &wait, pe_copies_have_passed, NULL, NULL);
    }
  }
  pe_waits_cta *cta = find(waits, w);
  if (cta && e->kind & PE_WRITE) pe_copies_track(&cta->of[w->warpid], e, lane, address, phase);
}

void pe_waits_block(pe_checker *checker, const pe_warp *w) {
  pthread_mutex_lock(&checker->waits.mutex);
  find(&checker->waits, w);
  pthread_mutex_unlock(&checker->waits.mutex);
}

void pe_waits_access(pe_checker *checker, const pe_warp *w, const pe_memory_event *event) {
  pe_waits *waits = &checker->waits;
  bool copies = event->order & PE_ASYNC && !(event->order & PE_RELEASE);
  bool object = event->order & PE_STRONG && event->size == sizeof(uint64_t);
  if (!pe_race_reached(event->space) || event->space == PE_TEXEL || !event->size) return;
  if (!copies && !waits->count && event->space != PE_SHARED) return;
  pe_require_stack();
  pthread_mutex_lock(&waits->mutex);
  uint64_t last = 0;
  PE_FOR_LANES(lane, event->mask) {
    uint64_t address;
    bool shared;
    if (!pe_race_locate(w, event, lane, event->size, &address, &shared) || !shared) continue;
    if (object) use(waits, w, event, lane, address);
    if (copies)
      issue(waits, w, event, lane, address);
    else
      look(checker, w, event, lane, address);
    last = address;
  }
  if (last && !copies) keep_range(w, find(waits, w), last);
  pthread_mutex_unlock(&waits->mutex);
}

void pe_waits_order(pe_checker *checker, const pe_warp *w, uint32_t what, uint32_t mask) {
  pe_waits *waits = &checker->waits;
  uint32_t which = what & PE_ORDERS;
  if (which < PE_COPIES_GROUP || which > PE_COPIES_WAIT_READ) return;
  pthread_mutex_lock(&waits->mutex);
  pe_waits_cta *cta = make(waits, w);
  pe_copies_wait wait = pe_copies_asked(what, mask);
  if (cta) {
    pe_copies *copies = &cta->of[w->warpid];
    cta->any = true;
    if (!pe_copies_end_group(copies, what, mask)) pe_copies_settle(copies, &wait, pe_copies_are_awaited, NULL, NULL);
  }
  pthread_mutex_unlock(&waits->mutex);
}
