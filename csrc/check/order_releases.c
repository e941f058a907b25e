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
  bool any = s->has_fenced || s->has_inner[PE_SCOPE_CTA] || s->has_inner[PE_SCOPE_CLUSTER];
  if (!any || b->blind) return s->released;
  if (s->released) return s->released = pe_order_next_time(order);
  pe_require_stack();
  pthread_mutex_lock(&order->mutex);
  uint64_t time = pe_order_next_time(order);
  pe_period *first = pe_period_of(order, b->periods[0]);
  b->blind |= !first;
  if (first && s->has_fenced) b->blind |= !add_release(&first->releases, b, &s->fenced, time);
  for (uint32_t scope = 0; scope < PE_INNER_SCOPES; scope++) {
    if (first && s->has_inner[scope]) b->blind |= !add_release(&first->inner[scope], b, &s->inner[scope], time);
    b->has_inner[scope] |= s->has_inner[scope];
  }
  pthread_mutex_unlock(&order->mutex);
  return s->released = time;
}

/* How many releases there are by a time. */
static size_t count_by(const pe_releases *r, uint64_t time) {
  return r ? PE_FIRST_NOT(middle, r->count, r->time[middle] <= time) : 0;
}

/* Before which clock of each warp something is released by a time, or NULL. */
static const uint32_t *clocks_by(const pe_releases *r, uint64_t time) {
  size_t count = count_by(r, time);
  return count ? r->clock + (count - 1) * r->warps : NULL;
}

/* Whether a CTA has released what a warp did at a clock, by a time. */
static bool is_released(const pe_releases *r, uint32_t warp, uint32_t clock, uint64_t time) {
  const uint32_t *clocks = clocks_by(r, time);
  return clocks && clock < clocks[warp];
}

bool pe_order_is_released(const pe_order *order, const pe_order_block *b, pe_stamp before, const pe_knowledge *known,
                          uint64_t time) {
  const pe_period *p = pe_period_of(order, pe_stamp_period(before));
  if (!p || (p->launch != b->launch->number && !pe_order_is_beside(b->launch, p->launch))) return true;
  uint32_t clock = p->number * PE_PERIOD_CLOCKS + pe_stamp_clock(before);
  const pe_period *first = pe_period_of(order, p->first);
  uint32_t warp = pe_stamp_warp(before);
  bool own = pe_order_is_own(b, before, &clock), near = own || pe_period_in_cluster(p, b);
  time = own ? pe_own_time(known, time) : near ? pe_cluster_time(known, time) : time;
  return first && (is_released(first->releases, warp, clock, time) ||
                   (near && is_released(first->inner[PE_SCOPE_CLUSTER], warp, clock, time)) ||
                   (own && is_released(first->inner[PE_SCOPE_CTA], warp, clock, time)));
}

void pe_order_keep_proxied(pe_order *order, pe_order_block *b) {
  pe_require_stack();
  pthread_mutex_lock(&order->mutex);
  pe_period *first = pe_period_of(order, b->periods[0]);
  b->blind |= !first || !add_release(&first->proxied, b, &b->proxied, 0);
  pthread_mutex_unlock(&order->mutex);
}

bool pe_order_is_proxied(pe_order *order, const pe_order_block *b, pe_stamp before) {
  pe_require_stack();
  pthread_mutex_lock(&order->mutex);
  const pe_period *p = pe_period_of(order, pe_stamp_period(before)), *first = p ? pe_period_of(order, p->first) : NULL;
  uint32_t clock = p ? p->number * PE_PERIOD_CLOCKS + pe_stamp_clock(before) : 0;
  bool proxied = first && is_released(first->proxied, pe_stamp_warp(before), clock, 0);
  proxied = proxied || pe_order_is_released(order, b, before, &b->proxied, b->proxied.time);
  pthread_mutex_unlock(&order->mutex);
  return proxied;
}

/* What a CTA has released in a scope by a time. With the mutex held. */
static const uint32_t *inner_of(const pe_order *order, const pe_order_block *b, uint32_t scope, uint64_t time) {
  const pe_period *first = b->has_inner[scope] ? pe_period_of(order, b->periods[0]) : NULL;
  return first ? clocks_by(first->inner[scope], time) : NULL;
}

/* What another CTA of the cluster has released there by a time, it has released to everybody with the next release of all. */
static void pass_on(pe_order *order, pe_order_block *b, uint64_t time) {
  const uint32_t *clocks = inner_of(order, b, PE_SCOPE_CLUSTER, time);
  pe_knowledge all = {.common = 0};
  if (!clocks || b->blind) return;
  pe_releases **list = &pe_period_of(order, b->periods[0])->releases;
  uint64_t next = __atomic_load_n(&order->time, __ATOMIC_RELAXED) + 1; /* strong writes take times without the mutex */
  const uint32_t *known = clocks_by(*list, next);
  bool more = false;
  for (uint32_t i = 0; i < b->warps; i++) {
    all.clock[i] = clocks[i];
    more |= !known || clocks[i] > known[i];
  }
  if (more) b->blind |= !add_release(list, b, &all, next);
}

void pe_order_absorb(pe_order *order, pe_order_block *b, pe_order_warp *s, bool everywhere) {
  bool alone = b->peer == b;
  if (alone && !b->has_inner[PE_SCOPE_CTA] && !b->has_inner[PE_SCOPE_CLUSTER]) return;
  pe_require_stack();
  pthread_mutex_lock(&order->mutex);
  for (uint32_t scope = 0; scope < PE_INNER_SCOPES; scope++) {
    const uint32_t *clocks = inner_of(order, b, scope, pe_own_time(&s->known, s->known.time));
    for (uint32_t i = 0; clocks && i < b->warps; i++)
      s->known.clock[i] = s->known.clock[i] > clocks[i] ? s->known.clock[i] : clocks[i];
  }
  for (pe_order_block *each = b->peer; everywhere && each != b; each = each->peer)
    pass_on(order, each, pe_cluster_time(&s->known, s->known.time));
  pthread_mutex_unlock(&order->mutex);
}
