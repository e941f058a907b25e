/* replace.h: functions of a program or library that are replaced: those of CUDA's runtime by libcudart.so's, the one of NVRTC that gives
 * machine code by the one that gives PTX, and those of nvJitLink by the core's. The tables of symbols say where they lie.
 */
#ifndef PX_PRELOAD_REPLACE_H
#define PX_PRELOAD_REPLACE_H

#include <link.h>

/* Replace what one object has, before it is called. What cannot be done is said on stderr. */
void px_replace_in(const struct link_map *object);

#endif
