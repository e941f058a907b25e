// divergence
extern "C" __global__ void mandel(unsigned char* img, int w, int h, int it) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y; if (x >= w || y >= h) return;
  float cr = 3.f * x / w - 2.f, ci = 2.f * y / h - 1.f, zr = 0, zi = 0; int k = 0; while (k < it && zr * zr + zi * zi < 4.f) { float t = zr * zr - zi * zi + cr; zi = 2 * zr * zi + ci; zr = t; k++; if (k == 7 && (x & 1)) continue; if (zr > 1e6f) goto out; }
out: img[y * w + x] = (unsigned char)k;
}
