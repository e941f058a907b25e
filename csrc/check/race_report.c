/* race_report.c: what is told of a race (race.c), and which writes are none. */
#include <inttypes.h>
#include <string.h>
#include "race_access.h"
#include "place.h"
#include "text.h"

/* What a lane writes, or NULL: that is not known. */
static const uint8_t *value_of(const pe_memory_event *e, uint32_t lane) {
  return e->values && e->kind == PE_WRITE ? (const uint8_t *)e->values + lane * e->size : NULL;
}

/* What a write that was before has left: in memory, or going to be there, if another lane of the same instruction writes. */
static const uint8_t *left_by(const pe_race_use *u, uint32_t lane, uint64_t address, pe_stamp before) {
  const pe_memory_event *e = u->event;
  uint32_t other = pe_stamp_lane(before), clock;
  bool own = pe_stamp_is_pending(before) || pe_order_is_own(u->b, before, &clock);
  bool together = own && pe_stamp_warp(before) == u->w->warpid && pe_stamp_site(before) == pe_stamp_site(u->stamp) &&
                  e->mask >> other & 1 && e->address[other] == e->address[lane];
  return together && value_of(e, other) ? value_of(e, other) : (const uint8_t *)(uintptr_t)address;
}

bool pe_race_is_equal_write(const pe_race_use *u, uint32_t lane, uint64_t address, pe_stamp before) {
  const uint8_t *value = value_of(u->event, lane);
  if (!value || before & PE_STAMP_UPDATE) return false;
  return memcmp(value, left_by(u, lane, address, before), u->event->size) == 0;
}

static void add_global(pe_checker *checker, uint64_t address, pe_text *t) {
  pe_extent at;
  if (pe_extents_at(&checker->extents, address, &at) && at.name[0])
    pe_add(t, "`%s`[0x%" PRIx64 "]", at.name, address - at.address);
  else
    pe_add(t, "global memory at 0x%" PRIx64, address);
}

static void add_place(const pe_race_use *u, uint64_t address, pe_text *t) {
  const pe_surface_desc *surface = u->event->surface;
  if (surface)
    pe_add_texel(u->checker, surface, address, t);
  else if (u->shared)
    pe_add_shared(u->w, address, t);
  else
    add_global(u->checker, address, t);
}

/* The thread of a stamp, in a CTA that has this number in a launch's grid. */
static pe_thread_place place_in(const pe_config *launch, uint64_t number, pe_stamp stamp) {
  uint32_t thread = pe_stamp_warp(stamp) * PE_WARP_LANES + pe_stamp_lane(stamp);
  const uint32_t *grid = launch->grid, *block = launch->block;
  return (pe_thread_place){
    .warp = pe_stamp_warp(stamp),
    .ctaid = {(uint32_t)(number % grid[0]), (uint32_t)(number / grid[0] % grid[1]), (uint32_t)(number / grid[0] / grid[1])},
    .tid = {thread % block[0], thread / block[0] % block[1], thread / block[0] / block[1]},
  };
}

static pe_thread_place place_of(const pe_race_use *u, uint64_t address, pe_stamp stamp) {
  uint64_t number = pe_stamp_is_pending(stamp) ? pe_copies_block(&u->checker->race, stamp, address, u->b->number)
                                               : pe_order_block_number(&u->checker->race.order, stamp);
  return place_in(&u->w->launch->config, number, stamp);
}

static void add_value(pe_text *t, const char *before, const uint8_t *bytes, uint64_t size, const char *behind) {
  uint64_t value = 0;
  memcpy(&value, bytes, size);
  pe_add(t, "%s0x%" PRIx64 "%s", before, value, behind);
}

/* Whether the value of a write that was before can be told: the access is of bytes of one word, and that wrote all of these. */
static bool is_one_value(const pe_race_use *u, uint64_t address, pe_stamp before) {
  uint64_t first = address % 4, size = u->event->size;
  uint64_t bytes = size <= 4 ? ((1ull << size) - 1) << (PE_STAMP_BYTES_AT + first) : 0;
  return pe_within(first, size, 4) && (before & bytes) == bytes && !(before & PE_STAMP_UPDATE);
}

