/* sha256.c: SHA-256 as FIPS 180-4 has it. */
#include <string.h>
#include "sha256.h"

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes, and of the square roots of the first 8. */
static const uint32_t K[64] = {
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
  0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
  0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
  0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
  0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
  0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};
static const uint32_t START[8] = {
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

static uint32_t rotated(uint32_t value, int bits) { return value >> bits | value << (32 - bits); }

static uint32_t word_at(const uint8_t *bytes) {
  return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void put_word(uint8_t *bytes, uint32_t word) {
  for (int i = 0; i < 4; i++) bytes[i] = (uint8_t)(word >> (24 - 8 * i));
}

static void expand(const uint8_t *block, uint32_t w[64]) {
  for (int t = 0; t < 16; t++) w[t] = word_at(block + 4 * t);
  for (int t = 16; t < 64; t++) {
    uint32_t a = w[t - 15], b = w[t - 2];
    uint32_t s0 = rotated(a, 7) ^ rotated(a, 18) ^ a >> 3, s1 = rotated(b, 17) ^ rotated(b, 19) ^ b >> 10;
    w[t] = s1 + w[t - 7] + s0 + w[t - 16];
  }
}

static void compress(uint32_t state[8], const uint8_t *block) {
  uint32_t words[64];
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
  expand(block, words);
#pragma GCC unroll 8 /* so that the variables below need not move */
  for (int t = 0; t < 64; t++) {
    uint32_t sum1 = rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25), choice = (e & f) ^ (~e & g);
    uint32_t sum0 = rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22), majority = (a & b) ^ (a & c) ^ (b & c);
    uint32_t t1 = h + sum1 + choice + K[t] + words[t];
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + sum0 + majority;
  }
  state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

void pe_sha256_begin(pe_sha256 *hash) {
  memcpy(hash->state, START, sizeof START);
  hash->bytes = 0;
}

void pe_sha256_add(pe_sha256 *hash, const void *data, size_t size) {
  const uint8_t *bytes = data;
  size_t waiting = hash->bytes % PE_BLOCK_BYTES;
  hash->bytes += size;
  if (waiting) {
    size_t taken = size < PE_BLOCK_BYTES - waiting ? size : PE_BLOCK_BYTES - waiting;
    if (taken) memcpy(hash->block + waiting, bytes, taken);
    bytes += taken;
    size -= taken;
    if (waiting + taken < PE_BLOCK_BYTES) return;
    compress(hash->state, hash->block);
  }
  for (; size >= PE_BLOCK_BYTES; bytes += PE_BLOCK_BYTES, size -= PE_BLOCK_BYTES) compress(hash->state, bytes);
  if (size) memcpy(hash->block, bytes, size);
}

void pe_sha256_end(pe_sha256 *hash, uint8_t digest[PE_DIGEST_BYTES]) {
  uint64_t bits = hash->bytes * 8;
  size_t zeros = (2 * PE_BLOCK_BYTES - 9 - hash->bytes % PE_BLOCK_BYTES) % PE_BLOCK_BYTES;
  uint8_t end[PE_BLOCK_BYTES + 9] = {0x80};
  put_word(end + 1 + zeros, (uint32_t)(bits >> 32));
  put_word(end + 5 + zeros, (uint32_t)bits);
  pe_sha256_add(hash, end, zeros + 9);
  for (int i = 0; i < 8; i++) put_word(digest + 4 * i, hash->state[i]);
}
