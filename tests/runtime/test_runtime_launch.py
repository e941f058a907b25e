"""Launches: coverage of the grid, windows, threads, stopping, forks."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from llvmlite import ir

from ptxemu._runtime import ffi, lib
from ptxemu.device.arena import Arena
from ptxemu.text.errors import Fault, InputError, LaunchTimeout
from tests.runtime.runtime_harness import I32, I64, PTR, Code, Kernel
from tests.support.places import ROOT, TESTS


@pytest.fixture(scope="module")
def arena() -> Arena:
    return Arena(1 << 30)


def ints(arena: Arena, count: int, name: str = "out") -> tuple[int, np.ndarray]:
    address = arena.alloc(4 * count, name=name)
    return address, arena.view(address, 4 * count).view(np.int32)


def write_ids(c: Code) -> None:
    """Thread t of CTA b, both linear: out[b * threads + t] += its coordinates, packed."""
    nx, ny = (c.field("ntid", index=i) for i in range(2))
    threads = c.b.mul(c.b.mul(nx, ny), c.field("ntid", index=2))
    bx, by, bz = (c.field("ctaid", index=i) for i in range(3))
    gx, gy = (c.field("nctaid", index=i) for i in range(2))
    cta = c.b.add(c.b.mul(c.b.add(c.b.mul(bz, gy), by), gx), bx)
    with c.lanes() as lane:
        x, y, z = (c.field("tid", index=c.b.add(lane, c.i32(32 * i))) for i in range(3))
        linear = c.b.add(c.b.mul(c.b.add(c.b.mul(z, ny), y), nx), x)
        packed = c.i32(0)
        for value, bits in ((x, 0), (y, 5), (z, 10), (bx, 15), (by, 20), (bz, 25)):
            packed = c.b.or_(packed, c.b.shl(value, c.i32(bits)))
        slot = c.at(c.pointer(c.param(0)), c.b.add(c.b.mul(cta, threads), linear), I32)
        c.b.store(c.b.add(c.b.load(slot, typ=I32), packed), slot)


@pytest.fixture(scope="module")
def ids() -> Kernel:
    return Kernel(write_ids)


@pytest.mark.parametrize("suspends", [False, True])
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize(
    ("grid", "block"),
    [
        ((1, 1, 1), (1, 1, 1)),
        ((5, 3, 2), (7, 5, 3)),
        ((31, 1, 1), (31, 1, 1)),
        ((2, 2, 2), (1, 31, 31)),
        ((3, 1, 7), (16, 16, 4)),
        ((1, 9, 1), (31, 1, 2)),
    ],
)
def test_every_thread_runs_once(
    arena: Arena, ids: Kernel, grid: tuple[int, int, int], block: tuple[int, int, int], workers: int, suspends: bool
) -> None:
    total = int(np.prod(grid) * np.prod(block))
    address, out = ints(arena, total)
    result = ids(arena, address, grid=grid, block=block, workers=workers, suspends=suspends)
    bz, by, bx, z, y, x = np.indices((*grid[::-1], *block[::-1]))
    expected = x | y << 5 | z << 10 | bx << 15 | by << 20 | bz << 25
    assert (out == expected.ravel()).all()
    assert result.ctas == np.prod(grid)
    arena.free(address)


def test_many_ctas(arena: Arena) -> None:
    def build(c: Code) -> None:
        slot = c.at(c.pointer(c.param(0)), c.field("ctaid"), I32)
        c.b.store(c.b.add(c.b.load(slot, typ=I32), c.i32(1)), slot)

    address, out = ints(arena, 300_000)
    Kernel(build)(arena, address, grid=(300_000, 1, 1), workers=4)
    assert (out == 1).all()
    arena.free(address)


def test_warp_context(arena: Arena) -> None:
    names = [
        "arena_base",
        "global_base",
        "const_base",
        "const_size",
        "param_size",
        "handles",
        "shared_size",
        "local_size",
    ]

    def build(c: Code) -> None:
        out = c.pointer(c.param(0))
        for i, name in enumerate(names):
            c.b.store(c.field(name, I64), c.at(out, i, I64))
        for i, name in enumerate(["dynamic_shared", "warpid", "active", "exited"]):
            c.b.store(c.field(name), c.at(out, 2 * len(names) + i, I32))

    address, out = ints(arena, 64)
    Kernel(build)(
        arena, address, block=(13, 1, 1), global_base=11, const_base=22, const_size=33, handles=44, static_shared=100,
        dynamic_shared=28, local_bytes=20,
    )  # fmt: skip
    longs = out.view(np.int64)
    assert longs[: len(names)].tolist() == [arena.base, 11, 22, 33, 8, 44, 128, 32]
    assert out[2 * len(names) :][:4].tolist() == [28, 0, (1 << 13) - 1, 0]
    arena.free(address)


@pytest.mark.parametrize("suspends", [False, True])
def test_windows_are_private(arena: Arena, suspends: bool) -> None:
    """Every CTA counts in its shared window, every thread in its local window; nobody sees another's."""

    def build(c: Code) -> None:
        cta = c.field("ctaid")
        shared = c.pointer(c.field("shared_base", I64))
        c.b.store(cta, c.at(shared, c.field("warpid"), I32))
        with c.lanes() as lane:
            local = c.b.add(c.field("local_base", I64), c.b.mul(c.b.zext(lane, I64), c.field("local_size", I64)))
            tag = c.b.add(c.b.mul(cta, c.i32(1000)), c.field("tid", index=lane))
            c.b.store(tag, c.at(c.pointer(local), 4, I32))
        c.call("pe_yield")
        bad = c.b.icmp_unsigned("!=", c.b.load(c.at(shared, c.field("warpid"), I32), typ=I32), cta)
        with c.b.if_then(bad):
            c.call("pe_fault", 10, 1, -1, 0, 0, 0)
        with c.lanes() as lane:
            local = c.b.add(c.field("local_base", I64), c.b.mul(c.b.zext(lane, I64), c.field("local_size", I64)))
            tag = c.b.add(c.b.mul(cta, c.i32(1000)), c.field("tid", index=lane))
            wrong = c.b.icmp_unsigned("!=", c.b.load(c.at(c.pointer(local), 4, I32), typ=I32), tag)
            with c.b.if_then(wrong):
                c.call("pe_fault", 10, 2, lane, 0, 0, 0)

    options = {"static_shared": 32 * 4, "local_bytes": 20, "suspends": suspends, "workers": 3}
    Kernel(build)(arena, grid=(200, 1, 1), block=(1000, 1, 1), **options)


