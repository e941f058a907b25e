#include "jump.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

void *px_copy_recorded(void *to, const void *from, size_t size) {
  const struct iovec target = {to, size}, source = {(void *)from, size};
  bool done = process_vm_readv(getpid(), &target, 1, &source, 1, 0) == (ssize_t)size;
  return done ? to : memcpy(to, from, size); /* containers may forbid the call */
}

#if defined __x86_64__

bool px_write_jump(void *function, const void *target, void *copy(void *, const void *, size_t)) {
  unsigned char jump[PX_JUMP_BYTES] = {0xff, 0x25, 0, 0, 0, 0}; /* jmp *0(%rip) */
  memcpy(jump + PX_JUMP_BYTES - sizeof target, &target, sizeof target);
  copy(function, jump, sizeof jump);
  return true;
}

#elif defined __aarch64__

enum { REACH = 127 << 20, STEP = 1 << 20 }; /* bytes: a branch goes 128 MiB; what is between places that are tried */

typedef struct far_jump {
  uint32_t code[2];
  const void *target;
} far_jump;

static const uint32_t landing = 0xd503245f; /* bti c */

/* The page with far jumps that was made last. The loader's lock protects it. */
static struct {
  far_jump *jumps;
  size_t count, room;
} island;

static bool reaches(const void *from, const void *to) {
  intptr_t distance = (intptr_t)to - (intptr_t)from;
  return distance > -REACH && distance < REACH;
}

/* A page at a place, if nothing else lies there. */
static void *page_at(uintptr_t place, size_t size) {
  void *page = mmap((void *)place, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (page == MAP_FAILED) return NULL;
  if (page == (void *)place) return page;
  munmap(page, size); /* kernels before 4.17 take the place for a hint */
  return NULL;
}

static void *page_near(const void *function, size_t size) {
  const uintptr_t start = (uintptr_t)function / size * size;
  void *page = NULL;
  for (uintptr_t distance = STEP; !page && distance < REACH - size; distance += STEP) {
    page = page_at(start + distance, size);
    if (!page && start > distance) page = page_at(start - distance, size);
  }
  return page;
}

/* A place for a far jump that a branch reaches, or NULL. */
static far_jump *place_for(const void *function) {
  if (island.count == island.room || !reaches(function, island.jumps)) {
    const size_t size = (size_t)sysconf(_SC_PAGESIZE);
    far_jump *page = page_near(function, size);
    if (!page) return NULL;
    island.jumps = page;
    island.count = 0;
    island.room = size / sizeof *page;
  }
  return &island.jumps[island.count++];
}

static bool write_far_jump(far_jump *place, const void *target) {
  const size_t size = (size_t)sysconf(_SC_PAGESIZE);
  void *page = (void *)((uintptr_t)place / size * size);
  if (mprotect(page, size, PROT_READ | PROT_WRITE | PROT_EXEC)) return false; /* other threads may be in this page */
  *place = (far_jump){{0x58000050, 0xd61f0200}, target};                      /* ldr x16, 8; br x16 */
  __builtin___clear_cache((char *)place, (char *)(place + 1));
  return !mprotect(page, size, PROT_READ | PROT_EXEC);
}

bool px_write_jump(void *function, const void *target, void *copy(void *, const void *, size_t)) {
  far_jump *far = place_for(function);
  if (!far || !write_far_jump(far, target)) return false;
  uint32_t *at = function, first;
  copy(&first, at, sizeof first);
  if (first == landing) at++; /* where pointers to functions must lead */
  const uint32_t jump = 0x14000000 | ((uint32_t)(((intptr_t)far - (intptr_t)at) >> 2) & 0x3ffffff); /* b far */
  copy(at, &jump, sizeof jump);
  __builtin___clear_cache((char *)at, (char *)(at + 1));
  return true;
}

#endif
