"""The thread that starts a launch and waits takes part in it, runs all of it if it ends soon, and notices nothing of it."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from msgspec.structs import replace

import ptxemu
from ptxemu._runtime import ffi, lib
from ptxemu.driver import compile
from tests.support.places import ROOT

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
NAME = ".visible .entry k(.param .u64 out) { .reg .u64 %p; .reg .u32 %a; .reg .f32 %f, %g; .reg .pred %q; ld.param.u64 %p, [out];"
ADD = HEAD + NAME + " atom.global.add.u32 %a, [%p], 1; ret; }"
STORE = HEAD + NAME + " st.global.u32 [%p], 1; ret; }"
BACKWARD = """setp.eq.u64 %q, %p, 0; @%q bra M;
L: st.global.u32 [%p], 1;
M: ld.global.u32 %a, [%p]; setp.eq.u32 %q, %a, 1; @%q bra L;"""
RECURSIVE = """.func f(.reg .u32 n) {
    .reg .pred %q; .reg .u32 %m;
    setp.eq.u32 %q, n, 0; @%q ret;
    sub.u32 %m, n, 1; call f, (%m); call f, (%m);
    ret;
}
"""
LIVE = 700  # registers of 128 bytes, more than a new stack has room for


def facts(body: str, before: str = "") -> bool:
    code = compile.kernel(compile.front(HEAD + before + NAME + body + " ret; }"), "k")
    return code.facts.brief > 0


def thread_of(kernel: str, grid: int, block: int) -> set[int]:
    """The threads that a launch's accesses come from."""
    device, found = ptxemu.Device(memory="8 MiB", workers=2), set()
    observer = ffi.new("pe_observer *")
    memory = ffi.callback(
        "uint32_t(void *, const pe_warp *, const pe_memory_event *)",
        lambda context, warp, event: found.add(threading.get_native_id()) or event.mask,
    )
    observer.memory = memory
    lib.pe_arena_observe(device.arena.handle, observer)
    module = ptxemu.loads(kernel, device=device)
    module.program.settings = replace(module.program.settings, observed="all")
    module["k"][grid, block](device.empty(4))
    lib.pe_arena_observe(device.arena.handle, ffi.NULL)
    return found


# ---------------------------------------------------------------- which


@pytest.mark.parametrize(
    ("body", "brief"),
    [
        ("", True),
        ("setp.eq.u64 %q, %p, 0; @%q bra L; st.global.u32 [%p], 1; L:", True),
        ("atom.global.add.u32 %a, [%p], 1;", True),
        ("L: setp.eq.u64 %q, %p, 0; @%q bra L;", False),
        ("L: bra L;", False),
        (BACKWARD, False),
        ("bar.sync 0;", False),
        ("nanosleep.u32 100;", False),
        ("st.volatile.global.u32 [%p], 1;" * 5000, False),
    ],
)  # fmt: skip
def test_which_kernels_end_soon(body, brief):
    assert facts(body) == brief


def test_calls_may_recur():
    assert not facts("mov.u32 %a, 40; call f, (%a);", RECURSIVE)


def test_small_launches_run_on_the_callers_thread():
    long = STORE.replace(" st.", "add.u64 %p, %p, 4; sub.u64 %p, %p, 4;" * 1000 + "st.")
    here = {threading.get_native_id()}
    assert thread_of(STORE, 1, 1024) == thread_of(STORE, 32, 32) == thread_of(STORE, 20, 1024) == thread_of(long, 1, 1024) == here


@pytest.mark.parametrize("body", ["", "bar.sync 0;", "L: add.u32 %a, %a, 1; setp.lt.u32 %q, %a, 9; @%q bra L;"])
def test_the_callers_thread_takes_part_in_large_launches(body):
    threads = thread_of(STORE.replace("ret;", f"mov.u32 %a, 0; {body} ret;"), 20_000, 64)
    assert threading.get_native_id() in threads and len(threads) > 1


def test_warps_with_fibers_have_threads_of_their_own():
    assert threading.get_native_id() not in thread_of(STORE.replace("ret;", "nanosleep.u32 1; ret;"), 1, 32)


# ---------------------------------------------------------------- launches that take long

