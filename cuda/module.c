/* module.c: modules, from the entries of the cache, which the compile server fills.
 *
 * An image is found by its bytes: its entry holds the identity of the program in it, by which the entries of the module and of its
 * kernels are found (ptxemu/driver/program.py).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "core.h"
#include "nested.h"
#include "px_check.h"
#include "px_module.h"
#include "px_symbols.h"

enum { DEFAULT_DYNAMIC_SHARED = 48 << 10 };

enum { LONGEST = 1 << 14, LONGEST_TIER = 64, LOOK_MS = 50 };
static _Thread_local char problem_text[LONGEST];

const char *px_module_problem(void) { return problem_text; }

static cudaError_t say(cudaError_t error, const char *text) {
  snprintf(problem_text, sizeof problem_text, "%s", text ? text : "out of memory");
  if (!px_device_get()->quiet) fprintf(stderr, "ptxemu: %s\n", problem_text);
  return error;
}

/* ---- the cache ---- */

/* The user's cache; the server makes its directory if there is none. */
static const pe_cache *opened_cache(void) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static pe_cache *cache;
  pthread_mutex_lock(&lock);
  if (!cache) cache = pe_cache_open(NULL);
  pthread_mutex_unlock(&lock);
  return cache;
}

bool px_compiles_lately(void) {
  enum { LATELY = 600 }; /* seconds */
  const pe_cache *cache = opened_cache();
  return !cache || time(NULL) - pe_cache_changed(cache) < LATELY;
}

static bool read_entry(const char *key, uint32_t kind, pe_entry **entry) {
  const pe_cache *cache = opened_cache();
  return cache && !pe_cache_read(cache, key, kind, entry);
}

static void make_key(px_module *module) {
  const char *like = px_like();
  const pe_part parts[] = {{"image", 5},
                           {px_build, strlen(px_build)},
                           {like, strlen(like)},
                           {&module->image.arch, sizeof module->image.arch},
                           {module->image.data, module->image.size}};
  pe_key_of(parts, sizeof parts / sizeof *parts, module->key);
  module->image.key = module->key;
}

static bool read_identity(px_module *module) {
  pe_entry *entry;
  uint64_t size;
  if (!read_entry(module->key, PE_ENTRY_BYTES, &entry)) return false;
  const void *bytes = pe_entry_bytes(entry, &size);
  bool fits = size == PE_KEY_BYTES - 1;
  if (fits) memcpy(module->identity, bytes, size);
  pe_entry_release(entry);
  return fits;
}

/* The facts of a module whose identity is known, or found out. */
static bool read_facts(px_module *module, pe_entry **entry) {
  char key[PE_KEY_BYTES];
  if (!read_identity(module)) return false;
  pe_key_of_texts((const char *const[]){"module", module->identity}, 2, key);
  return read_entry(key, PE_ENTRY_MODULE, entry);
}

/* ---- asking the server ---- */

static cudaError_t error_of(int status) {
  static const cudaError_t errors[] = {cudaSuccess, cudaErrorInvalidPtx, cudaErrorNoKernelImageForDevice,
                                       cudaErrorInvalidPtx};
  return errors[status];
}

static cudaError_t compile(const px_module *module, const char *kernel, const uint32_t block[3]) {
  char *text = NULL;
  int status = px_compile(&module->image, kernel, block, &text);
  if (status) say(error_of(status), text);
  free(text);
  return error_of(status);
}

/* What the server has made is not there. */
static cudaError_t not_made(void) {
  const char *problem = opened_cache()
                            ? "the compiler has made code for another build of this library: "
                              "have they been rebuilt since the program started?"
                            : "compiled code is handed over through the cache (PTXEMU_CACHE), which is off, or cannot "
                              "be written, or is not safe from other users";
  return say(cudaErrorInitializationError, problem);
}

/* ---- kernels ---- */

static bool make_kernels(px_module *module) {
  const pe_entry *entry = pe_module_entry(module->resident);
  const pe_kernel_facts *facts = pe_entry_section(entry, PE_SECTION_KERNELS, &module->count);
  const pe_parameter_facts *parameters = pe_entry_section(entry, PE_SECTION_PARAMETERS, &(uint64_t){0});
  module->kernels = calloc(module->count + 1, sizeof *module->kernels);
  if (!module->kernels) return false;
  for (uint64_t i = 0; i < module->count; i++)
    module->kernels[i] = (px_kernel){.module = module,
                                     .name = pe_entry_text(entry, facts[i].name),
                                     .facts = &facts[i],
                                     .parameters = parameters + facts[i].parameter,
                                     .dynamic_shared = DEFAULT_DYNAMIC_SHARED};
  bool fits = true;
  for (uint64_t i = 0; fits && i < module->count; i++) fits = px_live_add(&module->kernels[i], PX_KERNEL);
  return fits;
}

bool px_is_kernel(const px_kernel *kernel) { return px_is_live(kernel, PX_KERNEL); }

px_kernel *px_module_kernel(px_module *module, const char *name) {
  for (uint64_t i = 0; i < module->count; i++)
    if (!strcmp(module->kernels[i].name, name)) return &module->kernels[i];
  return NULL;
}

bool px_module_variable(const px_module *module, const char *name, uint64_t *address, uint64_t *size) {
  const pe_variable_facts *found = pe_module_variable(module->resident, name);
  if (!found) return false;
  *address = pe_module_block(module->resident, found->block) + found->offset;
  *size = found->size;
  return true;
}

uint64_t px_const_size(const px_module *module) {
  uint64_t count;
  const pe_module_facts *facts = pe_entry_section(pe_module_entry(module->resident), PE_SECTION_MODULE, &count);
  return facts->size[PE_BLOCK_CONST];
}

