/* atomic.c: one atomic update of one element. */
#include "atomic.h"

uint32_t pe_atom_bytes(uint32_t type) {
  switch (type) {
    case PE_TYPE_U8:
    case PE_TYPE_S8: return 1;
    case PE_TYPE_B128: return 16;
    default: return pe_type_bits(type) / 8;
  }
}

int pe_atom_legal(uint32_t op, uint32_t type) {
  if (op > PE_ATOM_FMAX || type > PE_TYPE_B128 || type == PE_TYPE_U8 || type == PE_TYPE_S8) return 0;
  bool is_float = type >= PE_TYPE_F16 && type <= PE_TYPE_BF16X2, is_pair = type == PE_TYPE_F16X2 || type == PE_TYPE_BF16X2;
  if (pe_op_is_float(op)) return is_float && !(op == PE_ATOM_FCAS && is_pair);
  if (type == PE_TYPE_B128) return op == PE_ATOM_XCHG || op == PE_ATOM_CAS;
  return !is_float;
}

/* ---- 16 bytes: never a lock, which would not be atomic against narrower accesses ----------------------------------- */

typedef struct pair {
  uint64_t low, high;
} pair;

static pair load_pair(const void *bytes) {
  pair value;
  memcpy(&value, bytes, sizeof value);
  return value;
}

#if defined(__x86_64__)
static bool compare_exchange_pair(void *memory, pair *expected, pair desired) {
  bool done;
  __asm__ __volatile__("lock cmpxchg16b %1"
                       : "=@ccz"(done), "+m"(*(pair *)memory), "+a"(expected->low), "+d"(expected->high)
                       : "b"(desired.low), "c"(desired.high)
                       : "memory");
  return done;
}
#elif defined(__aarch64__)
static bool pair_equal(pair x, pair y) { return x.low == y.low && x.high == y.high; }

static bool compare_exchange_pair(void *memory, pair *expected, pair desired) {
  pair seen;
  uint32_t failed;
  do {
    __asm__ __volatile__("ldaxp %0, %1, [%2]" : "=&r"(seen.low), "=&r"(seen.high) : "r"(memory) : "memory");
    bool equal = pair_equal(seen, *expected);
    /* Store what was seen on a mismatch: only a successful store proves that the pair was read at once. */
    pair value = equal ? desired : seen;
    __asm__ __volatile__("stlxp %w0, %1, %2, [%3]"
                         : "=&r"(failed)
                         : "r"(value.low), "r"(value.high), "r"(memory)
                         : "memory");
  } while (failed);
  bool done = pair_equal(seen, *expected);
  *expected = seen;
  return done;
}
#else
#error "ptxemu needs a 16-byte compare-and-swap: x86-64 or aarch64"
#endif

static void update_pair(void *memory, uint32_t op, const void *a, const void *b, void *old) {
  pair operand = load_pair(a), seen = {0, 0};
  if (op == PE_ATOM_CAS) {
    seen = operand;
    compare_exchange_pair(memory, &seen, load_pair(b));
  } else {
    while (!compare_exchange_pair(memory, &seen, operand)) {
    }
  }
  if (old) memcpy(old, &seen, sizeof seen);
}

/* ---- up to 8 bytes -------------------------------------------------------------------------------------------------- */

uint64_t pe_apply_any(uint32_t op, uint32_t type, uint32_t flags, uint64_t old, uint64_t a, uint64_t b) {
  return pe_apply_known(op, type, flags, old, a, b);
}

static uint64_t read_element(const void *bytes, uint32_t size) {
  uint64_t value = 0;
  if (bytes) memcpy(&value, bytes, size);
  return value;
}

void pe_atom_update(void *memory, uint32_t op, uint32_t type, uint32_t flags, const void *a, const void *b, void *old,
                    int locked) {
  if (type == PE_TYPE_B128) {
    update_pair(memory, op, a, b, old);
    return;
  }
  uint32_t size = pe_atom_bytes(type);
  uint64_t x = read_element(a, size), y = read_element(b, size), value;
  switch (size) {
    case 2: value = pe_update_u16(memory, op, type, flags, (uint16_t)x, (uint16_t)y, locked); break;
    case 4: value = pe_update_u32(memory, op, type, flags, (uint32_t)x, (uint32_t)y, locked); break;
    default: value = pe_update_u64(memory, op, type, flags, x, y, locked); break;
  }
  if (op == PE_ATOM_PREDEC) value = pe_apply(op, type, flags, value, x, y);
  if (old) memcpy(old, &value, size);
}
