/* arena_file.c: memory of an arena that is a file, which other processes can have. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>
#include "arena_blocks.h"
#include "checked.h"
#include "exclusive.h"

static uint64_t first_page(const pe_arena *arena, uint64_t address) { return address & ~(arena->page - 1); }

uint64_t pe_arena_pages(const pe_arena *arena, uint64_t address, uint64_t size) {
  return pe_round_up(pe_sum(address - first_page(arena, address), size), arena->page);
}

static int write_all(int file, uint64_t start, uint64_t length) {
  for (uint64_t done = 0; done < length;) {
    ssize_t written = pwrite(file, (const void *)(uintptr_t)(start + done), length - done, (off_t)done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written ? errno : EIO;
    done += (uint64_t)written;
  }
  return 0;
}

bool pe_arena_is_shared(const pe_arena *arena) { return arena->shared; }

bool pe_arena_shares(pe_arena *arena) {
  pe_lock();
  bool shares = pe_arena_is_shared(arena);
  pe_unlock();
  return shares;
}

static void share(pe_arena *arena) {
  arena->shared = true;
  pe_flight_share(arena);
}

void pe_arena_share(pe_arena *arena) {
  pe_lock();
  share(arena);
  pe_unlock();
}

static int back(pe_arena *arena, block *b, int file, bool keep) {
  uint64_t start = first_page(arena, b->address), length = pe_arena_pages(arena, b->address, b->size);
  share(arena);
  int error = keep ? write_all(file, start, length) : 0;
  if (error) return error;
  void *pages = mmap((void *)(uintptr_t)start, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
  if (pages == MAP_FAILED) return errno;
  b->backed = true;
  return 0;
}

int pe_arena_back(pe_arena *arena, uint64_t address, int file, int keep) {
  pe_lock();
  block *b = pe_block_of(arena, address);
  int error = b && pe_block_is_hosts(b) ? back(arena, b, file, keep) : EINVAL;
  pe_unlock();
  return error;
}
