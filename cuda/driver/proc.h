/* proc.h: the functions that libcuda.so.1 exports, which tools/cuda.py lists. */
#ifndef PTXEMU_CUDA_PROC_H
#define PTXEMU_CUDA_PROC_H

typedef struct px_proc {
  const char *name;
  int version; /* of CUDA that brought it, 12080 for 12.8; 0: it is not looked up */
  int (*function)(void);
} px_proc;

/* Ends with a NULL name. */
extern const px_proc px_procs[];

#endif
