"""libcuda.so.1: handles that are none, of another kind, destroyed, or destroyed by another thread."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import pytest

from tests.support.driver_api import ADDRESS, POINTER, call, context, function, get, load, result
from tests.support.places import TESTS

DATA = TESTS / "cuda" / "data"
EMPTY = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry empty()\n{\n  ret;\n}\n"
ROUNDS, THREADS = 100, 3
MEMORY = ctypes.create_string_buffer(4096)
WILD = (0x123450, 0x7, ctypes.addressof(MEMORY) // 64 * 64 + 64, 2**64 - 16, 0xDEADBEEF00000000)


@pytest.fixture(autouse=True)
def own_context():
    with context() as made:
        yield made


def out() -> Any:
    return ctypes.byref(ADDRESS())


def launched(kernel: int, stream: int | None = None) -> str:
    return result("cuLaunchKernel", kernel, *(1,) * 6, 0, stream, None, None)


USES: dict[str, dict[str, Callable[[int], str]]] = {
    "module": {
        "cuModuleGetFunction": lambda handle: result("cuModuleGetFunction", out(), handle, b"empty"),
        "cuModuleGetGlobal": lambda handle: result("cuModuleGetGlobal_v2", out(), out(), handle, b"x"),
        "cuModuleGetTexRef": lambda handle: result("cuModuleGetTexRef", out(), handle, b"image"),
        "cuModuleUnload": lambda handle: result("cuModuleUnload", handle),
    },
    "kernel": {
        "cuLaunchKernel": launched,
        "cuFuncGetAttribute": lambda handle: result("cuFuncGetAttribute", out(), 0, handle),
        "cuFuncGetName": lambda handle: result("cuFuncGetName", out(), handle),
        "cuFuncGetModule": lambda handle: result("cuFuncGetModule", out(), handle),
        "cuFuncSetBlockShape": lambda handle: result("cuFuncSetBlockShape", handle, 1, 1, 1),
        "cuOccupancy": lambda handle: result("cuOccupancyMaxActiveBlocksPerMultiprocessor", out(), handle, 32, 0),
    },
    "link": {
        "cuLinkAddData": lambda handle: result("cuLinkAddData_v2", handle, 1, b"x", 1, None, 0, None, None),
        "cuLinkComplete": lambda handle: result("cuLinkComplete", handle, out(), out()),
        "cuLinkDestroy": lambda handle: result("cuLinkDestroy", handle),
    },
    "reference": {
        "cuTexRefSetFlags": lambda handle: result("cuTexRefSetFlags", handle, 1),
        "cuTexRefGetArray": lambda handle: result("cuTexRefGetArray", out(), handle),
        "cuSurfRefGetArray": lambda handle: result("cuSurfRefGetArray", out(), handle),
    },
    "stream": {
        "cuStreamQuery": lambda handle: result("cuStreamQuery", handle),
        "cuStreamGetCtx": lambda handle: result("cuStreamGetCtx", handle, out()),
        "cuMemsetD8Async": lambda handle: result("cuMemsetD8Async", 0, 0, 0, handle),
        "cuStreamDestroy": lambda handle: result("cuStreamDestroy_v2", handle),
    },
    "event": {
        "cuEventQuery": lambda handle: result("cuEventQuery", handle),
        "cuEventRecord": lambda handle: result("cuEventRecord", handle, None),
        "cuEventDestroy": lambda handle: result("cuEventDestroy_v2", handle),
    },
    "array": {
        "cuArrayGetDescriptor": lambda handle: result("cuArray3DGetDescriptor_v2", out(), handle),
        "cuMemcpyHtoA": lambda handle: result("cuMemcpyHtoA_v2", handle, 0, b"1234", 4),
        "cuArrayDestroy": lambda handle: result("cuArrayDestroy", handle),
    },
    "context": {
        "cuCtxPushCurrent": lambda handle: result("cuCtxPushCurrent_v2", handle),
        "cuCtxSetCurrent": lambda handle: result("cuCtxSetCurrent", handle),
        "cuCtxGetApiVersion": lambda handle: result("cuCtxGetApiVersion", handle, out()),
        "cuMemcpyPeer": lambda handle: result("cuMemcpyPeer", 0, handle, 0, handle, 0),
        "cuCtxDestroy": lambda handle: result("cuCtxDestroy_v2", handle),
    },
}  # fmt: skip


class Format(ctypes.Structure):
    _fields_ = [("width", ADDRESS), ("height", ADDRESS), ("format", ctypes.c_int), ("channels", ctypes.c_uint)]


def popped_context() -> int:
    made = get(POINTER, "cuCtxCreate_v2", 0, 0)
    get(POINTER, "cuCtxPopCurrent_v2")
    return made


def linker() -> int:
    state = POINTER()
    call("cuLinkCreate_v2", 0, None, None, ctypes.byref(state))
    return state.value or 0


MAKERS: dict[str, Callable[[], int]] = {
    "module": lambda: load(EMPTY),
    "kernel": lambda: function(load(EMPTY), "empty"),
    "link": linker,
    "reference": lambda: get(POINTER, "cuModuleGetTexRef", load(DATA / "references.ptx"), b"image"),
    "stream": lambda: get(POINTER, "cuStreamCreate", 0),
    "event": lambda: get(POINTER, "cuEventCreate", 0),
    "array": lambda: get(POINTER, "cuArrayCreate_v2", ctypes.byref(Format(8, 0, 3, 1))),
    "context": popped_context,
}


def wanted(kind: str) -> dict[str, str]:
    return dict.fromkeys(USES[kind], "INVALID_CONTEXT" if kind == "context" else "INVALID_HANDLE")


def answers(kind: str, handle: int) -> dict[str, str]:
    return {name: use(handle) for name, use in USES[kind].items()}


@pytest.mark.parametrize("kind", USES)
@pytest.mark.parametrize("handle", WILD, ids=["nothing", "small", "memory", "end", "no address"])
def test_wild_handles_are_errors(kind, handle):
    assert answers(kind, handle) == wanted(kind)


@pytest.mark.parametrize("kind", USES)
def test_handles_of_another_kind_are_errors(kind):
    for other in USES:
        if other != kind:
            assert answers(kind, MAKERS[other]()) == wanted(kind)


@pytest.mark.parametrize("kind", ["module", "link", "stream", "event", "array", "context"])
def test_destroyed_handles_are_errors(kind):
    handle = MAKERS[kind]()
    assert list(USES[kind].values())[-1](handle) == "SUCCESS"
    assert answers(kind, handle) == wanted(kind)


def test_what_is_in_a_module_goes_with_it():
    module = load(DATA / "references.ptx")
    kernel, reference = function(module, "reverse"), get(POINTER, "cuModuleGetTexRef", module, b"image")
    call("cuModuleUnload", module)
    assert answers("kernel", kernel) == wanted("kernel")
    assert answers("reference", reference) == wanted("reference")


def test_what_is_current_may_be_destroyed_elsewhere(own_context):
    other = get(POINTER, "cuCtxCreate_v2", 0, 0)
    thread = Thread(target=call, args=("cuCtxDestroy_v2", other))
    thread.start()
    thread.join()
    assert result("cuMemAlloc_v2", out(), 4) == "CONTEXT_IS_DESTROYED"
    assert get(POINTER, "cuCtxPopCurrent_v2") == other
    assert result("cuMemAlloc_v2", out(), 4) == "SUCCESS"


def race(kind: str, use: Callable[[int], str], current: int) -> set[str]:
    """What threads are told that use a handle while another one destroys it, again and again."""
    make, end = MAKERS[kind], list(USES[kind].values())[-1]
    handle, stopped, told = [make()], Event(), set()

    def use_all() -> None:
        call("cuCtxSetCurrent", current)
        while not stopped.is_set():
            told.add(use(handle[0]))

    threads = [Thread(target=use_all) for _ in range(THREADS)]
    for one in threads:
        one.start()
    for _ in range(ROUNDS):
        before, handle[0] = handle[0], make()
        assert end(before) == "SUCCESS"
    stopped.set()
    for one in threads:
        one.join()
    return told


@pytest.mark.parametrize("kind", ["module", "link", "stream", "array", "context"])
def test_a_thread_may_destroy_what_others_use(own_context, kind):
    name, use = list(USES[kind].items())[1]
    allowed = {"SUCCESS", "NOT_FOUND", "INVALID_VALUE", *wanted(kind).values()}
    assert race(kind, use, own_context) <= allowed, name


def test_a_module_may_be_unloaded_under_its_launches(own_context):
    modules = [load(EMPTY) for _ in range(ROUNDS)]
    kernels = [function(module, "empty") for module in modules]
    told = set()

    def launch_all() -> None:
        call("cuCtxSetCurrent", own_context)
        told.update(launched(kernel) for kernel in kernels)

    threads = [Thread(target=launch_all) for _ in range(THREADS)]
    for one in threads:
        one.start()
    for module in modules:
        call("cuModuleUnload", module)
    for one in threads:
        one.join()
    call("cuCtxSynchronize")
    assert told <= {"SUCCESS", "INVALID_HANDLE"}
