/* object.c: the loader of our own objects.
 *
 * An object is laid out as [read-only data | code | jumps], written, relocated, and only then protected: data can be read, code and
 * jumps executed, and nothing can be written any more.  A jump reaches a function of the runtime that lies too far from the code.
 *
 * Objects come from files that anybody may have damaged: every offset, size and index in them is tested before its use.
 */
#include <elf.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "checked.h"
#include "host.h"
#include "start.h"

#define MAX_BYTES (1ull << 30) /* so that code reaches all of its data */
#define MAX_ALIGNMENT 4096
#define NOWHERE UINT64_MAX

struct pe_code {
  uint8_t *memory;
  uint64_t bytes;
  uint64_t address; /* where it starts */
  uint64_t section; /* ... and the section that this is in */
  pe_entry *entry;  /* that it was loaded from, or NULL */
  _Atomic uint32_t owners;
};

/* An object while it is linked. */
typedef struct linking {
  const uint8_t *data;
  uint64_t size;
  Elf64_Ehdr head;
  const Elf64_Shdr *sections; /* aligned copies */
  uint64_t *places;           /* of each section in the memory, or NOWHERE */
  const Elf64_Sym *symbols;
  uint64_t symbol_count;
  const char *names;
  uint64_t names_size;
  uint64_t code_start, jumps_start, bytes; /* in the memory; each begins a page or ends the last part */
  uint32_t jumps;
  uint8_t *memory;
  uint64_t *jump_targets; /* of those that are written */
  const char *problem;
} linking;

static bool fail(linking *l, const char *problem) {
  if (!l->problem) l->problem = problem;
  return false;
}

uint32_t pe_code_machine(void) {
#if defined(__x86_64__)
  return EM_X86_64;
#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  return EM_AARCH64;
#else
  return 0;
#endif
}

/* ---- reading ---- */

/* A copy of `count` records, aligned, or NULL. */
static void *records(const linking *l, uint64_t offset, uint64_t count, uint64_t bytes) {
  uint64_t size = pe_product(count, bytes);
  if (!pe_within(offset, size, l->size)) return NULL;
  void *copy = malloc(size + 1);
  if (!copy) return NULL;
  memcpy(copy, l->data + offset, size);
  return copy;
}

static bool read_head(linking *l) {
  if (l->size < sizeof l->head) return fail(l, "is too short for an object");
  memcpy(&l->head, l->data, sizeof l->head);
  const Elf64_Ehdr *head = &l->head;
  bool elf = memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 && head->e_ident[EI_CLASS] == ELFCLASS64;
  if (!elf || head->e_ident[EI_DATA] != ELFDATA2LSB || head->e_type != ET_REL)
    return fail(l, "is not a relocatable ELF object");
  if (head->e_machine != pe_code_machine()) return fail(l, "is code for another machine");
  if (head->e_shentsize != sizeof(Elf64_Shdr) || head->e_shnum == 0) return fail(l, "has no sections");
  l->sections = records(l, head->e_shoff, head->e_shnum, sizeof(Elf64_Shdr));
  return l->sections || fail(l, "has sections outside of it");
}

static const Elf64_Shdr *find_section(const linking *l, uint32_t type) {
  for (uint32_t i = 0; i < l->head.e_shnum; i++)
    if (l->sections[i].sh_type == type) return &l->sections[i];
  return NULL;
}

static bool read_symbols(linking *l) {
  const Elf64_Shdr *table = find_section(l, SHT_SYMTAB);
  if (!table || table->sh_link >= l->head.e_shnum) return fail(l, "has no symbols");
  const Elf64_Shdr *names = &l->sections[table->sh_link];
  if (!pe_within(names->sh_offset, names->sh_size, l->size)) return fail(l, "has names outside of it");
  l->names = (const char *)l->data + names->sh_offset;
  l->names_size = names->sh_size;
  l->symbol_count = table->sh_size / sizeof(Elf64_Sym);
  l->symbols = records(l, table->sh_offset, l->symbol_count, sizeof(Elf64_Sym));
  return l->symbols || fail(l, "has symbols outside of it");
}

/* A name, or NULL where none ends. */
static const char *name_at(const linking *l, uint32_t offset) {
  if (offset >= l->names_size || !memchr(l->names + offset, 0, l->names_size - offset)) return NULL;
  return l->names + offset;
}

/* The section that relocations change. */
static bool relocated(const linking *l, const Elf64_Shdr *relocations, uint32_t *section) {
  *section = relocations->sh_info;
  return relocations->sh_type == SHT_RELA && *section < l->head.e_shnum && l->places[*section] != NOWHERE;
}

/* ---- layout ---- */

/* Nobody unwinds a kernel, so that sections of other types are not needed. */
static bool is_loaded(const Elf64_Shdr *section) {
  return (section->sh_flags & SHF_ALLOC) && section->sh_type == SHT_PROGBITS && section->sh_size != 0;
}

