"""The interpreter on clusters: launches that compiled code does, too."""

from __future__ import annotations

import re
from functools import partial

import pytest

import ptxemu
from ptxemu.interpreter.observer import Observer, observing
from ptxemu.interpreter.schedule import Schedule
from tests.matrix import test_tcgen05_pairs as pairs
from tests.runtime import test_clusters as clusters
from tests.tensors import test_clusters as tensors
from tests.tensors import test_pairs as tensor_pairs


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ptxemu, "Device", partial(ptxemu.Device, engine="interpreter"))
    monkeypatch.setattr(ptxemu.default_device(), "engine", "interpreter")


def test_registers() -> None:
    clusters.test_registers((4, 6, 2), (2, 3, 1), 1)


@pytest.mark.parametrize("size", [1, 3])
def test_shared_memory_of_others(size: int) -> None:
    clusters.test_ring(size, 1)
    clusters.test_reduction_whose_other_blocks_exit(size)
    clusters.test_remote_mbarriers_and_stores(size, 1)
    clusters.test_stores_reductions_and_copies_to_another_block(size, 1)
    clusters.test_addresses(size)


def test_spinning_on_what_another_block_writes() -> None:
    clusters.test_spinning_on_what_another_block_writes(1)


@pytest.mark.parametrize(("size", "ranks"), [(1, 1), (4, 0b1010)])
def test_multicast(size: int, ranks: int) -> None:
    clusters.test_multicast(size, ranks)
    if size == 4:
        tensors.test_every_cta_of_the_set_gets_the_box(ranks)
        tensors.test_a_pair_of_ctas_has_one_mbarrier()


@pytest.mark.parametrize("address", clusters.WILD[::3])
def test_wild_addresses(address: int) -> None:
    clusters.test_wild_shared_addresses_fault(address)


@pytest.mark.parametrize("how", [1, 2])
@pytest.mark.parametrize("rank", [2, 2**32 - 1])
def test_ranks_that_do_not_exist(rank: int, how: int) -> None:
    clusters.test_ranks_that_do_not_exist_fault(rank, how)


@pytest.mark.parametrize("address", [0x7C, 0x0200_0000, 0x0300_007C])
def test_addresses_of_blocks_that_exist(address: int) -> None:
    clusters.test_addresses_of_blocks_that_exist(address)
    clusters.test_an_access_behind_the_memory_of_another_block_faults()


@pytest.mark.parametrize("address", [tensor_pairs.SAME, tensor_pairs.CONVERTED, tensor_pairs.MAPPED])
def test_addresses_that_name_their_block(address: str) -> None:
    tensor_pairs.test_both_ctas_of_a_pair_arrive_at_the_even_one(address)


@pytest.mark.parametrize("cluster", [1, 2])
def test_other_accesses_of_kernels_for_pairs(cluster: int) -> None:
    tensor_pairs.test_other_accesses_are_what_they_are_elsewhere(cluster)


def test_pairs_that_allocate_and_multiply() -> None:
    pairs.test_both_ctas_get_the_same_columns(4, pairs.LATE)
    pairs.test_columns_are_free_when_both_have_freed_them()
    pairs.test_two_warps_that_allocate_at_once()
    pairs.test_few_columns(128)


@pytest.mark.parametrize("odd", [False, True])
def test_a_block_that_waits_for_its_pair(odd: bool) -> None:
    body = pairs.ONLY_ODD if odd else pairs.ONLY_ODD.replace("eq", "ne")
    with pytest.raises(ptxemu.Fault) as caught:
        pairs.launch(body + pairs.alloc("32"))
    text = str(caught.value)
    assert "the other CTA of the pair does not come" in text
    assert re.search(rf"block \({int(odd)},0,0\) warp +0 lanes 0xffffffff waits for the other block of its pair", text)


def test_a_deadlock_says_where_the_blocks_stand() -> None:
    clusters.test_deadlock_says_where_the_blocks_stand()


def test_grids_of_clusters() -> None:
    clusters.test_required_clusters()
    clusters.test_grids_of_clusters()


@pytest.mark.parametrize("seed", range(2))
def test_the_order_of_turns_does_not_matter(seed: int) -> None:
    """Warps of all blocks of a cluster are shuffled."""
    watcher = Observer()
    watcher.schedule = Schedule(budget=9, seed=seed)
    with observing(watcher):
        clusters.test_stores_reductions_and_copies_to_another_block(2, 1)
        clusters.test_remote_mbarriers_and_stores(2, 1)
