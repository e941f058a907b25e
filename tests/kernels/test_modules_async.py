"""Asynchronous copies, barriers and pipelines as libcu++ compiles them, compared with NumPy.

The sources lie beside the PTX in ``data/modules``; ``mb`` and ``ldm`` are modules of the corpus.
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from tests.support.places import CORPUS, MODULES


@pytest.fixture(scope="module", params=["async_80", "async_90"])
def module(request: pytest.FixtureRequest) -> ptxemu.Module:
    return ptxemu.load(MODULES / f"{request.param}.ptx")


@pytest.fixture(scope="module")
def bulk() -> ptxemu.Module:
    return ptxemu.load(MODULES / "bulk_90.ptx")


def numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-999, 999, shape).astype(np.int32)


@pytest.mark.parametrize("threads", [32, 100, 256])
def test_barrier_tracks_a_copy(module: ptxemu.Module, threads: int) -> None:
    data, out = numbers(1, 7, threads), np.zeros((7, threads), np.int32)
    module["reverse"][7, threads](data, out)
    np.testing.assert_array_equal(out, data[:, ::-1])


def test_four_stages(module: ptxemu.Module) -> None:
    data, out = numbers(2, 3, 9, 64, 4), np.zeros(3, np.int32)
    module["staged"][3, 64](data, out, 9)
    np.testing.assert_array_equal(out, (data * [1, 2, 3, 4]).sum((1, 2, 3)))


@pytest.mark.parametrize("batches", [1, 2, 7])
def test_producers_and_consumers(module: ptxemu.Module, batches: int) -> None:
    data, out = numbers(3, batches, 64), np.zeros(64, np.int32)
    module["shared_pipeline"][1, 128](data, out, batches)
    expected = np.zeros(64, np.int32)
    for batch in data:
        expected = expected * 3 + batch[::-1]
    np.testing.assert_array_equal(out, expected)


def test_threads_drop_out(module: ptxemu.Module) -> None:
    out, calls = np.zeros(128, np.int32), np.zeros(1, np.int32)
    module["phases"][1, 128](out, calls)
    np.testing.assert_array_equal(out, np.repeat([0, 96, 96064, 96064032], 32))
    assert calls[0] == 4


def test_bulk_copies(bulk: ptxemu.Module) -> None:
    data, out = numbers(4, 1024), np.zeros(1024, np.int32)
    bulk["doubled"][4, 64](data, out)
    np.testing.assert_array_equal(out, 2 * data)


def test_bulk_reduction(bulk: ptxemu.Module) -> None:
    data, out = numbers(5, 64, 64), np.zeros(64, np.int32)
    bulk["reduced"][64, 64](data, out)
    np.testing.assert_array_equal(out, data.sum(0))


def test_cluster_of_one(bulk: ptxemu.Module) -> None:
    out = np.zeros((3, 64), np.int32)
    bulk["clustered"][3, 64](out)
    np.testing.assert_array_equal(out, np.tile(np.arange(64) * 5 + 1 + 1000 + 10000, (3, 1)))


def test_corpus_barrier_of_one_warp() -> None:
    """With more warps its threads overwrite the flag that thread 0 waits for."""
    out, flag = np.zeros(64, np.int32), np.zeros(1, np.int32)
    ptxemu.load(CORPUS / "mbarrier_cuda_atomic.ptx")["mb"][1, 32](out, flag)
    lanes = np.arange(32)
    np.testing.assert_array_equal(out, np.concatenate([lanes, lanes ^ 1]))
    assert flag[0] == 5


def test_corpus_copy_and_matrix_load() -> None:
    """Lane l of ldmatrix.x4 has word l % 4 of row l // 4 of each of the four 8 x 8 matrices."""
    data, out = np.arange(128, dtype=np.uint32) * 2654435761, np.zeros((32, 4), np.uint32)
    ptxemu.load(CORPUS / "mma_asm.ptx")["ldm"][1, 32](data, out)
    rows = data.reshape(4, 8, 4)
    np.testing.assert_array_equal(out, rows.transpose(1, 2, 0).reshape(32, 4))


CLUSTER = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry one(.param .u64 d) {directives}
{{
  .reg .b64 %d; .reg .b32 %r; .reg .pred %p;
  ld.param.u64 %d, [d]; mov.pred %p, %is_explicit_cluster; selp.u32 %r, 1, 0, %p; st.global.u32 [%d], %r; ret;
}}
"""


@pytest.mark.parametrize(("directives", "explicit"), [("", 0), (".reqnctapercluster 1, 1, 1", 1), (".explicitcluster", 1)])
def test_explicit_cluster(directives: str, explicit: int) -> None:
    out = np.zeros(1, np.uint32)
    ptxemu.loads(CLUSTER.format(directives=directives))["one"][1, 1](out)
    assert out[0] == explicit
