/* text.h: a text that grows in a buffer of a caller, and is cut where that ends. */
#ifndef PTXEMU_TEXT_H
#define PTXEMU_TEXT_H
#include <stddef.h>
#include <stdint.h>

typedef struct pe_text {
  char *out;
  size_t room, used;
} pe_text;

/* An empty text in `room` bytes, at least 1. */
pe_text pe_text_in(char *out, size_t room);

__attribute__((format(printf, 2, 3))) void pe_add(pe_text *t, const char *format, ...);

/* `1,024 bytes`, with commas at the thousands. */
void pe_add_bytes(pe_text *t, uint64_t count);

/* What an allocation is called: a name in quotes; what is no name but a description, which has blanks, as it is. */
void pe_add_name(pe_text *t, const char *name);

static inline const char *pe_plural(uint64_t count) { return count == 1 ? "" : "s"; }

#endif
