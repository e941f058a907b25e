/* error.c: the last error of each thread, the error that stays, and what errors are called. */
#include <ctype.h>
#include <stdatomic.h>
#include <string.h>
#include "core.h"

static _Thread_local cudaError_t last;

/* The error that stays with the context of this call. */
static cudaError_t staying(void) {
  px_context *own = px_context_own();
  return px_context_lives(own) ? px_context_error(own) : cudaErrorContextIsDestroyed;
}

cudaError_t px_enter(void) {
  cudaError_t error = staying();
  if (error) return error;
  return px_device_get() ? cudaSuccess : cudaErrorInitializationError;
}

/* That something is not done yet is an answer, and not kept. */
cudaError_t px_report(cudaError_t error) {
  if (error && error != cudaErrorNotReady) last = error;
  return error;
}

void px_forget_errors(void) {
  atomic_store(&px_primary.staying, cudaSuccess);
  last = cudaSuccess;
}

PX_API cudaError_t cudaPeekAtLastError(void) {
  PX_CALL();
  cudaError_t error = staying();
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
