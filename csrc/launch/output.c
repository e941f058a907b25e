/* output.c: what kernels print, until Python takes it. */
#include <stdlib.h>
#include <string.h>
#include "output.h"
#include "fault.h"
#include "launch.h"

#define MAX_OUTPUT (16u << 20)

/* Make room for `size` more bytes within the bound. */
static bool reserve(pe_output *output, size_t size) {
  size_t needed = output->size + size;
  if (needed <= output->room) return true;
  if (needed > MAX_OUTPUT) return false;
  size_t room = needed * 2 < MAX_OUTPUT ? needed * 2 : MAX_OUTPUT;
  char *text = realloc(output->text, room);
  if (!text) return false;
  output->text = text;
  output->room = room;
  return true;
}

void pe_output_append(pe_launch *launch, const char *text, size_t size) {
  if (size == 0) return;
  pe_output *output = &launch->output;
  pe_require_stack();
  pthread_mutex_lock(&output->mutex);
  if (reserve(output, size)) {
    memcpy(output->text + output->size, text, size);
    output->size += size;
  } else {
    output->dropped += size;
  }
  pthread_mutex_unlock(&output->mutex);
}

int pe_launch_has_output(pe_launch *launch) {
  pthread_mutex_lock(&launch->output.mutex);
  int found = launch->output.size != 0;
  pthread_mutex_unlock(&launch->output.mutex);
  return found;
}

size_t pe_launch_output(pe_launch *launch, char *buffer, size_t size) {
  pe_output *output = &launch->output;
  pthread_mutex_lock(&output->mutex);
  size_t taken = output->size < size ? output->size : size;
  if (taken) {
    memcpy(buffer, output->text, taken);
    memmove(output->text, output->text + taken, output->size - taken);
    output->size -= taken;
  }
  pthread_mutex_unlock(&output->mutex);
  return taken;
}