/* ---- modules ---- */

static px_module *new_module(const void *data, size_t size) {
  px_module *module = calloc(1, sizeof *module);
  if (!module) return NULL;
  pthread_mutex_init(&module->lock, NULL);
  module->image = (px_image){.data = data, .size = size, .arch = px_device_get()->arch};
  make_key(module);
  return module;
}

void px_module_prepare(const void *data, size_t size) {
  pe_entry *entry;
  px_module *module = new_module(data, size);
  if (!module) return;
  if (read_facts(module, &entry))
    pe_entry_release(entry);
  else
    px_server_prepare(&module->image);
  px_module_close(module);
}

static cudaError_t make(px_module *module, pe_entry *entry) {
  const char *problem = NULL;
  px_handles_lock();
  int error = pe_module_create(&px_device_get()->parts, entry, "<module>", &module->resident, &problem);
  px_handles_unlock();
  pe_entry_release(entry); /* the module keeps it */
  if (error == ENOTSUP) return say(cudaErrorNotSupported, problem);
  if (error || !make_kernels(module)) return cudaErrorMemoryAllocation;
  module->launches = pe_children_list(module->resident);
  return cudaSuccess;
}

/* The facts of an image, which the server finds out if need be. */
static cudaError_t describe(px_module *module, pe_entry **entry) {
  problem_text[0] = 0;
  if (read_facts(module, entry)) return cudaSuccess;
  cudaError_t error = compile(module, NULL, NULL);
  return error || read_facts(module, entry) ? error : not_made();
}

cudaError_t px_module_check(const void *data, size_t size) {
  pe_entry *entry;
  px_module *module = new_module(data, size);
  if (!module) return cudaErrorMemoryAllocation;
  cudaError_t error = describe(module, &entry);
  if (!error) pe_entry_release(entry);
  px_module_close(module);
  return error;
}

cudaError_t px_module_open(const void *data, size_t size, px_module **out) {
  pe_entry *entry;
  px_module *module = new_module(data, size);
  if (!module) return cudaErrorMemoryAllocation;
  cudaError_t error = describe(module, &entry);
  if (!error) error = make(module, entry);
  if (error)
    px_module_close(module);
  else
    px_check_opened(module);
  *out = error ? NULL : module;
  return error;
}

static void end_module(px_mortal *object) {
  px_module *module = (px_module *)object;
  for (uint64_t i = 0; module->kernels && i < module->count; i++) {
    for (unsigned k = 0; k < PX_CODES; k++) pe_code_release(module->kernels[i].codes[k]);
    free(module->kernels[i].setup);
  }
  px_handles_lock();
  if (module->resident) pe_module_release(module->resident);
  px_handles_unlock();
  pthread_mutex_destroy(&module->lock);
  free(module->kernels);
  free(module);
}

void px_module_close(px_module *module) {
  px_check_closing(module);
  for (uint64_t i = 0; module->kernels && i < module->count; i++) px_live_remove(&module->kernels[i], PX_KERNEL);
  px_end_later(&module->mortal, end_module);
}

/* ---- code ---- */

static bool load(const px_kernel *kernel, const char *variant, unsigned tier, pe_code **out) {
  static const char *const tiers[PX_TIERS] = {"best", "fast"};
  char name[LONGEST_TIER], key[PE_KEY_BYTES];
  const char *problem;
  pe_entry *entry;
  bool told = px_symbols_wanted();
  px_check_tier(tiers[tier], name, sizeof name);
  if (told) strncat(name, ", with lines", sizeof name - strlen(name) - 1);
  const char *const parts[] = {"kernel", kernel->module->identity, name, kernel->name, variant, pe_machine_identity()};
  pe_key_of_texts(parts, sizeof parts / sizeof *parts, key);
  if (!read_entry(key, PE_ENTRY_KERNEL, &entry)) return false;
  bool linked = !pe_code_load(entry, out, &problem);
  pe_entry_release(entry);
  if (linked && told) px_symbols_tell(kernel->name, key, *out);
  return linked;
}

static bool only_best(void) {
  const char *given = getenv("PTXEMU_TIER");
  return given && !strcmp(given, "best");
}

/* Whether it is time to look for better code than that which runs. */
static bool is_due(px_kernel *kernel) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &at);
  int64_t now = (int64_t)at.tv_sec * 1000 + at.tv_nsec / 1000000;
  bool due = now - kernel->looked >= LOOK_MS;
  if (due) kernel->looked = now;
  return due;
}

/* The best code that is loaded or in the cache; NULL: there is none. Launches may still run code that better code takes the place of, so that
 * both stay until the module ends. */
static pe_code *loaded(px_kernel *kernel, const uint32_t block[3]) {
  const char *variant = pe_variant_of(block);
  uint32_t number = pe_variant_number(block);
  pe_code **best = &kernel->codes[number], **fast = &kernel->codes[PE_VARIANTS + number];
  if (*best || ((!*fast || is_due(kernel)) && load(kernel, variant, 0, best))) return *best;
  if (!*fast && !only_best()) load(kernel, variant, 1, fast);
  return *fast;
}

cudaError_t px_kernel_code(px_kernel *kernel, const uint32_t grid[3], const uint32_t of[3], pe_code **out) {
  cudaError_t error = cudaSuccess;
  uint32_t block[3];
  pe_code_block(grid, of, block);
  pthread_mutex_lock(&kernel->module->lock);
  pe_code *code = loaded(kernel, block);
  if (!code) {
    error = compile(kernel->module, kernel->name, block);
    code = error ? NULL : loaded(kernel, block);
    if (!error && !code) error = not_made();
  }
  pthread_mutex_unlock(&kernel->module->lock);
  *out = code;
  return error;
}
