/* round.c: arithmetic and conversions under a rounding mode other than the compiled code's.
 *
 * Operands and results pass through volatile memory between the two changes of mode, so no compiler moves or folds the
 * operation; one operation is one IEEE operation of the host.
 */
#include <fenv.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "half.h"
#include "internal.h"

enum { OP_ADD, OP_SUB, OP_MUL, OP_FMA, OP_DIV, OP_SQRT, OP_RCP };

static int host_mode(uint32_t mode) {
  static const int MODES[] = {[PE_RN] = FE_TONEAREST, [PE_RZ] = FE_TOWARDZERO, [PE_RM] = FE_DOWNWARD, [PE_RP] = FE_UPWARD};
  return MODES[mode & 3];
}

/* ---- arithmetic ---- */

#define DEFINE_ROUND(name, T, FMA, SQRT)                                                                                    \
  static void name(uint32_t op, uint32_t n, volatile T *d, const volatile T *a, const volatile T *b, const volatile T *c) { \
    for (uint32_t i = 0; i < n; i++) {                                                                                      \
      switch (op) {                                                                                                         \
        case OP_ADD: d[i] = a[i] + b[i]; break;                                                                             \
        case OP_SUB: d[i] = a[i] - b[i]; break;                                                                             \
        case OP_MUL: d[i] = a[i] * b[i]; break;                                                                             \
        case OP_FMA: d[i] = FMA(a[i], b[i], c[i]); break;                                                                   \
        case OP_DIV: d[i] = a[i] / b[i]; break;                                                                             \
        case OP_SQRT: d[i] = SQRT(a[i]); break;                                                                             \
        case OP_RCP: d[i] = (T)1 / a[i]; break;                                                                             \
        default: abort();                                                                                                   \
      }                                                                                                                     \
    }                                                                                                                       \
  }

DEFINE_ROUND(round_float, float, fmaf, sqrtf)
DEFINE_ROUND(round_double, double, fma, sqrt)

void pe_round(uint32_t op, uint32_t mode, uint32_t bits, uint32_t n, void *d, const void *a, const void *b, const void *c) {
  int before = fegetround();
  fesetround(host_mode(mode));
  if (bits == 32)
    round_float(op, n, d, a, b, c);
  else
    round_double(op, n, d, a, b, c);
  fesetround(before);
}

/* ---- conversions: every source is an exact integer or an exact double ---- */

typedef struct number {
  enum { SIGNED, UNSIGNED, FLOATING } kind;
  int64_t s;
  uint64_t u;
  double f;
} number;

static uint32_t bytes_of(uint32_t type) {
  switch (type) {
    case PE_TYPE_U8:
    case PE_TYPE_S8: return 1;
    case PE_TYPE_U16:
    case PE_TYPE_S16:
    case PE_TYPE_F16:
    case PE_TYPE_BF16: return 2;
    case PE_TYPE_U32:
    case PE_TYPE_S32:
    case PE_TYPE_F32: return 4;
    case PE_TYPE_U64:
    case PE_TYPE_S64:
    case PE_TYPE_F64: return 8;
    default: abort();
  }
}

static bool is_signed(uint32_t type) {
  return type == PE_TYPE_S8 || type == PE_TYPE_S16 || type == PE_TYPE_S32 || type == PE_TYPE_S64;
}

static bool is_float(uint32_t type) { return type >= PE_TYPE_F16 && type <= PE_TYPE_F64; }

static double read_float(uint32_t type, uint64_t bits) {
  uint32_t low = (uint32_t)bits;
  float single;
  double value;
  memcpy(&single, &low, sizeof single);
  memcpy(&value, &bits, sizeof value);
  switch (type) {
    case PE_TYPE_F16: return pe_double_from_half((uint16_t)bits);
    case PE_TYPE_BF16: return pe_double_from_bfloat((uint16_t)bits);
    case PE_TYPE_F32: return single;
    default: return value;
  }
}

