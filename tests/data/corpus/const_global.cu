// const_global
__constant__ float coef[8] = {1, 2, 3, 4, 5, 6, 7, 8}; __constant__ int cfg; __device__ int counter; __device__ float table2[4][3] = {{1, 2, 3}, {4, 5, 6}}; __device__ const char* name = "ptx"; __device__ double* ptr; __managed__ int man = 5;
extern "C" __global__ void cgk2(float* o, int n) { int i = threadIdx.x; if (i < n) { o[i] = coef[i & 7] * cfg + table2[i & 3][i % 3] + name[i % 3]; atomicAdd(&counter, 1); if (ptr) ptr[i] = o[i]; man += 1; } }
