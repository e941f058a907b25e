#include "replace.h"

#include "jitlink.h"
#include "jump.h"
#include "table.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* A program or library: its file, and where it lies in memory. */
typedef struct object {
  px_file file;
  uintptr_t base;
  const Elf64_Phdr *segments;
  unsigned count;
} object;

/* ---- where an object lies ---- */

/* The segment of a kind that a range lies in, or NULL. */
static const Elf64_Phdr *segment_of(const object *one, uint64_t address, uint64_t size, unsigned flag) {
  for (unsigned i = 0; i < one->count; i++) {
    const Elf64_Phdr *segment = &one->segments[i];
    if (segment->p_type == PT_LOAD && segment->p_flags & flag && address >= segment->p_vaddr && size <= segment->p_memsz &&
        address - segment->p_vaddr <= segment->p_memsz - size)
      return segment;
  }
  return NULL;
}

/* Whether the file is the one that was loaded, and not another that has its name by now. */
static bool is_loaded(const object *one, const Elf64_Ehdr *head) {
  for (unsigned i = 0; i < one->count; i++) {
    const Elf64_Phdr *segment = &one->segments[i];
    bool has_head =
        segment->p_type == PT_LOAD && segment->p_flags & PF_R && !segment->p_offset && segment->p_filesz >= sizeof *head;
    if (has_head) return !memcmp((const void *)(one->base + segment->p_vaddr), head, sizeof *head);
  }
  return false;
}

static bool open_object(const struct link_map *map, object *out) {
  *out = (object){.file = px_file_open(*map->l_name ? map->l_name : "/proc/self/exe"), .base = map->l_addr};
  const Elf64_Ehdr *head = px_file_head(&out->file);
  out->segments = px_file_segments(&out->file);
  if (out->segments) out->count = head->e_phnum;
  return out->segments && is_loaded(out, head);
}

/* Have the pages of a segment protected so. */
static bool allow(const object *one, const Elf64_Phdr *segment, int protection) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t start = (one->base + segment->p_vaddr) / page * page, end = one->base + segment->p_vaddr + segment->p_memsz;
  return !mprotect((void *)start, end - start, protection);
}

/* The same of all code. */
static bool protect(const object *one, int protection) {
  for (unsigned i = 0; i < one->count; i++) {
    const Elf64_Phdr *segment = &one->segments[i];
    if (segment->p_type == PT_LOAD && segment->p_flags & PF_X && !allow(one, segment, protection)) return false;
  }
  return true;
}

/* What is too short for a jump stays as it is. false: there is no memory. */
static bool redirect(const object *one, const Elf64_Sym *function, const void *target) {
  bool fits = function->st_size >= PX_JUMP_BYTES || function->st_value % PX_FUNCTION_ALIGNMENT == 0;
  return !fits || !segment_of(one, function->st_value, PX_JUMP_BYTES, PF_X) ||
         px_write_jump((void *)(one->base + function->st_value), target, memcpy);
}

#define NO_MEMORY "there is no memory near its code"

/* What is wrong, or NULL. */
static const char *executable_again(const object *one, const char *problem) {
  bool done = protect(one, PROT_READ | PROT_EXEC);
  return problem || done ? problem : "its code cannot be made executable again";
}

/* ---- the runtime ---- */

#define RUNTIME_11 "libcudart.so.11.0"
#define RUNTIME_12 "libcudart.so.12"
#define RUNTIME_13 "libcudart.so.13"

/* The loader's entry of a library that came with this one, or NULL. To open it would initialise the C library too early. */
static const struct link_map *loaded(const char *name) {
  const struct link_map *one = _r_debug.r_map;
  for (; one; one = one->l_next) {
    const char *slash = strrchr(one->l_name, '/');
    if (slash && !strcmp(slash + 1, name)) break;
  }
  return one;
}

static const Elf64_Sym *find(const px_table *table, const char *wanted) {
  for (size_t i = 0; i < table->count; i++) {
    const char *name = px_table_function(table, i);
    if (name && !strcmp(name, wanted)) return &table->all[i];
  }
  return NULL;
}

/* Whether a runtime is linked into an object, and is not ptxemu's: the core (tools/cuda.py: CORE_PREFIX), or jumps into it. */
static bool has_runtime(const struct link_map *map, const object *one, px_table *out) {
  return map != loaded(RUNTIME_11) && map != loaded(RUNTIME_12) && map != loaded(RUNTIME_13) &&
         px_file_table(&one->file, SHT_SYMTAB, out) && find(out, "__cudaRegisterFatBinary") &&
         !find(out, "ptxemu_core___cudaRegisterFatBinary");
}

/* What takes the place of a runtime, or NULL. CUDA 13 has one way to ask for properties; no version after 11 has references. */
static const char *name_for(const px_table *table) {
  if (find(table, "cudaBindTexture")) return find(table, "cudaGetFuncBySymbol") ? RUNTIME_11 : NULL;
  return find(table, "cudaGetDeviceProperties_v2") ? RUNTIME_12 : RUNTIME_13;
}

static bool redirect_all(const object *one, const px_table *table, const object *ours, const px_table *exported) {
  for (size_t i = 0; i < table->count; i++) {
    const char *name = px_table_function(table, i);
    if (!name || (strncmp(name, "cuda", 4) != 0 && strncmp(name, "__cuda", 6) != 0)) continue;
    const Elf64_Sym *target = find(exported, name);
    if (target && !redirect(one, &table->all[i], (const void *)(ours->base + target->st_value))) return false;
  }
  return true;
}

