/* order_parts.h: what the files about order (order.h) share: launches, the periods of CTAs, and what CTAs have released. */
#ifndef PTXEMU_ORDER_PARTS_H
#define PTXEMU_ORDER_PARTS_H
#include "order.h"

#define PE_SEGMENT 1024 /* periods that are listed together */
#define PE_PERIODS (1u << PE_PERIOD_BITS)
#define PE_SEGMENTS (PE_PERIODS / PE_SEGMENT)

/* Releases of a CTA in the order of time: before which clock of each warp something is released. */
typedef struct pe_releases {
  uint32_t count, room, warps;
  uint64_t *time;
  uint32_t *clock; /* `warps` of each */
} pe_releases;

/* Some clocks of a CTA, those of one number.  The releases are of its first: to everybody, and in a scope alone; the mutex is held for
 * them. */
typedef struct pe_period {
  _Atomic uint64_t block, cluster; /* in the grid */
  _Atomic uint32_t launch, first, number;
  pe_releases *releases, *inner[PE_INNER_SCOPES];
  pe_releases *proxied; /* at time 0: what a fence between proxies of the CTA is behind */
} pe_period;

typedef struct pe_order_launch {
  struct pe_order_launch *next;
  const pe_config *config;
  uint32_t number, oldest, count;
  uint64_t began;    /* the time of releases when it began, or the first of these */
  uint32_t beside[]; /* numbers of those that had begun and not ended when it began */
} pe_order_launch;

/* Before which clock of a warp. */
static inline uint32_t pe_known_clock(const pe_knowledge *k, uint32_t warp) {
  return k->clock[warp] > k->common ? k->clock[warp] : k->common;
}

/* Up to which time a warp follows releases of its cluster, and of its own CTA, if it follows those of all up to one. */
static inline uint64_t pe_cluster_time(const pe_knowledge *k, uint64_t time) {
  return k->near[PE_SCOPE_CLUSTER] > time ? k->near[PE_SCOPE_CLUSTER] : time;
}

static inline uint64_t pe_own_time(const pe_knowledge *k, uint64_t time) {
  time = pe_cluster_time(k, time);
  return k->near[PE_SCOPE_CTA] > time ? k->near[PE_SCOPE_CTA] : time;
}

/* Whether an access was made in the cluster of a CTA, as far as its period tells. */
static inline bool pe_period_in_cluster(const pe_period *p, const pe_order_block *b) {
  return p->launch == b->launch->number && p->cluster == b->cluster;
}

/* ---- order.c ---- */

/* Whether the launch of a number has run at the same time as another one: it began later, or had not ended by then. */
bool pe_order_is_beside(const pe_order_launch *l, uint32_t number);

/* ---- order_periods.c ---- */

/* With the mutex held; NULL: of a launch that has ended when no other ran. */
pe_period *pe_period_of(const pe_order *order, uint32_t number);

/* The least stamp of a clock. */
pe_stamp pe_order_stamp(pe_order *order, pe_order_block *b, uint32_t clock);

void pe_periods_free(pe_order *order);

/* ---- order_releases.c ---- */

/* A time after all that there were. */
static inline uint64_t pe_order_next_time(pe_order *order) { return __atomic_add_fetch(&order->time, 1, __ATOMIC_ACQ_REL); }

void pe_releases_free(pe_releases *r);

/* Who follows what threads of its CTA or its cluster have released to each other alone knows it, and so do all to whom it releases
 * something: in the cluster, or everywhere. */
void pe_order_absorb(pe_order *order, pe_order_block *b, pe_order_warp *s, bool everywhere);

/* Its fences between proxies are known to others. */
void pe_order_keep_proxied(pe_order *order, pe_order_block *b);

/* Whether what an access was is released, for one who knows that, and follows releases up to a time.  With the mutex held. */
bool pe_order_is_released(const pe_order *order, const pe_order_block *b, pe_stamp before, const pe_knowledge *known,
                          uint64_t time);

#endif
