/* tmem_pair.c: pairs of CTAs that allocate tensor memory together (PTX ISA, "tcgen05.alloc", ".cta_group::2").
 *
 * Both get the same columns, so that either may be the one that multiplies. The CTAs of a cluster run on one thread.
 */
#include "cta.h"
#include "fault.h"
#include "tmem.h"
#include "worker.h"

/* The other CTA of the pair. */
static pe_cta *peer_of(pe_warp *w, uint32_t pos) {
  pe_cta *cta = pe_self->cta;
  uint32_t ctas = w->cluster_nctarank, steps = cta->rank % PE_TMEM_PAIR ? ctas - 1 : 1;
  if (ctas % PE_TMEM_PAIR) pe_tmem_misuse(w, pos, -1, 0, "a pair of CTAs needs a cluster of an even number of them");
  while (steps--) cta = cta->peer;
  return cta;
}

void pe_tmem_ctas(pe_warp *w, uint32_t pos, uint32_t count, pe_cta *to[PE_TMEM_PAIR]) {
  pe_cta *mine = pe_self->cta;
  uint32_t place = count > 1 ? mine->rank % PE_TMEM_PAIR : 0;
  to[place] = mine;
  to[!place] = count > 1 ? peer_of(w, pos) : mine;
}

uint64_t pe_tmem_away(const pe_warp *w, const pe_cta *cta) {
  return ((uint64_t)cta->rank << w->cluster_shift) - ((uint64_t)pe_self->cta->rank << w->cluster_shift);
}

/* The other CTA is waiting. */
static uint32_t take_with(pe_warp *w, uint32_t pos, uint32_t units, pe_tmem *mine, pe_cta *peer) {
  pe_tmem *theirs = peer->tensors;
  if (theirs->wanted != units) pe_tmem_misuse(w, pos, -1, 0, "the CTAs of a pair allocate different numbers of columns");
  theirs->found = pe_tmem_take(w, pos, units, mine, theirs);
  theirs->wanted = 0;
  peer->runnable |= theirs->waiting;
  pe_cta_progress(peer);
  return theirs->found;
}

bool pe_tmem_take_both(pe_warp *w, uint32_t pos, uint32_t units, uint32_t *first) {
  pe_cta *peer = peer_of(w, pos);
  pe_tmem *mine = pe_tmem_of(w, pos, pe_self->cta), *theirs = pe_tmem_of(w, pos, peer);
  uint32_t self = 1u << w->warpid;
  if (mine->waiting == self && !mine->wanted) { /* it asks again */
    mine->waiting = 0;
    *first = mine->found;
    return true;
  }
  if (mine->waiting) pe_tmem_misuse(w, pos, -1, 0, "two warps of a CTA allocate at once");
  if (theirs->wanted) {
    *first = take_with(w, pos, units, mine, peer);
    return true;
  }
  mine->wanted = units;
  mine->waiting = self;
  mine->pos = pos;
  return false;
}

void pe_tmem_wait(pe_warp *w) {
  pe_cta *cta = pe_self->cta;
  while (cta->tensors->wanted) {
    cta->runnable &= ~cta->tensors->waiting;
    pe_suspend(w);
  }
}

bool pe_tmem_deadlock(pe_cta *cta) {
  pe_cta *each = cta;
  do {
    if (!each->tensors || !each->tensors->wanted) continue;
    pe_record fault = {.kind = PE_DEADLOCK,
                       .pos = each->tensors->pos,
                       .lane = -1,
                       .note = "tcgen05.alloc: the other CTA of the pair does not come, and no warp can run"};
    pe_record_fault(&each->warps[__builtin_ctz(each->tensors->waiting)].warp, &fault);
    return true;
  } while ((each = each->peer) != cta);
  return false;
}
