"""Thread block clusters of several CTAs (PTX ISA, "Cluster of Cooperative Thread Arrays")."""

from __future__ import annotations

import itertools
import re
from functools import partial

import numpy as np
import pytest

import ptxemu
from tests.support.kernel_tools import module_of

SIZES = [1, 2, 3, 4, 7, 8, 16]
TIMEOUT = 10.0
module = partial(module_of, "clusters.ptx")


@pytest.mark.parametrize(
    ("grid", "cluster"),
    [((6, 1, 1), (1, 1, 1)), ((6, 1, 1), (2, 1, 1)), ((4, 6, 2), (2, 3, 1)), ((2, 2, 4), (1, 2, 4)), ((4, 4, 2), (4, 2, 2)),
     ((16, 2, 1), (16, 1, 1))],
)  # fmt: skip
@pytest.mark.parametrize("workers", [1, 2])
def test_registers(grid: tuple[int, int, int], cluster: tuple[int, int, int], workers: int) -> None:
    out = np.full((grid[2], grid[1], grid[0], 16), 99, np.uint32)
    module(workers)["registers"][grid, 32](out, cluster=cluster)
    for z, y, x in itertools.product(*map(range, reversed(grid))):
        at = (x, y, z)
        inner = [a % c for a, c in zip(at, cluster, strict=True)]
        rank = inner[0] + cluster[0] * (inner[1] + cluster[1] * inner[2])
        size = int(np.prod(cluster))
        wanted = [*(a // c for a, c in zip(at, cluster, strict=True)), *(g // c for g, c in zip(grid, cluster, strict=True))]
        wanted += [*inner, *cluster, rank, size, int(size > 1), 99]
        assert list(out[z, y, x]) == wanted


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("workers", [1, 2])
def test_ring(size: int, workers: int) -> None:
    """Each value goes round the ring of its cluster, a place in each turn."""
    clusters, turns = 5, 7
    out = np.zeros((clusters, size, 64), np.uint32)
    module(workers)["ring"][clusters * size, 64](out, turns, cluster=size, timeout=TIMEOUT)
    start = np.arange(clusters * size).reshape(clusters, size)[..., None] * 1000 + np.arange(64)
    np.testing.assert_array_equal(out, np.roll(start, turns, axis=1))


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("workers", [1, 2])
def test_histogram(size: int, workers: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, 20_000, np.uint8)
    bins = np.zeros(256, np.uint32)
    module(workers)["histogram"][2 * size, 96](data, data.size, bins, cluster=size, timeout=TIMEOUT)
    np.testing.assert_array_equal(bins, np.bincount(data, minlength=256))


@pytest.mark.parametrize("size", SIZES)
def test_reduction_whose_other_blocks_exit(size: int) -> None:
    values = np.random.default_rng(size).integers(0, 2**40, (6, size * 96), np.uint64)
    out = np.zeros(6, np.uint64)
    module()["reduce"][6 * size, 96](values, out, cluster=size, timeout=TIMEOUT)
    np.testing.assert_array_equal(out, values.sum(axis=1))


@pytest.mark.parametrize("size", SIZES)
def test_addresses(size: int) -> None:
    out = np.zeros((2 * size, 32, 9), np.uint32)
    module()["addresses"][2 * size, 32](out, cluster=size)
    for cta, lane in itertools.product(range(2 * size), range(32)):
        rank, own = lane % size, cta % size
        assert list(out[cta, lane]) == [rank, rank, 1, 1, int(rank == own), 0, 1, own, own]


WILD = [0x80, 0x100, 0x0100_0000, 0x0100_0080, 0x0300_0080, 0x0400_0000, 0x10FF_FFFC, 0x7FFF_FFFC, 0xFF00_0000, 0xFFFF_FFFC]


@pytest.mark.parametrize("address", WILD)
def test_wild_shared_addresses_fault(address: int) -> None:
    with pytest.raises(ptxemu.Fault, match="address"):
        module()["wild"][2, 1](address, 0, 0, cluster=2)


@pytest.mark.parametrize("how", [1, 2])
@pytest.mark.parametrize("rank", [2, 3, 15, 16, 255, 256, 2**31, 2**32 - 1])
def test_ranks_that_do_not_exist_fault(rank: int, how: int) -> None:
    with pytest.raises(ptxemu.Fault, match="address"):
        module()["wild"][2, 1](0, rank, how, cluster=2)


def test_an_access_behind_the_memory_of_another_block_faults() -> None:
    with pytest.raises(ptxemu.Fault, match="address"):
        module()["wild"][2, 1](0, 1, 3, cluster=2)


@pytest.mark.parametrize("address", [0, 0x7C, 0x0200_0000, 0x0300_007C])
def test_addresses_of_blocks_that_exist(address: int) -> None:
    module()["wild"][2, 1](address, 0, 0, cluster=2)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("workers", [1, 2])
def test_remote_mbarriers_and_stores(size: int, workers: int) -> None:
    out = np.zeros(3 * size, np.uint32)
    module(workers)["remote"][3 * size, 32](out, cluster=size, timeout=TIMEOUT)
    np.testing.assert_array_equal(out, np.arange(3 * size) * 10 + 3)


@pytest.mark.parametrize(("size", "ranks"), [(1, 1), (4, 0b1111), (4, 0b1010), (8, 0b10000001), (16, 0xFFFF), (16, 0x8000)])
def test_multicast(size: int, ranks: int) -> None:
    values, out = np.arange(100, 116, dtype=np.uint32), np.zeros((2, size, 16), np.uint32)
    module()["multicast"][2 * size, 16](values, out, ranks, cluster=size, timeout=TIMEOUT)
    for rank in range(size):
        assert (out[:, rank] == (values if ranks >> rank & 1 else 77)).all()


@pytest.mark.parametrize("workers", [1, 2])
def test_spinning_on_what_another_block_writes(workers: int) -> None:
    out = np.zeros(12, np.uint32)
    module(workers)["spin"][12, 1](out, cluster=4, timeout=TIMEOUT)
    assert (out == 9).all()


def test_deadlock_says_where_the_blocks_stand() -> None:
    with pytest.raises(ptxemu.Fault) as caught:
        module()["stuck"][2, 32](cluster=2, timeout=TIMEOUT)
    text = str(caught.value)
    assert "barrier 1 waits for 64 threads, 32 arrived" in text
    assert re.search(r"block \(1,0,0\) warp +0 lanes 0xffffffff waits for barrier.cluster", text)


def test_required_clusters() -> None:
    out = np.zeros(3, np.uint32)
    kernel = module()["required"]
    kernel[(4, 1, 2), 1](out)
    assert list(out) == [4, 1, 2]
    kernel[(4, 1, 2), 1](out, cluster=(2, 1, 2))
    with pytest.raises(ptxemu.InputError, match=r"requires clusters of 2 x 1 x 2 blocks \(.reqnctapercluster\), not 4 x 1 x 1"):
        kernel[(4, 1, 2), 1](out, cluster=4)
    with pytest.raises(ptxemu.InputError, match=r"grid\.x is 3, which clusters of 2 blocks do not make up"):
        kernel[(3, 1, 2), 1](out)


def test_grids_of_clusters() -> None:
    out = np.zeros(2, np.uint32)
    module()["counted"][(3, 2), 32](out)
    assert list(out) == [3 * 2 * 4 * 32, 6]


def test_sizes_that_there_are_not() -> None:
    loaded = module()
    with pytest.raises(ptxemu.InputError, match="a cluster of 20 blocks is too large; the limit is 16"):
        loaded["small"][20, 1](cluster=(10, 2))
    with pytest.raises(ptxemu.InputError, match=r"cluster.x must be 1 to 16, not 17"):
        loaded["small"][34, 1](cluster=17)
    with pytest.raises(ptxemu.InputError, match=r"clusters of at most 4 blocks \(.maxclusterrank\), not 8"):
        loaded["small"][8, 1](cluster=8)
    with pytest.raises(ptxemu.InputError, match="cluster must be an integer"):
        loaded["small"][8, 1](cluster="2")


@pytest.mark.parametrize("check", ["memory", "sync"])
def test_checkers_that_follow_find_nothing(check: str) -> None:
    out = np.zeros((2, 4, 64), np.uint32)
    loaded = module(check=check)
    loaded["ring"][8, 64](out, 3, cluster=4, timeout=TIMEOUT)
    start = np.arange(8).reshape(2, 4)[..., None] * 1000 + np.arange(64)
    np.testing.assert_array_equal(out, np.roll(start, 3, axis=1))


NEIGHBOURS = [1, 6, 1, 2, 3, 4]
"""What a CTA whose left neighbour is number 0 of the grid gets: a word, a sum that starts with 5, four words."""


def neighbours(loaded: ptxemu.Module, size: int) -> None:
    out = np.zeros((2, size, 6), np.uint32)
    loaded["neighbours"][2 * size, 1](out, cluster=size, timeout=TIMEOUT)
    givers = np.roll(np.arange(2 * size).reshape(2, size), 1, axis=1)
    np.testing.assert_array_equal(out, givers[..., None] * 100 + NEIGHBOURS)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("workers", [1, 2])
def test_stores_reductions_and_copies_to_another_block(size: int, workers: int) -> None:
    neighbours(module(workers), size)


@pytest.mark.parametrize("check", ["memory", "sync", "memory,sync"])
def test_checkers_find_nothing_in_what_goes_to_another_block(check: str) -> None:
    loaded = module(check=check)
    neighbours(loaded, 4)
    assert list(loaded.device.checks.findings) == []
