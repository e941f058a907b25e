/* message.c: what the record of a fault means to people. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include "launch.h"
#include "message.h"
#include "start.h"
#include "text.h"

#define NEAR (1u << 20)    /* bytes between an address and the allocation that it may have missed */
#define LAUNCH_FAILURE 719 /* cudaErrorLaunchFailure */
#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct {
  const char *name;
  uint32_t code;
} KINDS[] = {
  [PE_ILLEGAL_ADDRESS] = {"illegal address", 700},
  [PE_MISALIGNED] = {"misaligned address", 716},
  [PE_NULL] = {"null pointer", 700},
  [PE_SURFACE_TRAP] = {"surface access out of bounds", LAUNCH_FAILURE},
  [PE_INVALID_SURFACE] = {"invalid surface handle", 400},
  [PE_UNBOUND_SURFACE] = {"unbound surface", 400},
  [PE_GEOMETRY_MISMATCH] = {"surface geometry mismatch", LAUNCH_FAILURE},
  [PE_FORMAT_MISMATCH] = {"surface format mismatch", LAUNCH_FAILURE},
  [PE_INVALID_ADDRESS_SPACE] = {"invalid address space", 717},
  [PE_TRAP] = {"trap", LAUNCH_FAILURE},
  [PE_ASSERT] = {"assertion failed", 710},
  [PE_DEADLOCK] = {"deadlock", LAUNCH_FAILURE},
  [PE_STACK_OVERFLOW] = {"stack overflow", 714},
  [PE_BARRIER_MISUSE] = {"barrier misuse", LAUNCH_FAILURE},
  [PE_INVALID_BRANCH] = {"invalid branch target", 718},
  [PE_INVALID_CALL] = {"invalid call target", 718},
  [PE_ILLEGAL_OP_TYPE] = {"illegal operation for the type", 715},
  [PE_INVALID_FREE] = {"invalid free", LAUNCH_FAILURE},
  [PE_PARTIAL_WARP] = {"partial warp", LAUNCH_FAILURE},
  [PE_INVALID_TEXTURE] = {"invalid texture or sampler handle", 400},
  [PE_UNBOUND_TEXTURE] = {"unbound texture or sampler", 400},
  [PE_TEXTURE_GEOMETRY] = {"texture geometry mismatch", LAUNCH_FAILURE},
  [PE_TEXTURE_FORMAT] = {"texture of integers read as floats", LAUNCH_FAILURE},
  [PE_ARITHMETIC] = {"arithmetic trap in compiled code", LAUNCH_FAILURE},
  [PE_UNSUPPORTED_FORMAT] = {"unsupported: a formatted store to packed components", LAUNCH_FAILURE},
  [PE_UNSUPPORTED_ANISOTROPY] = {"unsupported: anisotropic filtering", LAUNCH_FAILURE},
  [PE_INVALID_TENSOR] = {"invalid tensor map", 715},
  [PE_TMEM_MISUSE] = {"tensor memory misuse", LAUNCH_FAILURE},
};

const char *pe_fault_name(uint32_t kind) { return kind < COUNT(KINDS) ? KINDS[kind].name : NULL; }

uint32_t pe_fault_code(uint32_t kind) { return pe_fault_name(kind) ? KINDS[kind].code : LAUNCH_FAILURE; }

const char *pe_space_name(uint32_t space) {
  static const char *const names[] = {"generic", "global", "shared", "local", "constant", "parameter"};
  return space < COUNT(names) ? names[space] : "unknown";
}

int pe_fault_in_memory(const pe_record *record) {
  bool memory = record->kind == PE_ILLEGAL_ADDRESS || record->kind == PE_MISALIGNED || record->kind == PE_NULL ||
                record->kind == PE_INVALID_ADDRESS_SPACE;
  return memory && !record->has_coordinates;
}

/* ---- addresses ---- */

static void add_distance(pe_text *t, uint64_t bytes, const char *where, const pe_allocation *found) {
  pe_add(t, "%" PRIu64 " byte%s %s ", bytes, pe_plural(bytes), where);
  pe_add_name(t, found->name);
  pe_add(t, " (%" PRIu64 " bytes at 0x%" PRIx64 ")", found->size, found->address);
}

