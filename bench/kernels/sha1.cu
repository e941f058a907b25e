// SHA-1 of a block of 16 words for each thread; the words that are still needed are in an array of the thread's own.
constexpr int kWords = 16, kRounds = 80;

__device__ unsigned turned(unsigned word, int by) { return word << by | word >> (32 - by); }

extern "C" __global__ void sha1(int n, const unsigned *in, unsigned *out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned w[kWords];
  for (int k = 0; k < kWords; ++k) w[k] = in[k * n + i];
  unsigned a = 0x67452301u, b = 0xefcdab89u, c = 0x98badcfeu, d = 0x10325476u, e = 0xc3d2e1f0u;
  for (int t = 0; t < kRounds; ++t) {
    unsigned mixed, added;
    if (t < 20)
      mixed = (b & c) | (~b & d), added = 0x5a827999u;
    else if (t < 40)
      mixed = b ^ c ^ d, added = 0x6ed9eba1u;
    else if (t < 60)
      mixed = (b & c) | (b & d) | (c & d), added = 0x8f1bbcdcu;
    else
      mixed = b ^ c ^ d, added = 0xca62c1d6u;
    unsigned &word = w[t % kWords];
    if (t >= kWords) word = turned(w[(t + 13) % kWords] ^ w[(t + 8) % kWords] ^ w[(t + 2) % kWords] ^ word, 1);
    const unsigned next = turned(a, 5) + mixed + e + added + word;
    e = d, d = c, c = turned(b, 30), b = a, a = next;
  }
  out[i] = a + 0x67452301u;
  out[n + i] = b + 0xefcdab89u;
  out[2 * n + i] = c + 0x98badcfeu;
  out[3 * n + i] = d + 0x10325476u;
  out[4 * n + i] = e + 0xc3d2e1f0u;
}
