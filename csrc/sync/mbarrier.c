/* mbarrier.c: mbarrier objects in shared memory (PTX ISA, "mbarrier").
 *
 * An object is 64 bits: pending arrivals, arrivals expected in each phase, bytes of transactions outstanding, the parity of the
 * phase, the layout, and a tag that uninitialised memory is unlikely to have.  A CTA stays on one thread, so nothing needs a lock.
 * What the manual leaves undefined is a fault here: objects that are not initialised, counts out of range, more
 * arrivals than expected, a .noComplete arrival that completes the phase.
 */
#include <stdio.h>
#include <string.h>
#include "async.h"
#include "atomic.h"
#include "cta.h"
#include "fault.h"
#include "place.h"
#include "sync.h"
#include "worker.h"

#define COUNT_BITS PE_MBARRIER_PENDING_BITS
#define MAX_COUNT ((1u << COUNT_BITS) - 1)
#define TX_SHIFT (2 * COUNT_BITS)
#define TX_BITS (PE_MBARRIER_PHASE_BIT - TX_SHIFT)
#define MAX_TX ((1 << (TX_BITS - 1)) - 1)
#define TAG_SHIFT (PE_MBARRIER_LAYOUT_BIT + 1)
#define MAX_COUNT_V1 511u
#define TRY_TURNS 4 /* how often a try_wait lets the other warps run before it gives up */

typedef struct object {
  uint32_t pending, expected, phase, layout;
  int32_t tx;
} object;

/* One lane's use of an object. */
typedef struct use {
  pe_warp *w;
  const pe_mbarrier_site *site;
  int32_t lane;
  uint64_t address; /* as the program gives it */
} use;

static noreturn void misuse(const use *u, const char *what) {
  pe_fault_note(u->w, PE_BARRIER_MISUSE, u->site->pos, u->lane, u->site->space, u->address, 8, what);
}

static object unpack(uint64_t bits) {
  return (object){
    .pending = bits & MAX_COUNT,
    .expected = bits >> COUNT_BITS & MAX_COUNT,
    .phase = bits >> PE_MBARRIER_PHASE_BIT & 1,
    .layout = bits >> PE_MBARRIER_LAYOUT_BIT & 1,
    .tx = (int32_t)((int64_t)(bits << (64 - PE_MBARRIER_PHASE_BIT)) >> (64 - TX_BITS)),
  };
}

static uint64_t pack(object o) {
  uint64_t tx = (uint64_t)(int64_t)o.tx & ((1ull << TX_BITS) - 1);
  return o.pending | (uint64_t)o.expected << COUNT_BITS | tx << TX_SHIFT | (uint64_t)o.phase << PE_MBARRIER_PHASE_BIT |
         (uint64_t)o.layout << PE_MBARRIER_LAYOUT_BIT | 1ull << TAG_SHIFT;
}

/* ---- memory ---- */

static uint16_t kind_of(const pe_mbarrier_site *site) {
  uint32_t op = site->op;
  if (op == PE_MBARRIER_INIT || op == PE_MBARRIER_INIT_V1 || op == PE_MBARRIER_INVAL) return PE_WRITE;
  bool waits = op == PE_MBARRIER_TEST_WAIT || op == PE_MBARRIER_TRY_WAIT || op == PE_MBARRIER_LOOK;
  bool tracks = op == PE_MBARRIER_ARRIVE_LATER || op == PE_MBARRIER_ARRIVE_NOINC;
  uint16_t releases = site->relaxed ? 0 : PE_RELEASE;
  return PE_STRONG | (waits ? PE_READ : PE_UPDATE | releases) | (tracks ? PE_ASYNC : 0);
}

static uint64_t *locate(const use *u) {
  pe_access access = {u->site->pos, u->site->space, PE_IN_SHARED, kind_of(u->site), 8, NULL};
  pe_place at;
  uint32_t status = pe_locate(u->w, &access, (uint32_t)u->lane, u->address, 8, &at);
  if (status == PE_INVALID_ADDRESS_SPACE) misuse(u, "an mbarrier object lies in the shared memory of its CTA");
  if (status == PE_OK && !pe_tell_lane(u->w, &access, (uint32_t)u->lane, u->address, 8)) status = PE_ILLEGAL_ADDRESS;
  if (status != PE_OK) pe_refuse(u->w, &access, status, (uint32_t)u->lane, u->address, 8);
  return (uint64_t *)(void *)at.host;
}

static uint32_t most(uint32_t layout) { return layout ? MAX_COUNT_V1 : MAX_COUNT; }

static uint64_t checked(const use *u, uint64_t bits) {
  object o = unpack(bits);
  if (!(bits >> TAG_SHIFT) || o.expected > most(o.layout)) misuse(u, "the mbarrier object is not initialised");
  return bits;
}

/* ---- what an operation does to an object ---- */

static void expect(const use *u, object *o, int64_t bytes) {
  int64_t tx = o->tx + bytes;
  if (tx > MAX_TX || tx < -MAX_TX) misuse(u, "the transaction count of the mbarrier overflows");
  o->tx = (int32_t)tx;
}

static void arrive(const use *u, object *o, uint32_t count) {
  if (count == 0 || count > MAX_COUNT) misuse(u, "the count of an arrival must be 1 to 1048575");
  if (count > o->pending) misuse(u, "more threads arrive at the mbarrier than its phase expects");
  o->pending -= count;
}

static void drop(const use *u, object *o, uint32_t count) {
  arrive(u, o, count);
  o->expected -= count;
}

static bool complete(const object *o) { return o->pending == 0 && o->tx == 0; }

