/* message.h: faults in words. */
#ifndef PTXEMU_MESSAGE_H
#define PTXEMU_MESSAGE_H
#include "host.h"

#pragma GCC visibility push(default)
/* CDEF BEGIN */
/* What a kind of fault is called, and the cudaError_t that a device would report. NULL: it is a dialect's, or there is none. */
const char *pe_fault_name(uint32_t kind);
uint32_t pe_fault_code(uint32_t kind);

/* "generic", "global" ... */
const char *pe_space_name(uint32_t space);

/* Whether the record's address means something: a fault of an access of memory. */
int pe_fault_in_memory(const pe_record *record);

/* What a message says beside the record; NULL for what is not known. */
typedef struct pe_fault_names {
  const char *kind; /* NULL: pe_fault_name */
  const char *kernel;
  const char *place;   /* in the source: "file:line" */
  const char *surface; /* by which name the program knows the slot */
  pe_arena *arena;     /* to say what lies near the address */
} pe_fault_names;

/* The text of a fault, without an end of line; cut off where there is no room. `out` has `room` bytes, at least 1. */
void pe_fault_text(const pe_record *record, const pe_fault_names *names, char *out, size_t room);

/* The text of the fault of a launch that pe_start_launch has started, which has ended; `file` is what the program's text is called,
 * or NULL. 0, or -1: there was no fault. */
int pe_launch_fault_text(const pe_launch *launch, const char *file, char *out, size_t room);

/* Where an address lies, relative to the nearest allocation if one is near. */
void pe_arena_describe(pe_arena *arena, uint64_t address, char *out, size_t room);
/* CDEF END */
#pragma GCC visibility pop

#endif
