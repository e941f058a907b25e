/* atomic_lanes.c: one atomic instruction of a warp.  Lanes that all hit one address share one update; the result is always
 * that of the lanes updating memory one by one in ascending order. */
#include "atomic.h"

#define FIRST(mask) ((uint32_t)__builtin_ctz(mask))

/* Asks for a line to write to: a copy that others may read would have to be asked for again. Compilers take the instruction only where
 * they know the processor; x86-64 processors that do not have it do nothing. */
PE_INLINE void ask_to_write(const uint8_t *p) {
#ifdef __x86_64__
  __asm__ volatile("prefetchw %0" ::"m"(*p));
#else
  __builtin_prefetch(p, 1);
#endif
}

/* Whether values of the operation often stay as they are, so that lines had better stay with all who read them. */
PE_INLINE bool often_stays(uint32_t op) { return op >= PE_ATOM_UMIN && op <= PE_ATOM_SMAX; }

/* Instructions with a lock wait for their lines one after another, so these are asked for together. */
PE_INLINE void ask_for(const pe_atom_lanes *g) {
  PE_FOR_LANES(i, g->mask) ask_to_write((const uint8_t *)(uintptr_t)g->addr[i]);
}

/* The operations on elements of one width.  op and type are constants in the hot instances. */
#define DEFINE_LANES(T, NAME)                                                                                          \
  PE_INLINE T get_##NAME(const uint8_t *operands, uint32_t lane) {                                                     \
    T value = 0;                                                                                                       \
    if (operands) memcpy(&value, operands + lane * sizeof(T), sizeof(T));                                              \
    return value;                                                                                                      \
  }                                                                                                                    \
  PE_INLINE void put_##NAME(uint8_t *results, uint32_t lane, T value) {                                                \
    memcpy(results + lane * sizeof(T), &value, sizeof(T));                                                             \
  }                                                                                                                    \
                                                                                                                       \
  /* The lanes' updates of `value`, in order; what each returns goes to results, where not NULL. */                    \
  PE_INLINE T replay_##NAME(const pe_atom_lanes *g, uint32_t op, uint32_t type, T value, uint8_t *results) {           \
    PE_FOR_LANES(i, g->mask) {                                                                                         \
      T next = (T)pe_apply(op, type, g->flags, value, get_##NAME(g->a, i), get_##NAME(g->b, i));                       \
      if (results) put_##NAME(results, i, op == PE_ATOM_PREDEC ? next : value);                                        \
      value = next;                                                                                                    \
    }                                                                                                                  \
    return value;                                                                                                      \
  }                                                                                                                    \
                                                                                                                       \
  /* One address: combine the operands of an associative operation, update once. */                                    \
  PE_INLINE void combine_##NAME(const pe_atom_lanes *g, uint32_t op, uint32_t type) {                                  \
    uint32_t first = FIRST(g->mask);                                                                                   \
    T *p = (T *)(uintptr_t)g->addr[first], total = get_##NAME(g->a, first);                                            \
    if (g->mask == ~0u) {                                                                                              \
      for (uint32_t i = 1; i < 32; i++) total = (T)pe_apply(op, type, g->flags, total, get_##NAME(g->a, i), 0);        \
    } else {                                                                                                           \
      PE_FOR_LANES(i, g->mask & (g->mask - 1)) total = (T)pe_apply(op, type, g->flags, total, get_##NAME(g->a, i), 0); \
    }                                                                                                                  \
    if (!g->old)                                                                                                       \
      pe_update_##NAME(p, op, type, g->flags, total, 0, g->locked);                                                    \
    else                                                                                                               \
      replay_##NAME(g, op, type, pe_update_##NAME(p, op, type, g->flags, total, 0, g->locked), g->old);                \
  }                                                                                                                    \
                                                                                                                       \
  /* One address: apply the lanes to the loaded value, then store it if memory has not changed. */                     \
  PE_INLINE void fold_##NAME(const pe_atom_lanes *g, uint32_t op, uint32_t type) {                                     \
    T *p = (T *)(uintptr_t)g->addr[FIRST(g->mask)], seen = __atomic_load_n(p, __ATOMIC_SEQ_CST), next;                 \
    do {                                                                                                               \
      next = replay_##NAME(g, op, type, seen, g->old);                                                                 \
      if (!g->locked) {                                                                                                \
        *p = next;                                                                                                     \
        return;                                                                                                        \
      }                                                                                                                \
    } while (!__atomic_compare_exchange_n(p, &seen, next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));                 \
  }                                                                                                                    \
                                                                                                                       \
  PE_INLINE void update_lane_##NAME(const pe_atom_lanes *g, uint32_t op, uint32_t type, uint32_t i, bool locked,       \
                                    bool wanted) {                                                                     \
    T *p = (T *)(uintptr_t)g->addr[i], a = get_##NAME(g->a, i), b = get_##NAME(g->b, i);                               \
    T value = pe_update_##NAME(p, op, type, g->flags, a, b, locked);                                                   \
    if (wanted) put_##NAME(g->old, i, op == PE_ATOM_PREDEC ? (T)pe_apply(op, type, g->flags, value, a, b) : value);    \
  }                                                                                                                    \
                                                                                                                       \
  PE_INLINE void each_##NAME(const pe_atom_lanes *g, uint32_t op, uint32_t type) {                                     \
    bool whole = g->mask == ~0u && !g->locked;                                                                         \
    if (g->locked && !often_stays(op)) ask_for(g);                                                                     \
    if (whole && !g->old)                                                                                              \
      for (uint32_t i = 0; i < 32; i++) update_lane_##NAME(g, op, type, i, false, false);                              \
    else if (whole)                                                                                                    \
      for (uint32_t i = 0; i < 32; i++) update_lane_##NAME(g, op, type, i, false, true);                               \
    else                                                                                                               \
      PE_FOR_LANES(i, g->mask) update_lane_##NAME(g, op, type, i, g->locked, g->old != NULL);                          \
  }                                                                                                                    \
                                                                                                                       \
  PE_INLINE void lanes_##NAME(const pe_atom_lanes *g, bool one_address, uint32_t op, uint32_t type) {                  \
    if (!one_address)                                                                                                  \
      each_##NAME(g, op, type);                                                                                        \
    else if (pe_op_is_combinable(op))                                                                                  \
      combine_##NAME(g, op, type);                                                                                     \
    else                                                                                                               \
      fold_##NAME(g, op, type);                                                                                        \
  }
