/* jitlink.c: nvJitLink, where libptxemu_preload.so puts these functions in the place of CUDA's (preload/replace.c). What is linked is PTX,
 * and what comes of it is an image that holds the inputs, as that of the driver's linker (link.c). CUDA's own functions still read the
 * options, and make PTX of LTO-IR.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "driver.h"
#include "jitlink.h"
#include "linked.h"

enum { SUCCESS, INVALID_INPUT = 3, INTERNAL = 6, FINALIZE = 9, INCORRECT_INPUT_TYPE = 12 };
enum { CUBIN = 1, PTX, LTOIR, FATBIN, OBJECT, LIBRARY, ANY = 10 };

typedef int get_size(void *link, size_t *size);
typedef int get_bytes(void *link, char *out);

/* ---- CUDA's own functions ---- */

typedef struct own_functions {
  int (*create)(void **link, uint32_t count, const char *const *options);
  int (*destroy)(void **link);
  int (*add)(void *link, int type, const void *data, size_t size, const char *name);
  int (*complete)(void *link);
  get_size *ptx_size, *ltoir_size, *error_size, *info_size;
  get_bytes *ptx, *ltoir, *error, *info;
} own_functions;

static const struct {
  const char *name;
  size_t place;
} own_names[] = {
  {"nvJitLinkCreate", offsetof(own_functions, create)},
  {"nvJitLinkDestroy", offsetof(own_functions, destroy)},
  {"nvJitLinkAddData", offsetof(own_functions, add)},
  {"nvJitLinkComplete", offsetof(own_functions, complete)},
  {"nvJitLinkGetLinkedPtxSize", offsetof(own_functions, ptx_size)},
  {"nvJitLinkGetLinkedPtx", offsetof(own_functions, ptx)},
  {"nvJitLinkGetLinkedLTOIRSize", offsetof(own_functions, ltoir_size)},
  {"nvJitLinkGetLinkedLTOIR", offsetof(own_functions, ltoir)},
  {"nvJitLinkGetErrorLogSize", offsetof(own_functions, error_size)},
  {"nvJitLinkGetErrorLog", offsetof(own_functions, error)},
  {"nvJitLinkGetInfoLogSize", offsetof(own_functions, info_size)},
  {"nvJitLinkGetInfoLog", offsetof(own_functions, info)},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static own_functions last; /* of the library that was found last */

PX_API void px_jitlink_found(const char *name, const void *function) {
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < sizeof own_names / sizeof *own_names; i++)
    if (!strcmp(own_names[i].name, name)) memcpy((char *)&last + own_names[i].place, &function, sizeof function);
  pthread_mutex_unlock(&lock);
}

static own_functions functions_now(void) {
  pthread_mutex_lock(&lock);
  own_functions now = last;
  pthread_mutex_unlock(&lock);
  return now;
}

/* ---- links ---- */

typedef struct link_of_ptx {
  px_mortal mortal;
  own_functions own;
  void *handle; /* CUDA's own */
  px_linked linked;
  bool asks_ptx; /* the program wants the PTX of LTO-IR, and no image */
  bool has_ltoir, complete;
  char *problem; /* what was wrong here, or NULL */
} link_of_ptx;

/* Begin a function of a link. */
#define LINK_ENTER(link) \
  PX_CALL();             \
  CU_REQUIRE(px_is_live(link, PX_JIT_LINK), INVALID_INPUT)

static int refuse(link_of_ptx *link, int error, const char *text) {
  free(link->problem);
  link->problem = strdup(text);
  return error;
}

static void end_link(px_mortal *object) {
  link_of_ptx *link = (link_of_ptx *)object;
  if (link->handle) link->own.destroy(&link->handle);
  px_linked_free(&link->linked);
  free(link->problem);
  free(link);
}

static bool has_option(uint32_t count, const char *const *options, const char *name) {
  bool there = false;
  for (uint32_t i = 0; i < count; i++) there |= options[i] && !strcmp(options[i], name);
  return there;
}

/* CUDA's own link, which makes PTX if there is LTO-IR. */
static int create_own(link_of_ptx *link, uint32_t count, const char *const *options) {
  link->asks_ptx = has_option(count, options, "-ptx");
  bool adds = has_option(count, options, "-lto") && !link->asks_ptx;
  const char **all = calloc((size_t)count + 1, sizeof *all);
  if (!all) return INTERNAL;
  for (uint32_t i = 0; i < count; i++) all[i] = options[i];
  all[count] = "-ptx";
  int error = link->own.create(&link->handle, count + adds, all);
  free(all);
  return error;
}

PX_API int nvJitLinkCreate(void **out, uint32_t count, const char *const *options) {
  PX_CALL();
  CU_REQUIRE(out && (!count || options), INVALID_INPUT);
  link_of_ptx *link = calloc(1, sizeof *link);
  CU_REQUIRE(link, INTERNAL);
  link->own = functions_now();
  int error = create_own(link, count, options);
  if (!error && !px_live_add(link, PX_JIT_LINK)) error = INTERNAL;
  if (error)
    end_link(&link->mortal);
  else
    *out = link;
  return error;
}

PX_API int nvJitLinkDestroy(void **handle) {
  PX_CALL();
  CU_REQUIRE(handle && px_live_remove(*handle, PX_JIT_LINK), INVALID_INPUT);
  link_of_ptx *link = *handle;
  px_end_later(&link->mortal, end_link);
  *handle = NULL;
  return SUCCESS;
}

