/* output.h: what a launch prints, until the host takes it. */
#ifndef PTXEMU_OUTPUT_H
#define PTXEMU_OUTPUT_H
#include <pthread.h>
#include "ptxemu.h"

typedef struct pe_output {
  pthread_mutex_t mutex;
  char *text;
  size_t size, room;
  uint64_t dropped;
} pe_output;

void pe_output_append(pe_launch *launch, const char *text, size_t size);

#endif
