/* reach.c: memory that is sure to be there while a launch runs. */
#include "arena.h"
#include "launch.h"
#include "worker.h"

static uint64_t reach_of(const pe_warp *w, uint64_t address) {
  const pe_observer *observer = w->launch->observer;
  if (observer && observer->reach) return observer->reach(observer->context, w, address);
  return pe_arena_lasting(w->launch->arena, address);
}

uint64_t pe_reach(const pe_warp *w, uint64_t address) {
  pe_worker *self = pe_self;
  if (!self) return reach_of(w, address);
  pe_known_reach *known = &self->reaches[address / 256 % PE_KNOWN_REACHES];
  if (known->address != address) *known = (pe_known_reach){address, reach_of(w, address)};
  return known->bytes;
}
