/* tmem.c: tensor memory: its allocation, and loads and stores by the warps of a warpgroup (PTX ISA, "tcgen05").
 *
 * A warp that needs columns which are not free faults: only its own CTA could free them.
 */
#include "tmem.h"
#include <stdlib.h>
#include <string.h>
#include "atomic.h"
#include "cta.h"
#include "fault.h"
#include "matrix.h"
#include "place.h"
#include "worker.h"

enum { WARPS = 4, WARP_LANES = 32, HALF = 16, ONE_BIT = 1 };

noreturn void pe_tmem_misuse(pe_warp *w, uint32_t pos, int32_t lane, uint32_t address, const char *what) {
  pe_fault_note(w, PE_TMEM_MISUSE, pos, lane, PE_GENERIC, address, 0, what);
}

void pe_tmem_reset(pe_tmem *memory) {
  if (!memory) return;
  memory->taken = 0;
  memory->given_up = false;
  memory->wanted = memory->waiting = 0;
}

/* ---- allocation ---- */

pe_tmem *pe_tmem_of(pe_warp *w, uint32_t pos, pe_cta *cta) {
  if (!cta->tensors) cta->tensors = calloc(1, sizeof *cta->tensors);
  if (!cta->tensors) pe_tmem_misuse(w, pos, -1, 0, "there is no memory for it");
  return cta->tensors;
}

static pe_tmem *own(pe_warp *w, uint32_t pos) { return pe_tmem_of(w, pos, pe_self->cta); }

static uint32_t units_of(pe_warp *w, uint32_t pos, uint32_t columns) {
  bool fits = columns >= PE_TMEM_UNIT && columns <= PE_TMEM_COLUMNS && !(columns & (columns - 1));
  if (!fits) pe_tmem_misuse(w, pos, -1, columns, "columns are allocated in powers of two, from 32 to 512");
  return columns / PE_TMEM_UNIT;
}

static uint32_t bits_of(uint32_t first, uint32_t units) { return ((ONE_BIT << units) - 1u) << first; }

static void take(const pe_warp *w, pe_tmem *memory, uint32_t first, uint32_t units) {
  const pe_observer *observer = w->launch->observer;
  memory->taken |= bits_of(first, units);
  memory->length[first] = (uint8_t)units;
  memory->told = observer && observer->columns;
  for (uint32_t lane = 0; memory->told && lane < PE_TMEM_LANES; lane++)
    memset(&memory->written[lane][first], 0, units * sizeof memory->written[lane][first]);
}

uint32_t pe_tmem_take(pe_warp *w, uint32_t pos, uint32_t units, pe_tmem *memory, pe_tmem *other) {
  uint32_t first = 0, taken = memory->taken | (other ? other->taken : 0);
  while (first + units <= PE_TMEM_UNITS && taken & bits_of(first, units)) first++;
  if (first + units > PE_TMEM_UNITS) pe_tmem_misuse(w, pos, -1, units * PE_TMEM_UNIT, "so many columns are not free");
  take(w, memory, first, units);
  if (other) take(w, other, first, units);
  return first;
}

uint32_t pe_tmem_alloc(pe_warp *w, uint32_t pos, uint32_t ctas, uint32_t space, uint32_t mask, uint32_t columns,
                       uint64_t address) {
  if (!pe_whole_warp(w, pos, mask)) return 1;
  uint32_t units = units_of(w, pos, columns);
  pe_tmem *memory = own(w, pos);
  if (memory->given_up) pe_tmem_misuse(w, pos, -1, 0, "the CTA has given up the right to allocate columns");
  uint32_t first = 0;
  if (ctas == 1)
    first = pe_tmem_take(w, pos, units, memory, NULL);
  else
    while (!pe_tmem_take_both(w, pos, units, &first)) {
      if (w->launch->stepped) return 0;
      pe_tmem_wait(w);
    }
  uint32_t start = first * PE_TMEM_UNIT;
  pe_access access = {pos, (uint16_t)space, PE_IN_SHARED, PE_WRITE, sizeof start, NULL};
  memcpy(pe_host(w, &access, 0, address, sizeof start), &start, sizeof start);
  return 1;
}

