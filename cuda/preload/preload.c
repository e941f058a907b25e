/* preload.c: programs and libraries that have CUDA's runtime linked in, as nvcc does by default, and programs that compile with NVRTC.
 * LD_PRELOAD brings this library into the process before anything of it runs: it is initialised first (-z initfirst). Where an object
 * has a function of the runtime, the function is made a jump to the one of that name in libcudart.so. The object's table of symbols
 * says where they lie, so that it must not be stripped.
 */
#include "replace.h"
#include "watch.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>

static const struct link_map *object_of(const void *address) {
  Dl_info info;
  void *map = NULL;
  return dladdr1(address, &info, &map, RTLD_DL_LINKMAP) ? map : NULL;
}

/* Whether this library was loaded with the program, before the C library, and not by it. */
static bool comes_first(void) {
  const struct link_map *own = object_of((const void *)comes_first), *system = object_of((const void *)gnu_get_libc_version);
  const struct link_map *one = _r_debug.r_map;
  while (one && one != own && one != system) one = one->l_next;
  return one == own;
}

/* What runs already may have registered its kernels, and is left alone. */
__attribute__((constructor)) static void start(void) {
  if (comes_first())
    for (const struct link_map *one = _r_debug.r_map; one; one = one->l_next) px_replace_in(one);
  px_watch(px_replace_in);
}
