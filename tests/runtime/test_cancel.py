"""Clusters that are cancelled before they start (PTX ISA, "clusterlaunchcontrol.try_cancel", "query_cancel")."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest

import ptxemu
from tests.support.kernel_tools import module_of

TIMEOUT = 20.0
ENGINES = ["jit", "interpreter"]
module = partial(module_of, "cancel.ptx")


def persist(loaded: ptxemu.Module, grid: tuple[int, int, int], cluster: tuple[int, int, int], threads: int = 40) -> int:
    """Every CTA's work is done once, by itself or by another. How many have started."""
    counts, started = np.zeros((*reversed(grid), threads), np.uint32), np.zeros(1, np.uint32)
    loaded["persistent"][grid, threads](counts, started, cluster=cluster, timeout=TIMEOUT)
    assert (counts == 1).all()
    return int(started[0])


@pytest.mark.parametrize(
    ("grid", "cluster"),
    [((1, 1, 1), (1, 1, 1)), ((500, 1, 1), (1, 1, 1)), ((6, 5, 4), (1, 1, 1)), ((4, 1, 1), (4, 1, 1)), ((400, 1, 1), (4, 1, 1)),
     ((8, 6, 4), (2, 1, 2))],
)  # fmt: skip
@pytest.mark.parametrize("workers", [1, 2])
def test_the_work_of_every_block_is_done_once(grid: tuple[int, int, int], cluster: tuple[int, int, int], workers: int) -> None:
    size = int(np.prod(cluster))
    started = persist(module(workers), grid, cluster)
    assert started % size == 0
    assert size <= started <= np.prod(grid)
    assert workers > 1 or started == size


def test_the_interpreter_does_it_once() -> None:
    assert persist(module(engine="interpreter"), (5, 3, 2), (1, 1, 1), threads=3) == 1
    started = persist(module(engine="interpreter"), (8, 2, 4), (2, 1, 2), threads=3)
    assert started % 4 == 0 and started < 8 * 2 * 4


@pytest.mark.parametrize("check", ["memory", "sync", "race", "init"])
def test_checkers_find_nothing(check: str) -> None:
    loaded = module(check=check)
    persist(loaded, (7, 2, 1), (1, 1, 1), threads=8)
    assert list(loaded.device.checks.findings) == []


@pytest.mark.parametrize("check", ["memory", "sync", "race", "init"])
def test_checkers_of_clusters_find_nothing(check: str) -> None:
    loaded = module(check=check)
    persist(loaded, (12, 1, 1), (4, 1, 1), threads=8)
    assert list(loaded.device.checks.findings) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_responses(engine: str) -> None:
    """A failed response is all zeros, and so are those to who asks again."""
    out = np.full((9, 4), 99, np.uint32)
    module(1, engine=engine)["responses"][(3, 1, 2), 1](out, 9, timeout=TIMEOUT)
    rest = [(1, x, 0, z) for x, z in itertools.product(range(3), range(2))][1:]
    assert sorted(map(tuple, out[:5].tolist())) == rest
    assert (out[5:] == 0).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_blocks_of_cooperative_launches_have_all_started(engine: str) -> None:
    out = np.full((2, 4), 99, np.uint32)
    module(1, engine=engine)["responses"][3, 1](out, 2, cooperative=True, timeout=TIMEOUT)
    assert (out == 0).all()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("at", "told", "match"),
    [(8, 16, "misaligned"), (32, 16, "address"), (0xFFFF_FFF0, 16, "address"), (0, 32, "address"), (0, 20, "misaligned"),
     (0, 24, "not initialised")],
)  # fmt: skip
def test_wrong_addresses_fault(at: int, told: int, match: str, engine: str) -> None:
    with pytest.raises(ptxemu.Fault, match=match):
        module(engine=engine)["wild"][2, 1](at, told, timeout=TIMEOUT)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("at", "told"), [(1, 0), (0, 1), (1, 1)])
def test_addresses_of_global_memory_fault(at: int, told: int, engine: str) -> None:
    loaded = module(engine=engine)
    memory = loaded.device.to_device(np.zeros(4, np.uint64))
    with pytest.raises(ptxemu.Fault):
        loaded["generic"][2, 1](memory.address if at else 0, memory.address if told else 0, timeout=TIMEOUT)
