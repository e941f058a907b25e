// textures
extern "C" __global__ void texs(cudaTextureObject_t t1, cudaTextureObject_t t2, cudaTextureObject_t t3, cudaTextureObject_t tl, cudaTextureObject_t tc, cudaTextureObject_t tm, cudaTextureObject_t lin, float4* o, float* f, int* s) {
  int i = threadIdx.x; float u = i / 32.f; int k = 0, n = blockDim.x;
  f[n*k++ + i] = tex1D<float>(t1, u); o[i] = tex2D<float4>(t2, u, 1 - u); f[n*k++ + i] = tex3D<float>(t3, u, u, u); f[n*k++ + i] = tex1DLayered<float>(tl, u, 1); f[n*k++ + i] = tex2DLayered<float>(tl, u, u, 2);
  f[n*k++ + i] = texCubemap<float>(tc, u, 1 - u, .5f); f[n*k++ + i] = tex2DLod<float>(tm, u, u, 1.5f); f[n*k++ + i] = tex2DGrad<float>(tm, u, u, make_float2(.1f, 0), make_float2(0, .1f)); o[n + i] = tex2Dgather<float4>(t2, u, u, 2); f[n*k++ + i] = tex1Dfetch<float>(lin, i); s[i] = tex1Dfetch<int>(lin, i); uchar4 c = tex2D<uchar4>(t2, u, u); s[n + i] = c.x + c.y + c.z + c.w;
}
