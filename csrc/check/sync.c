/* sync.c: the checker `sync`: barriers that the lanes of a warp do not come to together, and membermasks. */
#include "checker.h"
#include "atomic.h"
#include "text.h"

enum { OTHERS_MISSING, OTHERS_EXITED, NOT_MEMBER, MASKS_DIFFER }; /* what is found */

void pe_sync_barrier(pe_checker *checker, const pe_warp *w, uint32_t pos, uint32_t id, uint32_t mask, uint32_t how) {
  uint32_t missing = w->active & ~mask;
  if (id >= PE_BARRIER_CLUSTER || how & PE_BARRIER_LANES || !missing || !mask) return;
  uint32_t gone = missing & w->exited;
  pe_finding f = {
    .check = PE_CHECK_SYNC, .pos = pos, .other_pos = PE_NO_POS, .what = gone == missing ? OTHERS_EXITED : OTHERS_MISSING};
  pe_text t = pe_text_in(f.text, sizeof f.text);
  pe_add(&t, "barrier %u: %d of the %d threads of warp %u %s", id, __builtin_popcount(missing),
         __builtin_popcount(w->active), w->warpid,
         gone == missing ? "have exited before it" : "do not come to it with the others");
  pe_report(checker, w, (uint32_t)__builtin_ctz(mask), &f);
}

/* A lane that a lane's membermask names and that executes the instruction with another one; -1: there is none. */
static int differing(uint32_t mask, const uint32_t *members, uint32_t lane) {
  PE_FOR_LANES(i, mask & members[lane]) {
    if (members[i] != members[lane]) return (int)i;
  }
  return -1;
}

static void report_members(pe_checker *checker, const pe_warp *w, uint32_t pos, const uint32_t *members, uint32_t lane,
                           int other) {
  pe_finding f = {.check = PE_CHECK_SYNC, .pos = pos, .other_pos = PE_NO_POS, .what = other < 0 ? NOT_MEMBER : MASKS_DIFFER};
  pe_text t = pe_text_in(f.text, sizeof f.text);
  if (other < 0)
    pe_add(&t, "membermask 0x%08x of lane %u does not name the lane itself", members[lane], lane);
  else
    pe_add(&t, "membermask 0x%08x of lane %u names lane %d, whose membermask is 0x%08x", members[lane], lane, other,
           members[other]);
  pe_report(checker, w, lane, &f);
}

void pe_sync_members(pe_checker *checker, const pe_warp *w, uint32_t pos, uint32_t mask, const uint32_t *members) {
  PE_FOR_LANES(i, mask) {
    if (!(members[i] >> i & 1)) {
      report_members(checker, w, pos, members, i, -1);
    } else {
      int other = differing(mask, members, i);
      if (other >= 0) report_members(checker, w, pos, members, i, other);
    }
  }
}
