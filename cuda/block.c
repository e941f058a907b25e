/* block.c: memory that graphs own. */
#include "px_block.h"
#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include "core.h"

const char px_memory_graph[] = "cudaGraphAddMemAllocNode";

struct px_block {
  uint64_t address, size;
  unsigned owners;
  bool taken, claimed;
};

/* What the device tells of all blocks. */
static struct {
  uint64_t used, most_used, reserved, most_reserved;
} totals;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *blocks; /* a tree, by their addresses */

static int compare(const void *a, const void *b) {
  const px_block *x = a, *y = b;
  return (x->address > y->address) - (x->address < y->address);
}

/* ---- with the lock held ---- */

static void count(uint64_t *sum, uint64_t *most, uint64_t size) {
  *sum += size;
  if (*sum > *most) *most = *sum;
}

/* Without its memory. */
static void forget(px_block *block) {
  tdelete(block, &blocks, compare);
  totals.reserved -= block->size;
  if (block->taken) totals.used -= block->size;
  block->address = 0;
  if (!block->owners) free(block);
}

static void end_if_unused(px_block *block) {
  if (block->owners || block->taken) return;
  if (!block->address) {
    free(block);
    return;
  }
  pe_arena_free(px_device_get()->parts.arena, block->address);
  forget(block);
}

static bool change(px_block *block, bool taken) {
  if (block->taken == taken || !block->address) return false;
  block->taken = taken;
  if (taken)
    count(&totals.used, &totals.most_used, block->size);
  else
    totals.used -= block->size;
  return true;
}

/* ---- blocks ---- */

/* The arena is about to go. */
static void forget_all(void) {
  pthread_mutex_lock(&lock);
  while (blocks) forget(*(px_block **)blocks);
  totals.most_used = totals.most_reserved = 0;
  pthread_mutex_unlock(&lock);
}

px_block *px_block_new(uint64_t size) {
  px_block *made = malloc(sizeof *made);
  px_at_reset(forget_all);
  if (made) *made = (px_block){.address = px_allocate(size, px_memory_graph), .size = size, .owners = 1};
  if (!made || !made->address) {
    free(made);
    return NULL;
  }
  pthread_mutex_lock(&lock);
  bool kept = tsearch(made, &blocks, compare);
  if (kept) count(&totals.reserved, &totals.most_reserved, size);
  pthread_mutex_unlock(&lock);
  if (kept) return made;
  pe_arena_free(px_device_get()->parts.arena, made->address);
  free(made);
  return NULL;
}

px_block *px_block_keep(px_block *block) {
  pthread_mutex_lock(&lock);
  block->owners++;
  pthread_mutex_unlock(&lock);
  return block;
}

void px_block_release(px_block *block) {
  if (!block) return;
  pthread_mutex_lock(&lock);
  block->owners--;
  end_if_unused(block);
  pthread_mutex_unlock(&lock);
}

px_block *px_block_at(const void *address) {
  const px_block wanted = {.address = (uint64_t)(uintptr_t)address};
  pthread_mutex_lock(&lock);
  px_block **found = tfind(&wanted, &blocks, compare), *block = found ? *found : NULL;
  if (block) block->owners++;
  pthread_mutex_unlock(&lock);
  return block;
}

uint64_t px_block_address(const px_block *block) { return block->address; }

uint64_t px_block_size(const px_block *block) { return block->size; }

bool px_block_take(px_block *block) {
  pthread_mutex_lock(&lock);
  bool changed = change(block, true);
  pthread_mutex_unlock(&lock);
  return changed;
}

bool px_block_give(px_block *block) {
  pthread_mutex_lock(&lock);
  bool changed = change(block, false);
  pthread_mutex_unlock(&lock);
  return changed;
}

bool px_block_claim(px_block *block) { return !__atomic_exchange_n(&block->claimed, true, __ATOMIC_SEQ_CST); }

void px_block_disclaim(px_block *block) { __atomic_store_n(&block->claimed, false, __ATOMIC_SEQ_CST); }

uint32_t px_block_value(const px_block *block) {
  pthread_mutex_lock(&lock);
  uint32_t value = block->address ? __atomic_load_n((uint32_t *)(uintptr_t)block->address, __ATOMIC_SEQ_CST) : 0;
  pthread_mutex_unlock(&lock);
  return value;
}

void px_block_set_value(px_block *block, uint32_t value) {
  pthread_mutex_lock(&lock);
  if (block->address) __atomic_store_n((uint32_t *)(uintptr_t)block->address, value, __ATOMIC_SEQ_CST);
  pthread_mutex_unlock(&lock);
}

/* ---- what is told of all of them ---- */

/* A sum, by the number of its attribute. */
static uint64_t *total(int attribute) {
  uint64_t *all[] = {&totals.used, &totals.most_used, &totals.reserved, &totals.most_reserved};
  return attribute >= 0 && attribute < (int)(sizeof all / sizeof *all) ? all[attribute] : NULL;
}

PX_API cudaError_t cudaDeviceGetGraphMemAttribute(int number, int attribute, void *value) {
  PX_ENTER();
  PX_REQUIRE(number == 0, cudaErrorInvalidDevice);
  PX_REQUIRE(value && total(attribute), cudaErrorInvalidValue);
  pthread_mutex_lock(&lock);
  *(uint64_t *)value = *total(attribute);
  pthread_mutex_unlock(&lock);
  return px_report(cudaSuccess);
}

/* The greatest sums can be reset to what they are now. */
PX_API cudaError_t cudaDeviceSetGraphMemAttribute(int number, int attribute, void *value) {
  PX_ENTER();
  PX_REQUIRE(number == 0, cudaErrorInvalidDevice);
  PX_REQUIRE(value && total(attribute) && attribute % 2 && *(uint64_t *)value == 0, cudaErrorInvalidValue);
  pthread_mutex_lock(&lock);
  *total(attribute) = *total(attribute - 1);
  pthread_mutex_unlock(&lock);
  return px_report(cudaSuccess);
}

/* Memory goes with the graphs that own it: there is nothing to give back before. */
PX_API cudaError_t cudaDeviceGraphMemTrim(int number) {
  PX_ENTER();
  return px_report(number == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}
