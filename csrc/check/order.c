/* order.c: what puts accesses of a launch in an order. */
#include <stdlib.h>
#include <string.h>
#include "order_parts.h"
#include "arena.h"
#include "atomic.h"
#include "fault.h"
#include "foresight.h"
#include "launch.h"

typedef pe_order_block block;
typedef pe_order_warp warp_state;
typedef pe_order_launch launch;

bool pe_order_init(pe_order *order, pe_arena *arena) {
  *order = (pe_order){.arena = arena, .first = 1, .next = 1};
  pthread_mutex_init(&order->mutex, NULL);
  order->segment = calloc(PE_SEGMENTS, sizeof *order->segment);
  order->unknown = calloc(1, sizeof *order->unknown);
  for (uint32_t i = 0; order->unknown && i < PE_MAX_WARPS; i++)
    order->unknown->stamping[i] = (pe_stamping){.now = PE_STAMP_NEVER, .floor = PE_STAMP_BLANK, .ancient = PE_STAMP_BLANK};
  if (order->unknown)
    order->unknown->blind = true, order->unknown->log.exact = UINT64_MAX,
    order->unknown->log.written = order->unknown->log.strong = order->unknown->log.read = UINT64_MAX;
  return order->segment && order->unknown && pe_shadow_init(&order->released, arena, 0, 1);
}

static void free_block(pe_order *order, block *b) {
  pe_copies_free(b);
  pe_foresight_free(order, b);
  free(b->periods);
  free(b);
}

void pe_order_end(pe_order *order) {
  for (block *b = order->blocks, *next; b; b = next) {
    next = b->next;
    free_block(order, b);
  }
  if (order->segment) pe_periods_free(order);
  free((void *)order->segment);
  free(order->unknown);
  pe_shadow_end(&order->released);
  pthread_mutex_destroy(&order->mutex);
}

/* ---- launches ---- */

static uint64_t time_now(const pe_order *order) { return __atomic_load_n(&order->time, __ATOMIC_ACQUIRE); }

static uint32_t new_number(const pe_order *order) { return order->launches ? order->launches->number + 1 : 1; }

bool pe_order_begun(pe_order *order, const pe_config *config) {
  pthread_mutex_lock(&order->mutex);
  uint32_t count = 0;
  for (const pe_order_launch *l = order->launches; l; l = l->next) count++;
  if (count && !atomic_exchange(&order->overlapped, true)) pe_quiet_end(order);
  bool anew = !count && order->next > PE_PERIODS / 2;
  if (anew) order->first = order->next = 1;
  launch *made = malloc(sizeof *made + count * sizeof *made->beside);
  if (made) {
    *made = (launch){.next = order->launches, .config = config, .number = new_number(order), .oldest = order->next};
    made->began = time_now(order);
    for (const pe_order_launch *l = order->launches; l; l = l->next) {
      made->beside[made->count++] = l->number;
      made->oldest = l->oldest < made->oldest ? l->oldest : made->oldest;
      made->began = l->began < made->began ? l->began : made->began;
    }
    order->launches = made;
  }
  pthread_mutex_unlock(&order->mutex);
  return anew;
}

void pe_order_ended(pe_order *order, const pe_config *config) {
  pthread_mutex_lock(&order->mutex);
  launch **at = &order->launches;
  while (*at && (*at)->config != config) at = &(*at)->next;
  launch *ended = *at;
  for (block **of = &order->blocks; ended && *of;) {
    block *b = *of;
    if (b->launch != ended) {
      of = &b->next;
      continue;
    }
    *of = b->next;
    free_block(order, b);
  }
  if (ended) *at = ended->next;
  free(ended);
  if (!order->launches) { /* what is known of CTAs is of no use any more */
    pe_periods_free(order);
    order->first = order->next;
  }
  pthread_mutex_unlock(&order->mutex);
}

bool pe_order_is_of(const block *b, const pe_config *config) { return b->launch && b->launch->config == config; }

bool pe_order_is_beside(const pe_order_launch *l, uint32_t number) {
  if (number > l->number) return true;
  for (uint32_t i = 0; i < l->count; i++)
    if (l->beside[i] == number) return true;
  return false;
}

/* ---- clocks ---- */

/* What does not matter to the warp: nothing, as long as it is not settled what a barrier has put in order. In shared memory, whatever
 * is older than the CTA, or than those of its cluster, which are there as well, was there before it. */
