/* server.h: the compile server, seen by the program (ptxemu/serve). */
#ifndef PTXEMU_CUDA_SERVER_H
#define PTXEMU_CUDA_SERVER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PX_COMPILED, PX_INVALID, PX_UNSUPPORTED, PX_FAILED };

typedef struct px_image {
  const void *data;
  size_t size;
  unsigned arch;
  const char *key; /* of the image's entry, which then holds the program's identity */
} px_image;

/* Start the server, without waiting for it, if it is likely to be asked: programs of Python make kernels as they run, and if some have been
 * compiled lately, or none ever, others will be. Until then it imports what it needs. */
void px_server_expect(void);

/* Begin to read an image, and to compile its kernels; the answer is waited for by px_compile. */
void px_server_prepare(const px_image *image);

/* Have an image described (kernel NULL), or a kernel of it compiled for a shape of blocks: what is made lies in the cache.
 * PX_*; `text` then says what is wrong. The caller frees it; it is never NULL unless memory is short. */
int px_compile(const px_image *image, const char *kernel, const uint32_t block[3], char **text);

/* Have perf told of code that is in the cache under a key, whose section lies at an address; false: `text` says why, as above. */
bool px_server_placed(const char *key, const char *kernel, uint64_t section, char **text);

/* Findings in a kernel of an image: `size` bytes of pe_finding; false: the server cannot take them. */
bool px_server_found(const px_image *image, const char *kernel, const void *findings, size_t size);

/* Have all that was found told, with more findings that are in no kernel, and what was checked, a pe_checked: the number of findings that were told, or -1. */
int px_server_report(const void *counts, size_t size, const void *findings, size_t findings_size);

/* Have the server end, if there is one. */
void px_server_stop(void);

#endif
