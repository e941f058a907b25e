// The best ways through states, 64 in each step, by what each step and each state are worth (Viterbi): a block for each sequence.
constexpr int kStates = 64;

extern "C" __global__ void paths(int steps, const float* moves, const float* worth, float* best) {
  __shared__ float value[2][kStates], move[kStates][kStates];
  const int state = threadIdx.x;
  const float* own = worth + (size_t)blockIdx.x * steps * kStates;
  for (int from = 0; from < kStates; ++from) move[from][state] = moves[from * kStates + state];
  value[0][state] = own[state];
  __syncthreads();
  for (int step = 1; step < steps; ++step) {
    float most = -INFINITY;
    for (int from = 0; from < kStates; ++from) most = fmaxf(most, value[(step - 1) % 2][from] + move[from][state]);
    value[step % 2][state] = most + own[step * kStates + state];
    __syncthreads();
  }
  best[blockIdx.x * kStates + state] = value[(steps - 1) % 2][state];
}
