enum { BLOCK = 256 };

void scan(int blocks, const unsigned *in, unsigned *out, unsigned *largest) {
#pragma omp parallel for
  for (int block = 0; block < blocks; ++block) {
    const unsigned *from = in + (long)BLOCK * block;
    unsigned *to = out + (long)BLOCK * block, sum = 0, maximum = 0;
#pragma omp simd reduction(max : maximum)
    for (int i = 0; i < BLOCK; ++i) maximum = from[i] > maximum ? from[i] : maximum;
#pragma omp simd reduction(inscan, + : sum)
    for (int i = 0; i < BLOCK; ++i) {
      sum += from[i];
#pragma omp scan inclusive(sum)
      to[i] = sum;
    }
    largest[block] = maximum;
  }
}
