/* printf.c: vprintf and __assertfail, as nvcc calls them (CUDA C++ Programming Guide, "Formatted Output", "Assertion").
 *
 * The arguments lie in a buffer, each at its natural alignment; small integers are promoted to 4 bytes, floats to doubles.
 * Formats and strings are device memory that others may change meanwhile: formats are copied, strings read within bounds
 * found beforehand.  A call may ask for more text than it keeps, so it looks at the stop flag as it goes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "fault.h"
#include "internal.h"
#include "launch.h"
#include "output.h"
#include "place.h"
#include "worker.h"

#define MAX_TEXT (1u << 20) /* of one call by one lane */
#define MAX_WIDTH 65536

/* One lane's call. */
typedef struct printer {
  pe_warp *warp;
  uint32_t pos;
  int32_t lane;
  const char *args;
  uint64_t args_at, args_size, cursor; /* the address of the arguments and how many bytes are there; offset of the next */
  uint32_t parsed;                     /* arguments */
  char *text;
  size_t size;
} printer;

typedef struct conversion {
  char flags[6];
  int width, precision; /* precision < 0: none */
  enum { LENGTH_CHAR, LENGTH_SHORT, LENGTH_INT, LENGTH_LONG } length;
  char kind;
} conversion;

static void put(printer *p, const char *text, size_t size) {
  size_t room = MAX_TEXT - p->size;
  if (size > room) size = room;
  memcpy(p->text + p->size, text, size);
  p->size += size;
}

static bool is_full(const printer *p) { return p->size + 1 >= MAX_TEXT; }

/* After snprintf into the free room. */
static void advance(printer *p, int written) {
  size_t room = MAX_TEXT - p->size;
  if (written > 0) p->size += (size_t)written < room ? (size_t)written : room - 1;
}

static pe_access access_of(const printer *p, uint32_t align) {
  return (pe_access){p->pos, PE_GENERIC, PE_ANYWHERE, PE_READ, align, NULL};
}

static uint64_t next_argument(printer *p, uint32_t size) {
  uint64_t value = 0, address = pe_round_up(pe_sum(p->args_at, p->cursor), size);
  pe_access access = access_of(p, size);
  p->cursor = address - p->args_at;
  if (!pe_within(p->cursor, size, p->args_size)) pe_refuse_range(p->warp, &access, (uint32_t)p->lane, address, size);
  pe_tell_lane(p->warp, &access, (uint32_t)p->lane, address, size);
  memcpy(&value, p->args + p->cursor, size);
  p->cursor += size;
  p->parsed++;
  return value;
}

/* A device string of at most `limit` bytes, and its length; faults if it leaves its allocation before. */
static const char *string(const printer *p, uint64_t address, size_t limit, size_t *length) {
  pe_access access = access_of(p, 1);
  uint64_t room;
  const char *text = pe_host_run(p->warp, address, limit, &room);
  *length = strnlen(text, room);
  if (*length == room && room < limit) pe_refuse_range(p->warp, &access, (uint32_t)p->lane, address + room, 1);
  pe_tell_lane(p->warp, &access, (uint32_t)p->lane, address, *length);
  return text;
}

/* ---- parsing ---- */

static int number(printer *p, const char **at, const char *end) {
  if (*at < end && **at == '*') {
    ++*at;
    return (int32_t)next_argument(p, 4);
  }
  int value = 0;
  for (; *at < end && **at >= '0' && **at <= '9'; ++*at)
    if (value <= MAX_WIDTH) value = value * 10 + (**at - '0');
  return value;
}

static int clamp(int value, int low) { return value < low ? low : value > MAX_WIDTH ? MAX_WIDTH : value; }

static void parse_flags(conversion *c, const char **at, const char *end) {
  size_t count = 0;
  for (; *at < end && **at && strchr("-+ #0", **at); ++*at)
    if (!strchr(c->flags, **at)) c->flags[count++] = **at;
}

static void parse_length(conversion *c, const char **at, const char *end) {
  c->length = LENGTH_INT;
  for (; *at < end && **at && strchr("hlLqjzt", **at); ++*at)
    c->length = **at != 'h' ? LENGTH_LONG : c->length == LENGTH_SHORT ? LENGTH_CHAR : LENGTH_SHORT;
}

/* Parse what follows a '%'; false at the end of the format. */
static bool parse(printer *p, conversion *c, const char **at, const char *end) {
  *c = (conversion){.precision = -1};
  parse_flags(c, at, end);
  c->width = clamp(number(p, at, end), -MAX_WIDTH);
  if (*at < end && **at == '.') {
    ++*at;
    c->precision = clamp(number(p, at, end), -1);
  }
  parse_length(c, at, end);
  if (*at >= end || !**at) return false;
  c->kind = *(*at)++;
  return true;
}

/* ---- output of one conversion ---- */

static long long narrow_signed(uint64_t value, int length) {
  switch (length) {
    case LENGTH_CHAR: return (int8_t)value;
    case LENGTH_SHORT: return (int16_t)value;
    case LENGTH_INT: return (int32_t)value;
    default: return (int64_t)value;
  }
}

static unsigned long long narrow_unsigned(uint64_t value, int length) {
  switch (length) {
    case LENGTH_CHAR: return (uint8_t)value;
    case LENGTH_SHORT: return (uint16_t)value;
    case LENGTH_INT: return (uint32_t)value;
    default: return value;
  }
}

