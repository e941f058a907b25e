"""The arena: placement, reuse, views, descriptions."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

from ptxemu.device.arena import MAX_ALLOCATIONS, Arena
from ptxemu.text.errors import InputError

PAGE = 4096


@pytest.fixture
def arena() -> Arena:
    return Arena(1 << 30)


@pytest.mark.parametrize("size", [1, 255, 256, 257, 1000, PAGE - 1, PAGE, PAGE + 1, 3 << 20])
@pytest.mark.parametrize("align", [1, 256, 512, PAGE, 1 << 16, 4 << 20])
def test_alignment_and_guard(arena: Arena, size: int, align: int) -> None:
    address = arena.alloc(size, align)
    assert address % max(align, 256) == 0
    slack = -(address + size) % PAGE
    assert slack < max(256, min(align, PAGE))
    view = arena.view(address, size)
    assert not view.any()
    view[:] = 7
    assert arena.view(address, size).sum() == 7 * size


def test_allocations_are_disjoint(arena: Arena) -> None:
    rng = np.random.default_rng(1)
    live: dict[int, int] = {}
    for step in range(500):
        if live and rng.random() < 0.45:
            address = list(live)[rng.integers(len(live))]
            size = live.pop(address)
            assert (arena.view(address, size) == address % 251).all()
            arena.free(address)
        else:
            size = int(rng.integers(1, 40_000))
            address = arena.alloc(size, 1 << int(rng.integers(0, 14)), f"a{step}")
            assert all(address + size <= other or other + live[other] <= address for other in live)
            arena.view(address, size)[:] = address % 251
            live[address] = size
    for address in live:
        arena.free(address)
    assert arena.used == 0


def test_memory_is_zero_again_after_free(arena: Arena) -> None:
    for _ in range(50):
        address = arena.alloc(300_000)
        assert not arena.view(address, 300_000).any()
        arena.view(address, 300_000)[:] = 255
        arena.free(address)


def test_capacity(arena: Arena) -> None:
    with pytest.raises(InputError, match="out of device memory"):
        arena.alloc((1 << 30) + 1)
    address = arena.alloc(1 << 30)
    assert arena.used == 1 << 30
    with pytest.raises(InputError, match="out of device memory"):
        arena.alloc(1)
    arena.free(address)
    assert arena.alloc(1)


def test_number_of_allocations(arena: Arena) -> None:
    addresses = [arena.alloc(1) for _ in range(MAX_ALLOCATIONS)]
    with pytest.raises(InputError, match="too many allocations"):
        arena.alloc(1)
    arena.free(addresses.pop())
    addresses.append(arena.alloc(1))
    for address in addresses[::2] + addresses[1::2]:
        arena.free(address)
    assert arena.used == 0


def test_large_allocation_is_lazy() -> None:
    arena = Arena(64 << 30)
    address = arena.alloc(48 << 30)
    view = arena.view(address + (40 << 30), 8)
    view[:] = 1
    assert arena.view(address + (40 << 30), 8).sum() == 8


def test_unreasonable_capacity() -> None:
    with pytest.raises(InputError, match="cannot reserve"):
        Arena(1 << 60)


def test_free_of_what_is_not_an_allocation(arena: Arena) -> None:
    address = arena.alloc(1000)
    for wrong in (0, address + 256, address - 256, 1 << 62):
        with pytest.raises(InputError, match="not the address of an allocation"):
            arena.free(wrong)
    arena.free(address)
    with pytest.raises(InputError, match="not the address of an allocation"):
        arena.free(address)


def test_view_bounds(arena: Arena) -> None:
    address = arena.alloc(1000)
    assert arena.view(address + 10, 990).size == 990
    for start, size in ((address, 1001), (address + 1, 1000), (address - 1, 1), (0, 1), (address + 1000, 1)):
        with pytest.raises(InputError, match="do not lie in one allocation"):
            arena.view(start, size)


def test_views_outlive_free_and_close(arena: Arena) -> None:
    address = arena.alloc(1000, name="kept")
    part = arena.view(address, 1000)[100:200].view(np.int32)
    part[:] = 42
    arena.free(address)
    assert (part == 42).all()
    second = arena.alloc(1000)
    view = arena.view(second, 1000)
    arena.close()
    del arena
    gc.collect()
    view[:] = 3
    assert (part == 42).all()
    assert (view == 3).all()


def test_closed_arena_refuses(arena: Arena) -> None:
    arena.close()
    arena.close()
    with pytest.raises(InputError, match="closed"):
        arena.alloc(1)


def test_freed_memory_is_reused_late(arena: Arena) -> None:
    first = arena.alloc(1000)
    arena.free(first)
    assert arena.alloc(1000) != first


def test_describe(arena: Arena) -> None:
    assert arena.describe(arena.base) == "no memory is allocated"
    a, b = arena.alloc(1000, name="a"), arena.alloc(PAGE * 4, name="b")
    assert arena.describe(a + 10) == f"10 bytes into `a` (1000 bytes at 0x{a:x})"
    assert arena.describe(a + 1000) == f"0 bytes past the end of `a` (1000 bytes at 0x{a:x})"
    assert arena.describe(a + 1004) == f"4 bytes past the end of `a` (1000 bytes at 0x{a:x})"
    assert arena.describe(b - 1) == f"1 byte before `b` ({PAGE * 4} bytes at 0x{b:x})"
    assert arena.describe(1 << 63) == arena.describe(0) == "outside of any allocation"
    arena.free(a)
    assert "before `b`" in arena.describe(a)


def test_many_threads(arena: Arena) -> None:
    failures: list[str] = []

    def work(seed: int) -> None:
        for _ in range(200):
            address = arena.alloc(5000)
            view = arena.view(address, 5000)
            view[:] = seed
            if not (view == seed).all():
                failures.append(hex(address))
            arena.free(address)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    del threads
    gc.collect()
    assert not failures
    assert arena.used == 0
