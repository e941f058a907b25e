/* replace.h: functions of a program or library that are made jumps: those of CUDA's runtime, to libcudart.so's, and the one of NVRTC
 * that gives machine code, to the one that gives PTX. The tables of symbols say where they lie.
 */
#ifndef PX_PRELOAD_REPLACE_H
#define PX_PRELOAD_REPLACE_H

#include <link.h>

/* Replace what one object has, before it is called. What cannot be done is said on stderr. */
void px_replace_in(const struct link_map *object);

#endif
