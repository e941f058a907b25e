// wmma
#include <mma.h>
#include <cuda_bf16.h>
using namespace nvcuda::wmma;
extern "C" __global__ void wm(const half* a, const half* b, float* c) { fragment<matrix_a,16,16,16,half,row_major> fa; fragment<matrix_b,16,16,16,half,col_major> fb; fragment<accumulator,16,16,16,float> fc; fill_fragment(fc, 0.f); load_matrix_sync(fa, a, 16); load_matrix_sync(fb, b, 16); mma_sync(fc, fa, fb, fc); store_matrix_sync(c, fc, 16, mem_row_major); }
extern "C" __global__ void wmi(const signed char* a, const signed char* b, int* c) { fragment<matrix_a,16,16,16,signed char,row_major> fa; fragment<matrix_b,16,16,16,signed char,col_major> fb; fragment<accumulator,16,16,16,int> fc; fill_fragment(fc, 0); load_matrix_sync(fa, a, 16); load_matrix_sync(fb, b, 16); mma_sync(fc, fa, fb, fc); store_matrix_sync(c, fc, 16, mem_row_major); }
extern "C" __global__ void wmb(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c) { fragment<matrix_a,16,16,16,__nv_bfloat16,row_major> fa; fragment<matrix_b,16,16,16,__nv_bfloat16,col_major> fb; fragment<accumulator,16,16,16,float> fc; fill_fragment(fc, 0.f); load_matrix_sync(fa, a, 16); load_matrix_sync(fb, b, 16); mma_sync(fc, fa, fb, fc); store_matrix_sync(c, fc, 16, mem_row_major); }
extern "C" __global__ void wmd(const double* a, const double* b, double* c) { fragment<matrix_a,8,8,4,double,row_major> fa; fragment<matrix_b,8,8,4,double,col_major> fb; fragment<accumulator,8,8,4,double> fc; fill_fragment(fc, 0.); load_matrix_sync(fa, a, 4); load_matrix_sync(fb, b, 4); mma_sync(fc, fa, fb, fc); store_matrix_sync(c, fc, 8, mem_row_major); }
