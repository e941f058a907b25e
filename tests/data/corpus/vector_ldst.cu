// vector_ldst
extern "C" __global__ void vls(const float4* __restrict__ a, float4* o, const uchar4* c, short2* s, double2* d, ulonglong2* u, int n) {
  int i = threadIdx.x; float4 v = __ldg(a + i); v.x += 1; o[i] = v; uchar4 e = c[i]; s[i] = make_short2(e.x + e.y, e.z - e.w); double2 y = d[i]; d[i] = make_double2(y.y, y.x); u[i] = make_ulonglong2(u[i].y, i);
  __stcs(&o[n + i], v); __stwt(&o[2*n + i], __ldcg(&a[i])); float z = __ldcv(&a[i].w); o[3*n + i] = make_float4(z, __ldlu(&a[i].x), __ldca(&a[i].y), 0);
}
