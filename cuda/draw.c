/* draw.c: graphs in the DOT language of Graphviz. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "px_graph.h"
#include "px_runtime.h"

/* cudaGraphDebugDotFlags* */
enum {
  VERBOSE = 1 << 0,
  RUNTIME_TYPES = 1 << 1,
  KERNEL = 1 << 2,
  MEMCPY = 1 << 3,
  MEMSET = 1 << 4,
  HOST = 1 << 5,
  EVENT = 1 << 6,
  ATTRIBUTES = 1 << 9,
  HANDLES = 1 << 10,
  MEM_ALLOC = 1 << 11,
  MEM_FREE = 1 << 12,
  EDGES = 1 << 14,
  CONDITIONAL = 1 << 15,
  ALL = (1 << 16) - 1
};

typedef struct drawing {
  FILE *out;
  unsigned flags;
  size_t graphs, edges; /* that have a number already */
} drawing;

/* ---- what nodes are, as rows of a record ---- */

/* Text in a record, where some characters have a meaning. */
static void put_text(const drawing *d, const char *text) {
  for (; *text; text++) fprintf(d->out, strchr("\"\\<>{}| ", *text) ? "\\%c" : "%c", *text);
}

__attribute__((format(printf, 3, 4))) static void row(const drawing *d, const char *name, const char *format, ...) {
  char text[256];
  va_list values;
  va_start(values, format);
  vsnprintf(text, sizeof text, format, values);
  va_end(values);
  fprintf(d->out, "|{%s|", name);
  put_text(d, text);
  fputc('}', d->out);
}

/* Three sizes: together in the runtime API's structures, apart in the driver API's. */
static void sizes(const drawing *d, const char *together, const char *const apart[3], const size_t size[3]) {
  if (d->flags & RUNTIME_TYPES)
    row(d, together, "(%zu,%zu,%zu)", size[0], size[1], size[2]);
  else
    for (int axis = 0; axis < 3; axis++) row(d, apart[axis], "%zu", size[axis]);
}

static void draw_attributes(const drawing *d, const struct px_node *node) {
  const uint32_t *cluster = node->work->start.cluster;
  row(d, "clusterDim", "(%" PRIu32 ",%" PRIu32 ",%" PRIu32 ")", cluster[0], cluster[1], cluster[2]);
  row(d, "cooperative", "%d", node->work->start.cooperative);
  row(d, "priority", "%d", node->hints ? node->hints[cudaLaunchAttributePriority].priority : 0);
}

static const char *name_of(const px_work *work) {
  return pe_entry_text(pe_module_entry(work->start.module), work->start.kernel->name);
}

static void draw_kernel(const drawing *d, const struct px_node *node) {
  const pe_start *start = &node->work->start;
  fputc('|', d->out);
  put_text(d, name_of(node->work));
  if (d->flags & HANDLES) row(d, "func", "%p", node->work->handle);
  if (d->flags & KERNEL) {
    sizes(d, "gridDim", (const char *const[]){"gridDimX", "gridDimY", "gridDimZ"},
          (size_t[]){start->grid[0], start->grid[1], start->grid[2]});
    sizes(d, "blockDim", (const char *const[]){"blockDimX", "blockDimY", "blockDimZ"},
          (size_t[]){start->block[0], start->block[1], start->block[2]});
    row(d, "sharedMemBytes", "%" PRIu64, (uint64_t)start->dynamic_shared);
  }
  if (d->flags & ATTRIBUTES) draw_attributes(d, node);
}

static void draw_side(const drawing *d, const char *name, const px_side *side) {
  if (side->array)
    row(d, name, "array %p (%zu,%zu,%zu)", (void *)side->array, side->x, side->y, side->z);
  else
    row(d, name, "%p, pitch %zu", (void *)side->memory, side->pitch);
}

static void draw_copy(const drawing *d, const px_work *work) {
  static const char *const direction[] = {"HtoH", "HtoD", "DtoH", "DtoD", "default"};
  const px_box *box = &work->box;
  draw_side(d, "src", &box->from);
  draw_side(d, "dst", &box->to);
  sizes(d, "extent", (const char *const[]){"WidthInBytes", "Height", "Depth"},
        (size_t[]){box->width, box->height, box->depth});
  if (d->flags & RUNTIME_TYPES) row(d, "kind", "%s", direction[work->direction]);
}

static void draw_set(const drawing *d, const px_box *box) {
  row(d, "dst", "%p", (void *)box->to.memory);
  row(d, "pitch", "%zu", box->to.pitch);
  row(d, "value", "%" PRIu32, box->value);
  row(d, "elementSize", "%zu", box->repeats);
  row(d, "width", "%zu", box->width / box->repeats);
  row(d, "height", "%zu", box->height);
}

static void draw_host(const drawing *d, const px_work *work) {
  row(d, "fn", "0x%" PRIxPTR, (uintptr_t)work->function);
  row(d, "userData", "%p", work->data);
}

static void draw_block(const drawing *d, const px_block *block, bool sized) {
  row(d, "dptr", "0x%" PRIx64, px_block_address(block));
  if (sized) row(d, "bytesize", "%" PRIu64, px_block_size(block));
}

static void draw_choice(const drawing *d, const px_choice *choice) {
  static const char *const kind[] = {"if", "while", "switch"};
  row(d, "handle", "0x%" PRIx64, px_block_address(choice->value));
  row(d, "type", "%s", kind[choice->kind]);
  row(d, "size", "%u", choice->count);
}

