"""Faults: what is caught, where it is said to have happened, and that the process and its memory survive."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from llvmlite import ir

from ptxemu._runtime import lib
from ptxemu.device.arena import Arena
from ptxemu.text.errors import Fault, InternalError
from tests.runtime.runtime_harness import I32, I64, Code, Kernel


@pytest.fixture
def arena() -> Iterator[Arena]:
    arena = Arena(1 << 28)
    yield arena
    arena.close()


def fault(arena: Arena, kernel: Kernel, *params: int, **options: object) -> Fault:
    with pytest.raises(Fault) as caught:
        kernel(arena, *params, **options)  # type: ignore[arg-type]
    return caught.value


def store_by(c: Code) -> None:
    """The third thread of block 1 stores to the address in parameter 0."""
    with c.b.if_then(c.b.icmp_unsigned("==", c.field("ctaid"), c.i32(1))):
        c.b.store(c.i32(1), c.pointer(c.param(0)))


@pytest.fixture(scope="module")
def store() -> Kernel:
    return Kernel(store_by)


@pytest.mark.parametrize("suspends", [False, True])
@pytest.mark.parametrize("workers", [1, 2])
def test_past_the_end_of_an_allocation(arena: Arena, store: Kernel, suspends: bool, workers: int) -> None:
    address = arena.alloc(4096, name="x")
    other = arena.alloc(4096, name="y")
    arena.view(other, 4096)[:] = 9
    error = fault(arena, store, address + 4096, grid=(2, 1, 1), suspends=suspends, workers=workers)
    assert str(error) == (
        f"illegal address in kernel `test` at test.ptx:0: block (1,0,0), warp 0, access to generic address "
        f"0x{address + 4096:x}, 0 bytes past the end of `x` (4096 bytes at 0x{address:x})"
    )
    assert error.record["block"] == (1, 0, 0)
    assert error.record["address"] == address + 4096
    assert error.record["pc"]
    assert (arena.view(other, 4096) == 9).all()
    store(arena, address, grid=(2, 1, 1))
    assert arena.view(address, 4)[0] == 1
    arena.free(address)
    arena.free(other)


def test_allocations_end_at_the_guard(arena: Arena, store: Kernel) -> None:
    """At most 255 bytes behind an allocation are accessible."""
    for size in (1, 100, 256, 4096, 5000, 70_000):
        address = arena.alloc(size)
        reachable = -(-size // 256) * 256
        store(arena, address + reachable - 4, grid=(2, 1, 1))
        fault(arena, store, address + reachable, grid=(2, 1, 1))
        arena.free(address)


def test_use_after_free(arena: Arena, store: Kernel) -> None:
    address = arena.alloc(4096)
    arena.free(address)
    assert "illegal address" in str(fault(arena, store, address, grid=(2, 1, 1)))


@pytest.mark.parametrize("offset", [-1 << 30, -4, (1 << 33) - 4096])
def test_margins_and_gaps(arena: Arena, store: Kernel, offset: int) -> None:
    assert "illegal address" in str(fault(arena, store, arena.base + offset, grid=(2, 1, 1)))


def test_position_of_a_trap_comes_from_the_warp(arena: Arena) -> None:
    from ptxemu._runtime import ffi

    def build(c: Code) -> None:
        c.b.store(c.i32(123), c.at(c.warp, ffi.offsetof("pe_warp", "pos"), ir.IntType(8)))
        c.b.store(c.i32(1), c.pointer(c.param(0)))

    error = fault(arena, Kernel(build), arena.base - 8)
    assert "at test.ptx:123:" in str(error)


def check(c: Code) -> None:
    """pe_check(pos 7, space p0, size p1, mask p2, addresses at p3)."""
    c.call("pe_check", 7, c.param(0, I32), c.param(1, I32), c.param(2, I32), c.pointer(c.param(3)))


@pytest.fixture(scope="module")
def checker() -> Kernel:
    return Kernel(check)


@pytest.mark.parametrize(
    ("space", "size", "lanes", "expected"),
    [
        (lib.PE_SHARED, 4, {0: 0, 5: 96}, None),
        (lib.PE_SHARED, 4, {0: 0, 5: 100}, "illegal address"),
        (lib.PE_SHARED, 8, {5: 96}, "illegal address"),
        (lib.PE_SHARED, 4, {5: 94}, "misaligned address"),
        (lib.PE_SHARED, 4, {5: (1 << 64) - 4}, "illegal address"),
        (lib.PE_SHARED, 1, {5: 99, 31: 99}, None),
        (lib.PE_LOCAL, 16, {5: 16}, None),
        (lib.PE_LOCAL, 16, {5: 32}, "illegal address"),
        (lib.PE_LOCAL, 16, {5: 8}, "misaligned address"),
        (lib.PE_CONST, 4, {5: 0x7000}, None),
        (lib.PE_CONST, 4, {5: 0x6FFC}, "illegal address"),
        (lib.PE_CONST, 4, {5: 0x7040}, "illegal address"),
        (lib.PE_PARAM, 4, {5: 0}, "illegal address"),
        (lib.PE_GENERIC, 4, {5: 8}, "null pointer"),
        (lib.PE_GLOBAL, 4, {5: 4092}, "null pointer"),
        (lib.PE_GLOBAL, 4, {5: 4096}, "illegal address"),
        (lib.PE_GENERIC, 4, {5: (1 << 64) - 4}, "illegal address"),
        (lib.PE_GENERIC, 4, {5: 1 << 47}, "illegal address"),
    ],
)
def test_check(arena: Arena, checker: Kernel, space: int, size: int, lanes: dict[int, int], expected: str | None) -> None:
    addresses = arena.alloc(256)
    table = arena.view(addresses, 256).view(np.uint64)
    table[:] = 3  # inactive lanes are not looked at
    for lane, address in lanes.items():
        table[lane] = address
    mask = sum(1 << lane for lane in lanes)
    options = {"static_shared": 60, "dynamic_shared": 40, "local_bytes": 30, "const_base": 0x7000, "const_size": 0x40}
    if expected is None:
        checker(arena, space, size, mask, addresses, **options)  # type: ignore[arg-type]
    else:
        error = fault(arena, checker, space, size, mask, addresses, block=(4, 8, 1), **options)
        names = ["generic", "global", "shared", "local", "constant", "parameter"]
        assert str(error).startswith(
            f"{expected} in kernel `test` at test.ptx:7: block (0,0,0), thread (1,1,0), "
            f"{size}-byte access to {names[space]} address 0x{lanes[5]:x}"
        )
        assert error.record["thread"] == (1, 1, 0)
    arena.free(addresses)


def test_check_of_generic_addresses(arena: Arena, checker: Kernel) -> None:
    addresses = arena.alloc(256)
    table = arena.view(addresses, 256).view(np.uint64)
    table[:] = arena.base
    checker(arena, lib.PE_GENERIC, 4, 0xFFFFFFFF, addresses)
    table[31] += 2
    assert "misaligned" in str(fault(arena, checker, lib.PE_GENERIC, 4, 0xFFFFFFFF, addresses))
    arena.free(addresses)


def test_stack_overflow(arena: Arena) -> None:
    """Recursion without end in a kernel."""

    def build(c: Code) -> None:
        frame = c.b.alloca(I64, 64)
        c.b.store(c.param(0), frame)
        c.b.call(c.function, [c.warp])
        c.b.store(c.b.load(frame, typ=I64), c.pointer(c.param(0)))

    for suspends in (False, True):
        error = fault(arena, Kernel(build), arena.base, suspends=suspends, stack_bytes=1 << 16)
        assert str(error).startswith("stack overflow in kernel `test`")


def test_arithmetic_trap_is_a_bug(arena: Arena) -> None:
    def build(c: Code) -> None:
        c.b.store(c.b.udiv(c.param(0, I32), c.param(1, I32)), c.pointer(c.param(2)))

    with pytest.raises(InternalError, match="arithmetic trap in compiled code"):
        Kernel(build)(arena, 1, 0, arena.alloc(4))


def test_first_fault_is_kept_and_all_are_counted(arena: Arena) -> None:
    def build(c: Code) -> None:
        c.call("pe_fault", lib.PE_TRAP, 3, 1, 0, 0, 0)

    error = fault(arena, Kernel(build), grid=(1000, 1, 1), workers=4)
    assert error.record["kind"] == "trap"
    assert 1 <= int(str(error.record["count"])) <= 4


def test_assertion(arena: Arena) -> None:
    texts = [b"x > 0", b"file.cu", b"void f(int)"]
    addresses = []
    for value in texts:
        address = arena.alloc(len(value) + 1)
        arena.view(address, len(value))[:] = np.frombuffer(value, np.uint8)
        addresses.append(address)

    def build(c: Code) -> None:
        arrays = [c.b.alloca(I64, 32) for _ in range(3)]
        line = c.b.alloca(I32, 32)
        for i, array in enumerate(arrays):
            c.b.store(c.param(i), c.at(array, 6, I64))
        c.b.store(c.i32(12), c.at(line, 6, I32))
        c.call("pe_assertfail", 44, 0b11000000, arrays[0], arrays[1], line, arrays[2])

    kernel = Kernel(build)
    error = fault(arena, kernel, *addresses, grid=(1, 2, 1), block=(4, 8, 1))
    note = "file.cu:12: void f(int): block: [0,{},0], thread: [2,1,0] Assertion `x > 0` failed."
    assert error.record["note"] in (note.format(0), note.format(1))
    assert str(error).endswith(str(error.record["note"]))
    broken = fault(arena, kernel, 8, addresses[1], arena.base - 1)
    assert "file.cu:12: ?: block: [0,0,0], thread: [6,0,0] Assertion `?` failed." in str(broken)


def test_clocks(arena: Arena) -> None:
    def build(c: Code) -> None:
        out = c.pointer(c.param(0))
        for i, name in enumerate(["pe_clock", "pe_clock", "pe_globaltimer", "pe_globaltimer"]):
            c.b.store(c.call(name), c.at(out, i, I64))

    address = arena.alloc(32)
    Kernel(build)(arena, address)
    clock, later, timer, timer_later = arena.view(address, 32).view(np.uint64).tolist()
    assert clock <= later
    assert 10**18 < timer <= timer_later
    arena.free(address)
