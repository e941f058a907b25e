/* preload.c: programs that have CUDA's runtime linked in, as nvcc does by default. LD_PRELOAD brings this library into the process before
 * anything of the program runs. Where the program has a function of the runtime, the function is made a jump to the one of that name in
 * libcudart.so. The program's table of symbols says where they lie, so that it must not be stripped.
 */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file; nothing in it is trusted to fit. */
typedef struct file {
  const uint8_t *data;
  size_t size;
} file;

/* Its table of symbols. */
typedef struct symbols {
  const Elf64_Sym *all;
  size_t count;
  const char *names; /* the last byte is zero */
  size_t name_bytes;
} symbols;

/* Where the program lies in memory. */
typedef struct object {
  uintptr_t base;
  const Elf64_Phdr *segments;
  unsigned count;
} object;

/* ---- jumps ---- */

enum { ALIGNMENT = 16 }; /* of functions */

#if defined __x86_64__
enum { JUMP_BYTES = 14 };

static void write_jump(void *at, const void *target) {
  static const uint8_t jump[] = {0xff, 0x25, 0, 0, 0, 0}; /* jmp *0(%rip) */
  memcpy(at, jump, sizeof jump);
  memcpy((uint8_t *)at + sizeof jump, &target, sizeof target);
}
#elif defined __aarch64__
enum { JUMP_BYTES = 16 };

static void write_jump(void *at, const void *target) {
  static const uint32_t jump[] = {0x58000050, 0xd61f0200}; /* ldr x16, 8; br x16 */
  memcpy(at, jump, sizeof jump);
  memcpy((uint8_t *)at + sizeof jump, &target, sizeof target);
  __builtin___clear_cache((char *)at, (char *)at + JUMP_BYTES);
}
#endif

/* ---- the table of symbols ---- */

static file opened(const char *path) {
  file all = {NULL, 0};
  struct stat status;
  int number = open(path, O_RDONLY | O_CLOEXEC);
  if (number < 0) return all;
  if (!fstat(number, &status) && status.st_size > 0) {
    void *data = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, number, 0);
    if (data != MAP_FAILED) all = (file){data, (size_t)status.st_size};
  }
  close(number);
  return all;
}

/* An array in a file, or NULL. */
static const void *array_at(const file *all, uint64_t offset, uint64_t count, size_t size, size_t alignment) {
  uint64_t bytes;
  bool fits = !__builtin_mul_overflow(count, size, &bytes) && offset <= all->size && bytes <= all->size - offset;
  return fits && offset % alignment == 0 ? all->data + offset : NULL;
}

static bool read_table(const file *all, const Elf64_Shdr *sections, size_t count, const Elf64_Shdr *table, symbols *out) {
  if (table->sh_type != SHT_SYMTAB || table->sh_link >= count) return false;
  const Elf64_Shdr *names = &sections[table->sh_link];
  out->count = table->sh_size / sizeof *out->all;
  out->all = array_at(all, table->sh_offset, out->count, sizeof *out->all, _Alignof(Elf64_Sym));
  out->names = array_at(all, names->sh_offset, names->sh_size, 1, 1);
  out->name_bytes = names->sh_size;
  return out->all && out->names && out->name_bytes && !out->names[out->name_bytes - 1];
}

static bool read_symbols(const file *all, symbols *out) {
  const Elf64_Ehdr *head = array_at(all, 0, 1, sizeof *head, 1);
  if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64) return false;
  const Elf64_Shdr *sections = array_at(all, head->e_shoff, head->e_shnum, sizeof *sections, _Alignof(Elf64_Shdr));
  for (size_t i = 0; sections && i < head->e_shnum; i++)
    if (read_table(all, sections, head->e_shnum, &sections[i], out)) return true;
  return false;
}

/* The name of a function that the file defines, or NULL. */
static const char *function_name(const symbols *table, size_t i) {
  const Elf64_Sym *symbol = &table->all[i];
  bool fits =
      ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF && symbol->st_name < table->name_bytes;
  return fits ? table->names + symbol->st_name : NULL;
}

static bool has(const symbols *table, const char *wanted) {
  for (size_t i = 0; i < table->count; i++) {
    const char *name = function_name(table, i);
    if (name && !strcmp(name, wanted)) return true;
  }
  return false;
}

/* ---- the functions of the runtime ---- */

/* Which runtime it is: one that is gone is in no other, and CUDA 13 has one way to ask for properties. */
static const char *library_for(const symbols *table) {
  if (has(table, "cudaBindTexture")) return NULL;
  return has(table, "cudaGetDeviceProperties_v2") ? "libcudart.so.12" : "libcudart.so.13";
}

/* The segment of code that a range lies in, or NULL. */
static const Elf64_Phdr *segment_of(const object *program, uint64_t address, uint64_t size) {
  for (unsigned i = 0; i < program->count; i++) {
    const Elf64_Phdr *one = &program->segments[i];
    if (one->p_type == PT_LOAD && one->p_flags & PF_X && address >= one->p_vaddr && size <= one->p_memsz &&
        address - one->p_vaddr <= one->p_memsz - size)
      return one;
  }
  return NULL;
}

static bool protect(const object *program, int protection) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  for (unsigned i = 0; i < program->count; i++) {
    const Elf64_Phdr *one = &program->segments[i];
    if (one->p_type != PT_LOAD || !(one->p_flags & PF_X)) continue;
    uintptr_t start = (program->base + one->p_vaddr) / page * page, end = program->base + one->p_vaddr + one->p_memsz;
    if (mprotect((void *)start, end - start, protection)) return false;
  }
  return true;
}

static void redirect(const object *program, const symbols *table, void *library) {
  for (size_t i = 0; i < table->count; i++) {
    const char *name = function_name(table, i);
    if (!name || (strncmp(name, "cuda", 4) != 0 && strncmp(name, "__cuda", 6) != 0)) continue;
    void *target = dlsym(library, name);
    uint64_t address = table->all[i].st_value;
    bool fits = table->all[i].st_size >= JUMP_BYTES || address % ALIGNMENT == 0; /* behind the short ones there is nothing */
    if (target && fits && segment_of(program, address, JUMP_BYTES)) write_jump((void *)(program->base + address), target);
  }
}

/* Have libcudart.so do what the program's own runtime would; what is wrong, or NULL. */
static const char *replace(const object *program, const symbols *table) {
  const char *name = library_for(table);
  if (!name) return "it is of CUDA 11 or older";
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) return dlerror();
  if (!protect(program, PROT_READ | PROT_WRITE)) return "its code cannot be changed";
  redirect(program, table, library);
  return protect(program, PROT_READ | PROT_EXEC) ? NULL : "its code cannot be made executable again";
}

/* The program is the first in the list. Its libraries may have registered their kernels already, and are left alone. */
static int note(struct dl_phdr_info *info, size_t size, void *out) {
  (void)size;
  *(object *)out = (object){info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum};
  return 1;
}

__attribute__((constructor)) static void start(void) {
  const file all = opened("/proc/self/exe");
  object program;
  symbols table;
  if (!all.data) return;
  if (read_symbols(&all, &table) && has(&table, "__cudaRegisterFatBinary") && dl_iterate_phdr(note, &program)) {
    const char *problem = replace(&program, &table);
    if (problem)
      fprintf(stderr, "ptxemu: the CUDA runtime in the program cannot be replaced: %s; link with -cudart shared\n", problem);
  }
  munmap((void *)all.data, all.size);
}
