/* heap.c: the device heap, from which kernels take memory with malloc and free (CUDA C++ Programming Guide, "Dynamic
 * Global Memory Allocation and Operations").
 *
 * A buddy allocator over one allocation of the arena, made when first needed.  What it knows of its blocks lies outside
 * device memory, where no kernel can spoil it.  An allocation takes only the granules it needs: what a block has more
 * goes back at once.  All functions that take a heap run with pe_lock held.
 */
#include "heap.h"
#include "arena.h"
#include "fault.h"
#include "launch.h"
#include "runtime.h"
#include <stdio.h>
#include <stdlib.h>

#define GRANULE 16ull
#define NONE UINT32_MAX
#define ORDERS 32

struct pe_heap {
  uint64_t base;
  uint32_t granules;
  uint32_t head[ORDERS]; /* free blocks of 1 << order granules, linked by `next` and `previous` */
  uint32_t *next, *previous;
  uint32_t *length; /* at the first granule of an allocation: its granules, else 0 */
  uint8_t *order;   /* at the first granule of a free block: its order + 1, else 0 */
};

static void link_block(pe_heap *heap, uint32_t at, uint32_t order) {
  heap->order[at] = (uint8_t)(order + 1);
  heap->previous[at] = NONE;
  heap->next[at] = heap->head[order];
  if (heap->head[order] != NONE) heap->previous[heap->head[order]] = at;
  heap->head[order] = at;
}

static void unlink_block(pe_heap *heap, uint32_t at, uint32_t order) {
  uint32_t before = heap->previous[at], after = heap->next[at];
  heap->order[at] = 0;
  if (after != NONE) heap->previous[after] = before;
  if (before != NONE)
    heap->next[before] = after;
  else
    heap->head[order] = after;
}

/* Free an aligned block, together with its buddy if that is free. */
static void put_block(pe_heap *heap, uint64_t at, uint32_t order) {
  for (; order + 1 < ORDERS; order++) {
    uint64_t buddy = at ^ 1ull << order;
    if (buddy >= heap->granules || heap->order[buddy] != order + 1) break;
    unlink_block(heap, (uint32_t)buddy, order);
    at &= ~(1ull << order);
  }
  link_block(heap, (uint32_t)at, order);
}

/* Free any run of granules: as the largest aligned blocks that make it up. */
static void put_run(pe_heap *heap, uint64_t at, uint64_t end) {
  while (at < end) {
    uint32_t order = at ? (uint32_t)__builtin_ctzll(at) : ORDERS - 1;
    while (1ull << order > end - at) order--;
    put_block(heap, at, order);
    at += 1ull << order;
  }
}

static uint64_t take(pe_heap *heap, uint64_t size) {
  if (size == 0 || size > heap->granules * GRANULE) return 0;
  uint32_t granules = (uint32_t)((size + GRANULE - 1) / GRANULE), order = 0;
  while (1ull << order < granules) order++;
  while (order < ORDERS && heap->head[order] == NONE) order++;
  if (order == ORDERS) return 0;
  uint32_t at = heap->head[order];
  unlink_block(heap, at, order);
  heap->length[at] = granules;
  put_run(heap, (uint64_t)at + granules, (uint64_t)at + (1ull << order));
  return heap->base + at * GRANULE;
}

static bool give(pe_heap *heap, uint64_t address) {
  uint64_t offset = address - heap->base, at = offset / GRANULE;
  if (offset % GRANULE || at >= heap->granules || !heap->length[at]) return false;
  uint32_t granules = heap->length[at];
  heap->length[at] = 0;
  put_run(heap, at, at + granules);
  return true;
}

pe_heap *pe_heap_create(uint64_t base, uint64_t size) {
  size_t granules = size / GRANULE;
  pe_heap *heap = calloc(1, sizeof *heap);
  if (!heap) return NULL;
  heap->base = base;
  heap->granules = (uint32_t)granules;
  heap->next = calloc(granules, sizeof *heap->next);
  heap->previous = calloc(granules, sizeof *heap->previous);
  heap->length = calloc(granules, sizeof *heap->length);
  heap->order = calloc(granules, sizeof *heap->order);
  for (uint32_t order = 0; order < ORDERS; order++) heap->head[order] = NONE;
  if (!heap->next || !heap->previous || !heap->length || !heap->order) {
    pe_heap_destroy(heap);
    return NULL;
  }
  put_run(heap, 0, granules);
  return heap;
}

void pe_heap_destroy(pe_heap *heap) {
  if (!heap) return;
  free(heap->next);
  free(heap->previous);
  free(heap->length);
  free(heap->order);
  free(heap);
}

/* ---- blocks that kernels leave to the host ---- */

static uint64_t size_at(const pe_heap *heap, uint64_t address) {
  uint64_t offset = address - heap->base, at = offset / GRANULE;
  return offset % GRANULE || at >= heap->granules ? 0 : heap->length[at] * GRANULE;
}

uint64_t pe_arena_heap_size(pe_arena *arena, uint64_t address) {
  pe_lock();
  const pe_heap *heap = pe_arena_heap(arena);
  uint64_t size = heap ? size_at(heap, address) : 0;
  pe_unlock();
  return size;
}

void pe_arena_heap_free(pe_arena *arena, uint64_t address) {
  pe_lock();
  pe_heap *heap = pe_arena_heap(arena);
  bool given = heap && give(heap, address);
  pe_unlock();
  if (given) pe_tell_freed(pe_arena_observer(arena), address);
}

/* ---- what kernels call ---- */

void pe_malloc(pe_warp *w, uint32_t mask, const uint64_t *size, uint64_t *result) {
  pe_lock();
  pe_heap *heap = pe_arena_heap(w->launch->arena);
  for (uint32_t left = mask; left; left &= left - 1) {
    int lane = __builtin_ctz(left);
    result[lane] = heap ? take(heap, size[lane]) : 0;
  }
  pe_unlock();
  for (uint32_t left = w->launch->observer ? mask : 0; left; left &= left - 1) {
    int lane = __builtin_ctz(left);
    if (result[lane]) pe_tell_allocated(w->launch->observer, result[lane], size[lane], w, lane);
  }
}

void pe_free(pe_warp *w, uint32_t pos, uint32_t mask, const uint64_t *pointer) {
  w->pos = pos;
  pe_lock();
  pe_heap *heap = pe_arena_heap(w->launch->arena);
  int lane = -1;
  uint32_t freed = 0;
  for (; mask && lane < 0; mask &= mask - 1) {
    int next = __builtin_ctz(mask);
    if (!pointer[next]) continue;
    if (heap && give(heap, pointer[next]))
      freed |= 1u << next;
    else
      lane = next;
  }
  pe_unlock();
  for (freed = w->launch->observer ? freed : 0; freed; freed &= freed - 1)
    pe_tell_freed(w->launch->observer, pointer[__builtin_ctz(freed)]);
  if (lane < 0) return;
  char note[128];
  snprintf(note, sizeof note, "0x%llx was not allocated by malloc or is free already", (unsigned long long)pointer[lane]);
  pe_fault_note(w, PE_INVALID_FREE, pos, lane, PE_GENERIC, pointer[lane], 0, note);
}
