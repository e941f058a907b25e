/* footprint.c: which CTA of a launch has written, updated or read which bytes of some allocations. */
#include "footprint.h"
#include <stdbool.h>
#include "bisect.h"

/* Workers note what they do at the same time; which of them is kept for a byte that several touch does not matter. */
#define GET(place) __atomic_load_n(&(place), __ATOMIC_RELAXED)
#define SET(place, value) __atomic_store_n(&(place), value, __ATOMIC_RELAXED)

static const pe_footprint_area *area_at(const pe_footprint *footprint, uint64_t address) {
  size_t low = PE_FIRST_NOT(middle, footprint->area_count, footprint->areas[middle].address <= address);
  const pe_footprint_area *found = low ? &footprint->areas[low - 1] : NULL;
  return found && address - found->address < found->size ? found : NULL;
}

/* The code of the update at a position, or 0: its order matters. */
static uint32_t update_at(const pe_footprint *footprint, uint32_t pos) {
  size_t low = PE_FIRST_NOT(middle, footprint->update_count, footprint->updates[middle].pos < pos);
  return low < footprint->update_count && footprint->updates[low].pos == pos ? footprint->updates[low].code : 0;
}

static void note_read(const pe_footprint_area *area, uint64_t offset, uint32_t cta) {
  uint8_t done = GET(area->done[offset]);
  bool own = GET(area->writer[offset]) == cta && done == PE_WRITTEN;
  if (!own && !GET(area->reader[offset])) SET(area->reader[offset], cta);
}

static void note_write(const pe_footprint_area *area, uint64_t offset, uint32_t cta, uint8_t what) {
  uint8_t before = GET(area->done[offset]);
  SET(area->writer[offset], cta);
  SET(area->done[offset], before == PE_UNTOUCHED || before == what ? what : PE_MIXED);
}

static uint32_t number_of(const pe_warp *w) {
  return w->ctaid[0] + w->nctaid[0] * (w->ctaid[1] + w->nctaid[1] * w->ctaid[2]) + 1;
}

static void note(const pe_footprint *footprint, const pe_memory_event *event, uint64_t address, uint32_t cta,
                 uint32_t code) {
  const pe_footprint_area *area = area_at(footprint, address);
  if (!area) return;
  uint64_t first = address - area->address, rest = area->size - first;
  uint64_t last = first + (event->size < rest ? event->size : rest);
  for (uint64_t offset = first; offset < last; offset++) {
    if ((event->kind & PE_READ) && !code) note_read(area, offset, cta);
    if (event->kind & PE_WRITE) note_write(area, offset, cta, code ? (uint8_t)code : PE_WRITTEN);
  }
}

static uint32_t memory(void *context, const pe_warp *w, const pe_memory_event *event) {
  pe_footprint *footprint = context;
  uint32_t cta = number_of(w), code = event->kind == PE_UPDATE ? update_at(footprint, event->pos) : 0;
  for (uint32_t left = event->mask; left; left &= left - 1)
    note(footprint, event, event->address[__builtin_ctz(left)], cta, code);
  return event->mask;
}

static void freed(void *context, uint64_t address) {
  pe_footprint *footprint = context;
  (void)address;
  SET(footprint->allocated, 1);
}

static void allocated(void *context, uint64_t address, uint64_t size, const pe_warp *w, uint32_t lane) {
  (void)size, (void)w, (void)lane;
  freed(context, address);
}

void pe_footprint_observer(pe_footprint *footprint, pe_observer *observer) {
  *observer = (pe_observer){.context = footprint, .memory = memory, .allocated = allocated, .freed = freed};
}
