/* order_periods.c: the periods of CTAs (order.h): numbers that tell a stamp's CTA and its clock, over all launches. */
#include <stdlib.h>
#include "order_parts.h"
#include "arena.h"
#include "bisect.h"
#include "fault.h"

pe_period *pe_period_of(const pe_order *order, uint32_t number) {
  uint32_t index = number - order->first;
  if (number < order->first || number >= order->next) return NULL;
  return &order->segment[index / PE_SEGMENT][index % PE_SEGMENT];
}

enum { MOST_AT_ONCE = 16 };

/* With the mutex held: the segment of the next period; NULL: there is no memory. */
static pe_period *next_segment(pe_order *order) {
  pe_period **segment = &order->segment[(order->next - order->first) / PE_SEGMENT];
  if (order->next == PE_PERIODS - 2) return NULL; /* the last ones are those of PE_STAMP_SPLIT and PE_STAMP_NEVER */
  if (!*segment) {
    if (!pe_arena_charge(order->arena, PE_SEGMENT * sizeof **segment)) return NULL;
    *segment = calloc(PE_SEGMENT, sizeof **segment);
    if (!*segment) pe_arena_discharge(order->arena, PE_SEGMENT * sizeof **segment);
  }
  return *segment;
}

/* Take periods for the CTA and those that come after it in its place, ever more at once: workers would wait for each other. Numbers of
 * CTAs of a cluster grow with the time at which these begin. */
static void take_periods(pe_order *order, pe_order_block *b) {
  pthread_mutex_lock(&order->mutex);
  pe_period *segment = next_segment(order);
  uint32_t index = (order->next - order->first) % PE_SEGMENT, most = b->clustered ? 1 : b->share, rest = PE_SEGMENT - index;
  uint32_t left = PE_PERIODS - 2 - order->next, count = most < rest ? most : rest;
  if (segment) b->spare = segment + index, b->spares = count < left ? count : left, b->spare_number = order->next;
  order->next += b->spares;
  pthread_mutex_unlock(&order->mutex);
  b->share = b->share < MOST_AT_ONCE ? 2 * b->share : b->share;
}

/* NULL: there is no memory. */
static pe_period *new_period(pe_order *order, pe_order_block *b) {
  if (!b->spares) take_periods(order, b);
  if (!b->spares) return NULL;
  b->spares--;
  b->latest = b->spare_number++;
  return b->spare++;
}

static bool has_room(pe_order_block *b) {
  if (b->count < b->room) return true;
  uint32_t room = b->room ? 2 * b->room : 4;
  uint32_t *grown = realloc(b->periods, room * sizeof *grown);
  if (grown) b->periods = grown, b->room = room;
  return grown != NULL;
}

#define SET(field, value) atomic_store_explicit(&made->field, value, memory_order_relaxed)

/* The CTA comes to the next period. */
static void begin_period(pe_order *order, pe_order_block *b) {
  pe_require_stack();
  pe_period *made = has_room(b) ? new_period(order, b) : NULL;
  b->blind |= !made;
  if (!made) return;
  b->periods[b->count] = b->latest;
  SET(block, b->number), SET(cluster, b->cluster), SET(launch, b->launch->number);
  SET(first, b->periods[0]), SET(number, b->count);
  atomic_thread_fence(memory_order_release); /* who finds a stamp of it finds these */
  b->count++;
}

pe_stamp pe_order_stamp(pe_order *order, pe_order_block *b, uint32_t clock) {
  uint32_t period = clock / PE_PERIOD_CLOCKS;
  while (period >= b->count && !b->blind) begin_period(order, b);
  if (b->blind) return PE_STAMP_NEVER;
  uint32_t number = period == b->count - 1 ? b->latest : b->periods[period];
  return (pe_stamp)number << PE_STAMP_PERIOD_AT | (pe_stamp)(clock % PE_PERIOD_CLOCKS) << PE_STAMP_CLOCK_AT;
}

bool pe_order_is_own(const pe_order_block *b, pe_stamp before, uint32_t *clock) {
  uint32_t number = pe_stamp_period(before);
  size_t at = PE_FIRST_NOT(middle, b->count, b->periods[middle] < number);
  if (at == b->count || b->periods[at] != number) return false;
  *clock = (uint32_t)at * PE_PERIOD_CLOCKS + pe_stamp_clock(before);
  return true;
}

uint64_t pe_order_block_number(pe_order *order, pe_stamp stamp) {
  pthread_mutex_lock(&order->mutex);
  const pe_period *p = pe_period_of(order, pe_stamp_period(stamp));
  uint64_t number = p ? p->block : 0;
  pthread_mutex_unlock(&order->mutex);
  return number;
}

bool pe_order_is_in_cluster(pe_order *order, const pe_order_block *b, pe_stamp stamp) {
  pthread_mutex_lock(&order->mutex);
  const pe_period *p = pe_period_of(order, pe_stamp_period(stamp));
  bool in = p && pe_period_in_cluster(p, b);
  pthread_mutex_unlock(&order->mutex);
  return in;
}

void pe_periods_free(pe_order *order) {
  for (size_t i = 0; i < PE_SEGMENTS && order->segment[i]; i++) {
    for (size_t j = 0; j < PE_SEGMENT; j++) {
      pe_releases_free(order->segment[i][j].releases);
      pe_releases_free(order->segment[i][j].proxied);
      for (uint32_t scope = 0; scope < PE_INNER_SCOPES; scope++) pe_releases_free(order->segment[i][j].inner[scope]);
    }
    free(order->segment[i]);
    if (order->arena) pe_arena_discharge(order->arena, PE_SEGMENT * sizeof **order->segment);
    order->segment[i] = NULL;
  }
}
