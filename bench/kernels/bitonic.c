/* The same network: long distances as loops over two ranges, short ones as shuffles within a vector. */
#include <string.h>
#include "vectors.h"

enum { KEYS = 512 };

static void far(unsigned *keys, int size, int distance) {
  for (int first = 0; first < KEYS; first += 2 * distance) {
    const int rises = (first & size) == 0;
    unsigned *least = keys + first + (rises ? 0 : distance), *most = keys + first + (rises ? distance : 0);
#pragma omp simd
    for (int i = 0; i < distance; ++i) {
      const unsigned a = least[i], b = most[i];
      least[i] = a < b ? a : b;
      most[i] = a < b ? b : a;
    }
  }
}

static void near(unsigned *keys, unsigned size, unsigned distance) {
  words lane;
  for (unsigned i = 0; i < LANES; ++i) lane[i] = i;
  for (unsigned first = 0; first < KEYS; first += LANES) {
    words a, b;
    memcpy(&a, keys + first, sizeof a);
    b = __builtin_shuffle(a, lane ^ distance);
    const words wants_least = (words)(((lane & distance) == 0) == (((lane + first) & size) == 0));
    const words keeps = (words)(a < b) ^ ~wants_least;
    a = (a & keeps) | (b & ~keeps);
    memcpy(keys + first, &a, sizeof a);
  }
}

void bitonic(int runs, const unsigned *in, unsigned *out) {
#pragma omp parallel for
  for (int run = 0; run < runs; ++run) {
    unsigned keys[KEYS] __attribute__((aligned(64)));
    memcpy(keys, in + (long)KEYS * run, sizeof keys);
    for (int size = 2; size <= KEYS; size *= 2)
      for (int distance = size / 2; distance > 0; distance /= 2)
        if (distance >= LANES)
          far(keys, size, distance);
        else
          near(keys, size, distance);
    memcpy(out + (long)KEYS * run, keys, sizeof keys);
  }
}