static bool place_sections(linking *l, bool executable, uint64_t *end) {
  for (uint32_t i = 0; i < l->head.e_shnum; i++) {
    const Elf64_Shdr *section = &l->sections[i];
    if (!is_loaded(section) || !!(section->sh_flags & SHF_EXECINSTR) != executable) continue;
    uint64_t align = section->sh_addralign ? section->sh_addralign : 1;
    if ((align & (align - 1)) || align > MAX_ALIGNMENT) return fail(l, "has a section of a strange alignment");
    if (!pe_within(section->sh_offset, section->sh_size, l->size)) return fail(l, "has a section outside of it");
    l->places[i] = pe_round_up(*end, align);
    *end = pe_sum(l->places[i], section->sh_size);
    if (*end > MAX_BYTES) return fail(l, "is too large");
  }
  return true;
}

static uint32_t count_symbols(void) {
  uint32_t count = 0;
  while (pe_symbols()[count].name) count++;
  return count;
}

static bool lay_out(linking *l) {
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), end = 0;
  l->places = malloc(l->head.e_shnum * sizeof *l->places);
  l->jump_targets = calloc(count_symbols(), sizeof *l->jump_targets);
  if (!l->places || !l->jump_targets) return false;
  for (uint32_t i = 0; i < l->head.e_shnum; i++) l->places[i] = NOWHERE;
  if (!place_sections(l, false, &end)) return false;
  l->code_start = end = pe_round_up(end, page);
  if (!place_sections(l, true, &end)) return false;
  l->jumps_start = pe_round_up(end, PE_JUMP_BYTES);
  l->bytes = pe_round_up(l->jumps_start + (uint64_t)count_symbols() * PE_JUMP_BYTES, page);
  return true;
}

/* ---- linking ---- */

static uint64_t address_of(const linking *l, uint64_t offset) { return (uint64_t)(uintptr_t)l->memory + offset; }

/* The jump to a function of the runtime, written when it is first needed. */
static uint64_t jump_to(linking *l, uint64_t target) {
  uint32_t i = 0;
  while (i < l->jumps && l->jump_targets[i] != target) i++;
  uint64_t offset = l->jumps_start + (uint64_t)i * PE_JUMP_BYTES;
  if (i == l->jumps) {
    l->jump_targets[l->jumps++] = target;
    pe_jump(l->head.e_machine, l->memory + offset, target);
  }
  return address_of(l, offset);
}

static bool runtime_symbol(linking *l, const Elf64_Sym *symbol, uint64_t *value) {
  const char *name = name_at(l, symbol->st_name);
  for (const pe_symbol *known = pe_symbols(); name && known->name; known++) {
    if (strcmp(name, known->name) != 0) continue;
    *value = (uint64_t)(uintptr_t)known->address;
    return true;
  }
  return fail(l, "refers to a symbol that the runtime does not have");
}

static bool symbol_value(linking *l, uint64_t index, uint64_t *value) {
  if (index >= l->symbol_count) return fail(l, "refers to a symbol outside of its table");
  const Elf64_Sym *symbol = &l->symbols[index];
  if (symbol->st_shndx == SHN_UNDEF) return runtime_symbol(l, symbol, value);
  if (symbol->st_shndx >= l->head.e_shnum || l->places[symbol->st_shndx] == NOWHERE)
    return fail(l, "refers to a section that is not loaded");
  if (symbol->st_value > l->sections[symbol->st_shndx].sh_size) return fail(l, "has a symbol outside of its section");
  *value = address_of(l, l->places[symbol->st_shndx] + symbol->st_value);
  return true;
}

static bool relocate(linking *l, uint32_t section, const Elf64_Rela *item) {
  uint32_t machine = l->head.e_machine, type = (uint32_t)ELF64_R_TYPE(item->r_info);
  uint32_t bytes = pe_relocation_bytes(machine, type);
  uint64_t target;
  if (!bytes) return fail(l, "has a relocation of an unknown type");
  if (!pe_within(item->r_offset, bytes, l->sections[section].sh_size))
    return fail(l, "has a relocation outside of its section");
  if (!symbol_value(l, ELF64_R_SYM(item->r_info), &target)) return false;
  uint64_t offset = l->places[section] + item->r_offset, addend = (uint64_t)item->r_addend;
  uint8_t *place = l->memory + offset;
  if (pe_relocate(machine, type, place, address_of(l, offset), target + addend) == 0) return true;
  bool far = pe_relocation_is_call(machine, type) && l->symbols[ELF64_R_SYM(item->r_info)].st_shndx == SHN_UNDEF;
  if (far && pe_relocate(machine, type, place, address_of(l, offset), jump_to(l, target) + addend) == 0) return true;
  return fail(l, "has a relocation out of reach");
}

