/* stray.c: the checker `memory`: accesses that leave what they may touch, and those that are not aligned. */
#include <inttypes.h>
#include <stdio.h>
#include "checker.h"
#include "launch.h"
#include "place.h"
#include "text.h"

#define NEAR (1ull << 20) /* bytes; nothing that lies farther away was meant */

/* What is wrong, by which findings of one place are told apart. */
enum { OUTSIDE, BEHIND, BEFORE, FREED, NULL_POINTER, MISALIGNED, FOREIGN };

/* Memory that accesses of a lane may touch: `lane` is ~0 if all lanes may. */
typedef struct ground {
  pe_extent extent;
  uint32_t lane;
} ground;

static void name(pe_extent *extent, const char *text) { snprintf(extent->name, sizeof extent->name, "%s", text); }

/* The window of a space that has one of its own, in the addresses of the program. */
static ground window_ground(const pe_warp *w, uint32_t space) {
  ground g = {.lane = ~0u};
  switch (space) {
    case PE_SHARED: g.extent.size = w->shared_size, name(&g.extent, "the shared memory of the block"); break;
    case PE_LOCAL: g.extent.size = w->local_size, name(&g.extent, "the local memory of the thread"); break;
    case PE_CONST:
      g.extent.address = w->const_base, g.extent.size = w->const_size, name(&g.extent, "the constants of the module");
      break;
    default: g.extent.address = w->param_base, g.extent.size = w->param_size, name(&g.extent, "the kernel's parameters");
  }
  return g;
}

/* Where the shared memory starts of the CTA of the cluster that has an address in its window; of the own one for others. */
static uint64_t shared_start(const pe_warp *w, uint64_t address) {
  bool inside = pe_in_window(address, w->cluster_base, w->cluster_bytes);
  return inside ? address - pe_cluster_offset(w, address) : w->shared_base;
}

/* The same of a generic address in one of them. */
static bool generic_window(const pe_warp *w, uint32_t lane, uint64_t address, ground *out) {
  uint64_t local = w->local_base + lane * w->local_size;
  const struct {
    uint64_t base;
    uint32_t space;
  } windows[] = {
    {shared_start(w, address), PE_SHARED}, {local, PE_LOCAL}, {w->const_base, PE_CONST}, {w->param_base, PE_PARAM}};
  for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
    *out = window_ground(w, windows[i].space);
    out->extent.address = windows[i].base;
    if (windows[i].space == PE_LOCAL) out->lane = lane;
    if (address - windows[i].base < out->extent.size) return true;
  }
  return false;
}

/* The words of a cooperative launch's grid barrier. */
static bool in_workspace(const pe_warp *w, uint64_t address, ground *out) {
  *out = (ground){.extent = {.address = w->grid_workspace, .size = PE_WORKSPACE_BYTES, .name = "the grid barrier"},
                  .lane = ~0u};
  return w->grid_workspace && address - w->grid_workspace < PE_WORKSPACE_BYTES;
}

/* What contains the address of a lane; false: nothing that the lane may touch. */
static bool find(pe_checker *checker, const pe_warp *w, uint32_t space, uint32_t lane, uint64_t address, ground *out) {
  if (space != PE_GENERIC && space != PE_GLOBAL) {
    *out = window_ground(w, space);
    return address - out->extent.address < out->extent.size;
  }
  if (generic_window(w, lane, address, out) || in_workspace(w, address, out)) return true;
  out->lane = ~0u;
  return pe_extents_at(&checker->extents, address, &out->extent);
}

static bool holds(const ground *g, uint32_t lane, uint64_t address, uint64_t size) {
  return (g->lane == ~0u || g->lane == lane) && pe_within(address - g->extent.address, size, g->extent.size);
}

/* ---- what is told ---- */

static void add_extent(pe_text *t, const pe_extent *extent) {
  pe_add_name(t, extent->name);
  pe_add(t, " (");
  pe_add_bytes(t, extent->size);
  pe_add(t, ")");
}

static void add_distance(pe_text *t, uint64_t bytes, const char *where) {
  if (bytes) pe_add_bytes(t, bytes);
  pe_add(t, bytes ? " %s " : "just %s ", where);
}

