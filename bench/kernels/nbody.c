/* The twin of nbody.cu: 16 bodies at a time, so that the compiler can keep them in vectors. */
#include <math.h>

enum { LANES = 16 };

typedef struct { float x, y, z, w; } body;

void nbody(int n, float softening, const body *bodies, body *accelerations) {
#pragma omp parallel for
  for (int first = 0; first < n; first += LANES) {
    float px[LANES], py[LANES], pz[LANES], ax[LANES] = {0}, ay[LANES] = {0}, az[LANES] = {0};
    for (int l = 0; l < LANES; ++l) {
      px[l] = bodies[first + l].x;
      py[l] = bodies[first + l].y;
      pz[l] = bodies[first + l].z;
    }
    for (int j = 0; j < n; ++j) {
      const body other = bodies[j];
#pragma omp simd
      for (int l = 0; l < LANES; ++l) {
        const float dx = other.x - px[l], dy = other.y - py[l], dz = other.z - pz[l];
        const float inverse = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + softening);
        const float pull = other.w * inverse * inverse * inverse;
        ax[l] += pull * dx;
        ay[l] += pull * dy;
        az[l] += pull * dz;
      }
    }
    for (int l = 0; l < LANES; ++l) accelerations[first + l] = (body){ax[l], ay[l], az[l], 0.0f};
  }
}
