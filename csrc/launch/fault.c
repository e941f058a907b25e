/* fault.c: faults end a launch.  The first is kept and the rest are counted; the faulting warp's context is abandoned. */
#include <stdio.h>
#include <string.h>
#include "fault.h"
#include "cta.h"
#include "internal.h"
#include "launch.h"
#include "worker.h"

#define STACK_NEEDED (32u << 10) /* of the C library's functions as well: snprintf takes most */

/* ---- loops that make the trips of others ---------------------------------------------------------------------------- */

void pe_note_trip(pe_warp *w, const uint32_t *table, const uint32_t *left, const uint32_t *more) {
  w->trip_table = table, w->trips_left = left, w->trips_more = more;
}

/* The position of an access, or of the copy of it that a lane's trip stands for. */
static uint32_t position_in_trip(const pe_warp *w, uint32_t pos, uint32_t lane) {
  if (!w->trip_table) return pos;
  const uint32_t *row = w->trip_table + 2;
  uint32_t rows = w->trip_table[0], copies = w->trip_table[1];
  for (uint32_t i = 0; i < rows; i++, row += copies + 1) {
    uint32_t left = w->trips_left[lane], more = w->trips_more[lane];
    if (row[0] == pos && left <= more) return row[1 + (more - left) % copies];
  }
  return pos;
}

/* ---- records -------------------------------------------------------------------------------------------------------- */

/* Warps and lanes are told of as threads have them that are not spread (spread.h). */
static void keep(pe_record *record, const pe_warp *w, const pe_record *fault) {
  uint32_t lane = fault->lane < 0 ? 0 : (uint32_t)fault->lane;
  uint32_t thread = (w->tid[2][lane] * w->ntid[1] + w->tid[1][lane]) * w->ntid[0] + w->tid[0][lane];
  *record = *fault;
  record->pos = position_in_trip(w, fault->pos, lane);
  record->warp = thread / PE_WARP_LANES;
  if (fault->lane >= 0) record->lane = (int32_t)(thread % PE_WARP_LANES);
  for (int axis = 0; axis < 3; axis++) {
    record->ctaid[axis] = w->ctaid[axis];
    record->tid[axis] = w->tid[axis][lane];
  }
}

void pe_record_fault(pe_warp *w, const pe_record *fault) {
  pe_launch *launch = w->launch;
  if (atomic_fetch_add(&launch->faults, 1 + fault->others) == 0) keep(&launch->record, w, fault);
  pe_ask(launch, PE_ASKED_TO_STOP);
}

noreturn void pe_leave(void) {
  pe_worker *worker = pe_self;
  pe_warp_state *state = worker->running;
  worker->cta->runnable &= ~(1u << state->warp.warpid);
  atomic_store(&worker->launch->updating, 0);
  pe_fiber_leave(state->fiber);
}

void pe_record_place(const pe_warp *w) {
  pe_record place = {.kind = PE_STOPPED, .pos = pe_last_position(w), .lane = -1};
  if (!atomic_exchange(&w->launch->leaving, 1)) keep(&w->launch->left, w, &place);
}

noreturn void pe_stop(pe_warp *w) {
  pe_record_place(w);
  pe_leave();
}

noreturn void pe_fault(pe_warp *w, uint32_t kind, uint32_t pos, int32_t lane, uint32_t space, uint64_t address,
                       uint32_t size) {
  pe_fault_note(w, kind, pos, lane, space, address, size, "");
}

noreturn void pe_fault_note(pe_warp *w, uint32_t kind, uint32_t pos, int32_t lane, uint32_t space, uint64_t address,
                            uint32_t size, const char *note) {
  pe_record fault = {.kind = kind, .pos = pos, .lane = lane, .space = space, .address = address, .size = size};
  strncpy(fault.note, note, sizeof fault.note - 1);
  pe_fault_at(w, &fault);
}

noreturn void pe_fault_at(pe_warp *w, const pe_record *fault) {
  pe_record_fault(w, fault);
  pe_leave();
}

noreturn void pe_fault_surface(pe_warp *w, uint32_t kind, uint32_t pos, int32_t lane, uint32_t slot, const int64_t coord[4],
                               uint32_t size) {
  pe_record fault = {.kind = kind, .pos = pos, .lane = lane, .size = size, .slot = slot, .has_coordinates = 1};
  memcpy(fault.coordinates, coord, sizeof fault.coordinates);
  pe_fault_at(w, &fault);
}

void pe_require_stack(void) {
  pe_warp_state *state = pe_self ? pe_self->running : NULL;
  if (!state) return;
  if (pe_fiber_headroom(state->fiber) < STACK_NEEDED)
    pe_fault(&state->warp, PE_STACK_OVERFLOW, pe_last_position(&state->warp), -1, PE_LOCAL, 0, 0);
  *((volatile const char *)__builtin_frame_address(0) - STACK_NEEDED + 64); /* the stack grows here if it has to */
}

noreturn void pe_stack_overflow(pe_warp *w, uint32_t mask) {
  pe_fault(w, PE_STACK_OVERFLOW, w->pos, mask ? __builtin_ctz(mask) : -1, PE_LOCAL, 0, 0);
}

noreturn void pe_invalid_call(pe_warp *w, uint32_t pos, uint32_t lane, uint64_t target) {
  char note[96];
  snprintf(note, sizeof note, "0x%llx is not a function of this module with the call's signature",
           (unsigned long long)target);
  pe_fault_note(w, PE_INVALID_CALL, pos, (int32_t)lane, PE_GENERIC, target, 0, note);
}
