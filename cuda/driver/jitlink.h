/* jitlink.h: nvJitLink with ptxemu's functions in the place of its own. */
#ifndef PTXEMU_CUDA_JITLINK_H
#define PTXEMU_CUDA_JITLINK_H

/* Tell of a function of nvJitLink's own, by its plain name, that is replaced. The library that is told of last is used. */
typedef void px_jitlink_teller(const char *name, const void *function);
px_jitlink_teller px_jitlink_found;

#endif