void pe_tmem_dealloc(pe_warp *w, uint32_t pos, uint32_t mask, uint32_t address, uint32_t columns) {
  if (!pe_whole_warp(w, pos, mask)) return;
  uint32_t units = units_of(w, pos, columns), first = address / PE_TMEM_UNIT;
  pe_tmem *memory = own(w, pos);
  bool known = address % PE_TMEM_UNIT == 0 && first < PE_TMEM_UNITS && memory->taken >> first & 1;
  if (!known || memory->length[first] != units)
    pe_tmem_misuse(w, pos, -1, address, "so many columns are not allocated there");
  memory->taken &= ~bits_of(first, units);
  memory->length[first] = 0;
}

void pe_tmem_give_up(pe_warp *w, uint32_t pos, uint32_t mask) {
  if (pe_whole_warp(w, pos, mask)) own(w, pos)->given_up = true;
}

/* ---- what there is ---- */

void pe_tmem_expect(pe_warp *w, uint32_t pos, int32_t lane, const pe_tmem *memory, uint32_t address, uint32_t columns) {
  uint32_t first = address & 0xffff, last = first + columns - 1;
  bool inside = memory && address >> 16 < PE_TMEM_LANES && first < PE_TMEM_COLUMNS && last < PE_TMEM_COLUMNS;
  uint32_t from = first / PE_TMEM_UNIT, units = last / PE_TMEM_UNIT - from + 1;
  if (!inside || ~memory->taken & bits_of(from, units))
    pe_tmem_misuse(w, pos, lane, address, "its columns are not allocated");
}

void pe_tmem_tell(pe_warp *w, uint32_t pos, int32_t by, pe_tmem *memory, uint32_t kind, uint32_t lane, uint32_t column,
                  uint32_t count, bool each) {
  const pe_observer *observer = w->launch->observer;
  pe_columns_event e = {.pos = pos, .kind = kind, .lane = by, .at = lane, .first = column, .count = count, .each = each};
  e.peer = memory != pe_self->cta->tensors;
  e.written = memory->written[lane];
  observer->columns(observer->context, w, &e);
}

/* ---- registers and columns ---- */

/* Where register i of a thread is, from the address on; a packed one is there and in the column behind. */
static void locate(const pe_tmem_site *site, uint32_t i, uint32_t thread, uint32_t *lane, uint32_t *column) {
  uint32_t quad = thread / 4, part = thread % 4, far = 0;
  switch (site->shape) {
    case PE_TMEM_32X32B: *lane = thread, *column = i; break;
    case PE_TMEM_16X32BX2: *lane = thread % HALF, *column = i, far = thread / HALF * site->apart; break;
    case PE_TMEM_16X64B: *lane = quad + part % 2 * 8, *column = i * 2 + part / 2; break;
    case PE_TMEM_16X128B: *lane = quad + i % 2 * 8, *column = i / 2 * 4 + part; break;
    default: *lane = quad + i / 2 % 2 * 8, *column = i / 4 * 8 + part * 2 + i % 2; break;
  }
  *column = (*column << site->packed) + far;
}

/* How many columns all registers take, without those that a second half is apart. */
static uint32_t columns_of(const pe_tmem_site *site) {
  static const uint8_t REGISTERS[] = {1, 1, 1, 2, 4}, COLUMNS[] = {1, 1, 2, 4, 8};
  return site->registers / REGISTERS[site->shape] * COLUMNS[site->shape];
}

/* A warp has the lanes of its number in the warpgroup; of shapes of 16 lanes these are two halves. */
static pe_tmem *own_columns(pe_warp *w, const pe_tmem_site *site, uint32_t address) {
  uint32_t unit = site->shape == PE_TMEM_32X32B ? WARP_LANES : HALF, lane = address >> 16;
  if (lane / WARP_LANES != w->warpid % WARPS || lane % unit)
    pe_tmem_misuse(w, site->pos, -1, address, "a warp has the 32 lanes of its place in the warpgroup");
  uint32_t columns = columns_of(site) << site->packed;
  pe_tmem *memory = pe_self->cta->tensors;
  if (site->shape == PE_TMEM_16X32BX2 && site->apart)
    pe_tmem_expect(w, site->pos, -1, memory, address + site->apart, columns);
  pe_tmem_expect(w, site->pos, -1, memory, address, columns);
  return memory;
}

