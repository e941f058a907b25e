/* nested.c: launches that kernels have made, out of device memory. */
#include "nested.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { TAIL = 3, LARGEST = 64 << 10 };

_Static_assert(sizeof(pe_child_head) == 64, "as the device runtime has it");

/* What has been taken, and belongs to grids that have not ended. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pe_child *others;

/* ---- the list ---- */

/* Where a variable of the device runtime lies; 0: the module has none such. */
static uint64_t address_of(const pe_module *module, const char *name, uint64_t size) {
  const pe_variable_facts *found = pe_module_variable(module, name);
  return found && found->size == size ? pe_module_block(module, found->block) + found->offset : 0;
}

uint64_t pe_children_list(const pe_module *module) {
  uint64_t list = address_of(module, "__ptxemu_launches", sizeof list), count;
  uint64_t room = address_of(module, "__ptxemu_parameters", sizeof(uint32_t));
  if (!list || !room) return 0;
  const pe_kernel_facts *kernel = pe_entry_section(pe_module_entry(module), PE_SECTION_KERNELS, &count);
  uint32_t most = 0;
  for (uint64_t i = 0; i < count; i++)
    if (kernel[i].param_bytes > most) most = kernel[i].param_bytes;
  memcpy((void *)(uintptr_t)room, &most, sizeof most);
  return list;
}

/* A launch at an address, whose memory is given back; NULL: there is none. */
static pe_child *take(pe_arena *arena, uint64_t address) {
  uint64_t size = pe_arena_heap_size(arena, address);
  bool fits = size >= sizeof(pe_child_head) && size <= LARGEST;
  pe_child *made = fits ? calloc(1, sizeof *made + size - sizeof(pe_child_head)) : NULL;
  if (!made) return NULL;
  memcpy(&made->head, (const void *)(uintptr_t)address, size);
  made->room = size - sizeof(pe_child_head);
  pe_arena_heap_free(arena, address);
  return made;
}

/* All that is in a list; the last one made comes first there, and last here. */
static pe_child *take_all(pe_arena *arena, uint64_t list) {
  pe_child *first = NULL;
  uint64_t address = __atomic_exchange_n((uint64_t *)(uintptr_t)list, 0, __ATOMIC_SEQ_CST);
  while (address) {
    pe_child *made = take(arena, address);
    if (!made) break;
    address = made->head.next;
    made->next = first;
    first = made;
  }
  return first;
}

/* ---- of a grid ---- */

static pe_child **end_of(pe_child **list) {
  while (*list) list = &(*list)->next;
  return list;
}

/* Take those of a grid away, for the tail or not. */
static pe_child *of_grid(pe_child **list, uint64_t grid_id, bool tail) {
  pe_child *first = NULL, **end = &first;
  while (*list) {
    pe_child *one = *list;
    if (one->head.grid_id != grid_id || (one->head.stream == TAIL) != tail) {
      list = &one->next;
      continue;
    }
    *list = one->next;
    one->next = NULL;
    *end = one;
    end = &one->next;
  }
  return first;
}

pe_child *pe_children_collect(pe_arena *arena, uint64_t list, uint64_t grid_id) {
  pthread_mutex_lock(&lock);
  *end_of(&others) = take_all(arena, list);
  pe_child *first = of_grid(&others, grid_id, false);
  *end_of(&first) = of_grid(&others, grid_id, true);
  pthread_mutex_unlock(&lock);
  return first;
}

void pe_child_free(pe_child *child) { free(child); }

const pe_kernel_facts *pe_child_kernel(const pe_module *module, const pe_child *child) {
  uint64_t count;
  const pe_kernel_facts *kernel = pe_entry_section(pe_module_entry(module), PE_SECTION_KERNELS, &count);
  for (uint64_t i = 0; i < count; i++)
    if (PE_FUNCTION_UNIT * (kernel[i].function + 1ull) == child->head.kernel)
      return kernel[i].param_bytes <= child->room ? &kernel[i] : NULL;
  return NULL;
}