PE_INLINE void tell(const block *b, const warp_state *s, pe_stamping *code) {
  bool any = !s->leaves && !s->meets_grid && !b->blind;
  pe_stamp period = code->now >> PE_STAMP_PERIOD_AT << PE_STAMP_PERIOD_AT;
  pe_stamp own = any ? (pe_stamp)b->periods[0] << PE_STAMP_PERIOD_AT : 0;
  pe_stamp oldest = (pe_stamp)b->oldest << PE_STAMP_PERIOD_AT;
  code->floor = !any ? PE_STAMP_BLANK : s->floor > oldest && !b->clustered ? s->floor : oldest;
  code->ancient = any ? (pe_stamp)b->launch->oldest << PE_STAMP_PERIOD_AT : PE_STAMP_BLANK;
  code->first = period;
  code->span = any && s->floor > period ? s->floor - period : 0;
  code->least = any && !s->known.time ? code->ancient : UINT64_MAX;
  code->begin = own;
  code->length = period - own + (1ull << PE_STAMP_PERIOD_AT);
}

static void tell_code(block *b, uint32_t warp) {
  tell(b, &b->warp[warp], &b->stamping[warp]);
  b->in_step = false;
}

/* Whether what changes seldom is as it was. */
PE_INLINE bool is_same_but_now(const pe_stamping *a, const pe_stamping *b) {
  return a->ancient == b->ancient && a->first == b->first && a->least == b->least && a->begin == b->begin &&
         a->length == b->length;
}

/* The same of all warps, if it is the same of all: their next accesses have a stamp, but for the warp. */
static void tell_all_code(block *b, pe_stamp now) {
  pe_stamping all = b->stamping[0];
  all.now = now;
  tell(b, &b->warp[0], &all);
  bool known = b->in_step && is_same_but_now(&all, &b->stamping[0]);
  for (uint32_t i = 0; i < b->warps; i++, all.now += 1ull << PE_STAMP_WARP_AT) {
    pe_stamping *code = &b->stamping[i];
    if (known)
      code->now = all.now, code->floor = all.floor, code->span = all.span;
    else
      *code = all;
  }
}

static void set_clock(pe_order *order, block *b, uint32_t warp, uint32_t clock) {
  warp_state *s = &b->warp[warp];
  s->clock = s->known.clock[warp] = clock;
  b->stamping[warp].now = pe_order_stamp(order, b, clock) | (pe_stamp)warp << PE_STAMP_WARP_AT;
}

/* The clock goes on: what the warp has done is before it. */
static void tick(pe_order *order, block *b, uint32_t warp) { set_clock(order, b, warp, b->warp[warp].clock + 1); }

enum { CLOCKS = 8 }; /* that are written at once, with those of warps that are not there */
_Static_assert(PE_MAX_WARPS % CLOCKS == 0, "no more than there are");

static void forget_clocks(pe_knowledge *k, uint32_t warps) {
  for (uint32_t i = 0; i < warps; i += CLOCKS) memset(k->clock + i, 0, CLOCKS * sizeof *k->clock);
}

static void begin_warp(block *b, uint32_t warp) {
  warp_state *s = &b->warp[warp];
  memset(s, 0, offsetof(warp_state, known)); /* no more, or it is a `rep stos`, which takes longer than all the rest */
  s->own = s->updates = s->end = s->hides = 0;
  forget_clocks(&s->known, b->warps);
  forget_clocks(&s->fenced, b->warps);
  s->known.common = 0;
  s->known.time = 0;
  memset(s->known.near, 0, sizeof s->known.near);
  s->clock = s->known.clock[warp] = 1;
}

/* No warp has come to a barrier, as in memory that is new. */
static void forget_barriers(block *b) {
  for (uint32_t id = 0; id < b->barriers; id++) {
    b->meetings[id][0].number = b->meetings[id][1].number = 0;
    for (uint32_t i = 0; i < b->warps; i++) b->warp[i].arrived[id] = 0;
  }
  b->barriers = 0;
}

static block *new_block(pe_order *order) {
  block *b = calloc(1, sizeof *b);
  if (!b) return NULL;
  b->share = 1;
  b->log.turn = PE_TURN; /* in which nothing has been listed */
  pthread_mutex_lock(&order->mutex);
  b->next = order->blocks;
  order->blocks = b;
  pthread_mutex_unlock(&order->mutex);
  return b;
}

