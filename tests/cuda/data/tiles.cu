// Doubles a matrix in tiles that tensor copies bring to shared memory and back, as the CUDA programming guide describes.
#include <cstdio>
#include <cuda.h>
#include <cuda/barrier>
using barrier = cuda::barrier<cuda::thread_scope_block>;
namespace cde = cuda::device::experimental;
constexpr int W = 64, H = 32, TW = 16, TH = 8;
__global__ void twice(const __grid_constant__ CUtensorMap map) {
  __shared__ alignas(128) int tile[TH][TW];
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ barrier bar;
  int x = blockIdx.x * TW, y = blockIdx.y * TH;
  if (threadIdx.x == 0) { init(&bar, blockDim.x); cde::fence_proxy_async_shared_cta(); }
  __syncthreads();
  barrier::arrival_token token;
  if (threadIdx.x == 0) {
    cde::cp_async_bulk_tensor_2d_global_to_shared(&tile, &map, x, y, bar);
    token = cuda::device::barrier_arrive_tx(bar, 1, sizeof(tile));
  } else token = bar.arrive();
  bar.wait(std::move(token));
  for (int i = threadIdx.x; i < TH * TW; i += blockDim.x) tile[i / TW][i % TW] *= 2;
  cde::fence_proxy_async_shared_cta();
  __syncthreads();
  if (threadIdx.x == 0) {
    cde::cp_async_bulk_tensor_2d_shared_to_global(&map, x, y, &tile);
    cde::cp_async_bulk_commit_group();
    cde::cp_async_bulk_wait_group_read<0>();
  }
}
int main() {
  int *data, host[H][W];
  cudaMalloc(&data, sizeof host);
  for (int i = 0; i < H * W; i++) host[i / W][i % W] = i;
  cudaMemcpy(data, host, sizeof host, cudaMemcpyDefault);
  alignas(64) CUtensorMap map;
  cuuint64_t dim[] = {W, H}, stride[] = {W * sizeof(int)};
  cuuint32_t box[] = {TW, TH}, step[] = {1, 1};
  CUresult made = cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, data, dim, stride, box, step,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  twice<<<dim3(W / TW, H / TH), 32>>>(map);
  cudaError_t ran = cudaMemcpy(host, data, sizeof host, cudaMemcpyDefault);
  int wrong = made || ran;
  for (int i = 0; i < H * W; i++) wrong += host[i / W][i % W] != 2 * i;
  printf("%d wrong\n", wrong);
}
