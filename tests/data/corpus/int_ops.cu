// int_ops
extern "C" __global__ void io(const unsigned* x, unsigned* o, unsigned long long* q, int n) {
  int i = threadIdx.x; unsigned a = x[i], b = x[n + i]; int k = 0; int sa = (int)a, sb = (int)b; unsigned long long w = ((unsigned long long)a << 32) | b;
  o[n*k++ + i] = __popc(a); o[n*k++ + i] = __clz(a); o[n*k++ + i] = __brev(a); o[n*k++ + i] = __ffs(a); o[n*k++ + i] = __byte_perm(a, b, 0x3210 ^ i); o[n*k++ + i] = __umulhi(a, b); o[n*k++ + i] = __mulhi(sa, sb); o[n*k++ + i] = __mul24(sa, sb);
  o[n*k++ + i] = __sad(sa, sb, 3u); o[n*k++ + i] = __funnelshift_l(a, b, i); o[n*k++ + i] = __funnelshift_rc(a, b, i); o[n*k++ + i] = __dp4a(sa, sb, 7); o[n*k++ + i] = __dp2a_lo(sa, sb, 7); o[n*k++ + i] = a / (b | 1); o[n*k++ + i] = sa % (sb | 1); o[n*k++ + i] = __vadd4(a, b); o[n*k++ + i] = __vabsdiffs2(a, b); o[n*k++ + i] = (a >> (i & 31)) | (b << (i & 31)); o[n*k++ + i] = sa >> 3; o[n*k++ + i] = __hadd(sa, sb); o[n*k++ + i] = min(sa, sb) ^ max(a, b); o[n*k++ + i] = abs(sa); o[n*k++ + i] = (a & b) ^ (a | ~b) ; o[n*k++ + i] = (a >> 5) & 0x3ff;
  q[i] = w / (b | 1); q[n + i] = __umul64hi(w, w); q[2*n + i] = __popcll(w) + __clzll(w) + __brevll(w); unsigned __int128 m = (unsigned __int128)w * w + w; q[3*n + i] = (unsigned long long)(m >> 64); q[4*n + i] = (unsigned long long)(m / (b | 1));
}