/* Whether the stamp of a read is that of the lane itself and of others. */
static bool is_of_others(const pe_race_use *u, uint32_t lane, pe_stamp before) {
  uint32_t clock;
  return before & PE_STAMP_SEVERAL && pe_stamp_lane(before) == lane && pe_stamp_warp(before) == u->w->warpid &&
         pe_order_is_own(u->b, before, &clock);
}

enum { OTHER_UPDATE = 4, OTHER_PENDING = 8 }; /* findings at one place are told apart by these, too */

void pe_race_tell(const pe_race_use *u, uint32_t lane, uint64_t address, pe_stamp before, uint32_t how) {
  const pe_memory_event *e = u->event;
  bool is_read = how & PE_RACE_WITH_READ, equal = how & PE_RACE_EQUAL, unfenced = how & PE_RACE_UNFENCED,
       loose = how & PE_RACE_LOOSE;
  bool is_update = before & PE_STAMP_UPDATE, pending = pe_stamp_is_pending(before), beside = is_of_others(u, lane, before);
  pe_require_stack();
  pe_finding f = {.check = PE_CHECK_RACE,
                  .what = (how & ~PE_RACE_EQUAL) | (is_update ? OTHER_UPDATE : 0) | (pending ? OTHER_PENDING : 0),
                  .note = equal || loose,
                  .pos = e->pos,
                  .other_pos = beside ? PE_NO_POS : pe_site_pos(&u->checker->race.sites, pe_stamp_site(before))};
  pe_text t = pe_text_in(f.text, sizeof f.text);
  const uint8_t *value = e->size <= sizeof(uint64_t) ? value_of(e, lane) : NULL;
  pe_add(&t, "%" PRIu64 "-byte %s of ", e->size,
         e->kind == PE_READ    ? "read"
         : e->kind == PE_WRITE ? "write"
                               : "atomic update");
  if (value) add_value(&t, "", value, e->size, " to ");
  add_place(u, address, &t);
  if (pending)
    pe_add(&t, ", which a copy is %s that nobody has waited for", is_read ? "reading" : "writing");
  else
    pe_add(&t,
           unfenced ? " by the async proxy, with no fence between proxies behind %s"
           : loose  ? ", behind %s by a strong read that lacks a fence"
                    : ", in no order with %s",
           is_update ? "an atomic update"
           : is_read ? "a read"
                     : "a write");
  if (beside)
    pe_add(&t, " by other threads of its warp");
  else if (equal)
    pe_add(&t, " of the same value");
  else if (!pending && !loose && !is_read && is_one_value(u, address, before))
    add_value(&t, " of ", left_by(u, lane, address, before), e->size, "");
  f.other = place_of(u, address, before);
  pe_report(u->checker, u->w, lane, &f);
}

void pe_race_tell_sum(pe_checker *checker, const pe_launch *launch, uint64_t address, uint32_t size, pe_stamp now,
                      pe_stamp before, bool is_read) {
  pe_race *race = &checker->race;
  pe_finding f = {.check = PE_CHECK_RACE,
                  .what = is_read ? PE_RACE_WITH_READ : 0,
                  .pos = pe_site_pos(&race->sites, pe_stamp_site(now)),
                  .other_pos = pe_site_pos(&race->sites, pe_stamp_site(before)),
                  .kernel = launch->config.kernel,
                  .launch = launch->gridid};
  pe_text t = pe_text_in(f.text, sizeof f.text);
  pe_add(&t, "%u-byte atomic update of ", size);
  add_global(checker, address, &t);
  pe_add(&t, ", in no order with a %s", is_read ? "read" : "write");
  f.thread = place_in(&launch->config, pe_order_block_number(&race->order, now), now);
  f.other = place_in(&launch->config, pe_order_block_number(&race->order, before), before);
  pe_keep_finding(checker, &f, 1);
}
