/* gdb.c: the interface by which compilers tell gdb of the code that they make (GDB manual, "JIT Compilation Interface").
 *
 * The names and the layout are gdb's. It sets a breakpoint on the function, and reads the descriptor when it is called.
 */
#include "gdb.h"
#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "checked.h"

enum { JIT_VERSION = 1, JIT_NOACTION = 0, JIT_REGISTER_FN = 1 };

struct jit_code_entry {
  struct jit_code_entry *next_entry, *prev_entry;
  const void *symfile_addr;
  uint64_t symfile_size;
};

struct jit_descriptor {
  uint32_t version, action_flag;
  struct jit_code_entry *relevant_entry, *first_entry;
};

/* Those of other compilers in the process are others: these are not to be taken for them. */
#define OWN __attribute__((visibility("protected"), used))

OWN struct jit_descriptor __jit_debug_descriptor = {JIT_VERSION, JIT_NOACTION, NULL, NULL};

OWN __attribute__((noinline)) void __jit_debug_register_code(void) { __asm__ volatile("" ::: "memory"); }

static pthread_mutex_t told = PTHREAD_MUTEX_INITIALIZER;

/* Write the address of the first section of code into its record; false: there is none. */
static bool place_code(uint8_t *object, uint64_t size, uint64_t address) {
  Elf64_Ehdr head;
  Elf64_Shdr section;
  if (size < sizeof head) return false;
  memcpy(&head, object, sizeof head);
  if (!pe_within(head.e_shoff, pe_product(head.e_shnum, sizeof section), size)) return false;
  for (uint8_t *at = object + head.e_shoff, *end = at + head.e_shnum * sizeof section; at < end; at += sizeof section) {
    memcpy(&section, at, sizeof section);
    if (!(section.sh_flags & SHF_EXECINSTR) || !section.sh_size) continue;
    section.sh_addr = address;
    memcpy(at, &section, sizeof section);
    return true;
  }
  return false;
}

int pe_gdb_tell(const void *object, uint64_t size, uint64_t address) {
  struct jit_code_entry *entry = malloc(sizeof *entry);
  void *copy = entry ? malloc(size ? size : 1) : NULL;
  if (copy) memcpy(copy, object, size);
  if (!copy || !place_code(copy, size, address)) {
    free(entry);
    free(copy);
    return copy ? ENOEXEC : ENOMEM;
  }
  pthread_mutex_lock(&told);
  struct jit_descriptor *all = &__jit_debug_descriptor;
  *entry = (struct jit_code_entry){.next_entry = all->first_entry, .symfile_addr = copy, .symfile_size = size};
  if (all->first_entry) all->first_entry->prev_entry = entry;
  all->first_entry = all->relevant_entry = entry;
  all->action_flag = JIT_REGISTER_FN;
  __jit_debug_register_code();
  all->action_flag = JIT_NOACTION;
  pthread_mutex_unlock(&told);
  return 0;
}