static number read_number(uint32_t type, const uint8_t *from) {
  uint64_t bits = 0;
  uint32_t unused = 64 - 8 * bytes_of(type);
  memcpy(&bits, from, bytes_of(type));
  if (is_float(type)) return (number){.kind = FLOATING, .f = read_float(type, bits)};
  if (is_signed(type)) return (number){.kind = SIGNED, .s = (int64_t)(bits << unused) >> unused};
  return (number){.kind = UNSIGNED, .u = bits};
}

/* PTX ISA, cvt: saturate; NaN gives 0, or the value with only the top bit set where source or destination has 64 bits. */
static uint64_t integer_from_double(double value, uint32_t from, uint32_t to, uint32_t mode) {
  uint32_t bits = 8 * bytes_of(to);
  if (isnan(value)) return from == PE_TYPE_F64 || bits == 64 ? 1ull << (bits - 1) : 0;
  value = mode == PE_RN ? rint(value) : mode == PE_RZ ? trunc(value) : mode == PE_RM ? floor(value) : ceil(value);
  double top = ldexp(1, (int)bits - is_signed(to));
  if (is_signed(to)) {
    if (value < -top) return 1ull << (bits - 1);
    return value >= top ? (1ull << (bits - 1)) - 1 : (uint64_t)(int64_t)value;
  }
  return value <= 0 ? 0 : value >= top ? ~0ull : (uint64_t)value;
}

static double double_from_number(const number *x) {
  volatile int64_t s = x->s;
  volatile uint64_t u = x->u;
  volatile double d = x->kind == SIGNED ? (double)s : x->kind == UNSIGNED ? (double)u : x->f;
  return d;
}

static float float_from_number(const number *x) {
  volatile int64_t s = x->s;
  volatile uint64_t u = x->u;
  volatile double f = x->f;
  volatile float d = x->kind == SIGNED ? (float)s : x->kind == UNSIGNED ? (float)u : (float)f;
  return d;
}

/* A double that rounds like the number to any format of at most 51 bits: cut, with the last bit set where bits were lost. */
static double odd_double_from_number(const number *x) {
  if (x->kind == FLOATING) return x->f;
  uint64_t magnitude = x->kind == SIGNED && x->s < 0 ? 0 - (uint64_t)x->s : x->kind == SIGNED ? (uint64_t)x->s : x->u;
  uint64_t lost = magnitude & 0x7ff;
  if (magnitude >> 53) magnitude = (magnitude & ~0x7ffull) | (lost != 0) << 11;
  double value = (double)magnitude;
  return x->kind == SIGNED && x->s < 0 ? -value : value;
}

static uint64_t convert(const number *x, uint32_t from, uint32_t to, uint32_t mode) {
  uint64_t bits = 0;
  double wide;
  float single;
  switch (to) {
    case PE_TYPE_F16: return pe_half_from_double(odd_double_from_number(x), mode);
    case PE_TYPE_BF16: return pe_bfloat_from_double(odd_double_from_number(x), mode);
    case PE_TYPE_F32:
      single = float_from_number(x);
      memcpy(&bits, &single, sizeof single);
      return bits;
    case PE_TYPE_F64:
      wide = double_from_number(x);
      memcpy(&bits, &wide, sizeof wide);
      return bits;
    default:
      if (x->kind == FLOATING) return integer_from_double(x->f, from, to, mode);
      return x->kind == SIGNED ? (uint64_t)x->s : x->u;
  }
}

void pe_round_convert(uint32_t from, uint32_t to, uint32_t mode, uint32_t n, void *d, const void *a) {
  bool host_rounds = to == PE_TYPE_F32 || to == PE_TYPE_F64;
  int before = fegetround();
  if (host_rounds) fesetround(host_mode(mode));
  for (uint32_t i = 0; i < n; i++) {
    number x = read_number(from, (const uint8_t *)a + i * bytes_of(from));
    uint64_t bits = convert(&x, from, to, mode);
    memcpy((uint8_t *)d + i * bytes_of(to), &bits, bytes_of(to));
  }
  if (host_rounds) fesetround(before);
}
