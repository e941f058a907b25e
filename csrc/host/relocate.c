/* relocate.c: the relocations of our objects (x86-64 psABI; ELF for the Arm 64-bit architecture). */
#include <elf.h>
#include <string.h>
#include "code.h"

#define JUMP_X86_64 "\xff\x25\0\0\0\0"            /* jmp *0(%rip) */
#define JUMP_AARCH64 "\x50\0\0\x58\0\x02\x1f\xd6" /* ldr x16, .+8; br x16 */

static bool fits(int64_t value, int bits) { return value >> (bits - 1) == 0 || value >> (bits - 1) == -1; }

static void put32(void *place, uint32_t value) { memcpy(place, &value, sizeof value); }

/* ---- x86-64 ---- */

static int relocate_x86_64(uint32_t type, void *place, uint64_t at, uint64_t value) {
  int64_t distance = (int64_t)(value - at);
  if (type == R_X86_64_64) {
    memcpy(place, &value, sizeof value);
    return 0;
  }
  if (!fits(distance, 32)) return -1;
  put32(place, (uint32_t)distance);
  return 0;
}

/* ---- AArch64 ---- */

/* Replace the bits of `mask` in an instruction. */
static void put_bits(void *place, uint32_t mask, uint32_t bits) {
  uint32_t word;
  memcpy(&word, place, sizeof word);
  put32(place, (word & ~mask) | (bits & mask));
}

/* log2 of what an offset of 12 bits counts, or -1. */
static int low12_scale(uint32_t type) {
  switch (type) {
    case R_AARCH64_ADD_ABS_LO12_NC:
    case R_AARCH64_LDST8_ABS_LO12_NC: return 0;
    case R_AARCH64_LDST16_ABS_LO12_NC: return 1;
    case R_AARCH64_LDST32_ABS_LO12_NC: return 2;
    case R_AARCH64_LDST64_ABS_LO12_NC: return 3;
    case R_AARCH64_LDST128_ABS_LO12_NC: return 4;
    default: return -1;
  }
}

static int put_page(void *place, uint64_t at, uint64_t value) {
  int64_t pages = (int64_t)((value & ~0xfffull) - (at & ~0xfffull)) >> 12;
  if (!fits(pages, 21)) return -1;
  put_bits(place, 3u << 29 | 0x7ffffu << 5, ((uint32_t)pages & 3) << 29 | (((uint32_t)pages >> 2) & 0x7ffff) << 5);
  return 0;
}

static int relocate_aarch64(uint32_t type, void *place, uint64_t at, uint64_t value) {
  int64_t distance = (int64_t)(value - at);
  int scale = low12_scale(type);
  if (type == R_AARCH64_ABS64) {
    memcpy(place, &value, sizeof value);
    return 0;
  }
  if (type == R_AARCH64_ADR_PREL_PG_HI21) return put_page(place, at, value);
  if (type == R_AARCH64_PREL32) {
    if (!fits(distance, 32)) return -1;
    put32(place, (uint32_t)distance);
    return 0;
  }
  if (scale >= 0) {
    if (value & ((1u << scale) - 1)) return -1;
    put_bits(place, 0xfffu << 10, (uint32_t)(value & 0xfff) >> scale << 10);
    return 0;
  }
  if ((distance & 3) || !fits(distance, 28)) return -1;
  put_bits(place, 0x3ffffff, (uint32_t)(distance >> 2));
  return 0;
}

/* ---- both ---- */

uint32_t pe_relocation_bytes(uint32_t machine, uint32_t type) {
  if (machine == EM_X86_64) return type == R_X86_64_64 ? 8 : type == R_X86_64_PC32 || type == R_X86_64_PLT32 ? 4 : 0;
  if (machine != EM_AARCH64) return 0;
  if (type == R_AARCH64_ABS64) return 8;
  bool known = type == R_AARCH64_PREL32 || type == R_AARCH64_ADR_PREL_PG_HI21 || low12_scale(type) >= 0;
  return known || pe_relocation_is_call(machine, type) ? 4 : 0;
}

bool pe_relocation_is_call(uint32_t machine, uint32_t type) {
  if (machine == EM_X86_64) return type == R_X86_64_PLT32;
  return machine == EM_AARCH64 && (type == R_AARCH64_CALL26 || type == R_AARCH64_JUMP26);
}

int pe_relocate(uint32_t machine, uint32_t type, void *place, uint64_t at, uint64_t value) {
  if (!pe_relocation_bytes(machine, type)) return -1;
  return machine == EM_X86_64 ? relocate_x86_64(type, place, at, value) : relocate_aarch64(type, place, at, value);
}

void pe_jump(uint32_t machine, void *place, uint64_t target) {
  uint8_t *bytes = place;
  size_t size = machine == EM_X86_64 ? sizeof JUMP_X86_64 - 1 : sizeof JUMP_AARCH64 - 1;
  memcpy(bytes, machine == EM_X86_64 ? JUMP_X86_64 : JUMP_AARCH64, size);
  memcpy(bytes + size, &target, sizeof target);
}
