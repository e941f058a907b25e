"""Attributes of kernel nodes in graphs: clusters and cooperative launches, made, captured, asked for, copied."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tests.cuda.test_cuda_clusters import DIMENSION, configuration
from tests.cuda.test_driver import fails
from tests.cuda.test_driver_graphs import Kernel, Memset
from tests.support.driver_api import POINTER, call, context, function, get, load, to_device, to_host
from tests.support.places import KERNELS

COOPERATIVE, PRIORITY, CONDITIONAL_RENDERING = 2, 8, 99
GRID, BLOCK = 6, 64
Value = ctypes.c_uint * 16


@pytest.fixture(autouse=True)
def own_context():
    with context():
        yield


class Ring:
    """A graph with a node that writes the ring of each cluster: a kernel that reads its neighbour's shared memory."""

    def __init__(self) -> None:
        self.kernel = function(load(KERNELS / "clusters.ptx"), "ring")
        self.out = to_device(np.zeros(GRID * BLOCK, np.uint32))
        self.graph = get(POINTER, "cuGraphCreate", 0)
        self.values = ctypes.c_uint64(self.out), ctypes.c_uint32(1)
        self.places = (POINTER * 2)(*map(ctypes.addressof, self.values))
        self.node = self.add()

    def params(self, grid: int = GRID) -> Kernel:
        return Kernel(self.kernel, (grid, 1, 1), (BLOCK, 1, 1), 0, self.places, None, None, None)

    def add(self) -> int:
        return get(POINTER, "cuGraphAddKernelNode_v2", self.graph, None, 0, ctypes.byref(self.params()))

    def set(self, *words: int, attribute: int = DIMENSION) -> None:
        call("cuGraphKernelNodeSetAttribute", self.node, attribute, Value(*words))

    def instantiate(self) -> int:
        return get(POINTER, "cuGraphInstantiateWithFlags", self.graph, 0)

    def run(self, executable: int) -> np.ndarray:
        call("cuGraphLaunch", executable, None)
        call("cuCtxSynchronize")
        return to_host(self.out, (GRID, BLOCK), np.uint32)


def of(node: int, attribute: int = DIMENSION) -> list[int]:
    value = Value()
    call("cuGraphKernelNodeGetAttribute", node, attribute, value)
    return list(value[:3])


def rings(size: int) -> np.ndarray:
    start = np.arange(GRID).reshape(-1, size)[..., None] * 1000 + np.arange(BLOCK)
    return np.roll(start, 1, axis=1).reshape(GRID, BLOCK)


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_nodes_launch_in_clusters(size: int) -> None:
    ring = Ring()
    ring.set(size, 1, 1)
    assert of(ring.node) == [size, 1, 1]
    np.testing.assert_array_equal(ring.run(ring.instantiate()), rings(size))


def test_other_parameters_leave_the_clusters() -> None:
    ring = Ring()
    ring.set(3, 1, 1)
    call("cuGraphKernelNodeSetParams_v2", ring.node, ctypes.byref(ring.params()))
    executable = ring.instantiate()
    np.testing.assert_array_equal(ring.run(executable), rings(3))
    ring.set(2, 1, 1)
    call("cuGraphExecKernelNodeSetParams_v2", executable, ring.node, ctypes.byref(ring.params()))
    np.testing.assert_array_equal(ring.run(executable), rings(3))
    for name, target in [("cuGraphKernelNodeSetParams_v2", ()), ("cuGraphExecKernelNodeSetParams_v2", (executable,))]:
        with fails("INVALID_CLUSTER_SIZE"):
            call(name, *target, ring.node, ctypes.byref(ring.params(GRID - 1)))


def test_captured_launches_keep_their_clusters() -> None:
    ring, stream = Ring(), get(POINTER, "cuStreamCreate", 1)
    config = configuration((GRID, 1, 1), BLOCK, (2, 1, 1))
    config.stream = stream
    call("cuStreamBeginCapture_v2", stream, 0)
    call("cuLaunchKernelEx", ctypes.byref(config), ring.kernel, ring.places, None)
    captured = POINTER()
    call("cuStreamEndCapture", stream, ctypes.byref(captured))
    ring.graph = captured.value
    nodes = (POINTER * 1)()
    call("cuGraphGetNodes", ring.graph, nodes, ctypes.byref(ctypes.c_size_t(1)))
    assert of(nodes[0]) == [2, 1, 1]
    np.testing.assert_array_equal(ring.run(ring.instantiate()), rings(2))


def test_attributes_are_copied_and_cloned() -> None:
    ring = Ring()
    ring.set(2, 1, 1)
    ring.set(2**32 - 3, attribute=PRIORITY)
    other = ring.add()
    assert (of(other), of(other, PRIORITY)) == ([0, 0, 0], [0, 0, 0])
    call("cuGraphKernelNodeCopyAttributes", other, ring.node)
    clone = get(POINTER, "cuGraphClone", ring.graph)
    copy = get(POINTER, "cuGraphNodeFindInClone", ring.node, clone)
    for node in (other, copy):
        assert (of(node), of(node, PRIORITY)[0]) == ([2, 1, 1], 2**32 - 3)


def test_cooperative_nodes() -> None:
    ring = Ring()
    ring.set(1, attribute=COOPERATIVE)
    assert of(ring.node, COOPERATIVE)[0] == 1
    np.testing.assert_array_equal(ring.run(ring.instantiate()), rings(1))


def test_wrong_attributes_are_errors() -> None:
    ring = Ring()
    memset = Memset(ring.out, 0, 0, 4, 4, 1)
    other = get(POINTER, "cuGraphAddMemsetNode", ring.graph, None, 0, ctypes.byref(memset), None)
    for size in (4, 0x80000000):
        with fails("INVALID_CLUSTER_SIZE"):
            ring.set(size, 1, 1)
    with fails("NOT_SUPPORTED"):
        ring.set(1, attribute=CONDITIONAL_RENDERING)
    with fails("NOT_SUPPORTED"):
        of(ring.node, CONDITIONAL_RENDERING)
    for arguments in ((other, DIMENSION, Value()), (ring.node, DIMENSION, None), (None, DIMENSION, Value())):
        for verb in ("Get", "Set"):
            with fails("INVALID_VALUE"):
                call(f"cuGraphKernelNode{verb}Attribute", *arguments)
    with fails("INVALID_VALUE"):
        call("cuGraphKernelNodeCopyAttributes", ring.node, other)
    assert of(ring.node) == [0, 0, 0]