/* Tell of all that a warp loads or stores. */
static void tell(pe_warp *w, const pe_tmem_site *site, pe_tmem *memory, uint32_t kind, uint32_t address) {
  uint32_t lanes = site->shape == PE_TMEM_32X32B ? WARP_LANES : HALF, columns = columns_of(site) << site->packed;
  for (uint32_t i = 0; i < lanes; i++) {
    uint32_t lane = (address >> 16) + i, column = address & 0xffff;
    pe_tmem_tell(w, site->pos, -1, memory, kind, lane, column, columns, false);
    if (site->shape == PE_TMEM_16X32BX2)
      pe_tmem_tell(w, site->pos, -1, memory, kind, lane, column + site->apart, columns, false);
  }
}

void pe_tmem_load(pe_warp *w, const pe_tmem_site *site, uint32_t mask, uint32_t address, uint32_t *slots) {
  if (!pe_whole_warp(w, site->pos, mask)) return;
  pe_tmem *memory = own_columns(w, site, address);
  if (memory->told) tell(w, site, memory, PE_READ, address);
  for (uint32_t i = 0; i < site->registers; i++)
    for (uint32_t thread = 0; thread < WARP_LANES; thread++) {
      uint32_t lane, column;
      locate(site, i, thread, &lane, &column);
      const uint32_t *cell = &memory->cell[(address >> 16) + lane][(address & 0xffff) + column];
      slots[i * WARP_LANES + thread] = site->packed ? (cell[0] & 0xffff) | cell[1] << 16 : cell[0];
    }
}

/* A word as the reduction takes it. */
static uint32_t operand(const pe_tmem_site *site, uint32_t word) {
  return site->flags & PE_TMEM_ABS ? word & INT32_MAX : word;
}

static uint32_t reduced(const pe_tmem_site *site, const uint32_t *words) {
  const pe_float_kind f32 = pe_float_kind_of(PE_TYPE_F32);
  uint32_t result = operand(site, words[0]);
  bool nan = false;
  for (uint32_t i = 0; i < site->registers; i++) {
    uint32_t word = operand(site, words[i * WARP_LANES]);
    nan |= pe_float_nan(f32, word);
    result = (uint32_t)pe_apply(site->op, site->type, 0, result, word, 0);
  }
  return nan && site->flags & PE_TMEM_NAN ? (uint32_t)pe_float_default_nan(f32, 0) : result;
}

void pe_tmem_load_reduced(pe_warp *w, const pe_tmem_site *site, uint32_t mask, uint32_t address, uint32_t *slots) {
  pe_tmem_load(w, site, mask, address, slots);
  for (uint32_t thread = 0; thread < WARP_LANES; thread++)
    slots[site->registers * WARP_LANES + thread] = reduced(site, slots + thread);
}

void pe_tmem_store(pe_warp *w, const pe_tmem_site *site, uint32_t mask, uint32_t address, const uint32_t *slots) {
  if (!pe_whole_warp(w, site->pos, mask)) return;
  pe_tmem *memory = own_columns(w, site, address);
  if (memory->told) tell(w, site, memory, PE_WRITE, address);
  for (uint32_t i = 0; i < site->registers; i++)
    for (uint32_t thread = 0; thread < WARP_LANES; thread++) {
      uint32_t lane, column, value = slots[i * WARP_LANES + thread];
      locate(site, i, thread, &lane, &column);
      uint32_t *cell = &memory->cell[(address >> 16) + lane][(address & 0xffff) + column];
      cell[0] = site->packed ? value & 0xffff : value;
      if (site->packed) cell[1] = value >> 16;
    }
}
