/* sha256.h: SHA-256 (FIPS 180-4), of data that comes in pieces. */
#ifndef PTXEMU_SHA256_H
#define PTXEMU_SHA256_H
#include <stddef.h>
#include <stdint.h>

enum { PE_DIGEST_BYTES = 32, PE_BLOCK_BYTES = 64 };

typedef struct pe_sha256 {
  uint32_t state[8];
  uint64_t bytes;                /* hashed or waiting */
  uint8_t block[PE_BLOCK_BYTES]; /* what waits for more */
} pe_sha256;

void pe_sha256_begin(pe_sha256 *hash);
void pe_sha256_add(pe_sha256 *hash, const void *data, size_t size);
void pe_sha256_end(pe_sha256 *hash, uint8_t digest[PE_DIGEST_BYTES]);

#endif