/* Have libcudart.so do what the runtime in an object would; what is wrong, or NULL. */
static const char *replace_runtime(const object *one, const px_table *table) {
  const char *name = name_for(table);
  if (!name) return "it is of CUDA 10 or older";
  const struct link_map *map = loaded(name);
  object ours = {.base = 0};
  px_table exported;
  const char *problem = NULL;
  if (!map || !open_object(map, &ours) || !px_file_table(&ours.file, SHT_DYNSYM, &exported))
    problem = "ptxemu's own is not there";
  else if (!protect(one, PROT_READ | PROT_WRITE))
    problem = "its code cannot be changed";
  else
    problem = executable_again(one, redirect_all(one, table, &ours, &exported) ? NULL : NO_MEMORY);
  px_file_close(&ours.file);
  return problem;
}

/* ---- NVRTC ---- */

/* What was compiled for a GPU has its PTX, too, and that is what the driver can load. */
static const char *const texts[][2] = {{"nvrtcGetCUBIN", "nvrtcGetPTX"}, {"nvrtcGetCUBINSize", "nvrtcGetPTXSize"}};

static const char *replace_compiler(const object *one, const px_table *table) {
  if (!protect(one, PROT_READ | PROT_WRITE)) return "its code cannot be changed";
  const char *problem = NULL;
  for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++) {
    const Elf64_Sym *code = find(table, texts[i][0]), *text = find(table, texts[i][1]);
    if (code && text && !redirect(one, code, (const void *)(one->base + text->st_value))) problem = NO_MEMORY;
  }
  return executable_again(one, problem);
}

/* ---- nvJitLink ---- */

#define CORE "libptxemu_cuda.so"
#define CORE_PREFIX "ptxemu_core_"

enum { LONGEST_NAME = 64 };

/* The core's name for a function of nvJitLink, which programs in C call by names with a version: __nvJitLinkCreate_13_0. false: it is no
 * function of nvJitLink. */
static bool name_in_core(const char *name, char out[LONGEST_NAME]) {
  const char *plain = name + strspn(name, "_");
  int length = (int)strcspn(plain, "_");
  return !strncmp(plain, "nvJitLink", 9) && snprintf(out, LONGEST_NAME, CORE_PREFIX "%.*s", length, plain) < LONGEST_NAME;
}

/* Its own functions are called, too, so that they stay as they are: whoever asks for one by its name gets the core's. */
static void replace_names(const object *one, const px_table *table, const object *ours, const px_table *exported) {
  Elf64_Sym *live = (Elf64_Sym *)(one->base + table->address);
  const Elf64_Sym *teller = find(exported, CORE_PREFIX "px_jitlink_found");
  px_jitlink_teller *tell_core = teller ? (px_jitlink_teller *)(ours->base + teller->st_value) : NULL;
  for (size_t i = 0; tell_core && i < table->count; i++) {
    const char *name = px_table_function(table, i);
    char wanted[LONGEST_NAME];
    const Elf64_Sym *target = name && name_in_core(name, wanted) ? find(exported, wanted) : NULL;
    if (!target) continue;
    tell_core(wanted + strlen(CORE_PREFIX), (const void *)(one->base + table->all[i].st_value));
    live[i].st_value = ours->base + target->st_value - one->base;
  }
}

static bool has_linker(const px_table *table) {
  bool has = false;
  char wanted[LONGEST_NAME];
  for (size_t i = 0; !has && i < table->count; i++) {
    const char *name = px_table_function(table, i);
    has = name && name_in_core(name, wanted);
  }
  return has;
}

static const char *replace_linker(const object *one, const px_table *table) {
  const struct link_map *map = loaded(CORE);
  const uint64_t bytes = table->count * sizeof *table->all;
  const Elf64_Phdr *segment = segment_of(one, table->address, bytes, PF_R);
  object ours = {.base = 0};
  px_table exported;
  const char *problem = NULL;
  if (!map || !open_object(map, &ours) || !px_file_table(&ours.file, SHT_DYNSYM, &exported))
    problem = "ptxemu's own is not there";
  else if (!segment || !allow(one, segment, PROT_READ | PROT_WRITE))
    problem = "its names cannot be changed";
  else {
    replace_names(one, table, &ours, &exported);
    if (!allow(one, segment, PROT_READ | (segment->p_flags & PF_X ? PROT_EXEC : 0)))
      problem = "its names cannot be protected again";
  }
  px_file_close(&ours.file);
  return problem;
}

static void tell(const struct link_map *map, const char *what, const char *problem, const char *advice) {
  const char *where = *map->l_name ? map->l_name : "the program";
  dprintf(STDERR_FILENO, "ptxemu: %s in %s cannot be replaced: %s%s\n", what, where, problem, advice);
}

void px_replace_in(const struct link_map *map) {
  object one;
  px_table table;
  const char *problem = NULL;
  if (open_object(map, &one)) {
    if (has_runtime(map, &one, &table) && (problem = replace_runtime(&one, &table)))
      tell(map, "the CUDA runtime", problem, "; link with -cudart shared");
    if (px_file_table(&one.file, SHT_DYNSYM, &table) && find(&table, "nvrtcGetCUBIN") &&
        (problem = replace_compiler(&one, &table)))
      tell(map, "NVRTC", problem, "");
    if (px_file_table(&one.file, SHT_DYNSYM, &table) && has_linker(&table) && (problem = replace_linker(&one, &table)))
      tell(map, "nvJitLink", problem, "");
  }
  px_file_close(&one.file);
}
