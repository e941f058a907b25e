/* init_columns.c: the checker `init` (init.c) at tensor memory: columns that nobody has written since they were allocated. */
#include "checker.h"
#include "atomic.h"
#include "text.h"

enum { WORD_BITS = 32, COLUMN_BYTES = 4 };

/* The bits of columns from one on, up to `end`, that one word has. */
static uint32_t bits_from(uint32_t column, uint32_t end) {
  uint32_t from = column % WORD_BITS, rest = end - column, here = WORD_BITS - from < rest ? WORD_BITS - from : rest;
  return (UINT32_MAX >> (WORD_BITS - here)) << from;
}

static uint32_t next_word(uint32_t column) { return column / WORD_BITS * WORD_BITS + WORD_BITS; }

static uint32_t count_unset(const pe_columns_event *e) {
  uint32_t count = 0, end = e->first + e->count;
  for (uint32_t i = e->first; i < end; i = next_word(i))
    count += (uint32_t)__builtin_popcount(bits_from(i, end) & ~e->written[i / WORD_BITS]);
  return count;
}

static void set_written(const pe_columns_event *e) {
  uint32_t end = e->first + e->count;
  for (uint32_t i = e->first; i < end; i = next_word(i)) e->written[i / WORD_BITS] |= bits_from(i, end);
}

static void tell(pe_checker *checker, const pe_warp *w, const pe_columns_event *e, uint32_t unset) {
  pe_finding f = {.check = PE_CHECK_INIT, .pos = e->pos, .other_pos = PE_NO_POS, .what = unset == e->count};
  pe_text t = pe_text_in(f.text, sizeof f.text);
  pe_add(&t, "%u-byte read of tensor memory", e->count * COLUMN_BYTES);
  if (e->peer) pe_add(&t, " of the other block of the pair");
  pe_add(&t, " at lane %u, column %u, ", e->at, e->first);
  if (unset != e->count) pe_add(&t, "%u bytes of ", unset * COLUMN_BYTES);
  pe_add(&t, "which nobody has written");
  pe_report(checker, w, e->lane < 0 ? e->at % PE_WARP_LANES : (uint32_t)e->lane, &f);
}

void pe_init_columns(pe_checker *checker, const pe_warp *w, const pe_columns_event *event) {
  if (event->kind & PE_WRITE) return set_written(event);
  uint32_t unset = count_unset(event);
  bool all = event->each || event->count * COLUMN_BYTES <= PE_INIT_LARGEST;
  if (unset && (all || unset == event->count)) tell(checker, w, event, unset);
}