static bool relocate_section(linking *l, const Elf64_Shdr *relocations) {
  uint32_t section;
  if (!relocated(l, relocations, &section)) return true;
  if (!pe_within(relocations->sh_offset, relocations->sh_size, l->size)) return fail(l, "has relocations outside of it");
  for (uint64_t at = 0; pe_within(at, sizeof(Elf64_Rela), relocations->sh_size); at += sizeof(Elf64_Rela)) {
    Elf64_Rela item;
    memcpy(&item, l->data + relocations->sh_offset + at, sizeof item);
    if (!relocate(l, section, &item)) return false;
  }
  return true;
}

static bool write_memory(linking *l) {
  void *memory = mmap(NULL, l->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  l->memory = memory;
  for (uint32_t i = 0; i < l->head.e_shnum; i++)
    if (l->places[i] != NOWHERE)
      memcpy(l->memory + l->places[i], l->data + l->sections[i].sh_offset, l->sections[i].sh_size);
  for (uint32_t i = 0; i < l->head.e_shnum; i++)
    if (!relocate_section(l, &l->sections[i])) return false;
  return true;
}

static bool protect(const linking *l) {
  uint64_t code = l->bytes - l->code_start;
  __builtin___clear_cache((char *)l->memory + l->code_start, (char *)l->memory + l->bytes);
  return (l->code_start == 0 || mprotect(l->memory, l->code_start, PROT_READ) == 0) &&
         mprotect(l->memory + l->code_start, code, PROT_READ | PROT_EXEC) == 0;
}

/* The address of a function that the object defines, and of its section. */
static bool find_entry(linking *l, const char *wanted, uint64_t *address, uint64_t *section) {
  for (uint64_t i = 0; i < l->symbol_count; i++) {
    const Elf64_Sym *symbol = &l->symbols[i];
    const char *name = symbol->st_shndx == SHN_UNDEF ? NULL : name_at(l, symbol->st_name);
    if (!name || strcmp(name, wanted) != 0) continue;
    uint64_t start = address_of(l, l->code_start), end = address_of(l, l->jumps_start);
    if (!symbol_value(l, i, address)) return false;
    *section = *address - symbol->st_value;
    return (*address >= start && *address < end) || fail(l, "starts outside of its code");
  }
  return fail(l, "does not have the function that it should");
}

static pe_code *link_object(linking *l, const char *symbol) {
  uint64_t address, section;
  if (!read_head(l) || !read_symbols(l) || !lay_out(l) || !write_memory(l)) return NULL;
  if (!find_entry(l, symbol, &address, &section)) return NULL;
  pe_code *code = malloc(sizeof *code);
  if (!code || !protect(l)) {
    free(code);
    return NULL;
  }
  *code = (pe_code){.memory = l->memory, .bytes = l->bytes, .address = address, .section = section};
  atomic_init(&code->owners, 1);
  return code;
}

int pe_code_link(const void *object, uint64_t size, const char *symbol, pe_code **code, const char **problem) {
  linking l = {.data = object, .size = size};
  *code = link_object(&l, symbol);
  if (!*code && l.memory) munmap(l.memory, l.bytes);
  free((void *)l.sections);
  free((void *)l.symbols);
  free(l.places);
  free(l.jump_targets);
  *problem = *code ? NULL : l.problem ? l.problem : "has no room in memory";
  return *code ? 0 : l.problem ? ENOEXEC : ENOMEM;
}

int pe_code_load(pe_entry *entry, pe_code **code, const char **problem) {
  uint64_t count, size;
  const pe_code_facts *facts = pe_entry_section(entry, PE_SECTION_CODE, &count);
  const void *object = pe_entry_section(entry, PE_SECTION_OBJECT, &size);
  int error = pe_code_link(object, size, pe_entry_text(entry, facts->symbol), code, problem);
  if (!error) (*code)->entry = pe_entry_keep(entry);
  return error;
}

const pe_code_facts *pe_code_facts_of(const pe_code *code) {
  uint64_t count;
  return code->entry ? pe_entry_section(code->entry, PE_SECTION_CODE, &count) : NULL;
}

uint64_t pe_code_address(const pe_code *code) { return code->address; }

uint64_t pe_code_section(const pe_code *code) { return code->section; }

const void *pe_code_object(const pe_code *code, uint64_t *size) {
  *size = 0;
  return code->entry ? pe_entry_section(code->entry, PE_SECTION_OBJECT, size) : NULL;
}

pe_code *pe_code_keep(pe_code *code) {
  atomic_fetch_add(&code->owners, 1);
  return code;
}

void pe_code_release(pe_code *code) {
  if (!code || atomic_fetch_sub(&code->owners, 1) != 1) return;
  munmap(code->memory, code->bytes);
  pe_entry_release(code->entry);
  free(code);
}
