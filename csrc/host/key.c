/* key.c: keys of entries, and what they depend on beside the program. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "key.h"
#include "sha256.h"
#include "spread.h"
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

#define IDENTITY_BYTES 256
#define LANES 32

static void add_part(pe_sha256 *hash, const void *data, uint64_t size) {
  uint8_t length[8];
  for (int i = 0; i < 8; i++) length[i] = (uint8_t)(size >> 8 * i);
  pe_sha256_add(hash, length, sizeof length);
  pe_sha256_add(hash, data, size);
}

static void finish(pe_sha256 *hash, char *key) {
  uint8_t digest[PE_DIGEST_BYTES];
  pe_sha256_end(hash, digest);
  for (int i = 0; i < PE_DIGEST_BYTES; i++) snprintf(key + 2 * i, 3, "%02x", digest[i]);
}

void pe_key_of(const pe_part *parts, uint32_t count, char *key) {
  pe_sha256 hash;
  pe_sha256_begin(&hash);
  for (uint32_t i = 0; i < count; i++) add_part(&hash, parts[i].data, parts[i].size);
  finish(&hash, key);
}

void pe_key_of_texts(const char *const *texts, uint32_t count, char *key) {
  pe_sha256 hash;
  pe_sha256_begin(&hash);
  for (uint32_t i = 0; i < count; i++) add_part(&hash, texts[i], strlen(texts[i]));
  finish(&hash, key);
}

/* ---- the machine ---- */

#if defined(__x86_64__)
/* Leaves whose registers are the model and its features; bits of EBX in leaf 1 tell the processor that runs this, and are left out.
 * So are features that compiled code never uses and rr hides: what it records takes the same code as other runs. */
static void describe_machine(char *out) {
  static const struct {
    uint32_t leaf, subleaf, registers; /* bits: EAX EBX ECX EDX */
    uint32_t hidden[4];
  } leaves[] = {{1, 0, 13, {[2] = bit_RDRND}},
                {7, 0, 14, {[1] = bit_RDSEED | bit_RTM}},
                {7, 1, 15, {0}},
                {13, 1, 1, {bit_XSAVEOPT}},
                {0x14, 0, 2, {0}},
                {0x19, 0, 2, {0}},
                {0x80000001, 0, 12, {0}},
                {0x80000008, 0, 2, {0}}};
  int used = snprintf(out, IDENTITY_BYTES, "x86-64");
  for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++) {
    uint32_t found[4] = {0};
    __get_cpuid_count(leaves[i].leaf, leaves[i].subleaf, &found[0], &found[1], &found[2], &found[3]);
    for (int j = 0; j < 4; j++)
      if (leaves[i].registers >> j & 1)
        used += snprintf(out + used, IDENTITY_BYTES - (size_t)used, " %x", found[j] & ~leaves[i].hidden[j]);
  }
  uint32_t low = 0, high = 0, ecx = 0, unused;
  if (__get_cpuid(1, &unused, &unused, &ecx, &unused) && (ecx & bit_OSXSAVE)) /* which registers the system saves */
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  snprintf(out + used, IDENTITY_BYTES - (size_t)used, " %x", low);
}
#elif defined(__aarch64__)
static void describe_machine(char *out) {
  snprintf(out, IDENTITY_BYTES, "aarch64 %lx %lx", getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
}
#else
static void describe_machine(char *out) { snprintf(out, IDENTITY_BYTES, "unknown"); }
#endif

const char *pe_machine_identity(void) {
  static _Thread_local char identity[IDENTITY_BYTES];
  if (!identity[0]) describe_machine(identity);
  return identity;
}

/* ---- block shapes ---- */

enum { WARP, ROW, FIRST_NARROW, ANY = FIRST_NARROW + 5, SPREAD_ROW, FIRST_SPREAD };

/* Which power of two below the lanes of a warp a width of rows is, if warps have whole rows of one plane; ANY: none. */
static uint32_t narrow_of(uint32_t width, const uint32_t *block) {
  for (uint32_t i = 0; FIRST_NARROW + i < ANY; i++)
    if (width == 1u << i && (block[2] == 1 || (uint64_t)width * block[1] % LANES == 0)) return i;
  return ANY;
}

static uint32_t spread_kind_of(const uint32_t *block) {
  uint32_t width = pe_spread_width(block[0]), narrow = narrow_of(width, block);
  if (pe_warps_of_rows(block, width) > PE_MAX_WARPS) return ANY;
  if (width % LANES == 0) return SPREAD_ROW;
  return narrow == ANY ? ANY : FIRST_SPREAD + narrow - 2; /* of two lanes at least, two are no others */
}

static uint32_t kind_of(const uint32_t *block) {
  uint32_t x = block[0], y = block[1], z = block[2];
  if (x <= LANES && y == 1 && z == 1) return WARP;
  if ((y == 1 && z == 1) || x % LANES == 0) return ROW;
  uint32_t narrow = narrow_of(x, block);
  return narrow == ANY ? spread_kind_of(block) : FIRST_NARROW + narrow;
}

static bool is_full(uint32_t kind, const uint32_t *block) {
  return kind < PE_FULL_KINDS && (uint64_t)block[0] * block[1] * block[2] % LANES == 0;
}

uint32_t pe_variant_number(const uint32_t *block) {
  uint32_t kind = kind_of(block);
  return kind + (is_full(kind, block) ? PE_KINDS : 0);
}

const char *pe_variant_of(const uint32_t *block) {
  static const char *const names[PE_VARIANTS] = {"warp",      "row",        "x1",        "x2",         "x4",
                                                 "x8",        "x16",        "any",       "spread row", "spread x4",
                                                 "spread x8", "spread x16", "full warp", "full row",   "full x1",
                                                 "full x2",   "full x4",    "full x8",   "full x16",   "full any"};
  return names[pe_variant_number(block)];
}

void pe_code_block(const uint32_t *grid, const uint32_t *block, uint32_t *found) {
  static const uint32_t partial[PE_KINDS][3] = {{LANES - 1, 1, 1}, {LANES + 1, 1, 1}, {1, LANES + 1, 1},  {2, LANES + 1, 1},
                                                {4, LANES + 1, 1}, {8, LANES + 1, 1}, {16, LANES + 1, 1}, {3, 3, 3},
                                                {LANES + 1, 2, 1}, {3, 2, 1},         {5, 2, 1},          {9, 2, 1}};
  uint32_t kind = kind_of(block);
  bool serves = grid[0] < PE_FEW_BLOCKS || !is_full(kind, block);
  memcpy(found, serves ? block : partial[kind], 3 * sizeof *found);
}
