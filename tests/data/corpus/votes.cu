// votes
extern "C" __global__ void votes(unsigned* o, int th) {
  int t = threadIdx.x, n = blockDim.x, k = 0; bool p = (t * 7 % 13) < th; unsigned m;
  o[n*k++ + t] = __all_sync(~0u, p); o[n*k++ + t] = __any_sync(~0u, p); o[n*k++ + t] = __ballot_sync(~0u, p);
  o[n*k++ + t] = __match_any_sync(~0u, t % 5); int pr; m = __match_all_sync(~0u, t / 32, &pr); o[n*k++ + t] = m + pr;
  if (p) o[n*k + t] = __activemask(); k++;
  o[n*k++ + t] = __reduce_add_sync(~0u, t); o[n*k++ + t] = __reduce_min_sync(~0u, t); o[n*k++ + t] = __reduce_max_sync(~0u, t); o[n*k++ + t] = __reduce_xor_sync(~0u, t);
  o[n*k++ + t] = __match_any_sync(~0u, (unsigned long long)(t % 3)); __syncwarp(); o[n*k++ + t] = __fns(0x0f0f0f0f, 0, t % 8);
}
