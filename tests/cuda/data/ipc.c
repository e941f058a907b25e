/* ipc.c: memory and events of two processes: a parent, and a child from before CUDA is used. */
#include <sys/wait.h>
#include <unistd.h>
#include "program.h"

/* Either process sends to the other one. */
static int inbox, outbox;

static void send_to_other(const void *data, size_t size) {
  if (write(outbox, data, size) != (ssize_t)size) exit(3);
}

static void receive(void *data, size_t size) {
  for (size_t got = 0; got < size;) {
    ssize_t more = read(inbox, (char *)data + got, size - got);
    if (more <= 0) exit(4);
    got += (size_t)more;
  }
}

static void tell(void) { send_to_other("", 1); }

static void be_told(void) { receive(&(char){0}, 1); }

/* Run functions in two processes; what the parent says comes behind what the child has said. */
static void in_two(void (*parent)(void), void (*child)(void)) {
  int down[2], up[2], status;
  if (pipe(down) || pipe(up)) exit(5);
  pid_t process = fork();
  inbox = process ? up[0] : down[0];
  outbox = process ? down[1] : up[1];
  close(process ? up[1] : down[1]);
  (process ? parent : child)();
  if (!process) exit(0);
  close(outbox);
  waitpid(process, &status, 0);
  printf("%d\n", status);
}

static board *give_board(void) {
  cudaIpcMemHandle_t handle;
  board *b;
  MUST(cudaMalloc((void **)&b, sizeof *b));
  MUST(cudaMemsetAsync(b, 0, sizeof *b, NULL));
  append_digit(NULL, b, 1);
  MUST(cudaIpcGetMemHandle(&handle, b));
  send_to_other(&handle, sizeof handle);
  return b;
}

static board *take_board(cudaIpcMemHandle_t *handle) {
  void *b;
  receive(handle, sizeof *handle);
  MUST(cudaIpcOpenMemHandle(&b, *handle, 1));
  return b;
}

static long long digits_of(const board *b) {
  board copy;
  MUST(cudaMemcpy(&copy, b, sizeof copy, cudaMemcpyDeviceToHost));
  return copy.digits;
}

/* ---- memory ---- */

static void give_memory(void) {
  board *b = give_board();
  be_told(); /* the child has appended 2 */
  append_digit(NULL, b, 3);
  MUST(cudaDeviceSynchronize());
  tell();
  be_told(); /* it has closed it */
  append_digit(NULL, b, 4);
  if (digits_of(b) != 1234) exit(6);
  MUST(cudaFree(b));
  tell();
}

static void take_memory(void) {
  cudaIpcMemHandle_t handle;
  board *b = take_board(&handle);
  void *again;
  append_digit(NULL, b, 2);
  MUST(cudaDeviceSynchronize());
  tell();
  be_told();
  printf("%lld\n", digits_of(b));
  SAY(cudaFree(b));
  MUST(cudaIpcOpenMemHandle(&again, handle, 1));
  MUST(cudaIpcCloseMemHandle(again));
  printf("%s %lld\n", again == b ? "the same" : "another", digits_of(b));
  SAY(cudaIpcCloseMemHandle(b));
  SAY(cudaIpcCloseMemHandle(b));
  tell();
  be_told(); /* it is freed */
  SAY(cudaIpcOpenMemHandle(&again, handle, 1));
}

static void do_memory(void) { in_two(give_memory, take_memory); }

/* ---- updates by both ---- */

enum { TIMES = 1000000 };

static void count_up(board *b) {
  int *sum = &b->copied, times = TIMES;
  launch_in(NULL, &tally, (void *[]){&sum, &times});
  MUST(cudaDeviceSynchronize());
}

static void give_counter(void) {
  board *b = give_board(), copy;
  be_told();
  count_up(b);
  be_told();
  MUST(cudaMemcpy(&copy, b, sizeof copy, cudaMemcpyDeviceToHost));
  printf("%d\n", copy.copied);
}

static void take_counter(void) {
  board *b = take_board(&(cudaIpcMemHandle_t){{0}});
  tell();
  count_up(b);
  tell();
}

static void do_counter(void) { in_two(give_counter, take_counter); }

/* ---- events ---- */

static void give_event(void) {
  board *b = give_board();
  cudaIpcMemHandle_t handle;
  cudaStream_t stream;
  cudaEvent_t event;
  MUST(cudaStreamCreateWithFlags(&stream, 1));
  MUST(cudaEventCreateWithFlags(&event, 6));
  MUST(cudaIpcGetEventHandle(&handle, event));
  await_flag(stream, b, 0);
  append_digit(stream, b, 2);
  MUST(cudaEventRecord(event, stream));
  send_to_other(&handle, sizeof handle);
  be_told(); /* the child has recorded it, and is gone before that came */
  SAY(cudaEventSynchronize(event));
}

static void take_event(void) {
  cudaIpcMemHandle_t handle;
  board *b = take_board(&handle);
  cudaStream_t stream;
  cudaEvent_t event;
  receive(&handle, sizeof handle);
  MUST(cudaStreamCreateWithFlags(&stream, 1));
  MUST(cudaIpcOpenEventHandle(&event, handle));
  SAY(cudaEventQuery(event));
  MUST(cudaStreamWaitEvent(stream, event, 0));
  append_digit(stream, b, 3);
  SAY(cudaStreamQuery(stream));
  raise_flag(b, 0);
  MUST(cudaStreamSynchronize(stream));
  SAY(cudaEventQuery(event));
  printf("%lld\n", digits_of(b));
  fflush(stdout);
  await_flag(stream, b, 1);
  MUST(cudaEventRecord(event, stream));
  tell();
  _exit(0);
}

static void do_events(void) { in_two(give_event, take_event); }

/* ---- errors ---- */

static void do_errors(void) {
  cudaIpcMemHandle_t handle;
  cudaEvent_t event;
  void *memory, *pinned, *opened;
  MUST(cudaMalloc(&memory, 100));
  MUST(cudaMallocHost(&pinned, 100));
  MUST(cudaIpcGetMemHandle(&handle, memory));
  SAY(cudaIpcOpenMemHandle(&opened, handle, 1));
  SAY(cudaIpcGetMemHandle(&handle, pinned));
  SAY(cudaIpcGetMemHandle(&handle, &handle));
  SAY(cudaIpcCloseMemHandle(memory));
  memset(&handle, 1, sizeof handle);
  SAY(cudaIpcOpenMemHandle(&opened, handle, 1));
  SAY(cudaIpcOpenEventHandle(&event, handle));
  SAY(cudaEventCreateWithFlags(&event, 4));
  MUST(cudaEventCreateWithFlags(&event, 2));
  SAY(cudaIpcGetEventHandle(&handle, event));
}

const action ipc_actions[] = {{"ipc memory", do_memory}, {"ipc counter", do_counter}, {"ipc events", do_events}, {"ipc errors", do_errors}, {NULL, NULL}};
