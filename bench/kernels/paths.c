#include <string.h>

enum { STATES = 64 };

static void step(const float *restrict moves, const float *restrict worth, const float *restrict before, float *restrict after) {
  float most[STATES];
  for (int state = 0; state < STATES; ++state) most[state] = before[0] + moves[state];
  for (int from = 1; from < STATES; ++from)
#pragma omp simd
    for (int state = 0; state < STATES; ++state) {
      const float value = before[from] + moves[from * STATES + state];
      most[state] = value > most[state] ? value : most[state];
    }
  for (int state = 0; state < STATES; ++state) after[state] = most[state] + worth[state];
}

void paths(int sequences, int steps, const float *moves, const float *worth, float *best) {
#pragma omp parallel for
  for (int sequence = 0; sequence < sequences; ++sequence) {
    const float *own = worth + (long)sequence * steps * STATES;
    float value[2][STATES];
    memcpy(value[0], own, sizeof value[0]);
    for (int i = 1; i < steps; ++i) step(moves, own + i * STATES, value[(i - 1) % 2], value[i % 2]);
    memcpy(best + sequence * STATES, value[(steps - 1) % 2], sizeof value[0]);
  }
}
