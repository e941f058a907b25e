/* streams.c: the order of work in streams, events and callbacks. */
#include "program.h"

board *new_board(void) {
  board *made;
  MUST(cudaMallocHost((void **)&made, sizeof *made));
  memset(made, 0, sizeof *made);
  return made;
}

void launch_in(cudaStream_t stream, const void *kernel, void **arguments) {
  MUST(cudaLaunchKernel(kernel, (dim3){1, 1, 1}, (dim3){1, 1, 1}, arguments, 0, stream));
}

void await_flag(cudaStream_t stream, board *b, int number) {
  int *flag = &b->flag[number];
  launch_in(stream, &await, (void *[]){&flag});
}

void append_digit(cudaStream_t stream, board *b, int digit) {
  long long *digits = &b->digits;
  launch_in(stream, &append, (void *[]){&digits, &digit});
}

void raise_flag(board *b, int number) { __atomic_store_n(&b->flag[number], 1, __ATOMIC_SEQ_CST); }

void append_here(void *data) {
  board *b = data;
  b->digits = 10 * b->digits + 7;
  printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}

static void called_back(cudaStream_t stream, cudaError_t status, void *data) {
  board *b = data;
  b->digits = 10 * b->digits + 8;
  printf("called %s %s\n", stream ? "with its stream" : "", cudaGetErrorName(status));
}

/* All kinds of work in one stream, behind a kernel that waits for the host. */
static void do_order(void) {
  board *b = new_board();
  cudaStream_t stream;
  cudaEvent_t before, after;
  float milliseconds;
  int *number;
  MUST(cudaMalloc((void **)&number, sizeof *number));
  MUST(cudaStreamCreate(&stream));
  MUST(cudaEventCreate(&before));
  MUST(cudaEventCreate(&after));
  MUST(cudaEventRecord(before, stream));
  await_flag(stream, b, 0);
  append_digit(stream, b, 1);
  MUST(cudaMemsetAsync(number, 1, sizeof *number, stream));
  MUST(cudaMemcpyAsync(&b->copied, number, sizeof *number, cudaMemcpyDeviceToHost, stream));
  MUST(cudaLaunchHostFunc(stream, append_here, b));
  append_digit(stream, b, 2);
  MUST(cudaStreamAddCallback(stream, called_back, b, 0));
  MUST(cudaEventRecord(after, stream));
  append_digit(stream, b, 3);
  printf("%s %s %s\n", cudaGetErrorName(cudaStreamQuery(stream)), cudaGetErrorName(cudaEventQuery(after)),
         cudaGetErrorName(cudaEventElapsedTime(&milliseconds, before, after)));
  printf("%s\n", cudaGetErrorName(cudaGetLastError()));
  printf("%lld %d\n", b->digits, b->copied);
  raise_flag(b, 0);
  MUST(cudaEventSynchronize(after));
  MUST(cudaEventElapsedTime(&milliseconds, before, after));
  MUST(cudaStreamSynchronize(stream));
  printf("%lld %x %s\n", b->digits, b->copied, milliseconds > 0 ? "later" : "at once");
  MUST(cudaStreamQuery(stream));
  MUST(cudaEventDestroy(before));
  MUST(cudaStreamDestroy(stream));
}

