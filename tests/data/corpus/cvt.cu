// cvt
extern "C" __global__ void cv(const float* f, const double* d, const int* s, int* o, float* g, long long* l, unsigned char* c, int n) {
  int i = threadIdx.x, k = 0; float x = f[i]; double y = d[i]; int z = s[i];
  o[n*k++ + i] = (int)x; o[n*k++ + i] = __float2int_rn(x); o[n*k++ + i] = __float2int_ru(x); o[n*k++ + i] = __float2int_rd(x); o[n*k++ + i] = (int)(unsigned)x; o[n*k++ + i] = (int)y; o[n*k++ + i] = __double2int_rn(y); o[n*k++ + i] = (short)z; o[n*k++ + i] = (signed char)z; o[n*k++ + i] = __float_as_int(x);
  l[i] = (long long)x; l[n + i] = __double2ll_rd(y); l[2*n + i] = (long long)(unsigned long long)y; g[i] = (float)y; g[n + i] = __double2float_rz(y); g[2*n + i] = __int2float_ru(z); g[3*n + i] = (float)l[i]; g[4*n + i] = (float)(unsigned char)z; c[i] = (unsigned char)x; c[n + i] = (unsigned char)(signed char)z;
}
