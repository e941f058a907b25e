/* fault_text.c: what a kernel did wrong, in the words of ptxemu/device/faults.py. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "fault_text.h"

enum { LONGEST = 2048, DEFAULT_ERROR = cudaErrorLaunchFailure };

typedef struct kind {
  const char *text;
  cudaError_t error; /* 0: DEFAULT_ERROR */
} kind;

static const kind kinds[] = {
  [PE_ILLEGAL_ADDRESS] = {"illegal address", 700},
  [PE_MISALIGNED] = {"misaligned address", 716},
  [PE_NULL] = {"null pointer", 700},
  [PE_SURFACE_TRAP] = {"surface access out of bounds", 0},
  [PE_INVALID_SURFACE] = {"invalid surface handle", 400},
  [PE_UNBOUND_SURFACE] = {"unbound surface", 400},
  [PE_GEOMETRY_MISMATCH] = {"surface geometry mismatch", 0},
  [PE_FORMAT_MISMATCH] = {"surface format mismatch", 0},
  [PE_INVALID_ADDRESS_SPACE] = {"invalid address space", 717},
  [PE_TRAP] = {"trap", 0},
  [PE_ASSERT] = {"assertion failed", 710},
  [PE_DEADLOCK] = {"deadlock", 0},
  [PE_STACK_OVERFLOW] = {"stack overflow", 714},
  [PE_BARRIER_MISUSE] = {"barrier misuse", 0},
  [PE_INVALID_BRANCH] = {"invalid branch target", 718},
  [PE_INVALID_CALL] = {"invalid call target", 718},
  [PE_ILLEGAL_OP_TYPE] = {"illegal operation for the type", 715},
  [PE_ARITHMETIC] = {"arithmetic trap in compiled code, this is a bug in ptxemu", 0},
  [PE_INVALID_FREE] = {"invalid free", 0},
  [PE_PARTIAL_WARP] = {"partial warp", 0},
  [PE_INVALID_TEXTURE] = {"invalid texture or sampler handle", 400},
  [PE_UNBOUND_TEXTURE] = {"unbound texture or sampler", 400},
  [PE_TEXTURE_GEOMETRY] = {"texture geometry mismatch", 0},
  [PE_TEXTURE_FORMAT] = {"texture of integers read as floats", 0},
  [PE_UNSUPPORTED_FORMAT] = {"unsupported: a formatted store to packed components", 801},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char last[LONGEST];
static size_t used;

static void add(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void add(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(last + used, sizeof last - used, format, arguments);
  va_end(arguments);
  if (length > 0) used += (size_t)length < sizeof last - used ? (size_t)length : sizeof last - used - 1;
}

static void add_place(const px_kernel *kernel, const pe_record *r) {
  uint32_t file, line;
  if (r->pos != PE_NO_POS && !pe_module_locate(kernel->module->resident, r->pos, &file, &line)) add(" at <module>:%u", line);
  add(": block (%u,%u,%u), ", r->ctaid[0], r->ctaid[1], r->ctaid[2]);
  if (r->lane < 0)
    add("warp %u", r->warp);
  else
    add("thread (%u,%u,%u)", r->tid[0], r->tid[1], r->tid[2]);
}

static void add_distance(uint64_t address) {
  pe_allocation near;
  if (!pe_arena_nearest(px_device_get()->parts.arena, address, &near)) return;
  uint64_t end = near.address + near.size;
  if (address < near.address)
    add(", %llu bytes before `%s` (%llu bytes)", (unsigned long long)(near.address - address), near.name,
        (unsigned long long)near.size);
  else if (address >= end)
    add(", %llu bytes after `%s` (%llu bytes)", (unsigned long long)(address - end), near.name,
        (unsigned long long)near.size);
}

static void add_access(const pe_record *r) {
  static const char *const spaces[] = {"generic", "global", "shared", "local", "constant", "parameter"};
  bool memory =
      r->kind == PE_ILLEGAL_ADDRESS || r->kind == PE_MISALIGNED || r->kind == PE_NULL || r->kind == PE_INVALID_ADDRESS_SPACE;
  if (r->has_coordinates) {
    add(", %u-byte access of surface %u at x=%lld, y=%lld, z=%lld, layer=%lld", r->size, r->slot,
        (long long)r->coordinates[0], (long long)r->coordinates[1], (long long)r->coordinates[2],
        (long long)r->coordinates[3]);
  } else if (memory) {
    add(", %u-byte access to %s address 0x%llx", r->size, spaces[r->space <= PE_PARAM ? r->space : 0],
        (unsigned long long)r->address);
    if (r->kind == PE_ILLEGAL_ADDRESS && r->space <= PE_GLOBAL && !r->note[0]) add_distance(r->address);
  }
  if (r->note[0]) add(", %s", r->note);
}

cudaError_t px_say_fault(const px_kernel *kernel, const pe_record *r) {
  bool known = r->kind < sizeof kinds / sizeof *kinds && kinds[r->kind].text;
  pthread_mutex_lock(&lock);
  used = 0;
  add("%s in kernel `%s`", known ? kinds[r->kind].text : "fault", kernel->name);
  add_place(kernel, r);
  add_access(r);
  fflush(stdout);
  fprintf(stderr, "ptxemu: %s\n", last);
  pthread_mutex_unlock(&lock);
  return known && kinds[r->kind].error ? kinds[r->kind].error : DEFAULT_ERROR;
}

const char *ptxemu_last_fault(void) { return used ? last : NULL; }
