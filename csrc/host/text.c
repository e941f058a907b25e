/* text.c: a text that grows in a buffer of a caller. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "text.h"

pe_text pe_text_in(char *out, size_t room) {
  out[0] = 0;
  return (pe_text){out, room, 0};
}

void pe_add(pe_text *t, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int size = vsnprintf(t->out + t->used, t->room - t->used, format, arguments);
  va_end(arguments);
  if (size < 0) return;
  t->used = (size_t)size < t->room - t->used ? t->used + (size_t)size : t->room - 1;
}

void pe_add_bytes(pe_text *t, uint64_t count) {
  uint64_t unit = 1;
  while (count / unit >= 1000) unit *= 1000;
  pe_add(t, "%u", (unsigned)(count / unit));
  for (unit /= 1000; unit; unit /= 1000) pe_add(t, ",%03u", (unsigned)(count / unit % 1000));
  pe_add(t, " byte%s", pe_plural(count));
}

void pe_add_name(pe_text *t, const char *name) {
  const char *quote = strchr(name, ' ') ? "" : "`";
  if (name[0])
    pe_add(t, "%s%s%s", quote, name, quote);
  else
    pe_add(t, "an allocation");
}