static object update(const use *u, object o, uint32_t value) {
  uint32_t op = u->site->op;
  switch (op) {
    case PE_MBARRIER_DROP:
    case PE_MBARRIER_DROP_NO_COMPLETE: drop(u, &o, value); break;
    case PE_MBARRIER_EXPECT_TX: expect(u, &o, value); break;
    case PE_MBARRIER_COMPLETE_TX: expect(u, &o, -(int64_t)value); break;
    case PE_MBARRIER_ARRIVE_EXPECT_TX: expect(u, &o, value), arrive(u, &o, 1); break;
    case PE_MBARRIER_DROP_EXPECT_TX: expect(u, &o, value), drop(u, &o, 1); break;
    case PE_MBARRIER_ARRIVE_LATER: break; /* one more is expected, and arrives: the copies before it are complete */
    default: arrive(u, &o, value); break;
  }
  if (op == PE_MBARRIER_ARRIVE_LATER || !complete(&o)) return o;
  if (op == PE_MBARRIER_ARRIVE_NO_COMPLETE || op == PE_MBARRIER_DROP_NO_COMPLETE)
    misuse(u, "an arrival with .noComplete completes the phase of the mbarrier");
  o.pending = o.expected;
  o.phase ^= 1;
  return o;
}

static uint64_t initial(const use *u, uint32_t count) {
  uint32_t layout = u->site->op == PE_MBARRIER_INIT_V1;
  if (count == 0 || count > most(layout))
    misuse(u, layout ? "the count of an mbarrier of layout v1 must be 1 to 511"
                     : "the count of an mbarrier must be 1 to 1048575");
  return pack((object){.pending = count, .expected = count, .layout = layout});
}

static void operate(const use *u, uint32_t value, uint64_t *state) {
  uint64_t *bits = locate(u);
  if (u->site->op == PE_MBARRIER_INIT || u->site->op == PE_MBARRIER_INIT_V1) {
    *bits = initial(u, value);
    return;
  }
  uint64_t before = checked(u, *bits);
  if (state) *state = before;
  if (u->site->op == PE_MBARRIER_LOOK) return;
  *bits = u->site->op == PE_MBARRIER_INVAL ? 0 : pack(update(u, unpack(before), value));
}

void pe_mbarrier(pe_warp *w, const pe_mbarrier_site *site, uint32_t mask, const uint64_t *addr, const uint32_t *value,
                 uint64_t *state) {
  for (; mask; mask &= mask - 1) {
    int lane = __builtin_ctz(mask);
    use u = {w, site, lane, addr[lane]};
    operate(&u, value[lane], state ? &state[lane] : NULL);
  }
  pe_cta_progress(pe_self->cta);
}

void pe_mbarrier_multicast(pe_warp *w, const pe_mbarrier_site *site, uint32_t mask, const uint64_t *addr,
                           const uint32_t *value, const uint16_t *ctas) {
  pe_mbarrier_site there = *site;
  uint64_t at[PE_WARP_LANES];
  there.space = PE_GENERIC;
  for (uint32_t rank = 0; rank < w->cluster_nctarank; rank++)
    PE_FOR_LANES(lane, mask) {
      if (!(ctas[lane] >> rank & 1)) continue;
      at[lane] = pe_cluster_peer(w, site->space, addr[lane], rank);
      pe_mbarrier(w, &there, 1u << lane, at, value, NULL);
    }
}

/* ---- waiting ---- */

static uint32_t poll(pe_warp *w, const pe_mbarrier_site *site, uint32_t mask, const uint64_t *addr, const uint32_t *parity) {
  uint32_t done = 0;
  for (; mask; mask &= mask - 1) {
    int lane = __builtin_ctz(mask);
    use u = {w, site, lane, addr[lane]};
    if (unpack(checked(&u, *locate(&u))).phase != (parity[lane] & 1)) done |= 1u << lane;
  }
  return done;
}

void pe_mbarriers_deadlock(pe_cta *cta) {
  pe_warp_state *state = &cta->warps[__builtin_ctz(cta->polling)];
  use u = {&state->warp, state->awaits, state->awaiting_lane, state->awaited};
  object o = unpack(*locate(&u));
  pe_record fault = {.kind = PE_DEADLOCK, .pos = u.site->pos, .lane = u.lane, .address = u.address};
  snprintf(fault.note, sizeof fault.note,
           "the mbarrier waits for %u of %u arrivals and %d bytes, and no warp can do anything else", o.pending, o.expected,
           o.tx);
  pe_record_fault(u.w, &fault);
}

/* Let the other warps run, as there is nothing to do before they do something. */
static void pause(const use *u) {
  pe_warp_state *state = (pe_warp_state *)u->w;
  state->awaits = u->site;
  state->awaiting_lane = u->lane;
  state->awaited = u->address;
  pe_self->cta->polling |= 1u << u->w->warpid;
  pe_yield(u->w);
}

uint32_t pe_mbarrier_wait(pe_warp *w, const pe_mbarrier_site *site, uint32_t mask, const uint64_t *addr,
                          const uint32_t *parity) {
  uint32_t done = poll(w, site, mask, addr, parity);
  for (int turns = site->op == PE_MBARRIER_TRY_WAIT ? TRY_TURNS : 1; done != mask && turns; turns--) {
    int lane = __builtin_ctz(mask & ~done);
    use u = {w, site, lane, addr[lane]};
    pause(&u);
    done = poll(w, site, mask, addr, parity);
  }
  if (done != mask) return done;
  pe_self->cta->polling &= ~(1u << w->warpid);
  pe_take_turns(w); /* others that wait see this phase, too, before this warp completes the next */
  return done;
}