/* ---- inputs ---- */

static bool begins_with(const void *data, size_t size, const char *magic) {
  size_t length = strlen(magic);
  return size >= length && !memcmp(data, magic, length);
}

/* What an input is that may be anything, or is said to be machine code: NVRTC gives PTX for that. */
static int type_of(int type, const void *data, size_t size) {
  static const char fat[] = "\x50\xed\x55\xba", ltoir[] = "\xed\x43\x4e\x7f";
  if (type != ANY && type != CUBIN) return type;
  return begins_with(data, size, "\177ELF")     ? CUBIN
         : begins_with(data, size, "!<arch>\n") ? LIBRARY
         : begins_with(data, size, fat)         ? FATBIN
         : begins_with(data, size, ltoir)       ? LTOIR
                                                : PTX;
}

/* A library's members are taken for names that are not defined; as in link.c, it counts as empty. */
static int add_input(link_of_ptx *link, int type, const void *data, size_t size, const char *name) {
  type = type_of(type, data, size);
  if (type == LIBRARY) return SUCCESS;
  if (type == LTOIR) {
    link->has_ltoir = true;
    return link->own.add(link->handle, LTOIR, data, size, name);
  }
  if (type != PTX && type != FATBIN)
    return refuse(link, INCORRECT_INPUT_TYPE, "only PTX, fat binaries that hold it, and LTO-IR can be linked");
  return px_linked_add(&link->linked, data, size) ? SUCCESS : INTERNAL;
}

PX_API int nvJitLinkAddData(link_of_ptx *link, int type, const void *data, size_t size, const char *name) {
  LINK_ENTER(link);
  CU_REQUIRE(data && size, INVALID_INPUT);
  return add_input(link, type, data, size, name);
}

PX_API int nvJitLinkAddFile(link_of_ptx *link, int type, const char *path) {
  LINK_ENTER(link);
  CU_REQUIRE(path, INVALID_INPUT);
  size_t size;
  void *data = cu_file(path, &size);
  int error = data ? add_input(link, type, data, size, path) : refuse(link, INVALID_INPUT, "a file cannot be read");
  free(data);
  return error;
}

/* ---- the link ---- */

/* Have PTX made of the LTO-IR, which is one more input. */
static int add_optimized(link_of_ptx *link) {
  size_t size;
  int error = link->own.complete(link->handle);
  if (!error) error = link->own.ptx_size(link->handle, &size);
  if (error) return error;
  char *text = malloc(size + 1);
  if (!text) return INTERNAL;
  error = link->own.ptx(link->handle, text);
  if (!error && !px_linked_add(&link->linked, text, size)) error = INTERNAL;
  free(text);
  return error;
}

PX_API int nvJitLinkComplete(link_of_ptx *link) {
  LINK_ENTER(link);
  if (link->asks_ptx) return link->own.complete(link->handle);
  CU_REQUIRE(px_device_get(), INTERNAL);
  CU_REQUIRE(!link->complete, INVALID_INPUT);
  int error = link->has_ltoir ? add_optimized(link) : SUCCESS;
  CU_REQUIRE(!error, error);
  CU_REQUIRE(link->linked.inputs, INVALID_INPUT);
  px_linked_end(&link->linked);
  if (px_module_check(link->linked.image, link->linked.bytes)) return refuse(link, FINALIZE, px_module_problem());
  link->complete = true;
  return SUCCESS;
}

PX_API int nvJitLinkGetLinkedCubinSize(link_of_ptx *link, size_t *size) {
  LINK_ENTER(link);
  CU_REQUIRE(size && link->complete, INVALID_INPUT);
  *size = link->linked.bytes;
  return SUCCESS;
}

PX_API int nvJitLinkGetLinkedCubin(link_of_ptx *link, void *out) {
  LINK_ENTER(link);
  CU_REQUIRE(out && link->complete, INVALID_INPUT);
  memcpy(out, link->linked.image, link->linked.bytes);
  return SUCCESS;
}

/* ---- what CUDA's own link knows ---- */

#define OWN(function, type, member)                   \
  PX_API int function(link_of_ptx *link, type *out) { \
    LINK_ENTER(link);                                 \
    return link->own.member(link->handle, out);       \
  }

OWN(nvJitLinkGetLinkedPtxSize, size_t, ptx_size)
OWN(nvJitLinkGetLinkedPtx, char, ptx)
OWN(nvJitLinkGetLinkedLTOIRSize, size_t, ltoir_size)
OWN(nvJitLinkGetLinkedLTOIR, char, ltoir)
OWN(nvJitLinkGetInfoLogSize, size_t, info_size)
OWN(nvJitLinkGetInfoLog, char, info)

PX_API int nvJitLinkGetErrorLogSize(link_of_ptx *link, size_t *size) {
  LINK_ENTER(link);
  if (!link->problem) return link->own.error_size(link->handle, size);
  CU_REQUIRE(size, INVALID_INPUT);
  *size = strlen(link->problem) + 1;
  return SUCCESS;
}

PX_API int nvJitLinkGetErrorLog(link_of_ptx *link, char *out) {
  LINK_ENTER(link);
  if (!link->problem) return link->own.error(link->handle, out);
  CU_REQUIRE(out, INVALID_INPUT);
  memcpy(out, link->problem, strlen(link->problem) + 1);
  return SUCCESS;
}
