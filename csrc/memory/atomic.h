/* atomic.h: what an atomic operation computes, as pure functions of register bits, and the lanes of one instruction. */
#ifndef PTXEMU_ATOMIC_H
#define PTXEMU_ATOMIC_H
#include <stdbool.h>
#include "format.h"
#include "surface.h"
#include "types.h"

#define PE_LAST_LANE(mask) (31 - (uint32_t)__builtin_clz(mask))

/* For each lane i of a mask, ascending. */
#define PE_FOR_LANES(i, mask) \
  for (uint32_t rest_ = (mask), i; rest_ && (i = (uint32_t)__builtin_ctz(rest_), true); rest_ &= rest_ - 1)

/* The leading lanes of mask that have the handle of its first lane. */
PE_INLINE uint32_t pe_same_handle(const uint64_t *handle, uint32_t mask) {
  uint64_t first = handle[__builtin_ctz(mask)], differ = 0;
  for (uint32_t i = 0; i < 32; i++) differ |= handle[i] ^ first;
  if (!differ) return mask;
  PE_FOR_LANES(i, mask)
    if (handle[i] != first) return mask & ((1u << i) - 1);
  return mask;
}

/* ---- floats: one description of each format ------------------------------------------------------------------------ */

typedef struct pe_float_kind {
  uint32_t bits;
  uint64_t infinity; /* also the mask of the exponent */
} pe_float_kind;

PE_INLINE pe_float_kind pe_float_kind_of(uint32_t type) {
  switch (type) {
    case PE_TYPE_F16: return (pe_float_kind){16, 0x7c00};
    case PE_TYPE_BF16: return (pe_float_kind){16, 0x7f80};
    case PE_TYPE_F32: return (pe_float_kind){32, 0x7f800000};
    default: return (pe_float_kind){64, 0x7ff0000000000000};
  }
}

PE_INLINE uint64_t pe_low_mask(uint32_t bits) { return ~0ull >> (64 - bits); }
PE_INLINE uint64_t pe_float_sign(pe_float_kind k) { return 1ull << (k.bits - 1); }
PE_INLINE uint64_t pe_float_magnitude(pe_float_kind k, uint64_t x) { return x & (pe_float_sign(k) - 1); }
PE_INLINE bool pe_float_nan(pe_float_kind k, uint64_t x) { return pe_float_magnitude(k, x) > k.infinity; }
PE_INLINE uint64_t pe_float_flush(pe_float_kind k, uint64_t x) { return x & k.infinity ? x : x & pe_float_sign(k); }

/* CUDA's canonical NaN is all ones but the sign; the IEEE default and that of f64 has the top significand bit only. */
PE_INLINE uint64_t pe_float_default_nan(pe_float_kind k, uint32_t flags) {
  uint64_t unit = k.infinity & (0 - k.infinity);
  return flags & PE_ATOM_QUIET_NAN || k.bits == 64 ? k.infinity | unit >> 1 : pe_float_sign(k) - 1;
}

/* Sums of f64 that are NaN, as an H200 has them: global memory takes an operand's bits as they are, the new one's first; what
 * adds in shared memory is an ordinary addition. */
PE_INLINE uint64_t pe_double_nan(uint32_t flags, uint64_t old, uint64_t a) {
  const pe_float_kind k = pe_float_kind_of(PE_TYPE_F64);
  const uint64_t quiet = 1ull << 51, invalid = 0xfff8000000000000;
  bool old_nan = pe_float_nan(k, old), a_nan = pe_float_nan(k, a);
  if (!old_nan && !a_nan) return invalid;
  if (flags & PE_ATOM_OLD_NAN) return (old_nan ? old : a) | quiet;
  return a_nan ? a : old;
}

/* Rounded to nearest even.  A sum of two 16-bit floats rounds twice, which is harmless: 24 >= 2 * 11 + 2 bits. */
PE_INLINE uint64_t pe_float_sum(uint32_t type, uint64_t x, uint64_t y) {
  switch (type) {
    case PE_TYPE_F16: return pe_f16_bits(pe_float_bits(pe_f16_value((uint16_t)x) + pe_f16_value((uint16_t)y)));
    case PE_TYPE_BF16: return pe_bf16_bits(pe_float_bits(pe_bf16_value((uint16_t)x) + pe_bf16_value((uint16_t)y)));
    case PE_TYPE_F32: return pe_float_bits(pe_float((uint32_t)x) + pe_float((uint32_t)y));
    default: return pe_double_bits(pe_double(x) + pe_double(y));
  }
}