static const launch *launch_of(pe_order *order, const pe_config *config) {
  pthread_mutex_lock(&order->mutex);
  const pe_order_launch *l = order->launches;
  while (l && l->config != config) l = l->next;
  pthread_mutex_unlock(&order->mutex);
  return l;
}

pe_stamp pe_order_oldest(pe_order *order, const pe_config *config) {
  const pe_order_launch *l = launch_of(order, config);
  return l ? (pe_stamp)l->oldest << PE_STAMP_PERIOD_AT : UINT64_MAX;
}

/* The number of a CTA in the grid, or that of the first of its cluster. */
static uint64_t number_of(const pe_warp *w, bool first) {
  uint64_t at[3] = {0};
  for (int axis = 0; axis < 3; axis++) at[axis] = w->ctaid[axis] - (first ? w->ctaid[axis] % w->cluster_nctaid[axis] : 0);
  return at[0] + w->nctaid[0] * (at[1] + w->nctaid[1] * at[2]);
}

static bool is_first_of_cluster(const pe_warp *w) {
  bool first = true;
  for (int axis = 0; axis < 3; axis++) first &= w->ctaid[axis] % w->cluster_nctaid[axis] == 0;
  return first;
}

/* Those that run one after another have no ring, but what the one before has done in shared memory matters. */
static void join_cluster(block *b, block *head, const pe_warp *w) {
  b->clustered = w->cluster_nctarank > 1;
  b->head = head;
  b->peer = b;
  b->met[0] = b->met[1] = 0;
  if (head != b) {
    b->peer = head->peer;
    head->peer = b;
    b->oldest = head->oldest;
  } else if (b->count && is_first_of_cluster(w)) {
    b->oldest = b->periods[0];
  }
}

block *pe_order_block_begun(pe_order *order, const pe_warp *w, const pe_warp *first) {
  block *b = pe_order_block_of(w), *head = first == w ? NULL : pe_order_block_of(first);
  if (head == order->unknown) return head;
  if (b == order->unknown) b = NULL;
  if (!b && !(b = new_block(order))) return order->unknown;
  if (!b->launch) b->launch = launch_of(order, &w->launch->config);
  if (!b->launch) return order->unknown;
  b->number = number_of(w, false);
  b->cluster = number_of(w, true);
  forget_barriers(b);
  b->warps = w->launch->warps;
  b->alone = w->launch->workers == 1;
  b->began = time_now(order);
  b->blind = false;
  memset(b->has_inner, 0, sizeof b->has_inner);
  b->proxied = (pe_knowledge){.common = 0};
  atomic_store_explicit(&b->ranges, w->ranges, memory_order_relaxed);
  b->count = 0;
  for (uint32_t i = 0; i < b->warps; i++) begin_warp(b, i);
  pe_stamp now = pe_order_stamp(order, b, 1);
  join_cluster(b, head ? head : b, w);
  b->in_step = false;
  tell_all_code(b, now);
  b->in_step = true;
  return b;
}

/* ---- what is known of others ---- */

static void advance(uint64_t *to, uint64_t time) { *to = *to > time ? *to : time; }

static void learn_times(pe_knowledge *to, const pe_knowledge *from) {
  advance(&to->time, from->time);
  for (uint32_t scope = 0; scope < PE_INNER_SCOPES; scope++) advance(&to->near[scope], from->near[scope]);
}

static void learn(pe_knowledge *to, const pe_knowledge *from, uint32_t warps) {
  for (uint32_t i = 0; i < warps; i++) to->clock[i] = to->clock[i] > from->clock[i] ? to->clock[i] : from->clock[i];
  to->common = to->common > from->common ? to->common : from->common;
  learn_times(to, from);
}

static void follow(warp_state *s, uint64_t time, uint32_t loose) {
  if (!loose) advance(&s->sure, time);
  advance(loose & PE_LOCK ? &s->locked : &s->known.time, time);
}

void pe_order_follow(block *b, uint32_t warp, uint64_t time, uint32_t loose) {
  bool later = time > b->warp[warp].known.time;
  follow(&b->warp[warp], time, loose);
  if (later) tell_code(b, warp);
}

/* Whether a word was released by one of its last updates, or is by that under way: it follows what these have found already. */
static bool is_own(const warp_state *s, uint64_t time) { return time == s->own || time - s->updates < s->end - s->updates; }

/* Keep it, and what was kept before. The times of a word grow, so that who reads what another worker has left there follows it,
 * whichever came first; where lanes have one word, one of them keeps it. */