/* Which streams wait for each other. */
static void do_default_stream(void) {
  board *b = new_board();
  cudaStream_t blocking, other, apart;
  MUST(cudaStreamCreate(&blocking));
  MUST(cudaStreamCreate(&other));
  MUST(cudaStreamCreateWithFlags(&apart, 1));
  await_flag(blocking, b, 0);
  append_digit(blocking, b, 1);
  append_digit(other, b, 2); /* beside it */
  MUST(cudaStreamSynchronize(other));
  printf("%lld\n", b->digits);
  append_digit(NULL, b, 3);
  append_digit(other, b, 4); /* behind the default stream's */
  append_digit(apart, b, 5); /* beside all */
  MUST(cudaStreamSynchronize(apart));
  printf("%lld %s %s\n", b->digits, cudaGetErrorName(cudaStreamQuery(NULL)), cudaGetErrorName(cudaStreamQuery(other)));
  raise_flag(b, 0);
  MUST(cudaStreamDestroy(blocking)); /* its work goes on */
  MUST(cudaStreamSynchronize(other));
  printf("%lld\n", b->digits);
  await_flag(apart, b, 1);
  append_digit(apart, b, 6);
  cudaEvent_t event;
  MUST(cudaEventCreate(&event));
  MUST(cudaEventRecord(event, apart));
  MUST(cudaStreamWaitEvent(other, event, 0));
  MUST(cudaEventDestroy(event));
  append_digit(other, b, 7);
  printf("%s\n", cudaGetErrorName(cudaStreamQuery(other)));
  raise_flag(b, 1);
  long long seen;
  MUST(cudaMemcpy(&seen, &b->digits, sizeof seen, cudaMemcpyDeviceToHost)); /* in the order of the default stream */
  printf("%lld\n", seen);
}

/* A fault drops what is behind it, and tells callbacks. */
static void do_late_fault(void) {
  board *b = new_board();
  int *nowhere = (int *)0x1000;
  cudaStream_t stream;
  MUST(cudaStreamCreate(&stream));
  await_flag(stream, b, 0);
  launch_in(stream, &store, (void *[]){&nowhere});
  append_digit(stream, b, 1);
  MUST(cudaStreamAddCallback(stream, called_back, b, 0));
  MUST(cudaGetLastError());
  raise_flag(b, 0);
  printf("%s\n", cudaGetErrorName(cudaStreamSynchronize(stream)));
  printf("%lld\n", b->digits);
  printf("%s\n", cudaGetErrorName(cudaStreamQuery(stream)));
  MUST(cudaDeviceReset());
  add_vectors(1);
}

/* A reset ends kernels that never would, and drops the rest. */
static void do_reset(void) {
  for (int i = 0; i < 20; i++) {
    board *b = new_board();
    cudaStream_t streams[3];
    for (int k = 0; k < 3; k++) {
      MUST(cudaStreamCreate(&streams[k]));
      await_flag(streams[k], b, 0);
      append_digit(streams[k], b, 1);
    }
    MUST(cudaDeviceReset());
    add_vectors((float)i);
  }
  puts("right");
}

/* Many threads with many streams, and events between them: each stream's digits come in order. */
static void *many(void *unused) {
  board *boards[4];
  cudaStream_t streams[4];
  cudaEvent_t event;
  MUST(cudaEventCreate(&event));
  for (int k = 0; k < 4; k++) {
    boards[k] = new_board();
    MUST(cudaStreamCreateWithFlags(&streams[k], (unsigned)k & 1));
  }
  for (int round = 0; round < 40; round++) {
    for (int k = 0; k < 4; k++) {
      boards[k]->digits = 0;
      boards[k]->flag[0] = 0;
      await_flag(streams[k], boards[k], 0);
      for (int digit = 1; digit < 6; digit++) append_digit(streams[k], boards[k], digit);
      MUST(cudaEventRecord(event, streams[k]));
      MUST(cudaStreamWaitEvent(streams[(k + 1) % 4], event, 0));
    }
    for (int k = 0; k < 4; k++) raise_flag(boards[k], 0);
    for (int k = 0; k < 4; k++) MUST(cudaStreamSynchronize(streams[k]));
    for (int k = 0; k < 4; k++)
      if (boards[k]->digits != 12345) printf("%lld\n", boards[k]->digits);
  }
  for (int k = 0; k < 4; k++) MUST(cudaStreamDestroy(streams[k]));
  MUST(cudaEventDestroy(event));
  return unused;
}

static void do_many(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, many, NULL);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  puts("right");
}

const action stream_actions[] = {{"order", do_order},
                                 {"default stream", do_default_stream},
                                 {"late fault", do_late_fault},
                                 {"reset", do_reset},

                                 {"many", do_many},
                                 {NULL, NULL}};
