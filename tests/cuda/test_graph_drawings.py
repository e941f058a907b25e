"""Graphs as DOT files: what is in them, read back as Graphviz does it, against what the graphs were made of."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import pytest

from tests.cuda.test_driver import fails
from tests.cuda.test_driver_graphs import Graph, N
from tests.support.driver_api import ADDRESS, POINTER, SIZE, call, context, get

VERBOSE, RUNTIME_TYPES, KERNEL, MEMCPY, MEMSET, HOST, EVENT = (1 << bit for bit in range(7))
ATTRIBUTES, HANDLES, MEM_ALLOC, MEM_FREE, EDGES = (1 << bit for bit in (9, 10, 11, 12, 14))
NODE = re.compile(r'^"(\w+)"\[shape="record" label="\{(.*)\}"\];$', re.MULTILINE)
EDGE = re.compile(r'^"(\w+)" -> "(\w+)"(?:\[label="(\d+)"\])?;$', re.MULTILINE)
FIELD = re.compile(r"\{([^{}|]*)\|((?:\\.|[^{}|\\])*)\}")


@pytest.fixture(autouse=True)
def own_context():
    with context():
        yield


def drawn(graph: int, path: Path, flags: int = 0) -> str:
    call("cuGraphDebugDotPrint", graph, str(path / "graph.dot").encode(), flags)
    return (path / "graph.dot").read_text()


def nodes_of(text: str) -> dict[str, str]:
    return dict(NODE.findall(text))


def fields_of(label: str) -> dict[str, str]:
    return {name: re.sub(r"\\(.)", r"\1", value) for name, value in FIELD.findall(label)}


def test_nodes_and_edges(tmp_path: Path) -> None:
    text = drawn(Graph().handle, tmp_path)
    labels = {"graph_0_node_0": "0|MEMSET", "graph_0_node_1": "1|MEMCPY", "graph_0_node_2": "2|KERNEL|add"}
    assert nodes_of(text) == labels | {"graph_0_node_3": "3|HOST"}
    ends = {(before[-1], behind[-1]) for before, behind, _ in EDGE.findall(text)}
    assert ends == {("0", "2"), ("1", "2"), ("2", "3")}
    assert text.startswith("digraph dot {\nsubgraph cluster_0 {\n")
    assert text.count("{") == text.count("}")


def test_flags_say_what_is_told(tmp_path: Path) -> None:
    graph = Graph()

    def told(flags: int) -> list[dict[str, str]]:
        return [fields_of(label) for label in nodes_of(drawn(graph.handle, tmp_path, flags)).values()]

    memset, copy, kernel, host = told(MEMSET | MEMCPY | KERNEL | HOST | RUNTIME_TYPES)
    assert kernel == {"gridDim": "(1,1,1)", "blockDim": f"({N},1,1)", "sharedMemBytes": "0"}
    assert memset == {
        "dst": hex(graph.a), "pitch": "0", "value": str(0x3F800000), "elementSize": "4", "width": str(N), "height": "1",
    }  # fmt: skip
    assert copy["extent"] == f"({4 * N},1,1)"
    assert copy["src"] == f"{graph.source.ctypes.data:#x}, pitch {4 * N}"
    assert set(host) == {"fn", "userData"}
    kernel = told(KERNEL)[2]
    assert [kernel[f"blockDim{axis}"] for axis in "XYZ"] == [str(N), "1", "1"]
    assert told(KERNEL)[:2] == [{}, {}]
    assert told(ATTRIBUTES)[2] == {"clusterDim": "(0,0,0)", "cooperative": "0", "priority": "0"}
    assert [one["node"] for one in told(HANDLES)] == [hex(node) for node in (graph.set, graph.copy, graph.kernel, graph.host)]
    assert [len(one) for one in told(VERBOSE)] == [7, 5, 8, 3]
    assert sorted(number for *_, number in EDGE.findall(drawn(graph.handle, tmp_path, EDGES))) == ["0", "1", "2"]


def test_memory_events_and_graphs_within(tmp_path: Path) -> None:
    outer, inner = (get(POINTER, "cuGraphCreate", 0) for _ in range(2))
    event = get(POINTER, "cuEventCreate", 0)
    get(POINTER, "cuGraphAddEventRecordNode", inner, None, 0, event)
    node = get(POINTER, "cuGraphAddChildGraphNode", outer, None, 0, inner)
    get(POINTER, "cuGraphAddEmptyNode", outer, (POINTER * 1)(node), 1)
    text = drawn(outer, tmp_path, EVENT)
    assert nodes_of(text) == {
        "graph_0_node_0": "0|GRAPH",
        "graph_1_node_0": f"0|EVENT_RECORD|{{event|{event:#x}}}",
        "graph_0_node_1": "1|EMPTY",
    }
    assert '"graph_0_node_0" -> "graph_1"[style="dashed"];' in text
    assert text.count("subgraph cluster_") == 2


def test_captured_memory(tmp_path: Path) -> None:
    stream, address = get(POINTER, "cuStreamCreate", 1), ADDRESS()
    call("cuStreamBeginCapture_v2", stream, 0)
    call("cuMemAllocAsync", ctypes.byref(address), SIZE(1000), stream)
    call("cuMemFreeAsync", address, stream)
    graph = POINTER()
    call("cuStreamEndCapture", stream, ctypes.byref(graph))
    assert graph.value
    alloc, free = map(fields_of, nodes_of(drawn(graph.value, tmp_path, MEM_ALLOC | MEM_FREE)).values())
    assert alloc == {"dptr": hex(address.value), "bytesize": "1000"}
    assert free == {"dptr": hex(address.value)}


def test_what_cannot_be_drawn(tmp_path: Path) -> None:
    graph, path = Graph().handle, str(tmp_path / "graph.dot").encode()
    for arguments in ((graph, None, 0), (None, path, 0), (graph, path, 1 << 16)):
        with fails("INVALID_VALUE"):
            call("cuGraphDebugDotPrint", *arguments)
    with fails("OPERATING_SYSTEM"):
        call("cuGraphDebugDotPrint", graph, str(tmp_path / "none" / "graph.dot").encode(), 0)
