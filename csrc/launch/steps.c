/* steps.c: walking tables of steps, and the steps that decide which lanes run next, and where. */
#include "steps.h"
#include <stddef.h>
#include <string.h>
#include "internal.h"

#define PLACE_BYTES 64 /* of a register's place */

uint32_t pe_run_steps(pe_warp *w, pe_frame *frame, const uint32_t *step) {
  pe_routine *const *routines = frame->routines;
  for (;;) {
    const uint32_t *next = routines[*step](w, frame, frame->running, step);
    if (next == NULL) return step[1];
    step = next;
  }
}

static void *at(pe_frame *frame, uint32_t place) { return (char *)frame + place; }

static uint32_t *mask(pe_frame *frame, uint32_t place) { return at(frame, place); }

static const uint32_t *follow(const uint32_t *step, uint32_t way) {
  return (const uint32_t *)((const char *)step + (int32_t)way);
}

#define STEP(name)                                                                                            \
  const uint32_t *pe_step_##name(__attribute__((unused)) pe_warp *w, __attribute__((unused)) pe_frame *frame, \
                                 __attribute__((unused)) uint32_t lanes, const uint32_t *step)

static void run(pe_frame *frame, uint32_t lanes) {
  frame->running = lanes;
  frame->moved = 1;
}

STEP(enter) {
  uint32_t *waiting = mask(frame, step[1]);
  if (!*waiting) return follow(step, step[3]);
  run(frame, *waiting);
  *mask(frame, step[2]) = *waiting;
  *waiting = 0;
  return step + 4;
}

STEP(admit) {
  uint32_t admitted = *mask(frame, step[1]);
  if (!admitted) return follow(step, step[2]);
  run(frame, admitted);
  return step + 3;
}

STEP(test) { return *mask(frame, step[1]) ? step + 3 : follow(step, step[2]); }

STEP(resume) {
  frame->running = *mask(frame, step[1]);
  return step + 2;
}

STEP(split) {
  frame->taken = lanes & *mask(frame, step[1]);
  frame->other = lanes ^ frame->taken;
  return step + 2;
}

STEP(send) {
  *mask(frame, step[2]) = *mask(frame, step[1]);
  return follow(step, step[3]);
}

STEP(join) {
  *mask(frame, step[2]) |= *mask(frame, step[1]);
  return follow(step, step[3]);
}

STEP(go) { return follow(step, step[1]); }

STEP(branch) {
  const uint8_t *condition = at(frame, step[1]);
  return *condition & 1 ? step + 3 : follow(step, step[2]);
}

/* What a computed branch has for an index. */
static uint32_t entry(const uint32_t *table, uint32_t last, uint32_t index) { return table[index < last ? index : last]; }

STEP(select) { return follow(step, entry(step + 3, step[2], *mask(frame, step[1]))); }

STEP(scatter) {
  uint32_t last = step[1], first = 0, left = lanes;
  const uint32_t *indices = at(frame, step[2]), *edges = follow(step, step[3]), *table = step + 5, *edge;
  do {
    uint32_t index = indices[__builtin_ctz(left)], same = 0;
    for (uint32_t lane = 0; lane < PE_WARP_LANES; lane++) same |= (uint32_t)(indices[lane] == index) << lane;
    same &= left;
    left ^= same;
    if (!first) first = same;
    edge = edges + (size_t)3 * entry(table, last, index);
    if (edge[0]) {
      frame->running = same;
      pe_run_steps(w, frame, follow(step, edge[0]));
    }
    *mask(frame, edge[1]) |= same;
  } while (left);
  return follow(step, first == lanes ? edge[2] : step[4]);
}

STEP(places) {
  const uint32_t *pair = step + 2, *end = pair + (size_t)2 * step[1];
  for (; pair != end; pair += 2) memmove(at(frame, pair[1]), at(frame, pair[0]), PLACE_BYTES);
  return end;
}

STEP(stop) {
  (void)step;
  return NULL;
}
