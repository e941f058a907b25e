/* watch.h: the objects of a process, as the loader lists them; and those that it loads later, before anything of them runs. */
#ifndef PX_PRELOAD_WATCH_H
#define PX_PRELOAD_WATCH_H

#include <link.h>

/* From now on, have `found` called for each object that is loaded; it must not load anything itself. Debuggers are told of objects by
 * a function that does nothing (r_brk in <link.h>): it is made a jump. Where it is another function than that, nothing is watched. */
void px_watch(void (*found)(const struct link_map *));

#endif
