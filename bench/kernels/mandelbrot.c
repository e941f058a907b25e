/* 32 points at a time, until all of them have left: gcc makes no vectors of a loop with a break. */
#include <string.h>
#include "vectors.h"

enum { POINTS = 32, VECTORS = POINTS / LANES, EVERY = 8 };

typedef struct points {
  floats cx, cy, x, y;
  ints count;
} points;

static inline ints turn(points *p) {
  const floats xx = p->x * p->x, yy = p->y * p->y, xy = p->x * p->y;
  const ints inside = xx + yy <= 4.0f; /* who has left stays outside: squares only grow, to infinity or NaN */
  p->count -= inside;
  p->x = (xx - yy) + p->cx;
  p->y = (xy + xy) + p->cy;
  return inside;
}

static int any(ints mask) {
  long long words[LANES / 2], all = 0;
  memcpy(words, &mask, sizeof mask);
  for (int i = 0; i < LANES / 2; ++i) all |= words[i];
  return all != 0;
}

static points start(float left, float cy, float step, int column) {
  floats columns;
  for (int lane = 0; lane < LANES; ++lane) columns[lane] = (float)(column + lane);
  return (points){.cx = left + step * columns, .cy = cy + (floats){0}};
}

void mandelbrot(int width, int height, float left, float top, float step, int rounds, int *counts) {
#pragma omp parallel for schedule(dynamic, 8)
  for (int row = 0; row < height; ++row)
    for (int column = 0; column < width; column += POINTS) {
      points p[VECTORS];
      for (int v = 0; v < VECTORS; ++v) p[v] = start(left, top + step * (float)row, step, column + v * LANES);
      for (int round = 0; round < rounds; ++round) {
        ints inside = {0};
        for (int v = 0; v < VECTORS; ++v) inside |= turn(&p[v]);
        if (round % EVERY == 0 && !any(inside)) break;
      }
      int found[POINTS];
      for (int v = 0; v < VECTORS; ++v) memcpy(found + v * LANES, &p[v].count, sizeof p[v].count);
      const int here = width - column < POINTS ? width - column : POINTS;
      memcpy(counts + (long)row * width + column, found, here * sizeof *found);
    }
}
