// printf_assert
#include <stdio.h>
#include <assert.h>
extern "C" __global__ void pr(int a, double d, const char* s) { printf("thread %d of %d: a=%d d=%f p=%p 100%%\n", threadIdx.x, blockDim.x, a, d, (void*)s); printf("no args\n"); assert(a != 13); if (a == 14) __trap(); if (a == 15) __brkpt(); }