/* Whether an address lies in memory of the process that is not this device's. */
static bool is_hosts(const pe_arena *arena, uint64_t address) {
  uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), first = pe_arena_base(arena) - PE_ARENA_MARGIN;
  bool device = address - first < pe_arena_extent(arena) + 2 * PE_ARENA_MARGIN;
  unsigned char resident;
  return !device && address < PE_ADDRESS_SPACE && !mincore((void *)(uintptr_t)(address & ~(page - 1)), 1, &resident);
}

static void add_neighbour(pe_text *t, pe_arena *arena, uint64_t address) {
  pe_allocation found;
  const char *whose = is_hosts(arena, address) ? ", in memory of the host" : "";
  if (!pe_arena_nearest(arena, address, &found)) {
    pe_add(t, "no memory is allocated%s", whose);
    return;
  }
  bool before = address < found.address, inside = !before && address - found.address < found.size;
  uint64_t distance = before ? found.address - address : address - found.address - (inside ? 0 : found.size);
  if (!inside && distance > NEAR)
    pe_add(t, "outside of any allocation%s", whose);
  else
    add_distance(t, distance, before ? "before" : inside ? "into" : "past the end of", &found);
}

void pe_arena_describe(pe_arena *arena, uint64_t address, char *out, size_t room) {
  pe_text t = pe_text_in(out, room);
  add_neighbour(&t, arena, address);
}

/* ---- faults ---- */

static void add_extent(pe_text *t, const char *what, const uint32_t extent[3]) {
  pe_add(t, "%s (%u,%u,%u)", what, extent[0], extent[1], extent[2]);
}

static void add_access(pe_text *t, const pe_record *record, pe_arena *arena) {
  pe_add(t, ", ");
  if (record->size) pe_add(t, "%u-byte ", record->size);
  pe_add(t, "access to %s address 0x%" PRIx64, pe_space_name(record->space), record->address);
  bool device = record->space == PE_GENERIC || record->space == PE_GLOBAL;
  bool own_space = record->note[0] != 0; /* the note says which: no device address */
  if (!arena || !device || record->kind != PE_ILLEGAL_ADDRESS || own_space) return;
  pe_add(t, ", ");
  add_neighbour(t, arena, record->address);
}

static void add_texel(pe_text *t, const pe_record *record, const char *surface) {
  const int64_t *at = record->coordinates;
  pe_add(t, ", %u-byte access of surface ", record->size);
  if (surface)
    pe_add(t, "`%s`", surface);
  else
    pe_add(t, "%u", record->slot);
  pe_add(t, " at x=%" PRId64 ", y=%" PRId64 ", z=%" PRId64 ", layer=%" PRId64, at[0], at[1], at[2], at[3]);
}

void pe_fault_text(const pe_record *record, const pe_fault_names *names, char *out, size_t room) {
  pe_text t = pe_text_in(out, room);
  const char *kind = names->kind ? names->kind : pe_fault_name(record->kind);
  pe_add(&t, "%s in kernel `%s`", kind ? kind : "fault", names->kernel ? names->kernel : "?");
  if (names->place) pe_add(&t, " at %s", names->place);
  add_extent(&t, ": block", record->ctaid);
  if (record->lane < 0)
    pe_add(&t, ", warp %u", record->warp);
  else
    add_extent(&t, ", thread", record->tid);
  if (record->channel) pe_add(&t, ", channel %u", record->channel - 1);
  if (pe_fault_in_memory(record)) add_access(&t, record, names->arena);
  if (record->has_coordinates) add_texel(&t, record, names->surface);
  if (record->note[0]) pe_add(&t, ", %s", record->note);
}

int pe_launch_fault_text(const pe_launch *launch, const char *file, char *out, size_t room) {
  const pe_module *module = pe_launch_module(launch);
  const pe_record *record = &launch->record;
  char place[256];
  uint32_t number, line;
  out[0] = 0;
  if (!module || record->kind == PE_OK) return -1;
  bool known = record->pos != PE_NO_POS && pe_module_locate(module, record->pos, &number, &line) == 0;
  if (known) snprintf(place, sizeof place, "%s:%u", file ? file : "line", line);
  const pe_fault_names names = {
    .kernel = pe_entry_text(pe_module_entry(module), pe_launch_kernel(launch)->plain_name),
    .place = known ? place : NULL,
    .arena = launch->arena,
  };
  pe_fault_text(record, &names, out, room);
  return 0;
}
