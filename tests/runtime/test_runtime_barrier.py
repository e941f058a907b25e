"""Barriers: meetings of warps, reductions, early exits, deadlocks, misuse."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from llvmlite import ir

from ptxemu.device.arena import Arena
from ptxemu.text.errors import Fault
from tests.runtime.runtime_harness import I32, I64, Code, Kernel

ALL = -1  # every lane
ARRIVE, PER_THREAD = 1, 16


@pytest.fixture
def arena() -> Iterator[Arena]:
    arena = Arena(1 << 28)
    yield arena
    arena.close()


def warp_slot(c: Code, base: ir.Value, warp: ir.Value) -> ir.Value:
    return c.at(c.pointer(base), warp, I32)


def count_warps(c: Code) -> ir.Value:
    threads = c.b.mul(c.b.mul(c.field("ntid"), c.field("ntid", index=1)), c.field("ntid", index=2))
    return c.b.lshr(c.b.add(threads, c.i32(31)), c.i32(5))


@pytest.mark.parametrize("threads", [1, 32, 33, 100, 512, 1024])
def test_everybody_sees_what_was_written_before(arena: Arena, threads: int) -> None:
    """50 rounds of passing values to the next warp through shared memory."""

    def build(c: Code) -> None:
        warp, warps = c.field("warpid"), count_warps(c)
        shared = c.field("shared_base", I64)
        following = c.b.urem(c.b.add(warp, c.i32(1)), warps)
        c.b.store(warp, warp_slot(c, shared, warp))
        with c.loop(50):
            c.call("pe_barrier", 1, 0, 0, ALL, 0)
            value = c.b.load(warp_slot(c, shared, following), typ=I32)
            c.call("pe_barrier", 2, 0, 0, ALL, 0)
            c.b.store(value, warp_slot(c, shared, warp))
        cta = c.b.mul(c.field("ctaid"), warps)
        final = c.b.load(warp_slot(c, shared, warp), typ=I32)
        c.b.store(final, warp_slot(c, c.param(0), c.b.add(cta, warp)))

    warps = (threads + 31) // 32
    address = arena.alloc(4 * 20 * warps)
    Kernel(build)(arena, address, grid=(20, 1, 1), block=(threads, 1, 1), static_shared=128, suspends=True, workers=2)
    out = arena.view(address, 4 * 20 * warps).view(np.int32).reshape(20, warps)
    assert (out == (np.arange(warps) + 50) % warps).all()
    arena.free(address)


def test_one_warp_needs_no_fibers(arena: Arena) -> None:
    Kernel(lambda c: c.call("pe_barrier", 1, 0, 0, ALL, 0))(arena, grid=(100, 1, 1), block=(20, 1, 1))


@pytest.mark.parametrize("operation", [0, 1, 2])
@pytest.mark.parametrize("flags", [0, PER_THREAD])
def test_reductions(arena: Arena, operation: int, flags: int) -> None:
    """Predicates come from memory; 70 threads, so the last warp is partial."""

    def build(c: Code) -> None:
        warp = c.field("warpid")
        with c.loop(8) as round_:
            index = c.b.add(c.b.mul(round_, c.i32(3)), warp)
            pred = c.b.load(warp_slot(c, c.param(0), index), typ=I32)
            result = c.call("pe_barrier_red", 1, 3, 0, c.field("active"), operation | flags, pred)
            c.b.store(result, warp_slot(c, c.param(1), index))

    active = np.array([0xFFFFFFFF, 0xFFFFFFFF, 0x3F], np.uint32)
    rng = np.random.default_rng(3)
    preds = rng.integers(0, 1 << 32, (8, 3), dtype=np.uint32)
    preds[1], preds[2], preds[3] = active, 0, 0xFFFFFFFF
    preds[4] = active & [0xFFFFFFFF, 0xFFFFFFFE, 0x3F]
    source, target = arena.alloc(96), arena.alloc(96)
    arena.view(source, 96).view(np.uint32)[:] = preds.ravel()
    Kernel(build)(arena, source, target, block=(70, 1, 1), suspends=True)
    bits = preds & active
    popc = np.bitwise_count(bits).sum(axis=1)
    expected = [popc, popc == 70, popc > 0][operation].astype(int)
    out = arena.view(target, 96).view(np.int32).reshape(8, 3)
    assert (out == expected[:, None]).all()
    arena.free(source)
    arena.free(target)


def test_producers_and_consumers(arena: Arena) -> None:
    """Warps 0-1 produce and arrive, warps 2-3 consume and wait, over two barriers, ten times."""

    def build(c: Code) -> None:
        warp, shared = c.field("warpid"), c.field("shared_base", I64)
        with c.b.if_else(c.b.icmp_unsigned("<", warp, c.i32(2))) as (produce, consume):
            with produce, c.loop(10) as i:
                c.call("pe_barrier", 1, 2, 128, ALL, 0)  # the buffer is free
                c.b.store(c.b.add(c.b.mul(i, c.i32(10)), warp), warp_slot(c, shared, warp))
                c.call("pe_barrier", 2, 1, 128, ALL, ARRIVE)  # the buffer is full
            with consume, c.loop(10) as i:
                c.call("pe_barrier", 3, 2, 128, ALL, ARRIVE)
                c.call("pe_barrier", 4, 1, 128, ALL, 0)
                mine = c.b.sub(warp, c.i32(2))
                value = c.b.load(warp_slot(c, shared, mine), typ=I32)
                c.b.store(value, warp_slot(c, c.param(0), c.b.add(c.b.mul(i, c.i32(2)), mine)))

    address = arena.alloc(80)
    Kernel(build)(arena, address, block=(128, 1, 1), static_shared=8, suspends=True)
    out = arena.view(address, 80).view(np.int32).reshape(10, 2)
    assert (out == np.arange(10)[:, None] * 10 + np.arange(2)).all()
    arena.free(address)


def test_warps_that_exit_are_not_waited_for(arena: Arena) -> None:
    """Warp w leaves after w rounds; the others go on meeting."""

    def build(c: Code) -> None:
        with c.loop(c.field("warpid")):
            c.call("pe_barrier", 1, 0, 0, ALL, 0)

    Kernel(build)(arena, grid=(3, 1, 1), block=(1024, 1, 1), suspends=True)


def test_lanes_that_exited_count(arena: Arena) -> None:
    """With per-thread counting, lanes marked as exited do not hold the barrier up."""

    def build(c: Code) -> None:
        from ptxemu._runtime import ffi

        offset = ffi.offsetof("pe_warp", "exited")
        c.b.store(c.i32(0xFF), c.at(c.warp, offset, ir.IntType(8)))
        c.call("pe_barrier", 1, 0, 0, c.b.and_(c.field("active"), c.i32(~0xFF)), PER_THREAD)

    Kernel(build)(arena, grid=(2, 1, 1), block=(90, 1, 1), suspends=True)


def test_halves_of_warps_meet(arena: Arena) -> None:
    """Sixteen lanes of each of two warps make up a count of 32."""
    Kernel(lambda c: c.call("pe_barrier", 1, 5, 32, 0xFFFF, PER_THREAD))(arena, block=(64, 1, 1), suspends=True)


def deadlock(arena: Arena, build: object, threads: int = 64) -> Fault:
    with pytest.raises(Fault) as caught:
        Kernel(build)(arena, grid=(3, 1, 1), block=(threads, 1, 1), suspends=True, workers=1)  # type: ignore[arg-type]
    return caught.value


def only_warp(c: Code, warp: int, *barrier: int) -> None:
    with c.b.if_then(c.b.icmp_unsigned("==", c.field("warpid"), c.i32(warp))):
        c.call("pe_barrier", *barrier)


def test_deadlock_of_a_counted_barrier(arena: Arena) -> None:
    error = deadlock(arena, lambda c: only_warp(c, 1, 17, 4, 64, ALL, 0))
    assert str(error) == (
        "deadlock in kernel `test` at test.ptx:17: block (0,0,0), warp 1, "
        "barrier 4 waits for 64 threads, 32 arrived and no warp can run\n"
        "  block (0,0,0) warp   1 lanes 0xffffffff waits for barrier 4: 32 of 64 threads have arrived  test.ptx:17"
    )
    assert error.record["kind"] == "deadlock"


def test_deadlock_of_two_barriers(arena: Arena) -> None:
    def build(c: Code) -> None:
        only_warp(c, 0, 5, 1, 0, ALL, 0)
        only_warp(c, 1, 6, 2, 0, ALL, 0)

    assert "barrier 1 waits for 64 threads, 32 arrived" in str(deadlock(arena, build))


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        ((1, 3, 64, ALL, 0), (2, 3, 96, ALL, 0), "barrier 3: the thread count differs from that of an earlier arrival"),
        ((1, 3, 64, ALL, 0), (2, 3, 0, ALL, 0), "barrier 3: the thread count differs"),
        ((1, 3, 0, ALL, 0), (2, 3, 64, ALL, 0), "barrier 3: the thread count differs"),
        ((1, 16, 0, ALL, 0), (2, 0, 0, ALL, 0), "barrier 16: there are 16 barriers, 0 to 15"),
        ((1, 0, 33, ALL, 0), (2, 0, 33, ALL, 0), "barrier 0: the thread count is not a multiple of the warp size"),
        ((1, 0, 0, ALL, ARRIVE), (2, 0, 0, ALL, 0), "barrier 0: an arrival that does not wait needs a thread count"),
        ((1, 0, 32, 0xFF, ARRIVE | PER_THREAD), (2, 0, 32, ALL, 0), "barrier 0: more threads arrive than it was set up"),
    ],
)
def test_misuse(arena: Arena, first: tuple[int, ...], second: tuple[int, ...], text: str) -> None:
    def build(c: Code) -> None:
        only_warp(c, 0, *first)
        only_warp(c, 1, *second)

    error = deadlock(arena, build)
    assert text in str(error)
    assert error.record["kind"] == "barrier misuse"


def test_reduction_mixed_with_arrival(arena: Arena) -> None:
    def build(c: Code) -> None:
        only_warp(c, 0, 1, 3, 0, ALL, 0)
        with c.b.if_then(c.b.icmp_unsigned("==", c.field("warpid"), c.i32(1))):
            c.call("pe_barrier_red", 2, 3, 0, ALL, 0, ALL)

    assert "reductions and other arrivals are mixed" in str(deadlock(arena, build))


def test_waiting_in_a_kernel_compiled_not_to(arena: Arena) -> None:
    with pytest.raises(Fault, match="compiled as one that never waits"):
        Kernel(lambda c: c.call("pe_barrier", 1, 0, 0, ALL, 0))(arena, block=(64, 1, 1))


def test_stop_reaches_warps_that_wait(arena: Arena) -> None:
    """One warp faults while the others wait; the launch ends with that fault, and the next one is clean."""

    def build(c: Code) -> None:
        with c.b.if_then(c.b.icmp_unsigned("==", c.field("warpid"), c.i32(3))):
            c.call("pe_fault", 10, 9, 5, 0, 0, 0)
        c.call("pe_barrier", 1, 0, 0, ALL, 0)

    kernel = Kernel(build)
    for _ in range(3):
        with pytest.raises(Fault, match=r"^trap in kernel `test` at test.ptx:9: block \(\d,0,0\), thread \(101,0,0\)$"):
            kernel(arena, grid=(9, 1, 1), block=(128, 1, 1), suspends=True)
    Kernel(lambda c: c.call("pe_barrier", 1, 0, 0, ALL, 0))(arena, block=(128, 1, 1), suspends=True)
