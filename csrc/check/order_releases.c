/* order_releases.c: what CTAs have released (order.h), and to whom. */
#include <stdlib.h>
#include <string.h>
#include "order_parts.h"
#include "bisect.h"
#include "fault.h"

enum { MOST_RELEASES = 64 }; /* of a CTA that are told apart; of older ones every other is */

void pe_releases_free(pe_releases *r) {
  if (!r) return;
  free(r->time);
  free(r->clock);
  free(r);
}

/* Make room by taking two for one: what the later has released counts as released with the earlier. */
static void halve(pe_releases *r) {
  for (uint32_t i = 0; i < r->count / 2; i++) {
    r->time[i] = r->time[2 * i];
    memmove(r->clock + i * r->warps, r->clock + (2 * i + 1) * r->warps, r->warps * sizeof *r->clock);
  }
  r->count /= 2;
}

static bool grow_releases(pe_releases *r) {
  if (r->count < r->room) return true;
  if (r->room == MOST_RELEASES) {
    halve(r);
    return true;
  }
  uint32_t room = r->room ? 2 * r->room : 1;
  uint64_t *time = realloc(r->time, room * sizeof *time);
  if (time) r->time = time;
  uint32_t *clock = realloc(r->clock, (size_t)room * r->warps * sizeof *clock);
  if (clock) r->clock = clock;
  if (time && clock) r->room = room;
  return time && clock;
}

/* With the mutex held. */
static bool add_release(pe_releases **list, const pe_order_block *b, const pe_knowledge *fenced, uint64_t time) {
  if (!*list) {
    *list = calloc(1, sizeof **list);
    if (*list) (*list)->warps = b->warps;
  }
  pe_releases *r = *list;
  if (!r || !grow_releases(r)) return false;
  uint32_t *clock = r->clock + r->count * r->warps;
  const uint32_t *last = r->count ? clock - r->warps : fenced->clock;
  for (uint32_t i = 0; i < r->warps; i++) {
    uint32_t now = pe_known_clock(fenced, i);
    clock[i] = now > last[i] ? now : last[i];
  }
  r->time[r->count++] = time;
  return true;
}

uint64_t pe_order_release(pe_order *order, pe_order_block *b, uint32_t warp) {
  pe_order_warp *s = &b->warp[warp];
  if (!(s->has_fenced || s->has_inner) || b->blind || s->released) return s->released;
  pe_require_stack();
  pthread_mutex_lock(&order->mutex);
  uint64_t time = order->time + 1;
  pe_period *first = pe_period_of(order, b->periods[0]);
  b->blind |= !first;
  if (first && s->has_fenced) b->blind |= !add_release(&first->releases, b, &s->fenced, time);
  if (first && s->has_inner) b->blind |= !add_release(&first->inner, b, &s->inner, time);
  b->has_inner |= s->has_inner;
  __atomic_store_n(&order->time, time, __ATOMIC_RELEASE);
  pthread_mutex_unlock(&order->mutex);
  return s->released = time;
}

/* How many releases there are by a time. */
static size_t count_by(const pe_releases *r, uint64_t time) {
  return r ? PE_FIRST_NOT(middle, r->count, r->time[middle] <= time) : 0;
}

/* Whether a CTA has released what a warp did at a clock, by a time. */
static bool is_released(const pe_releases *r, uint32_t warp, uint32_t clock, uint64_t time) {
  size_t count = count_by(r, time);
  return count && clock < r->clock[(count - 1) * r->warps + warp];
}

bool pe_order_is_released(const pe_order *order, const pe_order_block *b, pe_stamp before, const pe_knowledge *known) {
  const pe_period *p = pe_period_of(order, pe_stamp_period(before));
  if (!p || (p->launch != b->launch->number && !pe_order_is_beside(b->launch, p->launch))) return true;
  uint32_t clock = p->number * PE_PERIOD_CLOCKS + pe_stamp_clock(before);
  const pe_period *first = pe_period_of(order, p->first);
  uint32_t warp = pe_stamp_warp(before);
  bool own = pe_order_is_own(b, before, &clock);
  uint64_t time = own ? pe_own_time(known) : known->time;
  return first && (is_released(first->releases, warp, clock, time) || (own && is_released(first->inner, warp, clock, time)));
}

void pe_order_absorb(pe_order *order, pe_order_block *b, pe_order_warp *s) {
  if (!b->has_inner) return;
  pe_require_stack();
  pthread_mutex_lock(&order->mutex);
  const pe_period *first = pe_period_of(order, b->periods[0]);
  const pe_releases *r = first ? first->inner : NULL;
  size_t count = count_by(r, s->known.time);
  for (uint32_t i = 0; count && i < b->warps; i++) {
    uint32_t clock = r->clock[(count - 1) * r->warps + i];
    s->known.clock[i] = s->known.clock[i] > clock ? s->known.clock[i] : clock;
  }
  pthread_mutex_unlock(&order->mutex);
}