PE_INLINE uint64_t pe_float_add(uint32_t type, uint32_t flags, uint64_t old, uint64_t a) {
  pe_float_kind k = pe_float_kind_of(type);
  bool flush = flags & PE_ATOM_FTZ;
  if (flush) old = pe_float_flush(k, old), a = pe_float_flush(k, a);
  uint64_t sum = pe_float_sum(type, old, a);
  if (pe_float_nan(k, sum))
    return k.bits == 64 && !(flags & PE_ATOM_QUIET_NAN) ? pe_double_nan(flags, old, a) : pe_float_default_nan(k, flags);
  return flush ? pe_float_flush(k, sum) : sum;
}

/* A number that orders floats as signed integers, -0 before +0. */
PE_INLINE int64_t pe_float_order(pe_float_kind k, uint64_t x) {
  int64_t magnitude = (int64_t)pe_float_magnitude(k, x);
  return x & pe_float_sign(k) ? ~magnitude : magnitude;
}

PE_INLINE uint64_t pe_float_extreme(uint32_t type, uint32_t flags, uint64_t old, uint64_t a, bool largest) {
  pe_float_kind k = pe_float_kind_of(type);
  bool old_nan = pe_float_nan(k, old), a_nan = pe_float_nan(k, a);
  if (a_nan && flags & PE_ATOM_KEEP_OLD) return old;
  if (flags & PE_ATOM_FTZ) old = pe_float_flush(k, old), a = pe_float_flush(k, a);
  if (a_nan) return old_nan ? pe_float_default_nan(k, flags) : old;
  if (old_nan) return a;
  return (pe_float_order(k, a) > pe_float_order(k, old)) == largest ? a : old;
}

PE_INLINE bool pe_float_equal(uint32_t type, uint64_t x, uint64_t y) {
  pe_float_kind k = pe_float_kind_of(type);
  if (pe_float_nan(k, x) || pe_float_nan(k, y)) return false;
  return x == y || (pe_float_magnitude(k, x) | pe_float_magnitude(k, y)) == 0;
}

/* ---- every operation up to 64 bits --------------------------------------------------------------------------------- */

PE_INLINE uint32_t pe_type_bits(uint32_t type) {
  switch (type) {
    case PE_TYPE_U16:
    case PE_TYPE_S16:
    case PE_TYPE_B16:
    case PE_TYPE_F16:
    case PE_TYPE_BF16: return 16;
    case PE_TYPE_U64:
    case PE_TYPE_S64:
    case PE_TYPE_B64:
    case PE_TYPE_F64: return 64;
    default: return 32;
  }
}

PE_INLINE uint64_t pe_apply_float(uint32_t op, uint32_t type, uint32_t flags, uint64_t old, uint64_t a, uint64_t b) {
  switch (op) {
    case PE_ATOM_FADD: return pe_float_add(type, flags, old, a);
    case PE_ATOM_FMIN: return pe_float_extreme(type, flags, old, a, false);
    case PE_ATOM_FMAX: return pe_float_extreme(type, flags, old, a, true);
    default: return pe_float_equal(type, old, a) ? b : old;
  }
}

PE_INLINE uint64_t pe_apply_int(uint32_t op, uint32_t bits, uint64_t old, uint64_t a, uint64_t b) {
  uint64_t mask = pe_low_mask(bits);
  int64_t so = (int64_t)(old << (64 - bits)), sa = (int64_t)(a << (64 - bits));
  switch (op) {
    case PE_ATOM_ADD: return (old + a) & mask;
    case PE_ATOM_SUB: return (old - a) & mask;
    case PE_ATOM_UMIN: return a < old ? a : old;
    case PE_ATOM_UMAX: return a > old ? a : old;
    case PE_ATOM_SMIN: return sa < so ? a : old;
    case PE_ATOM_SMAX: return sa > so ? a : old;
    case PE_ATOM_AND: return old & a;
    case PE_ATOM_OR: return old | a;
    case PE_ATOM_XOR: return old ^ a;
    case PE_ATOM_INC_WRAP: return old >= a ? 0 : old + 1;
    case PE_ATOM_DEC_WRAP: return old == 0 || old > a ? a : old - 1;
    case PE_ATOM_INC: return (old + 1) & mask;
    case PE_ATOM_DEC:
    case PE_ATOM_PREDEC: return (old - 1) & mask;
    case PE_ATOM_XCHG: return a;
    default: return old == a ? b : old;
  }
}