static void print_string(printer *p, const conversion *c, uint64_t address, const char *format, char *out, size_t room) {
  if (address == 0) {
    advance(p, snprintf(out, room, format, c->width, c->precision, "(null)"));
    return;
  }
  size_t length;
  const char *text = string(p, address, c->precision >= 0 ? (size_t)c->precision : MAX_TEXT, &length);
  advance(p, snprintf(out, room, format, c->width, (int)length, text));
}

/* Bytes of the argument of a conversion; 0: it takes none. */
static uint32_t argument_bytes(const conversion *c) {
  if (strchr("diuoxX", c->kind)) return c->length == LENGTH_LONG ? 8 : 4;
  return c->kind == 'c' ? 4 : strchr("fFeEgGaAps", c->kind) ? 8 : 0;
}

/* False: not a conversion. */
static bool print(printer *p, const conversion *c) {
  char *out = p->text + p->size, format[24];
  size_t room = MAX_TEXT - p->size;
  uint32_t bytes = argument_bytes(c);
  if (c->kind == '%') put(p, "%", 1);
  if (!bytes) return c->kind == '%';
  uint64_t argument = next_argument(p, bytes);
  if (is_full(p)) return true;
  snprintf(format, sizeof format, "%%%s*.*%s%c", c->flags, strchr("diuoxX", c->kind) ? "ll" : "", c->kind);
  switch (c->kind) {
    case 'd':
    case 'i': advance(p, snprintf(out, room, format, c->width, c->precision, narrow_signed(argument, c->length))); break;
    case 'u':
    case 'o':
    case 'x':
    case 'X': advance(p, snprintf(out, room, format, c->width, c->precision, narrow_unsigned(argument, c->length))); break;
    case 'c': advance(p, snprintf(out, room, format, c->width, c->precision, (int)argument)); break;
    case 'p': advance(p, snprintf(out, room, format, c->width, c->precision, (void *)(uintptr_t)argument)); break;
    case 's': print_string(p, c, argument, format, out, room); break;
    default: {
      double value;
      memcpy(&value, &argument, sizeof value);
      advance(p, snprintf(out, room, format, c->width, c->precision, value));
    }
  }
  return true;
}

static void print_format(printer *p, const char *at, const char *end) {
  while (at < end && *at) {
    if (pe_stopped(p->warp->launch)) pe_stop(p->warp);
    const char *percent = memchr(at, '%', (size_t)(end - at));
    const char *stop = percent ? percent : end;
    put(p, at, (size_t)(stop - at));
    if (!percent) return;
    conversion c;
    at = percent + 1;
    if (!parse(p, &c, &at, end) || !print(p, &c)) put(p, percent, (size_t)(at - percent));
  }
}

static uint32_t print_lane(printer *p, uint64_t format, uint64_t args) {
  if (format == 0) return (uint32_t)-1;
  size_t length;
  const char *text = string(p, format, MAX_TEXT, &length);
  char *copy = memcpy(p->text + MAX_TEXT, text, length);
  p->args_at = args;
  p->args = pe_host_run(p->warp, args, UINT64_MAX, &p->args_size);
  print_format(p, copy, copy + length);
  pe_output_append(p->warp->launch, p->text, p->size);
  return p->parsed;
}

/* The worker's buffer for the text of a call and its format: it outlives faults, which abandon the stack. */
static char *scratch(void) {
  pe_worker *worker = pe_self;
  if (!worker->scratch) worker->scratch = malloc(2 * MAX_TEXT);
  return worker->scratch;
}

void pe_vprintf(pe_warp *w, uint32_t pos, uint32_t mask, const uint64_t *format, const uint64_t *args, uint32_t *result) {
  w->pos = pos;
  pe_require_stack();
  char *text = scratch();
  for (; mask; mask &= mask - 1) {
    int lane = __builtin_ctz(mask);
    printer p = {.warp = w, .pos = pos, .lane = lane, .text = text};
    result[lane] = text ? print_lane(&p, format[lane], args[lane]) : (uint32_t)-2;
  }
}

/* ---- assertions ---- */

/* Copy a device string, cut to fit; "?" where there is none. */
static void copy_string(const pe_warp *w, uint64_t address, char *out, size_t size) {
  uint64_t room;
  const char *text = pe_host_run(w, address, size - 1, &room);
  if (!room) text = "?", room = 1;
  size_t length = strnlen(text, room);
  memcpy(out, text, length);
  out[length] = '\0';
}

noreturn void pe_assertfail(pe_warp *w, uint32_t pos, uint32_t mask, const uint64_t *message, const uint64_t *file,
                            const uint32_t *line, const uint64_t *function) {
  int lane = __builtin_ctz(mask);
  w->pos = pos;
  char texts[3][240], note[sizeof((pe_record *)0)->note];
  copy_string(w, message[lane], texts[0], sizeof texts[0]);
  copy_string(w, file[lane], texts[1], sizeof texts[1]);
  copy_string(w, function[lane], texts[2], sizeof texts[2]);
  snprintf(note, sizeof note, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.", texts[1],
           line[lane], texts[2], w->ctaid[0], w->ctaid[1], w->ctaid[2], w->tid[0][lane], w->tid[1][lane], w->tid[2][lane],
           texts[0]);
  pe_fault_note(w, PE_ASSERT, pos, lane, PE_GENERIC, 0, 0, note);
}