DEFINE_LANES(uint16_t, u16)
DEFINE_LANES(uint32_t, u32)
DEFINE_LANES(uint64_t, u64)

/* ---- f32 sums into one address: the lanes wait for each other only in the additions -------------------------------- */

/* Bits for which a plain addition may not do: NaN, subnormal. */
PE_INLINE uint32_t needs_care(uint32_t f32) {
  uint32_t magnitude = f32 & 0x7fffffff;
  return (magnitude > 0x7f800000) | (magnitude - 1 < 0x7fffff);
}

/* What every lane finds in memory, and after them the last sum.  0: not a case for plain additions. */
static uint32_t plain_sums(const pe_atom_lanes *g, uint32_t seen, uint32_t sums[33]) {
  uint32_t n = 0, care = needs_care(seen);
  float sum = pe_float(seen);
  PE_FOR_LANES(i, g->mask) {
    uint32_t a = get_u32(g->a, i);
    sums[n++] = pe_float_bits(sum);
    sum += pe_float(a);
    care |= needs_care(a) | needs_care(pe_float_bits(sum));
  }
  sums[n] = pe_float_bits(sum);
  return care ? 0 : n;
}

static void sum_f32(const pe_atom_lanes *g) {
  uint32_t *p = (uint32_t *)(uintptr_t)g->addr[FIRST(g->mask)], seen = __atomic_load_n(p, __ATOMIC_SEQ_CST), next;
  do {
    uint32_t sums[33], n = plain_sums(g, seen, sums);
    next = n ? sums[n] : replay_u32(g, PE_ATOM_FADD, PE_TYPE_F32, seen, g->old);
    if (n && g->old) {
      n = 0;
      PE_FOR_LANES(i, g->mask) put_u32(g->old, i, sums[n++]);
    }
    if (!g->locked) {
      *p = next;
      return;
    }
  } while (!__atomic_compare_exchange_n(p, &seen, next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
}

/* At least two lanes, all on the address of the first. */
static bool same_address(const pe_atom_lanes *g) {
  if (g->one_address) return true;
  uint64_t address = g->addr[FIRST(g->mask)];
  if (!(g->mask & (g->mask - 1))) return false;
  PE_FOR_LANES(i, g->mask)
    if (g->addr[i] != address) return false;
  return true;
}

#define HOT(NAME, OP, TYPE) \
  case OP: lanes_##NAME(g, one, OP, TYPE); return

static void run_u32(const pe_atom_lanes *g) {
  bool one = same_address(g);
  if (g->op == PE_ATOM_FADD && g->type == PE_TYPE_F32) {
    if (one)
      sum_f32(g);
    else
      each_u32(g, PE_ATOM_FADD, PE_TYPE_F32);
    return;
  }
  if (g->op == PE_ATOM_FADD && g->type == PE_TYPE_F16X2) {
    lanes_u32(g, one, PE_ATOM_FADD, PE_TYPE_F16X2);
    return;
  }
  switch (g->op) {
    HOT(u32, PE_ATOM_ADD, PE_TYPE_U32);
    HOT(u32, PE_ATOM_UMIN, PE_TYPE_U32);
    HOT(u32, PE_ATOM_UMAX, PE_TYPE_U32);
    HOT(u32, PE_ATOM_SMIN, PE_TYPE_U32);
    HOT(u32, PE_ATOM_SMAX, PE_TYPE_U32);
    HOT(u32, PE_ATOM_AND, PE_TYPE_U32);
    HOT(u32, PE_ATOM_OR, PE_TYPE_U32);
    HOT(u32, PE_ATOM_XOR, PE_TYPE_U32);
    HOT(u32, PE_ATOM_INC_WRAP, PE_TYPE_U32);
    HOT(u32, PE_ATOM_XCHG, PE_TYPE_U32);
    HOT(u32, PE_ATOM_CAS, PE_TYPE_U32);
    default: lanes_u32(g, one, g->op, g->type);
  }
}

static void run_u64(const pe_atom_lanes *g) {
  bool one = same_address(g);
  if (g->op == PE_ATOM_FADD) {
    lanes_u64(g, one, PE_ATOM_FADD, PE_TYPE_F64);
    return;
  }
  switch (g->op) {
    HOT(u64, PE_ATOM_ADD, PE_TYPE_U64);
    HOT(u64, PE_ATOM_UMIN, PE_TYPE_U64);
    HOT(u64, PE_ATOM_UMAX, PE_TYPE_U64);
    HOT(u64, PE_ATOM_XCHG, PE_TYPE_U64);
    HOT(u64, PE_ATOM_CAS, PE_TYPE_U64);
    default: lanes_u64(g, one, g->op, g->type);
  }
}

static void run_u16(const pe_atom_lanes *g) { lanes_u16(g, same_address(g), g->op, g->type); }

/* Vectors and 16-byte elements: element by element. */
static void run_elements(const pe_atom_lanes *g, uint32_t bytes) {
  PE_FOR_LANES(i, g->mask) {
    for (uint32_t e = 0; e < g->count; e++) {
      size_t at = ((size_t)i * g->count + e) * bytes;
      void *p = (void *)(uintptr_t)(g->addr[i] + e * bytes);
      pe_atom_update(p, g->op, g->type, g->flags, g->a ? g->a + at : NULL, g->b ? g->b + at : NULL,
                     g->old ? g->old + at : NULL, g->locked);
    }
  }
}

void pe_atom_run(const pe_atom_lanes *g) {
  if (!g->mask) return;
  uint32_t bytes = pe_atom_bytes(g->type);
  if (g->count > 1 || bytes == 16)
    run_elements(g, bytes);
  else if (bytes == 4)
    run_u32(g);
  else if (bytes == 8)
    run_u64(g);
  else
    run_u16(g);
}
