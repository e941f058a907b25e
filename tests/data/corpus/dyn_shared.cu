// dyn_shared
extern __shared__ unsigned char dyn[];
extern "C" __global__ void rev(const double* x, double* o, int n) {
  double* d = (double*)dyn; int* idx = (int*)(dyn + blockDim.x * sizeof(double)); int t = threadIdx.x;
  d[t] = t < n ? x[t] : 0; idx[t] = blockDim.x - 1 - t; __syncthreads(); o[t] = d[idx[t]];
}
