// half
#include <cuda_fp16.h>
extern "C" __global__ void halfs(const __half2* a, const __half2* b, __half2* o, float* f, short* sh, int n) {
  int i = threadIdx.x; if (i >= n) return; __half2 x = a[i], y = b[i]; int k = 0;
  o[n*k++ + i] = __hadd2(x, y); o[n*k++ + i] = __hmul2(x, y); o[n*k++ + i] = __hfma2(x, y, x); o[n*k++ + i] = __hmin2(x, y); o[n*k++ + i] = __hmax2_nan(x, y); o[n*k++ + i] = __habs2(__hneg2(x));
  o[n*k++ + i] = h2sqrt(x); o[n*k++ + i] = h2exp2(x); o[n*k++ + i] = h2rcp(y); o[n*k++ + i] = __hadd2_sat(x, y); o[n*k++ + i] = __hfma2_relu(x, y, x);
  f[i] = __half2float(__low2half(x)) + __high2float(y); sh[i] = __half2short_rz(__low2half(x)); f[n + i] = __hgt(__low2half(x), __low2half(y)); o[n*k + i] = __floats2half2_rn(f[i], 1.f); sh[n + i] = (short)__heq2_mask(x, y);
}