PE_INLINE bool pe_op_is_float(uint32_t op) { return op >= PE_ATOM_FCAS; }

/* The value after the update; operands and result are zero-extended register bits. */
PE_INLINE uint64_t pe_apply_known(uint32_t op, uint32_t type, uint32_t flags, uint64_t old, uint64_t a, uint64_t b) {
  if (!pe_op_is_float(op)) return pe_apply_int(op, pe_type_bits(type), old, a, b);
  if (type != PE_TYPE_F16X2 && type != PE_TYPE_BF16X2) return pe_apply_float(op, type, flags, old, a, b);
  uint32_t half = type == PE_TYPE_F16X2 ? PE_TYPE_F16 : PE_TYPE_BF16;
  uint64_t low = pe_apply_float(op, half, flags, old & 0xffff, a & 0xffff, b & 0xffff);
  uint64_t high = pe_apply_float(op, half, flags, old >> 16, a >> 16, b >> 16);
  return low | high << 16;
}

/* The same as one function of the runtime. */
uint64_t pe_apply_any(uint32_t op, uint32_t type, uint32_t flags, uint64_t old, uint64_t a, uint64_t b);

/* Inlined where the compiler knows the operation; elsewhere that would be all operations at each place. */
PE_INLINE uint64_t pe_apply(uint32_t op, uint32_t type, uint32_t flags, uint64_t old, uint64_t a, uint64_t b) {
  if (__builtin_constant_p(op) && __builtin_constant_p(type)) return pe_apply_known(op, type, flags, old, a, b);
  return pe_apply_any(op, type, flags, old, a, b);
}

PE_INLINE bool pe_op_is_combinable(uint32_t op) { return op <= PE_ATOM_XOR && op != PE_ATOM_SUB; }

/* Update an element of 2, 4 or 8 bytes; returns the old value.  Inlined with a constant op it is the native instruction. */
#define PE_DEFINE_UPDATE(T, NAME)                                                                                 \
  PE_INLINE T pe_update_##NAME(T *p, uint32_t op, uint32_t type, uint32_t flags, T a, T b, bool locked) {         \
    T seen;                                                                                                       \
    if (!locked) {                                                                                                \
      seen = *p;                                                                                                  \
      *p = (T)pe_apply(op, type, flags, seen, a, b);                                                              \
      return seen;                                                                                                \
    }                                                                                                             \
    switch (op) {                                                                                                 \
      case PE_ATOM_ADD: return __atomic_fetch_add(p, a, __ATOMIC_SEQ_CST);                                        \
      case PE_ATOM_SUB: return __atomic_fetch_sub(p, a, __ATOMIC_SEQ_CST);                                        \
      case PE_ATOM_AND: return __atomic_fetch_and(p, a, __ATOMIC_SEQ_CST);                                        \
      case PE_ATOM_OR: return __atomic_fetch_or(p, a, __ATOMIC_SEQ_CST);                                          \
      case PE_ATOM_XOR: return __atomic_fetch_xor(p, a, __ATOMIC_SEQ_CST);                                        \
      case PE_ATOM_XCHG: return __atomic_exchange_n(p, a, __ATOMIC_SEQ_CST);                                      \
      default: break;                                                                                             \
    }                                                                                                             \
    seen = __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                                  \
    for (;;) {                                                                                                    \
      T next = (T)pe_apply(op, type, flags, seen, a, b);                                                          \
      /* Nothing to store when the value stays: reading it was the update. */                                     \
      if (next == seen || __atomic_compare_exchange_n(p, &seen, next, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) \
        return seen;                                                                                              \
    }                                                                                                             \
  }
PE_DEFINE_UPDATE(uint16_t, u16)
PE_DEFINE_UPDATE(uint32_t, u32)
PE_DEFINE_UPDATE(uint64_t, u64)

/* ---- the lanes of one instruction ---------------------------------------------------------------------------------- */

typedef struct pe_atom_lanes {
  uint32_t op, type, flags;
  uint32_t count;       /* elements of a lane */
  uint32_t mask;        /* lanes to update, in ascending order */
  bool one_address;     /* known to be common to all lanes, at least two; false: not known */
  bool locked;          /* another thread may reach the memory */
  const uint64_t *addr; /* 32 host addresses, aligned to the element */
  const uint8_t *a, *b; /* [lane][element]; b may be NULL where op has one operand */
  uint8_t *old;         /* [lane][element], or NULL */
} pe_atom_lanes;

/* Update memory for every lane. */
void pe_atom_run(const pe_atom_lanes *lanes);

#endif