ENDLESS = HEAD + NAME + " L: atom.global.add.u32 %a, [%p], 1; bra L; }"
STEPS = (1_000_000, 3_000_000)
"""Of warps in a loop, more than fit the time after which the caller leaves it."""
GENERATOR = (
    HEAD
    + """
.visible .entry k(.param .u64 out, .param .u32 few, .param .u32 many) {
    .reg .u64 %p, %o; .reg .u32 %t, %c, %n, %i, %x; .reg .f32 %f, %g; .reg .f64 %d; .reg .pred %odd, %q;
    ld.param.u64 %p, [out]; ld.param.u32 %n, [few]; ld.param.u32 %x, [many];
    mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mad.lo.u32 %c, %c, 64, %t;
    and.b32 %i, %t, 1; setp.eq.u32 %odd, %i, 1; @%odd mov.u32 %n, %x;
    cvt.rn.f32.u32 %f, %t; mov.f32 %g, 0f00000000; cvt.rn.f64.u32 %d, %c; mov.u32 %i, 0; mov.u32 %x, %c;
L:  mad.lo.u32 %x, %x, 1664525, 1013904223;
    xor.b32 %x, %x, 0; sub.f32 %g, %f, %g; neg.f64 %d, %d;
    add.u32 %i, %i, 1; setp.lt.u32 %q, %i, %n; @%q bra L;
    cvt.rni.u32.f32 %t, %g; add.u32 %x, %x, %t; abs.f64 %d, %d; cvt.rni.u32.f64 %t, %d; add.u32 %x, %x, %t;
    mul.wide.u32 %o, %c, 4; add.u64 %p, %p, %o; st.global.u32 [%p], %x; ret; }"""
)


def generated(seed: np.ndarray, steps: int) -> np.ndarray:
    """The linear congruential generator after ``steps``, by squaring its step."""
    factor, term, whole, rest = 1664525, 1013904223, 1, 0
    while steps:
        if steps & 1:
            whole, rest = whole * factor & 0xFFFFFFFF, (rest * factor + term) & 0xFFFFFFFF
        factor, term = factor * factor & 0xFFFFFFFF, term * (factor + 1) & 0xFFFFFFFF
        steps >>= 1
    return (seed.astype(np.uint64) * whole + rest).astype(np.uint32)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("opt", [0, 3])
def test_values_stay_when_the_caller_leaves_a_loop(workers, opt):
    """Half of the lanes go on when the others have left, which are a mask; all their values are in registers."""
    device = ptxemu.Device(memory="8 MiB", workers=workers)
    module = ptxemu.loads(GENERATOR, device=device, opt=opt)
    found = device.empty(256, np.uint32)
    module["k"][4, 64](found, *STEPS)
    lanes = np.arange(256, dtype=np.uint32)
    steps = np.where(lanes & 1, STEPS[1], STEPS[0])
    values = np.where(lanes & 1, generated(lanes, STEPS[1]), generated(lanes, STEPS[0]))
    alternating = np.where(steps % 2, lanes % 64, 0)
    np.testing.assert_array_equal(found.array, values + alternating.astype(np.uint32) + lanes)


@pytest.mark.parametrize("tier", ["fast", "best"])
def test_endless_launches_end_in_time(tier):
    device = ptxemu.Device(memory="8 MiB")
    module, buffer = ptxemu.loads(ENDLESS, device=device, tier=tier), device.empty(1, np.uint32)
    for grid in (1, 64):
        with pytest.raises(ptxemu.LaunchTimeout):
            module["k"][grid, 32](buffer, timeout=0.05)


def test_signals_come_while_a_launch_goes_on():
    class Alarm(Exception):
        pass

    def ring(number: int, frame: object) -> None:
        raise Alarm

    module, buffer = ptxemu.loads(ENDLESS), np.zeros(1, "u4")
    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(Alarm):
            module["k"][1, 1](buffer)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_threads_that_are_not_needed_any_more_are_called_off():
    """Launches end before the others have come; what these have been given is not theirs then."""
    device = ptxemu.Device(memory="8 MiB", workers=4)
    loop = (
        HEAD + NAME + " mov.u32 %a, 0; L: red.global.add.u32 [%p], 1; add.u32 %a, %a, 1; setp.lt.u32 %q, %a, 2; @%q bra L; ret; }"
    )
    module, buffer = ptxemu.loads(loop, device=device), device.empty(1, np.uint32)
    done = 0
    for launch in range(1000):
        grid = 64 if launch % 10 == 0 else 4  # as many threads as have sums of their own
        module["k"][grid, 256](buffer)
        done += grid * 256 * 2
    assert buffer.array[0] == done