def test_yield_lets_the_other_warps_run(arena: Arena) -> None:
    """Warp 0 spins until the last warp, which runs after it, has stored."""

    def build(c: Code) -> None:
        flag = c.pointer(c.field("shared_base", I64))
        flag_value = c.b.load(flag, typ=I32)
        flag_value.volatile = True
        last = c.b.icmp_unsigned("==", c.field("warpid"), c.i32(7))
        with c.b.if_then(last):
            c.b.store(c.i32(77), flag)
        head, out = c.function.append_basic_block(), c.function.append_basic_block()
        c.b.branch(head)
        c.b.position_at_end(head)
        c.call("pe_yield")
        value = c.b.load(flag, typ=I32)
        c.b.cbranch(c.b.icmp_unsigned("==", value, c.i32(77)), out, head)
        c.b.position_at_end(out)

    Kernel(build)(arena, block=(256, 1, 1), static_shared=4, suspends=True, timeout=20)


def test_concurrent_launches(arena: Arena, ids: Kernel) -> None:
    failures: list[str] = []

    def work(workers: int) -> None:
        address, out = ints(arena, 64 * 96)
        for round_ in range(1, 40):
            ids(arena, address, grid=(16, 4, 1), block=(32, 3, 1), workers=workers, suspends=bool(round_ & 1))
            by, bx, y, x = np.indices((4, 16, 3, 32))
            if not (out == (round_ * (x | y << 5 | bx << 15 | by << 20)).ravel()).all():
                failures.append(f"round {round_}")
        arena.free(address)

    threads = [threading.Thread(target=work, args=(workers,)) for workers in (1, 1, 2, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_updates_of_concurrent_single_worker_launches(arena: Arena) -> None:
    """A launch alone updates memory without locks; it must stop doing so when another one starts."""
    site = ffi.new("pe_atom_site *", {"op": lib.PE_ATOM_ADD, "type": lib.PE_TYPE_U32, "space": lib.PE_GLOBAL, "count": 1})

    def build(c: Code) -> None:
        address, one, null = c.b.alloca(I64, 32), c.b.alloca(I32, 32), ir.Constant(PTR, None)
        c.b.store(c.param(0), address)
        c.b.store(c.i32(1), one)
        with c.loop(c.param(2, I32)):
            c.call("pe_atomic", c.pointer(c.param(1)), 1, address, one, null, null)

    address, out = ints(arena, 1)
    kernel, site_address = Kernel(build), int(ffi.cast("uintptr_t", site))
    launches = [(400_000, 5), (3_000, 150), (1_000, 300)]

    def work(updates: int, count: int) -> None:
        for _ in range(count):
            kernel(arena, address, site_address, updates, workers=1)

    threads = [threading.Thread(target=work, args=pair) for pair in launches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert out[0] == sum(updates * count for updates, count in launches)
    arena.free(address)


@pytest.mark.parametrize("suspends", [False, True])
def test_timeout(arena: Arena, ids: Kernel, suspends: bool) -> None:
    with pytest.raises(LaunchTimeout, match=r"kernel `test` did not end within 0\.1 s"):
        Kernel(Code.forever)(arena, grid=(64, 1, 1), block=(64, 1, 1), timeout=0.1, suspends=suspends, workers=2)
    address, out = ints(arena, 32)
    ids(arena, address, timeout=60)
    assert (out == np.arange(32)).all()
    arena.free(address)


@pytest.mark.parametrize(
    ("grid", "block"),
    [((0, 1, 1), (1, 1, 1)), ((1, 65536, 1), (1, 1, 1)), ((1, 1, 1), (1025, 1, 1)), ((1, 1, 1), (33, 32, 1))],
)
def test_wrong_shapes(arena: Arena, ids: Kernel, grid: tuple[int, int, int], block: tuple[int, int, int]) -> None:
    with pytest.raises(InputError, match="out of range"):
        ids(arena, 0, grid=grid, block=block)


def test_no_memory_for_windows(arena: Arena, ids: Kernel) -> None:
    with pytest.raises(InputError, match="out of device memory for the launch of `test`"):
        ids(arena, 0, local_bytes=1 << 40)


def print_and_spin(c: Code) -> None:
    """Print the text at the first parameter, then loop until stopped."""
    format, result = c.b.alloca(I64, 32), c.b.alloca(I32, 32)
    c.b.store(c.param(0), format)
    c.call("pe_vprintf", 0, 1, format, format, result)
    c.forever()


def text(arena: Arena, value: bytes) -> int:
    address = arena.alloc(len(value) + 1)
    arena.view(address, len(value))[:] = np.frombuffer(value, np.uint8)
    return address


def test_printf_that_raises_stops_the_launch(arena: Arena) -> None:
    def refuse(output: str) -> None:
        raise ZeroDivisionError(output)

    with pytest.raises(ZeroDivisionError, match="hi"):
        Kernel(print_and_spin)(arena, text(arena, b"hi"), printf=refuse)


def test_closing_during_a_launch() -> None:
    """The memory stays until the launch has ended."""
    arena = Arena(1 << 20)
    with pytest.raises(LaunchTimeout):
        Kernel(print_and_spin)(arena, text(arena, b"hi"), printf=lambda _: arena.close(), timeout=0.5)
    with pytest.raises(InputError, match="closed"):
        arena.alloc(1)


def test_workers_ignore_the_floating_point_state_of_their_creator(arena: Arena) -> None:
    """Subnormals survive although the thread that starts the workers rounds up (set through the C library)."""
    script = """
import ctypes, numpy as np
from llvmlite import ir
from ptxemu.device.arena import Arena
from tests.runtime.runtime_harness import Kernel
libm = ctypes.CDLL("libm.so.6")
libm.fesetround(0x800)
def build(c):
    f = ir.DoubleType()
    p = c.pointer(c.param(0))
    a, b = c.b.load(c.at(p, 0, f), typ=f), c.b.load(c.at(p, 1, f), typ=f)
    c.b.store(c.b.fadd(a, b), c.at(p, 2, f))
arena = Arena(1 << 20)
address = arena.alloc(24)
view = arena.view(address, 24).view(np.float64)
view[:2] = 1.0, 2.0 ** -80
kernel = Kernel(build)
kernel(arena, address)
libm.fesetround(0)
assert view[2] == 1.0, view
"""
    run_script(script)


def run_script(script: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done


def test_interrupt() -> None:
    script = """
import os, signal, threading
from ptxemu.device.arena import Arena
from tests.runtime.runtime_harness import Code, Kernel
kernel = Kernel(Code.forever)
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    kernel(Arena(1 << 20), grid=(8, 1, 1))
except KeyboardInterrupt:
    print("interrupted")
"""
    assert run_script(script).stdout == "interrupted\n"


def test_fork_then_launch_in_both() -> None:
    script = """
import os, warnings
import numpy as np
from ptxemu.device.arena import Arena
from tests.runtime.runtime_harness import I32, Kernel
warnings.simplefilter("ignore")
def build(c):
    c.b.store(c.param(1, I32), c.pointer(c.param(0)))
kernel = Kernel(build)
arena = Arena(1 << 20)
address = arena.alloc(4)
value = arena.view(address, 4).view(np.int32)
kernel(arena, address, 1, grid=(4, 1, 1), workers=2)
child = os.fork()
kernel(arena, address, 3 if child else 2, grid=(4, 1, 1), workers=2)
assert value[0] == (3 if child else 2)
if not child:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
assert value[0] == 3
"""
    run_script(script)


def test_fork_during_a_launch() -> None:
    script = """
import os, threading, time, warnings
import numpy as np
from ptxemu.text.errors import LaunchTimeout
from ptxemu.device.arena import Arena
from tests.runtime.runtime_harness import I32, Code, Kernel
warnings.simplefilter("ignore")
arena = Arena(1 << 20)
endless = Kernel(Code.forever)
def build(c):
    c.b.store(c.i32(5), c.pointer(c.param(0)))
store = Kernel(build)
def run():
    try:
        endless(arena, grid=(4, 1, 1), workers=2, timeout=1)
    except LaunchTimeout:
        print("parent timed out", flush=True)
thread = threading.Thread(target=run)
thread.start()
time.sleep(0.2)
child = os.fork()
if not child:
    address = arena.alloc(4)
    store(arena, address, grid=(4, 1, 1), workers=2)
    os._exit(0 if arena.view(address, 4)[0] == 5 else 1)
assert os.waitpid(child, 0)[1] == 0
thread.join()
"""
    assert run_script(script).stdout == "parent timed out\n"


def test_handlers_of_others_still_work() -> None:
    """A fault in the host's own code goes to the handler that was there before: here faulthandler's, which reports it."""
    script = """
import ctypes, faulthandler, os, resource, sys
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
from ptxemu.text.errors import Fault
from ptxemu.device.arena import Arena
from tests.runtime.runtime_harness import I32, Kernel
def build(c):
    c.b.store(c.i32(5), c.pointer(c.param(0)))
store = Kernel(build)
arena = Arena(1 << 20)
def fault():
    try:
        store(arena, arena.base + 8192)
    except Fault as error:
        assert "illegal address" in str(error), error
fault()
faulthandler.enable()
fault()
child = os.fork()
if not child:
    ctypes.string_at(8)
    os._exit(0)
status = os.waitpid(child, 0)[1]
assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == 11, status
"""
    done = run_script(script)
    assert done.stderr.count("Fatal Python error: Segmentation fault") == 1


def test_portable_fibers() -> None:
    """The ucontext twin passes the same tests."""
    names = ["test_runtime_barrier.py", "test_runtime_fault.py", "test_runtime_printf.py"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *(str(TESTS / "runtime" / name) for name in names)]
    env = {**os.environ, "PTXEMU_FIBERS": "ucontext"}
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout


def test_a_fault_leaves_others_running(arena: Arena) -> None:
    """One launch faults while another runs: the other ends well, and so does the next."""

    def count(c: Code) -> None:
        slot = c.pointer(c.param(0))
        with c.loop(100_000):
            value = c.b.load(slot, typ=I32)
            c.b.store(c.b.add(value, c.i32(1)), slot)

    def wild(c: Code) -> None:
        c.b.store(c.i32(1), c.pointer(c.param(0)))

    address, out = ints(arena, 1)
    counter, bad = Kernel(count), Kernel(wild)
    thread = threading.Thread(target=counter, args=(arena, address))
    thread.start()
    for _ in range(20):
        with pytest.raises(Fault):
            bad(arena, arena.base - 4096)
    thread.join()
    assert out[0] == 100_000
    arena.free(address)