/* A node's type, and what a flag says of it. */
static const char *type_of(const struct px_node *node, unsigned *flag) {
  *flag = 0;
  switch (node->type) {
    case cudaGraphNodeTypeKernel: *flag = KERNEL | ATTRIBUTES; return "KERNEL";
    case cudaGraphNodeTypeMemcpy: *flag = MEMCPY; return "MEMCPY";
    case cudaGraphNodeTypeMemset: *flag = MEMSET; return "MEMSET";
    case cudaGraphNodeTypeHost: *flag = HOST; return "HOST";
    case cudaGraphNodeTypeGraph: return "GRAPH";
    case cudaGraphNodeTypeEmpty: return "EMPTY";
    case cudaGraphNodeTypeWaitEvent: *flag = EVENT; return "EVENT_WAIT";
    case cudaGraphNodeTypeEventRecord: *flag = EVENT; return "EVENT_RECORD";
    case cudaGraphNodeTypeMemAlloc: *flag = MEM_ALLOC; return "MEM_ALLOC";
    case cudaGraphNodeTypeMemFree: *flag = MEM_FREE; return "MEM_FREE";
    default: *flag = CONDITIONAL; return "CONDITIONAL";
  }
}

static void draw_params(const drawing *d, const struct px_node *node) {
  switch (node->type) {
    case cudaGraphNodeTypeMemcpy: draw_copy(d, node->work); return;
    case cudaGraphNodeTypeMemset: draw_set(d, &node->work->box); return;
    case cudaGraphNodeTypeHost: draw_host(d, node->work); return;
    case cudaGraphNodeTypeWaitEvent:
    case cudaGraphNodeTypeEventRecord: row(d, "event", "%p", (void *)node->work->event); return;
    case cudaGraphNodeTypeMemAlloc: draw_block(d, node->work->block, true); return;
    case cudaGraphNodeTypeMemFree: draw_block(d, node->work->block, false); return;
    case cudaGraphNodeTypeConditional: draw_choice(d, node->choice); return;
    default: return;
  }
}

/* ---- graphs ---- */

static void draw_node(const drawing *d, size_t graph, const struct px_node *node) {
  unsigned flag;
  const char *type = type_of(node, &flag);
  fprintf(d->out, "\"graph_%zu_node_%zu\"[shape=\"record\" label=\"{%zu|%s", graph, node->number, node->number, type);
  if (d->flags & HANDLES) row(d, "node", "%p", (const void *)node);
  if (node->type == cudaGraphNodeTypeKernel)
    draw_kernel(d, node);
  else if (d->flags & flag)
    draw_params(d, node);
  fputs("}\"];\n", d->out);
}

static size_t draw_graph(drawing *d, const struct px_graph *graph);

/* A graph that a node does: its edge leads to a point in it. */
static void draw_inner(drawing *d, size_t graph, const struct px_node *node, const struct px_graph *inner) {
  size_t number = draw_graph(d, inner);
  fprintf(d->out, "\"graph_%zu_node_%zu\" -> \"graph_%zu\"[style=\"dashed\"];\n", graph, node->number, number);
}

static void draw_edges(drawing *d, size_t graph, const struct px_node *node) {
  for (size_t i = 0; i < node->behind.count; i++, d->edges++) {
    size_t behind = node->behind.node[i]->number;
    fprintf(d->out, "\"graph_%zu_node_%zu\" -> \"graph_%zu_node_%zu\"", graph, node->number, graph, behind);
    if (d->flags & EDGES) fprintf(d->out, "[label=\"%zu\"]", d->edges);
    fputs(";\n", d->out);
  }
}

/* Returns its number. */
static size_t draw_graph(drawing *d, const struct px_graph *graph) {
  size_t number = d->graphs++, nodes = 0;
  fprintf(d->out, "subgraph cluster_%zu {\nlabel=\"graph_%zu\" graph[style=\"dashed\"];\n", number, number);
  if (graph->child) fprintf(d->out, "\"graph_%zu\"[shape=\"point\"];\n", number);
  for (struct px_node *node = graph->first; node; node = node->next) node->number = nodes++;
  for (struct px_node *node = graph->first; node; node = node->next) {
    draw_node(d, number, node);
    if (node->child) draw_inner(d, number, node, node->child);
    for (unsigned i = 0; node->choice && i < node->choice->count; i++) draw_inner(d, number, node, node->choice->graph[i]);
  }
  for (struct px_node *node = graph->first; node; node = node->next) draw_edges(d, number, node);
  fputs("}\n", d->out);
  return number;
}

/* A graph as text, which the caller frees; NULL: there is no memory. */
static char *text_of(const struct px_graph *graph, unsigned flags) {
  char *text = NULL;
  size_t size;
  drawing d = {.out = open_memstream(&text, &size), .flags = flags & VERBOSE ? ALL : flags};
  if (!d.out) return NULL;
  fputs("digraph dot {\n", d.out);
  draw_graph(&d, graph);
  fputs("}\n", d.out);
  bool fits = !ferror(d.out);
  if (!fclose(d.out) && fits) return text;
  free(text);
  return NULL;
}

static bool write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  if (!file) return false;
  bool fits = fputs(text, file) >= 0;
  return !fclose(file) && fits;
}

PX_API cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned flags) {
  PX_ENTER();
  PX_REQUIRE(path && !(flags & ~(unsigned)ALL), cudaErrorInvalidValue);
  px_graph_lock();
  bool known = px_is_graph(graph);
  char *text = known ? text_of(graph, flags) : NULL;
  px_graph_unlock();
  PX_REQUIRE(known, cudaErrorInvalidValue);
  PX_REQUIRE(text, cudaErrorMemoryAllocation);
  bool written = write_file(path, text);
  free(text);
  return px_report(written ? cudaSuccess : cudaErrorOperatingSystem);
}