# ---------------------------------------------------------------- faults


def fault_of(module: ptxemu.Module) -> None:
    with pytest.raises(ptxemu.Fault, match="illegal address in kernel `k`"):
        module["k"][1, 32](0x123000)


def test_faults_beside_the_pools_threads():
    module = ptxemu.loads(STORE)
    for _ in range(20):
        with pytest.raises(ptxemu.Fault, match="illegal address in kernel `k`"):
            module["k"][20_000, 64](0x123000)


def test_faults_on_the_callers_thread():
    module = ptxemu.loads(STORE)
    for _ in range(100):
        fault_of(module)
    failed = []

    def work() -> None:  # threads have no alternate stack of their own
        try:
            for _ in range(20):
                fault_of(module)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_a_stack_grows_on_the_callers_thread():
    names = "".join(f" .reg .u32 %r{i};" for i in range(LIVE))
    loads = "".join(f" ld.volatile.global.u32 %r{i}, [%p+{4 * i}];" for i in range(LIVE))
    stores = "".join(f" st.volatile.global.u32 [%p+{4 * i}], %r{LIVE - 1 - i};" for i in range(LIVE))
    lanes = " .reg .u64 %o; .reg .u32 %t; mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, " + str(4 * LIVE) + "; add.u64 %p, %p, %o;"
    device = ptxemu.Device(memory="64 MiB", workers=1)
    module = ptxemu.loads(HEAD + NAME + names + lanes + loads + stores + " ret; }", device=device)
    data = np.arange(32 * LIVE, dtype=np.uint32).reshape(32, LIVE)
    errors = []

    def work() -> None:
        try:
            buffer = device.to_device(data)
            module["k"][1, 32](buffer)
            np.testing.assert_array_equal(buffer.array, data[:, ::-1])
        except BaseException as error:
            errors.append(error)

    work()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not errors


SMALL_STACKS = """
import faulthandler, sys, ctypes
import numpy as np, ptxemu
class stack_t(ctypes.Structure):
    _fields_ = [("sp", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t)]
libc = ctypes.CDLL(None, use_errno=True)
def now():
    found = stack_t()
    assert libc.sigaltstack(None, ctypes.byref(found)) == 0
    return found.sp, found.size
memory = ctypes.create_string_buffer(int(sys.argv[1]))
given = stack_t(ctypes.addressof(memory), 0, len(memory))
assert libc.sigaltstack(ctypes.byref(given), None) == 0
before = now()
module = ptxemu.loads(sys.argv[2])
for _ in range(3):
    try:
        module["k"][1, 32](0x123000)
    except ptxemu.Fault as fault:
        assert "illegal address" in str(fault)
    assert now() == before
print("lives")
"""


@pytest.mark.parametrize("size", [16 << 10, 1 << 20])
def test_the_threads_own_alternate_stack_comes_back(size):
    command = [sys.executable, "-c", SMALL_STACKS, str(size), STORE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=ROOT)
    assert (done.returncode, done.stdout) == (0, "lives\n"), done.stderr


# ---------------------------------------------------------------- what is the thread's own


def test_the_floating_point_environment_is_the_threads_own():
    libm = ctypes.CDLL("libm.so.6")
    upward = 0x800 if os.uname().machine == "x86_64" else 0x400000
    module = ptxemu.loads(HEAD + NAME + " ld.global.f32 %f, [%p]; add.rn.f32 %g, %f, 0f30000000; st.global.f32 [%p], %g; ret; }")
    data, before = np.ones(1, "f4"), libm.fegetround()
    try:
        assert libm.fesetround(upward) == 0
        module["k"][1, 1](data)
        after = libm.fegetround()
    finally:
        libm.fesetround(before)
    assert after == upward and data[0] == 1  # 1 + 2^-31, rounded to nearest