static uint64_t keep_release(pe_order *order, uint64_t *at, uint64_t time, bool alone) {
  uint64_t known = __atomic_load_n(at, __ATOMIC_ACQUIRE), now = time;
  if (alone) {
    __atomic_store_n(at, time, __ATOMIC_RELAXED);
    return known;
  }
  do {
    if (known == time) break;
    now = known < time ? time : pe_order_next_time(order);
  } while (!__atomic_compare_exchange_n(at, &known, now, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
  return known;
}

uint64_t pe_order_release_word(pe_order *order, const warp_state *s, uint64_t word, uint64_t time, bool alone) {
  uint64_t *at = pe_shadow_make(&order->released, word), known = at ? keep_release(order, at, time, alone) : time;
  return at && (known == time || is_own(s, known)) ? 0 : known;
}

/* One that takes a lock follows what it found only from a fence on, and may have written nothing. */
void pe_order_updated(pe_order *order, block *b, uint32_t warp, uint64_t time) {
  warp_state *s = &b->warp[warp];
  bool locks = s->loose & PE_LOCK;
  if (locks || time != s->end) s->updates = time;
  s->end = locks ? time : time + 1;
  if (!s->reads) return;
  s->own = time;
  if (!pe_order_is_alone(order, b)) s->hides = time;
}

/* There is a fence, or a barrier, behind what the warp has followed loosely. */
static void make_sure(warp_state *s) { s->sure = s->known.time; }

/* And behind the locks that it has taken. */
static void acquire(warp_state *s) {
  advance(&s->known.time, s->locked);
  make_sure(s);
}

uint64_t pe_order_released_at(pe_order *order, uint64_t word) {
  const uint64_t *time = pe_shadow_find(&order->released, word);
  return time ? __atomic_load_n(time, __ATOMIC_ACQUIRE) : 0;
}

static uint32_t latest_clock(const pe_knowledge *k, uint32_t warps) {
  uint32_t latest = k->common;
  for (uint32_t i = 0; i < warps; i++) latest = k->clock[i] > latest ? k->clock[i] : latest;
  return latest;
}

/* All warps of the CTA have come to the barrier that this one leaves: from now on their clocks are the same. */
static void leave_together(pe_order *order, block *b, uint32_t warp) {
  uint32_t latest = latest_clock(&b->warp[warp].leaves->known, b->warps);
  if (latest > b->warp[warp].clock) set_clock(order, b, warp, latest);
  b->warp[warp].floor = pe_order_stamp(order, b, latest);
}

void pe_order_settle_one(pe_order *order, block *b, uint32_t warp) {
  warp_state *s = &b->warp[warp];
  s->unsettled = false;
  if (s->leaves) {
    learn(&s->known, &s->leaves->known, b->warps);
    if (s->leaves->arrived == b->warps) leave_together(order, b, warp);
  }
  if (s->meets_grid) advance(&s->known.time, time_now(order));
  if (s->leaves || s->meets_grid) make_sure(s);
  s->leaves = NULL;
  s->meets_grid = false;
  for (uint32_t word = 0; word < s->words; word++)
    PE_FOR_LANES(i, s->reads) {
      uint64_t time = __atomic_load_n(&order->released.numbers[s->word[i] + word], __ATOMIC_ACQUIRE);
      if (!is_own(s, time)) follow(s, time, s->loose);
    }
  s->reads = 0;
  s->own = 0;
  tell_code(b, warp);
}

static void keep_fenced(warp_state *s, uint32_t warps) {
  for (uint32_t i = 0; i < warps; i += CLOCKS)
    memcpy(s->fenced.clock + i, s->known.clock + i, CLOCKS * sizeof *s->known.clock);
  s->fenced.common = s->known.common;
  s->fenced.time = s->known.time;
  s->has_fenced = true;
  memset(s->has_inner, 0, sizeof s->has_inner);
  s->released = 0;
}

static void fence(pe_order *order, block *b, uint32_t warp) {
  warp_state *s = &b->warp[warp];
  tick(order, b, warp);
  acquire(s);
  pe_order_absorb(order, b, s, true);
  keep_fenced(s, b->warps);
}

/* The scope of a fence: a CTA may be all of its cluster, and of those that run one after another nothing is known. */
static uint32_t scope_in(const block *b, uint32_t scope) {
  if (scope == PE_SCOPE_CTA || !b->clustered) return PE_SCOPE_CTA;
  return b->peer == b ? PE_INNER_SCOPES : scope;
}

void pe_order_fence_in(pe_order *order, block *b, uint32_t warp, uint32_t scope) {
  warp_state *s = &b->warp[warp];
  scope = scope_in(b, scope);
  if (scope == PE_INNER_SCOPES) return pe_order_fence(order, b, warp);
  tick(order, b, warp);
  advance(&s->known.near[scope], s->locked);
  advance(&s->known.near[scope], s->known.time); /* it is sure of no more */
  if (scope == PE_SCOPE_CLUSTER) {
    pe_order_absorb(order, b, s, false);
    s->has_inner[PE_SCOPE_CTA] = false;
  }
  s->inner[scope] = s->known;
  s->has_inner[scope] = true;
  s->released = 0;
  tell_code(b, warp);
}

void pe_order_fence(pe_order *order, block *b, uint32_t warp) {
  fence(order, b, warp);
  tell_code(b, warp);
}

void pe_order_fence_proxies(pe_order *order, block *b, uint32_t warp) {
  tick(order, b, warp);
  learn(&b->proxied, &b->warp[warp].known, b->warps);
  pe_order_keep_proxied(order, b);
  tell_code(b, warp);
}

void pe_order_warp_sync(pe_order *order, block *b, uint32_t warp) {
  tick(order, b, warp);
  acquire(&b->warp[warp]);
  tell_code(b, warp);
}

/* ---- barriers ---- */

/* Barriers of the whole CTA have all its warps at each meeting, so that meetings are told apart; at others it is not known. */
static pe_meeting *meeting_of(block *b, uint32_t warp, uint32_t id, bool whole) {
  uint32_t number = whole ? ++b->warp[warp].arrived[id] : UINT32_MAX;
  pe_meeting *m = &b->meetings[id][number % 2];
  if (m->number != number) *m = (pe_meeting){.number = number};
  m->arrived += whole;
  if (id >= b->barriers) b->barriers = id + 1;
  return m;
}

void pe_order_barrier(pe_order *order, block *b, uint32_t warp, uint32_t id, uint32_t how) {
  warp_state *s = &b->warp[warp];
  fence(order, b, warp);
  s->unsettled = true;
  if (id == PE_BARRIER_GRID) {
    pe_order_release(order, b, warp);
    s->meets_grid = true;
  } else {
    pe_meeting *m = meeting_of(b, warp, id, how == PE_BARRIER_WHOLE);
    learn(&m->known, &s->known, b->warps);
    if (!(how & PE_BARRIER_ARRIVES)) s->leaves = m;
  }
  tell_code(b, warp);
}

/* What the warps of this CTA know that have arrived in a phase of barrier.cluster. */
static pe_meeting *phase_of(block *b, uint32_t phase) {
  pe_meeting *m = &b->meetings[PE_BARRIER_CLUSTER][phase % 2];
  if (m->number != phase + 1) *m = (pe_meeting){.number = phase + 1};
  if (b->barriers <= PE_BARRIER_CLUSTER) b->barriers = PE_BARRIER_CLUSTER + 1;
  return m;
}

void pe_order_cluster(pe_order *order, block *b, uint32_t warp, uint32_t what) {
  warp_state *s = &b->warp[warp];
  uint32_t phase = what >> PE_PHASE_AT;
  uint64_t *met = &b->head->met[phase % 2];
  pe_meeting *m = phase_of(b, phase);
  if ((what & PE_ORDERS) == PE_CLUSTER_WAIT) {
    learn(&s->known, &m->known, b->warps);
    advance(&s->known.time, *met);
    make_sure(s);
  } else {
    if (!(what & PE_RELAXED)) fence(order, b, warp);
    uint64_t time = pe_order_release(order, b, warp);
    if (time > *met) *met = time;
    if (s->has_fenced) learn(&m->known, &s->fenced, b->warps);
    if (s->has_inner[PE_SCOPE_CLUSTER]) learn(&m->known, &s->inner[PE_SCOPE_CLUSTER], b->warps);
  }
  tell_code(b, warp);
}

/* A warp comes to a barrier, which is a fence. */
static void come(block *b, uint32_t warp) {
  warp_state *s = &b->warp[warp];
  acquire(s);
  keep_fenced(s, b->warps);
  s->known.clock[warp] = s->fenced.clock[warp] = s->clock + 1; /* behind the copy, which would wait for that */
}

/* All warps go on behind a barrier, and their next accesses have a stamp. */
static void go_on(pe_order *order, block *b, pe_stamp now) {
  pe_foresight_turn(order, b);
  tell_all_code(b, now);
  pe_foresight_ahead(b);
  b->in_step = true;
}

/* All warps have one clock from now on, later than that of any of them, and know all that was before. */
static void meet(pe_order *order, block *b) {
  uint32_t clock = 0;
  pe_knowledge *first = &b->warp[0].known;
  for (uint32_t i = 0; i < b->warps; i++) {
    const pe_knowledge *known = &b->warp[i].known;
    clock = known->clock[i] > clock ? known->clock[i] : clock;
    learn_times(first, known);
  }
  pe_stamp now = pe_order_stamp(order, b, clock);
  for (uint32_t i = 0; i < b->warps; i++) {
    warp_state *s = &b->warp[i];
    s->clock = s->known.clock[i] = s->known.common = clock;
    s->known.time = s->sure = first->time;
    memcpy(s->known.near, first->near, sizeof s->known.near);
    s->floor = now;
  }
  go_on(order, b, now);
}

/* The same where all warps have met, or begun, and nothing has been put in an order since. */
static void meet_again(pe_order *order, block *b) {
  uint32_t clock = b->warp[0].clock + 1;
  pe_stamp now = pe_order_stamp(order, b, clock);
  for (uint32_t i = 0; i < b->warps; i++) {
    warp_state *s = &b->warp[i];
    s->fenced.common = s->known.common;
    s->fenced.time = s->known.time;
    s->has_fenced = true;
    s->released = 0;
    s->clock = s->known.clock[i] = s->fenced.clock[i] = s->known.common = clock;
    s->floor = now;
  }
  go_on(order, b, now);
}

void pe_order_together(pe_order *order, block *b, uint32_t warps) {
  bool whole = warps == PE_ALL_LANES >> (PE_MAX_WARPS - b->warps);
  PE_FOR_LANES(i, warps) pe_order_settle(order, b, i);
  if (whole && b->in_step) return meet_again(order, b);
  PE_FOR_LANES(i, warps) come(b, i);
  if (whole) return meet(order, b);
  pe_knowledge all = {.common = 0};
  PE_FOR_LANES(i, warps) learn(&all, &b->warp[i].known, b->warps);
  PE_FOR_LANES(i, warps) {
    set_clock(order, b, i, b->warp[i].clock + 1);
    learn(&b->warp[i].known, &all, b->warps);
    make_sure(&b->warp[i]);
    tell_code(b, i);
  }
}

/* ---- the question ---- */

/* Whether it was released by a time, or is a strong write that was released itself then, if not before it could be. */
static bool is_released(pe_order *order, const block *b, uint32_t warp, pe_stamp before, uint64_t word, uint64_t time) {
  const warp_state *s = &b->warp[warp];
  uint32_t clock;
  pe_require_stack();
  pthread_mutex_lock(&order->mutex);
  bool found = pe_order_is_released(order, b, before, &s->known, time);
  pthread_mutex_unlock(&order->mutex);
  if (found || !(before & PE_STAMP_STRONG)) return found;
  bool own = pe_order_is_own(b, before, &clock);
  uint64_t released = pe_order_released_at(order, word), began = own ? b->began : b->launch->began;
  if (own) time = pe_own_time(&s->known, time);
  if (!own || pe_stamp_warp(before) != warp) advance(&time, s->hides);
  return released > began && released <= time;
}

uint32_t pe_order_is_before(pe_order *order, const block *b, uint32_t warp, uint32_t lane, pe_stamp before, uint64_t word,
                            uint64_t met) {
  const warp_state *s = &b->warp[warp];
  uint32_t other = pe_stamp_warp(before), clock;
  if (pe_order_is_own(b, before, &clock)) {
    if (other == warp && pe_stamp_lane(before) == lane && !(before & PE_STAMP_SEVERAL)) return PE_IN_ORDER;
    if (clock < pe_known_clock(&s->known, other)) return PE_IN_ORDER; /* of its own warp, this is its clock */
  }
  uint64_t sure = met > s->sure ? met : s->sure;
  if (!is_released(order, b, warp, before, word, s->known.time)) return PE_NO_ORDER;
  return sure >= s->known.time || is_released(order, b, warp, before, word, sure) ? PE_IN_ORDER : PE_LOOSE_ORDER;
}
