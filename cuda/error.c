/* error.c: the last error of each thread, the error that stays, and what errors are called. */
#include <ctype.h>
#include <stdatomic.h>
#include <string.h>
#include "core.h"

static _Thread_local cudaError_t last;
static _Thread_local px_context *current;
px_context px_primary;

void px_context_use(px_context *context) { current = context; }

px_context *px_context_own(void) { return current ? current : &px_primary; }

cudaError_t px_context_error(px_context *context) { return atomic_load(&context->staying); }

cudaError_t px_enter(void) {
  cudaError_t error = atomic_load(&px_context_own()->staying);
  if (error) return error;
  return px_device_get() ? cudaSuccess : cudaErrorInitializationError;
}

cudaError_t px_report(cudaError_t error) {
  if (error) last = error;
  return error;
}

void px_stay_in(px_context *context, cudaError_t error) {
  cudaError_t none = cudaSuccess;
  atomic_compare_exchange_strong(&context->staying, &none, error);
}

cudaError_t px_stay(cudaError_t error) {
  px_stay_in(px_context_own(), error);
  return error;
}

void px_forget_errors(void) {
  atomic_store(&px_primary.staying, cudaSuccess);
  last = cudaSuccess;
}

PX_API cudaError_t cudaPeekAtLastError(void) {
  cudaError_t error = atomic_load(&px_context_own()->staying);
  return error ? error : last;
}

PX_API cudaError_t cudaGetLastError(void) {
  cudaError_t error = cudaPeekAtLastError();
  last = cudaSuccess;
  return error;
}

/* ---- names ---- */

typedef struct error_name {
  cudaError_t error;
  const char *name;
} error_name;

static const error_name names[] = {
#include "error_names.h"
};

enum { ERRORS = sizeof names / sizeof *names, LONGEST = 80 };

PX_API const char *cudaGetErrorName(cudaError_t error) {
  for (size_t i = 0; i < ERRORS; i++)
    if (names[i].error == error) return names[i].name;
  return "unrecognized error code";
}

/* The words of a name: "illegal address" of cudaErrorIllegalAddress. */
static void write_words(char *out, const char *name) {
  size_t size = 0;
  for (const char *at = name; *at && size < LONGEST - 2; at++) {
    bool begins =
        isupper((unsigned char)*at) && (islower((unsigned char)at[1]) || (at > name && islower((unsigned char)at[-1])));
    if (begins && size) out[size++] = ' ';
    out[size++] = isupper((unsigned char)at[1]) || !begins ? *at : (char)tolower((unsigned char)*at);
  }
  out[size] = 0;
}

PX_API const char *cudaGetErrorString(cudaError_t error) {
  static char words[ERRORS][LONGEST];
  static atomic_flag lock = ATOMIC_FLAG_INIT;
  for (size_t i = 0; i < ERRORS; i++) {
    if (names[i].error != error) continue;
    if (error == cudaSuccess) return "no error";
    while (atomic_flag_test_and_set(&lock)) continue;
    if (!words[i][0]) write_words(words[i], names[i].name + strlen("cudaError"));
    atomic_flag_clear(&lock);
    return words[i];
  }
  return "unrecognized error code";
}

int px_not_supported(void) { return px_report(cudaErrorNotSupported); }
