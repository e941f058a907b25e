// Variables of every kind. locals.ptx: nvcc -G -ptx -arch=sm_80
struct Inner { short s; unsigned char c[3]; };
struct Point { float x, y; Inner in; Point *next; unsigned low : 3; int high : 5; };
enum Colour { RED, GREEN = 7 };
typedef unsigned int word;
namespace counted { __device__ int counter = 3; }
__constant__ float table[4] = {1, 2, 3, 4};

__device__ __noinline__ float helper(const Point &p, float k) {
    float sum = 0;
    for (int i = 0; i < 3; i++) {
        float part = p.x * i + k;
        sum += part;
    }
    return sum;
}

extern "C" __global__ void kern(float *out, const int *in, word n, Point start, Colour col) {
    __shared__ float tile[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double scale = 0.5 * n;
    int vals[4][2];
    for (int k = 0; k < 8; k++) vals[k / 2][k % 2] = in[i] + k;
    Point p = start;
    p.x += i;
    p.in.s = -i;
    p.next = &p;
    p.high = -i;
    bool odd = i & 1;
    char letter = 'a' + i;
    unsigned long long big = 1ull << i;
    tile[threadIdx.x] = i;
    __syncthreads();
    float r = helper(p, 2.0f);
    counted::counter += 1;
    {
        int inner = vals[1][1];
        r += inner;
    }
    out[i] = r + scale + odd + letter + big + table[i & 3] + col + tile[31 - threadIdx.x];
}