def test_signals_come_between_launches():
    module, buffer = ptxemu.loads(ADD), np.zeros(1, "u4")
    mask, came = signal.pthread_sigmask(signal.SIG_BLOCK, []), []
    before = signal.signal(signal.SIGALRM, lambda number, frame: came.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        launches = 0
        while len(came) < 50:
            module["k"][1, 1](buffer)
            launches += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert buffer[0] == launches
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == mask


def test_an_interrupt_raises():
    """Nothing is freed between launches: Python loses exceptions in finalizers."""
    module, buffer = ptxemu.loads(ADD), ptxemu.default_device().empty(1, np.uint32)
    timer = threading.Timer(0.2, lambda: signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT))
    timer.start()

    def launch_for_long() -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            module["k"][1, 1](buffer)

    with pytest.raises(KeyboardInterrupt):
        launch_for_long()
    timer.join()


def test_threads_come_and_go_without_growth():
    module, device = ptxemu.loads(ADD), ptxemu.default_device()
    buffer = device.empty(1, np.uint32)

    def go(count: int) -> None:
        for _ in range(count):
            thread = threading.Thread(target=module["k"][1, 1], args=(buffer,))
            thread.start()
            thread.join()

    def resident() -> int:
        if purge := getattr(ctypes.CDLL(None), "__sanitizer_purge_allocator", None):
            purge()  # a sanitizer keeps what has been freed
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    go(50)
    before = resident()
    go(500)
    assert buffer.array[0] == 550
    assert resident() - before < 8 << 20  # 64 KiB each would be 32 MiB


# ---------------------------------------------------------------- beside others


def test_threads_update_the_same_memory():
    """A launch alone on its device updates memory without locks, until another one comes."""
    device = ptxemu.Device(memory="8 MiB")
    module, buffer = ptxemu.loads(ADD, device=device), device.empty(1, np.uint32)
    endless = ptxemu.loads(HEAD + NAME + " L: atom.global.add.u32 %a, [%p+4], 1; bra L; }", device=device)
    other = device.empty(2, np.uint32)

    def work() -> None:
        for _ in range(500):
            module["k"][2, 64](buffer)

    def spin() -> None:
        with pytest.raises(ptxemu.LaunchTimeout):
            endless["k"][1, 32](other, timeout=0.3)

    threads = [threading.Thread(target=work) for _ in range(6)] + [threading.Thread(target=spin)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert buffer.array[0] == 6 * 500 * 128


FORKS = """
import os, sys, threading
import numpy as np, ptxemu
module, done = ptxemu.loads(sys.argv[1]), threading.Event()
device = ptxemu.default_device()
def work():
    buffer = device.empty(1, np.uint32)
    while not done.is_set():
        module["k"][1, 32](buffer)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
codes = set()
for _ in range(30):
    child = os.fork()
    if not child:
        code = 1
        try:
            data = np.zeros(1, "u4")
            module["k"][1, 32](data)
            module["k"][64, 32](data)
            code = 0 if data[0] == 65 * 32 else 2
        finally:
            os._exit(code)
    codes.add(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
done.set()
print(codes)
"""


@pytest.mark.parametrize("loop", ["", "mov.u32 %a, 0; L: add.u32 %a, %a, 1; setp.lt.u32 %q, %a, 9; @%q bra L;"])
def test_a_fork_while_others_launch(loop):
    done = subprocess.run(
        [sys.executable, "-c", FORKS, ADD.replace("ret;", f"{loop} ret;")],
        capture_output=True,
        text=True,
        timeout=200,
        cwd=ROOT,
        check=False,
    )
    assert done.stdout == "{0}\n", done.stderr


def test_output_and_timeouts():
    text = (
        HEAD
        + """.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.global .align 1 .b8 hello[4] = {104, 105, 10, 0};
.visible .entry k() { .reg .u64 %p; mov.u64 %p, hello; cvta.global.u64 %p, %p;
    { .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %p; st.param.b64 [a], 0;
    call (r), vprintf, (f, a); } ret; }"""
    )
    said, module = [], ptxemu.loads(text)
    started = time.monotonic()
    module["k"][1, 32](printf=said.append, timeout=1e-9)
    assert "".join(said) == "hi\n" * 32
    assert time.monotonic() - started < 60
