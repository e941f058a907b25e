/* jit.c: options of loads and links. Those that steer a compiler for GPUs change nothing here. */
#include <stdio.h>
#include <string.h>
#include "driver.h"

enum { WALL_TIME = 2, INFO_BUFFER, INFO_BYTES, ERROR_BUFFER, ERROR_BYTES };

static void **value_of(const px_jit *jit, int option) {
  for (unsigned i = 0; jit->options && jit->values && i < jit->count; i++)
    if (jit->options[i] == option) return &jit->values[i];
  return NULL;
}

/* Write a text to the buffer of one option whose size another has, which then says how much was written. */
static void write_log(const px_jit *jit, int buffer, int bytes, const char *text) {
  void **to = value_of(jit, buffer), **size = value_of(jit, bytes);
  if (!to || !*to || !size || !*size) return;
  unsigned room = (unsigned)(uintptr_t)*size;
  snprintf(*to, room, "%s", text);
  size_t length = strlen(text);
  *size = (void *)(uintptr_t)(*text ? (length < room ? length + 1 : room) : 0);
}

void cu_log(const px_jit *jit, const char *text) {
  void **time = value_of(jit, WALL_TIME);
  float none = 0;
  if (time) memcpy(time, &none, sizeof none);
  write_log(jit, INFO_BUFFER, INFO_BYTES, "");
  write_log(jit, ERROR_BUFFER, ERROR_BYTES, text);
}
