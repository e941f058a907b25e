"""Graphs of the driver API: made node by node, captured, changed; results against what the nodes say."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from tests.cuda.test_driver import KERNELS, fails
from tests.support.driver_api import ADDRESS, POINTER, SIZE, call, context, function, get, launch, load, to_device, to_host

N = 64
HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
COPY = 1  # a type of nodes
TOPOLOGY_CHANGED, TYPE_CHANGED = 2, 3


class Kernel(ctypes.Structure):
    _fields_ = [
        *[("function", POINTER), ("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint)],
        *[("arguments", ctypes.POINTER(POINTER)), ("extra", POINTER), ("kernel", POINTER), ("context", POINTER)],
    ]


class Memset(ctypes.Structure):
    _fields_ = [
        *[("to", ADDRESS), ("pitch", SIZE), ("value", ctypes.c_uint), ("size", ctypes.c_uint)],
        *[("width", SIZE), ("height", SIZE)],
    ]


class Side(ctypes.Structure):
    _fields_ = [
        *[("x", SIZE), ("y", SIZE), ("z", SIZE), ("level", SIZE), ("type", ctypes.c_int), ("host", POINTER)],
        *[("device", ADDRESS), ("array", POINTER), ("context", POINTER), ("pitch", SIZE), ("height", SIZE)],
    ]


class Copy(ctypes.Structure):
    _fields_ = [("source", Side), ("target", Side), ("width", SIZE), ("height", SIZE), ("depth", SIZE)]


class Function(ctypes.Structure):
    _fields_ = [("function", HOST_FUNCTION), ("data", POINTER)]


class Update(ctypes.Structure):
    _fields_ = [("result", ctypes.c_int), ("node", POINTER), ("before", POINTER)]


def type_of(node: int) -> int:
    kind = ctypes.c_int()
    call("cuGraphNodeGetType", node, ctypes.byref(kind))
    return kind.value


@pytest.fixture(autouse=True)
def own_context():
    with context() as made:
        yield made


class Graph:
    """c = a + b, with a set and a copy before it and a call behind it."""

    def __init__(self) -> None:
        self.handle = get(POINTER, "cuGraphCreate", 0)
        self.called: list[int] = []
        self.kept: list[Any] = []
        self.source = np.arange(N, dtype="f4")
        self.a, self.b, self.c = (get(ADDRESS, "cuMemAlloc_v2", 4 * N) for _ in range(3))
        self.set = self.add("Memset", self.memset(0x3F800000), None)
        self.copy = self.add("Memcpy", self.upload(self.source), None)
        self.kernel = self.add("Kernel", self.addition(N), after=(self.set, self.copy))
        self.host = self.add("Host", self.call_back(5), after=(self.kernel,))

    def add(self, kind: str, params: Any, *more: Any, after: tuple[int, ...] = ()) -> int:
        before = (POINTER * max(1, len(after)))(*after)
        name = f"cuGraphAdd{kind}Node" + ("_v2" if kind == "Kernel" else "")
        return get(POINTER, name, self.handle, before, len(after), ctypes.byref(params), *more)

    def memset(self, value: int) -> Memset:
        return Memset(self.a, 0, value, 4, N, 1)

    def upload(self, data: np.ndarray) -> Copy:
        return Copy(Side(type=1, host=data.ctypes.data, pitch=4 * N), Side(type=2, device=self.b, pitch=4 * N), 4 * N, 1, 1)

    def addition(self, count: int) -> Kernel:
        values = [ADDRESS(self.a), ADDRESS(self.b), ADDRESS(self.c), ctypes.c_int(count)]
        places = (POINTER * 4)(*[ctypes.addressof(value) for value in values])
        self.kept += [values, places]
        add = function(load(KERNELS), "add")
        return Kernel(add, (1, 1, 1), (N, 1, 1), 0, places, None, None, None)

    def call_back(self, value: int) -> Function:
        self.kept.append(Function(HOST_FUNCTION(lambda _: self.called.append(value)), None))
        return self.kept[-1]

    def instantiate(self) -> int:
        return get(POINTER, "cuGraphInstantiateWithFlags", self.handle, 0)

    def run(self, executable: int) -> np.ndarray:
        call("cuMemsetD8_v2", self.c, 0, 4 * N)
        call("cuGraphLaunch", executable, None)
        call("cuCtxSynchronize")
        return to_host(self.c, N, "f4")


def test_nodes_do_what_they_say():
    graph = Graph()
    executable = graph.instantiate()
    for round_ in (1, 2):
        assert np.array_equal(graph.run(executable), graph.source + 1)
        assert graph.called == [5] * round_
    call("cuGraphExecDestroy", executable)
    call("cuGraphDestroy", graph.handle)


def test_what_is_instantiated_can_be_changed():
    graph = Graph()
    executable = graph.instantiate()
    other = graph.source[::-1].copy()
    call("cuGraphExecMemsetNodeSetParams", executable, graph.set, ctypes.byref(graph.memset(0x40000000)), None)
    call("cuGraphExecMemcpyNodeSetParams", executable, graph.copy, ctypes.byref(graph.upload(other)), None)
    call("cuGraphExecKernelNodeSetParams_v2", executable, graph.kernel, ctypes.byref(graph.addition(N // 2)))
    call("cuGraphExecHostNodeSetParams", executable, graph.host, ctypes.byref(graph.call_back(6)))
    wanted = np.where(np.arange(N) < N // 2, other + 2, 0)
    assert np.array_equal(graph.run(executable), wanted)
    assert graph.called == [6]
    call("cuGraphNodeSetEnabled", executable, graph.kernel, 0)
    assert not graph.run(executable).any()
    assert np.array_equal(graph.run(graph.instantiate()), graph.source + 1)


def test_graphs_can_be_changed_and_asked():
    graph = Graph()
    kernel, memset, copied = Kernel(), Memset(), Copy()
    call("cuGraphMemsetNodeSetParams", graph.set, ctypes.byref(graph.memset(0x40400000)))
    call("cuGraphMemsetNodeGetParams", graph.set, ctypes.byref(memset))
    assert (memset.to, memset.value, memset.size, memset.width, memset.height) == (graph.a, 0x40400000, 4, N, 1)
    call("cuGraphKernelNodeGetParams_v2", graph.kernel, ctypes.byref(kernel))
    assert list(kernel.block) == [N, 1, 1]
    assert ctypes.cast(kernel.arguments[3], ctypes.POINTER(ctypes.c_int))[0] == N
    call("cuGraphMemcpyNodeGetParams", graph.copy, ctypes.byref(copied))
    assert (copied.source.type, copied.source.host, copied.target.type) == (1, graph.source.ctypes.data, 2)
    assert (copied.target.device, copied.width) == (graph.b, 4 * N)
    executable = graph.instantiate()
    assert np.array_equal(graph.run(executable), graph.source + 3)
    before, count = (POINTER * 4)(), SIZE(4)
    call("cuGraphNodeGetDependencies", graph.kernel, before, ctypes.byref(count))
    assert list(before)[: count.value] == [graph.set, graph.copy]
    origins, ends, count = (POINTER * 5)(), (POINTER * 5)(), SIZE(5)
    call("cuGraphGetEdges", graph.handle, origins, ends, ctypes.byref(count))
    edges = {(graph.set, graph.kernel), (graph.copy, graph.kernel), (graph.kernel, graph.host)}
    assert count.value == 3
    assert set(zip(origins, ends)) == edges | {(None, None)}
    assert type_of(graph.copy) == COPY


def test_updates_take_the_same_graph_only():
    graph, other = Graph(), Graph()
    executable = graph.instantiate()
    result = Update()
    call("cuGraphExecUpdate_v2", executable, other.handle, ctypes.byref(result))
    graph.c = other.c
    assert np.array_equal(graph.run(executable), other.source + 1)
    assert other.called == [5]
    empty = get(POINTER, "cuGraphAddEmptyNode", other.handle, None, 0)
    with fails("GRAPH_EXEC_UPDATE_FAILURE"):
        call("cuGraphExecUpdate_v2", executable, other.handle, ctypes.byref(result))
    assert result.result == TOPOLOGY_CHANGED
    call("cuGraphDestroyNode", empty)
    call("cuGraphDestroyNode", other.host)
    get(POINTER, "cuGraphAddEmptyNode", other.handle, (POINTER * 1)(other.kernel), 1)
    with fails("GRAPH_EXEC_UPDATE_FAILURE"):
        call("cuGraphExecUpdate_v2", executable, other.handle, ctypes.byref(result))
    assert result.result == TYPE_CHANGED


def test_circles_are_found():
    graph = Graph()
    call("cuGraphAddDependencies", graph.handle, (POINTER * 1)(graph.host), (POINTER * 1)(graph.set), 1)
    with fails("INVALID_VALUE"):
        graph.instantiate()
    call("cuGraphRemoveDependencies", graph.handle, (POINTER * 1)(graph.host), (POINTER * 1)(graph.set), 1)
    graph.instantiate()


def test_random_graphs_keep_their_order():
    """Each node sets its word to a number that only nodes before it have made: the sums of words must come out as by hand."""
    random = np.random.default_rng(1)
    add = function(load(KERNELS), "add")
    one = to_device(np.ones(1, "f4"))
    for _ in range(10):
        count = int(random.integers(2, 30))
        graph, words, nodes, kept = get(POINTER, "cuGraphCreate", 0), to_device(np.zeros(count, "f4")), [], []
        wanted = np.zeros(count)
        for i in range(count):  # word i = word of an earlier node + 1, for which it waits
            source = int(random.integers(0, i)) if i and random.random() < 0.9 else None
            at = words + 4 * source if source is not None else one
            wanted[i] = wanted[source] + 1 if source is not None else 2
            values = [ADDRESS(at), ADDRESS(one), ADDRESS(words + 4 * i), ctypes.c_int(1)]
            places = (POINTER * 4)(*[ctypes.addressof(value) for value in values])
            kept += [values, places]
            params = Kernel(add, (1, 1, 1), (1, 1, 1), 0, places, None, None, None)
            before = (POINTER * 1)(nodes[source]) if source is not None else None
            nodes.append(get(POINTER, "cuGraphAddKernelNode_v2", graph, before, int(source is not None), ctypes.byref(params)))
        executable = get(POINTER, "cuGraphInstantiateWithFlags", graph, 0)
        call("cuGraphLaunch", executable, None)
        assert np.array_equal(to_host(words, count, "f4"), wanted)


def test_streams_are_captured():
    stream, values = get(POINTER, "cuStreamCreate", 1), to_device(np.arange(N, dtype="f4"))
    out = to_device(np.zeros(N, "f4"))
    call("cuStreamBeginCapture_v2", stream, 0)
    status, number, graph, nodes, count = ctypes.c_int(), ADDRESS(), POINTER(), ctypes.POINTER(POINTER)(), SIZE()
    call("cuMemcpyDtoDAsync_v2", out, values, 4 * N, stream)
    call(
        "cuStreamGetCaptureInfo_v2",
        *[stream, *map(ctypes.byref, (status, number, graph, nodes, count))],
    )
    assert status.value == 1
    assert count.value == 1
    assert type_of(nodes[0]) == COPY
    call("cuMemsetD32Async", out, 0x3F800000, 2, stream)
    with fails("STREAM_CAPTURE_UNSUPPORTED"):
        call("cuStreamSynchronize", stream)
    with fails("STREAM_CAPTURE_INVALIDATED"):
        call("cuStreamEndCapture", stream, ctypes.byref(POINTER()))
    call("cuStreamBeginCapture_v2", stream, 0)
    call("cuMemcpyDtoDAsync_v2", out, values, 4 * N, stream)
    call("cuMemsetD32Async", out, 0x3F800000, 2, stream)
    made = POINTER()
    call("cuStreamEndCapture", stream, ctypes.byref(made))
    assert not to_host(out, N, "f4").any()
    call("cuGraphLaunch", get(POINTER, "cuGraphInstantiateWithFlags", made.value, 0), stream)
    call("cuStreamSynchronize", stream)
    assert np.array_equal(to_host(out, N, "f4"), [1, 1, *range(2, N)])


def test_wrong_nodes_are_errors():
    graph, other = Graph(), Graph()
    kernel = graph.addition(N)
    with fails("INVALID_VALUE"):
        graph.add("Kernel", kernel, after=(other.set,))
    with fails("INVALID_VALUE"):
        call("cuGraphKernelNodeGetParams_v2", graph.set, ctypes.byref(kernel))
    kernel.block[0] = 2048
    with fails("INVALID_VALUE"):
        graph.add("Kernel", kernel)
    with fails("INVALID_VALUE"):
        graph.add("Memset", Memset(graph.a, 0, 0, 4, N + 1, 1), None)
    with fails("INVALID_VALUE"):
        call("cuGraphDestroy", None)
    launch(function(load(KERNELS), "empty"), (1, 1, 1), (1, 1, 1))


def test_captures_to_graphs_and_streams_that_leave():
    """A capture into the program's graph need not say where it goes; what has joined may be destroyed when it is waited for."""
    graph, values = get(POINTER, "cuGraphCreate", 0), to_device(np.zeros(N))
    origin, other = (get(POINTER, "cuStreamCreate", 1) for _ in range(2))
    begun, done = (get(POINTER, "cuEventCreate", 2) for _ in range(2))
    call("cuStreamBeginCaptureToGraph", origin, graph, None, None, 0, 0)
    call("cuEventRecord", begun, origin)
    call("cuStreamWaitEvent", other, begun, 0)
    call("cuMemsetD8Async", values, 7, 16, other)
    call("cuEventRecord", done, other)
    call("cuStreamWaitEvent", origin, done, 0)
    call("cuStreamDestroy_v2", other)
    with fails("STREAM_CAPTURE_UNSUPPORTED"):
        call("cuStreamDestroy_v2", origin)
    call("cuStreamEndCapture", origin, None)
    count = ctypes.c_size_t()
    call("cuGraphGetNodes", graph, None, ctypes.byref(count))
    assert count.value == 1
    call("cuStreamBeginCapture_v2", origin, 0)
    with fails("INVALID_VALUE"):
        call("cuStreamEndCapture", origin, None)
    call("cuStreamEndCapture", origin, ctypes.byref(POINTER()))