/* Say where an access lies; what is wrong with it. */
static uint32_t add_place(pe_text *t, const pe_extent *near, uint64_t address, uint64_t size) {
  uint64_t end = near->address + near->size;
  if (near->freed) {
    add_distance(t, address - near->address, "into");
    add_extent(t, near);
    pe_add(t, ", which has been freed");
    return FREED;
  }
  if (address < near->address) {
    add_distance(t, near->address - pe_sum(address, size), "before");
  } else if (address < end) {
    pe_add(t, "that ends ");
    add_distance(t, pe_sum(address, size) - end, "after");
  } else {
    add_distance(t, address - end, "after");
  }
  add_extent(t, near);
  return address < near->address ? BEFORE : BEHIND;
}

static bool is_near(const pe_extent *extent, uint64_t address) {
  uint64_t end = pe_sum(extent->address, extent->size);
  return address < extent->address ? extent->address - address < NEAR : address < pe_sum(end, NEAR);
}

static const char *kind_of(uint32_t kind) { return kind == PE_READ ? "read" : kind == PE_WRITE ? "write" : "update"; }

/* Say where an access goes that may not go there. */
static uint32_t add_stray(pe_checker *checker, const pe_warp *w, const pe_memory_event *event, uint32_t lane, pe_text *t) {
  uint64_t address = event->address[lane];
  bool absolute = event->space == PE_GENERIC || event->space == PE_GLOBAL;
  ground g;
  if (absolute && address < PE_NULL_BYTES) {
    pe_add(t, "at 0x%" PRIx64 ": a null pointer", address);
    return NULL_POINTER;
  }
  bool inside = find(checker, w, event->space, lane, address, &g);
  bool known = inside || !absolute || pe_extents_near(&checker->extents, address, &g.extent);
  if (known && is_near(&g.extent, address)) {
    pe_allocation hosts;
    bool foreign = absolute && !inside && !g.extent.freed && address - g.extent.address < g.extent.size &&
                   !pe_arena_find(checker->arena, address, &hosts);
    if (!foreign) return add_place(t, &g.extent, address, event->size);
    pe_add(t, "of `%s` of other threads", g.extent.name);
    return FOREIGN;
  }
  pe_add(t, "at 0x%" PRIx64 ", where nothing is allocated", address);
  return OUTSIDE;
}

static void tell(pe_checker *checker, const pe_warp *w, const pe_memory_event *event, uint32_t lane, bool aligned) {
  pe_finding finding = {.check = PE_CHECK_MEMORY, .pos = event->pos, .other_pos = PE_NO_POS};
  pe_text t = pe_text_in(finding.text, sizeof finding.text);
  pe_add(&t, "%" PRIu64 "-byte %s ", event->size, kind_of(event->kind));
  if (aligned) {
    finding.what = add_stray(checker, w, event, lane, &t);
  } else {
    finding.what = MISALIGNED;
    pe_add(&t, "at 0x%" PRIx64 ", which is not a multiple of %u", event->address[lane], event->align);
  }
  finding.what = finding.what * 4 + event->kind;
  pe_report(checker, w, lane, &finding);
}

/* ---- the check ---- */

/* Let compiled code know where its next accesses may go. */
static void keep_range(const pe_warp *w, const pe_memory_event *event, const ground *g) {
  if (!w->ranges || !g->extent.lasting || g->extent.address % PE_RANGE_ALIGN) return;
  *pe_range_of(w, event->pos) = (pe_range){g->extent.address, g->extent.size};
}

uint32_t pe_stray_access(pe_checker *checker, const pe_warp *w, const pe_memory_event *event) {
  uint32_t good = 0;
  ground g = {0};
  if (event->space == PE_TEXEL) return event->mask;
  for (uint32_t left = event->mask; left; left &= left - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(left);
    uint64_t address = event->address[lane];
    bool aligned = !event->align || address % event->align == 0;
    if (!holds(&g, lane, address, event->size) && !find(checker, w, event->space, lane, address, &g)) g = (ground){0};
    bool allowed = !event->size || holds(&g, lane, address, event->size);
    if (aligned && allowed)
      good |= 1u << lane;
    else
      tell(checker, w, event, lane, aligned);
  }
  keep_range(w, event, &g);
  return good;
}
