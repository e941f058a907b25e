// float_math
#include <math.h>
extern "C" __global__ void fm(const float* x, float* o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; float v = x[i]; int k = 0;
  o[n*k++ + i] = sinf(v); o[n*k++ + i] = cosf(v); o[n*k++ + i] = expf(v); o[n*k++ + i] = logf(v); o[n*k++ + i] = powf(v, 1.5f); o[n*k++ + i] = tanhf(v); o[n*k++ + i] = sqrtf(v); o[n*k++ + i] = rsqrtf(v); o[n*k++ + i] = 1.f / v; o[n*k++ + i] = fmodf(v, 0.7f);
  o[n*k++ + i] = __sinf(v); o[n*k++ + i] = __expf(v); o[n*k++ + i] = __log2f(v); o[n*k++ + i] = __fdividef(v, 3.f); o[n*k++ + i] = __frcp_rn(v); o[n*k++ + i] = __fsqrt_ru(v); o[n*k++ + i] = __fadd_rz(v, 0.1f); o[n*k++ + i] = __saturatef(v); o[n*k++ + i] = floorf(v) + ceilf(v) + truncf(v) + rintf(v) + roundf(v); o[n*k++ + i] = copysignf(v, -1.f); o[n*k++ + i] = fmaxf(v, NAN); o[n*k++ + i] = isnan(v) ? 1.f : 0.f; o[n*k++ + i] = ldexpf(v, 3); o[n*k++ + i] = cbrtf(v);
}
