/* reach.c: memory that is sure to be there while a launch runs. */
#include "arena.h"
#include "launch.h"
#include "worker.h"

uint64_t pe_reach(const pe_warp *w, uint64_t address) {
  pe_worker *self = pe_self;
  if (!self) return pe_arena_lasting(w->launch->arena, address);
  pe_known_reach *known = &self->reaches[address / 256 % PE_KNOWN_REACHES];
  if (known->address != address) *known = (pe_known_reach){address, pe_arena_lasting(w->launch->arena, address)};
  return known->bytes;
}
