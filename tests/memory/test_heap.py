"""malloc and free in kernels: a heap model checks addresses; misuse is a fault."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import ptxemu
from tests.support.kernel_tools import kernel, run

DECLARATIONS = """
.extern .func (.param .b64 r) malloc (.param .b64 s);
.extern .func free (.param .b64 p);
"""


def call_malloc(size: str, result: str) -> str:
    return f"{{ .param .b64 s; .param .b64 q; st.param.b64 [s], {size}; call.uni (q), malloc, (s); ld.param.b64 {result}, [q]; }}"


def call_free(pointer: str) -> str:
    return f"{{ .param .b64 s; st.param.b64 [s], {pointer}; call.uni free, (s); }}"


INDEX = """
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.s32 %r0, %r2, %r3, %r1;
  mul.wide.u32 %rd10, %r0, 8; ld.param.u64 %rd1, [sizes]; add.u64 %rd1, %rd1, %rd10;
  ld.param.u64 %rd2, [out]; add.u64 %rd2, %rd2, %rd10;
"""
ALLOCATE = kernel(
    f"""{INDEX} ld.global.u64 %rd3, [%rd1];
  {call_malloc("%rd3", "%rd4")}
  st.global.u64 [%rd2], %rd4;
  setp.eq.u64 %p1, %rd4, 0; setp.lt.u64 %p2, %rd3, 4; or.pred %p1, %p1, %p2; @%p1 bra DONE;
  st.u32 [%rd4], %r0; add.u64 %rd5, %rd4, %rd3; add.u64 %rd5, %rd5, -1; cvt.u16.u32 %h1, %r0; st.u8 [%rd5], %h1;
DONE: ret;""",
    ".param .u64 sizes, .param .u64 out",
    DECLARATIONS,
)
PARAMETERS = ".param .u64 sizes, .param .u64 out"
RELEASE = kernel(f"{INDEX} ld.global.u64 %rd3, [%rd1]; {call_free('%rd3')} ret;", PARAMETERS, DECLARATIONS)
KERNELS = {"allocate": ALLOCATE, "release": RELEASE}


class Heap:
    """The two kernels on a device with a small heap."""

    def __init__(self, size: int) -> None:
        self.device = ptxemu.Device(memory="64 MiB", workers=2, heap=size)
        self.modules = {name: ptxemu.loads(text, filename="heap.ptx", device=self.device) for name, text in KERNELS.items()}

    def call(self, name: str, values: list[int]) -> list[int]:
        out = np.zeros(len(values), np.uint64)
        self.modules[name]["k"][1, len(values)](np.array(values, np.uint64), out)
        return [int(value) for value in out]


def disjoint(blocks: list[tuple[int, int]]) -> bool:
    blocks = sorted(blocks)
    return all(start + size <= after for (start, size), (after, _) in pairwise(blocks))


def test_blocks_are_aligned_and_disjoint_and_come_back() -> None:
    heap = Heap(1 << 16)
    random = np.random.default_rng(1)
    live: dict[int, int] = {}
    for _ in range(30):
        sizes = [int(size) for size in random.integers(1, 700, 40)]
        for address, size in zip(heap.call("allocate", sizes), sizes):
            if address:
                live[address] = size
        assert all(address % 16 == 0 for address in live)
        assert disjoint(list(live.items()))
        gone = [address for address in live if random.random() < 0.5]
        heap.call("release", [*gone, 0])
        for address in gone:
            del live[address]
    heap.call("release", [*live, 0])
    whole = heap.call("allocate", [1 << 16])
    assert whole[0] != 0, "freed memory must be whole again"


def test_exhausted_heap_gives_null() -> None:
    heap = Heap(1 << 12)
    found = heap.call("allocate", [1 << 10] * 6)
    assert sorted(address != 0 for address in found) == [False] * 2 + [True] * 4
    assert heap.call("allocate", [0, 16, 2**63, 2**64 - 1]) == [0] * 4


def test_no_heap() -> None:
    assert Heap(0).call("allocate", [16]) == [0]


def test_lanes_of_many_blocks_allocate_at_once() -> None:
    device = ptxemu.Device(memory="64 MiB", workers=4)
    out = np.zeros(2048, np.uint64)
    ptxemu.loads(ALLOCATE, device=device)["k"][16, 128](np.full(2048, 24, np.uint64), out)
    assert disjoint([(int(address), 24) for address in out]) and out.all()


@pytest.mark.parametrize("twice", [True, False])
def test_misuse_is_a_fault(twice: bool) -> None:
    heap = Heap(1 << 12)
    (address,) = heap.call("allocate", [64])
    if twice:
        heap.call("release", [address])
    with pytest.raises(ptxemu.Fault, match=r"invalid free in kernel `k` at heap.ptx:.*was not allocated by malloc or is free"):
        heap.call("release", [0, address if twice else address + 16])
    assert heap.call("allocate", [64]) != [0], "the heap survives"


def test_freed_memory_lies_in_the_heap_only() -> None:
    """Neither a buffer nor null plus an offset can be freed."""
    heap = Heap(1 << 12)
    buffer = heap.device.to_device(np.zeros(4, np.uint32))
    with pytest.raises(ptxemu.Fault, match="invalid free"):
        heap.call("release", [buffer.address])
    with pytest.raises(ptxemu.Fault, match="invalid free"):
        heap.call("release", [16])


def test_heap_size_is_fixed_by_use() -> None:
    heap = Heap(1 << 12)
    heap.call("allocate", [16])
    with pytest.raises(ptxemu.InputError, match="in use already"):
        heap.device.arena.set_heap(1 << 20)
    with pytest.raises(ptxemu.InputError, match="larger"):
        ptxemu.Device(heap="1 TiB")


@pytest.mark.parametrize(
    ("declaration", "body"),
    [
        (".extern .func malloc (.param .b64 s);", "{ .param .b64 s; st.param.b64 [s], 1; call.uni malloc, (s); }"),
        (".extern .func free (.param .b32 s);", "{ .param .b32 s; st.param.b32 [s], 1; call.uni free, (s); }"),
        (".extern .func (.param .b32 r) cudaLaunchDeviceV2 (.param .b64 a, .param .b64 b);",
         "{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], 0; st.param.b64 [b], 0;"
         " call.uni (r), cudaLaunchDeviceV2, (a, b); }"),
        (".extern .func (.param .b64 r) cudaGetParameterBufferV2 (.param .b64 a);",
         "{ .param .b64 a; .param .b64 r; st.param.b64 [a], 0; call.uni (r), cudaGetParameterBufferV2, (a); }"),
    ],
)  # fmt: skip
def test_other_functions_are_not_supported(declaration: str, body: str) -> None:
    with pytest.raises(ptxemu.UnsupportedError, match="call of external function"):
        run(kernel(f"{body} ret;", "", declaration), 1, 1)
