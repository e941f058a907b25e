"""Thread block clusters by CUDA's driver and runtime APIs: launch attributes, attributes of kernels, occupancy."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from ptxemu.process.cuda import library_path
from tests.support.driver_api import POINTER, call, context, function, get, load, name_of, result, to_device, to_host
from tests.support.places import KERNELS

DIMENSION, NON_PORTABLE, WIDTH = 4, 14, 11
PLAIN = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry plain() .maxclusterrank {} {{ ret; }}\n"


class Attribute(ctypes.Structure):
    """CUlaunchAttribute, of a cluster's dimensions."""

    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint * 16)]


class Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = [("shape", ctypes.c_uint * 7), ("stream", POINTER), ("attributes", POINTER), ("count", ctypes.c_uint)]


def configuration(grid: tuple[int, ...], block: int, cluster: tuple[int, ...] | None = None) -> Config:
    made = Config((ctypes.c_uint * 7)(*grid, block, 1, 1, 0), None, None, 0)
    if cluster:
        made.keeps = attribute = Attribute(DIMENSION, 0, (ctypes.c_uint * 16)(*cluster))
        made.attributes, made.count = ctypes.addressof(attribute), 1
    return made


@pytest.fixture(autouse=True)
def own_context():
    with context():
        yield


@pytest.fixture
def kernels() -> int:
    return load(KERNELS / "clusters.ptx")


def launch(kernel: object, config: Config, *arguments: object) -> str:
    places = (POINTER * len(arguments))(*(ctypes.addressof(argument) for argument in arguments))  # type: ignore[arg-type]
    return result("cuLaunchKernelEx", ctypes.byref(config), kernel, places, None)


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_launches_in_clusters(kernels: int, size: int) -> None:
    out = to_device(np.zeros((3, size, 64), np.uint32))
    arguments = ctypes.c_uint64(out), ctypes.c_uint32(5)
    assert launch(function(kernels, "ring"), configuration((3 * size, 1, 1), 64, (size, 1, 1)), *arguments) == "SUCCESS"
    start = np.arange(3 * size).reshape(3, size)[..., None] * 1000 + np.arange(64)
    np.testing.assert_array_equal(to_host(out, (3, size, 64), np.uint32), np.roll(start, 5, axis=1))


def test_more_blocks_than_all_devices_take(kernels: int) -> None:
    kernel = function(kernels, "ring")
    out = to_device(np.zeros((16, 64), np.uint32))
    config, arguments = configuration((16, 1, 1), 64, (16, 1, 1)), (ctypes.c_uint64(out), ctypes.c_uint32(1))
    assert launch(kernel, config, *arguments) == "INVALID_CLUSTER_SIZE"
    assert get(ctypes.c_int, "cuOccupancyMaxPotentialClusterSize", kernel, ctypes.byref(config)) == 8
    call("cuFuncSetAttribute", kernel, NON_PORTABLE, 1)
    assert get(ctypes.c_int, "cuFuncGetAttribute", NON_PORTABLE, kernel) == 1
    assert get(ctypes.c_int, "cuOccupancyMaxPotentialClusterSize", kernel, ctypes.byref(config)) == 16
    assert launch(kernel, config, *arguments) == "SUCCESS"
    assert to_host(out, (16, 64), np.uint32)[0, 0] == 15_000


@pytest.mark.parametrize(("grid", "cluster"), [((3, 1, 1), (2, 1, 1)), ((4, 3, 1), (2, 2, 1)), ((9, 1, 1), (9, 1, 1))])
def test_clusters_that_there_are_not(kernels: int, grid: tuple[int, ...], cluster: tuple[int, ...]) -> None:
    config = configuration(grid, 1, cluster)
    assert launch(function(kernels, "stuck"), config) == "INVALID_CLUSTER_SIZE"
    asked = result("cuOccupancyMaxActiveClusters", ctypes.byref(ctypes.c_int()), function(kernels, "stuck"), ctypes.byref(config))
    assert asked == "INVALID_CLUSTER_SIZE"


def test_clusters_that_kernels_require(kernels: int) -> None:
    kernel, out = function(kernels, "required"), to_device(np.zeros(3, np.uint32))
    assert [get(ctypes.c_int, "cuFuncGetAttribute", WIDTH + axis, kernel) for axis in range(-1, 3)] == [1, 2, 1, 2]
    assert launch(kernel, configuration((4, 1, 2), 1), ctypes.c_uint64(out)) == "SUCCESS"
    assert list(to_host(out, (3,), np.uint32)) == [4, 1, 2]
    assert launch(kernel, configuration((4, 1, 2), 1, (4, 1, 1)), ctypes.c_uint64(out)) == "INVALID_CLUSTER_SIZE"


def test_occupancy() -> None:
    kernel = function(load(PLAIN.format(4)), "plain")
    config = configuration((4, 1, 1), 32, (2, 1, 1))
    assert get(ctypes.c_int, "cuOccupancyMaxPotentialClusterSize", kernel, ctypes.byref(config)) == 4
    assert get(ctypes.c_int, "cuOccupancyMaxActiveClusters", kernel, ctypes.byref(config)) >= 1
    large = configuration((4, 1, 1), 32, (2, 1, 1))
    large.shape[3:6] = [2**31, 2, 1]
    assert get(ctypes.c_int, "cuOccupancyMaxActiveClusters", kernel, ctypes.byref(large)) == 0


def test_the_runtime_has_the_same() -> None:
    runtime = ctypes.CDLL(str(library_path() / "libcudart.so.12"))
    names = ("cudaOccupancyMaxPotentialClusterSize", "cudaOccupancyMaxActiveClusters", "cudaLaunchKernelExC")
    for name in names:
        assert getattr(runtime, name)(None, None, None) == 1
    assert name_of(912) == "INVALID_CLUSTER_SIZE"
