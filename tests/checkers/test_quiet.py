"""Memory that a launch only reads: the checker `race` keeps nothing of it, but misses no way by which a kernel writes."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import ptxemu
from ptxemu.analysis.written import Way, ways
from ptxemu.driver import compile
from ptxemu.driver.pipeline import prepare
from tests.checkers.planted import checked_device, found, program

device = checked_device("race", workers=1)

READ = "mul.wide.u32 %rd7, %r2, 4; add.u64 %rd6, %rd3, %rd7; ld.global.u32 %r4, [%rd6+4]"  # of y, what the next block writes
WRITE = "add.u64 %rd5, %rd5, %rd7; setp.eq.u32 %p1, %r1, 0; @%p1 st.global.u32 [%rd5], %r1"
WAYS = {
    "itself": "mov.b64 %rd5, %rd3",
    "generic": "cvta.to.global.u64 %rd5, %rd3",
    "in memory": "ld.global.u64 %rd5, [%rd1]",
    "selected": "setp.lt.u32 %p2, %r1, 64; selp.b64 %rd5, %rd3, %rd1, %p2",
    "halves": "mov.b64 {%r5, %r6}, %rd3; mov.b64 %rd5, {%r5, %r6}",
    "shifted": "shl.b64 %rd5, %rd3, 1; shr.u64 %rd5, %rd5, 1",
    "difference": "sub.u64 %rd8, %rd3, %rd1; add.u64 %rd5, %rd1, %rd8",
    "product": "mov.u64 %rd8, 1; mad.lo.u64 %rd5, %rd3, %rd8, 0",
}


@pytest.mark.parametrize("way", WAYS)
def test_what_is_written_by_any_way_is_watched(device: ptxemu.Device, way: str) -> None:
    x, y = device.empty(64, np.uint64, "x"), device.empty(64, np.uint32, "y")
    x.array[0] = y.address
    (finding,) = found(device, program(f"{READ}; {WAYS[way]}; {WRITE}"), x, y, grid=4, block=32)
    assert "`y`" in finding.message and "read" in finding.message


def test_one_array_by_two_pointers(device: ptxemu.Device) -> None:
    both = device.empty(64, np.uint32, "both")
    (finding,) = found(device, program(f"{READ}; mov.b64 %rd5, %rd1; {WRITE}"), both, both, grid=4, block=32)
    assert "`both`" in finding.message


def params(text: str) -> list[Way] | None:
    module = compile.front(text)
    entry = module.entries[0]
    graph = prepare(module, entry, "any", observed="stamps").graphs[0]
    return ways(graph, {param.variable: param.offset for param in entry.params})


def test_by_what_a_kernel_may_write() -> None:
    index = "ld.global.u32 %r5, [%rd1]; mul.wide.u32 %rd7, %r5, 4; ld.global.u64 %rd9, [%rd1]; shl.b64 %rd9, %rd9, 3"
    assert params(program("ld.global.u32 %r4, [%rd1]")) == []
    element = f"{index}; add.u64 %rd5, %rd3, %rd7; add.u64 %rd5, %rd5, %rd9"
    assert params(program(f"{element}; st.global.u32 [%rd5], 1")) == [Way(False, (8,))]
    assert params(program("sub.u64 %rd5, %rd1, %rd3; red.global.add.u32 [%rd5], 1")) == [Way(False, (0, 8))]
    assert params(program("sust.b.1d.b32.trap [%rd3, {%r1}], %r1")) == [Way(True, (8,))]
    assert params(program("ld.global.u64 %rd5, [%rd1]; st.global.u32 [%rd5], 1")) is None
    assert params(program("st.shared.u32 [s], 1; st.global.u32 [g], 1", ".shared .u32 s; .global .u32 g;")) is None


def test_nothing_is_kept_of_what_is_only_read() -> None:
    """Stamps of the words of `x` would need twice the memory of the device."""
    with ptxemu.Device(memory="1 MiB", check="race") as small:
        x, y = small.empty(1 << 17, np.uint32, "x"), small.empty(1 << 9, np.uint32, "y")
        read = "mad.lo.u32 %r3, %r2, 1024, %r1; mul.wide.u32 %rd4, %r3, 4; add.u64 %rd4, %rd1, %rd4; ld.global.u32 %r4, [%rd4]"
        assert found(small, program(read), x, y, grid=128, block=1024) == []
        assert small.checks is not None and small.checks.summary == "checked race in 1 launch: nothing found"


WAIT = "{label}: ld.volatile.global.u32 %r5, [%rd1+{word}]; setp.eq.u32 %p1, %r5, 0; @%p1 bra {label}"


def test_launches_side_by_side(device: ptxemu.Device) -> None:
    """Memory that one reads is written by another, which begins later."""
    x, y = device.empty(64, np.uint32, "x"), device.empty(64, np.uint32, "y")
    read = "ld.global.u32 %r4, [%rd3]"
    reads = f"{read}; st.volatile.global.u32 [%rd1], 1; {WAIT.format(label='W', word=4)}; {read}"
    writes = f"{WAIT.format(label='W', word=0)}; st.global.u32 [%rd3], 1; st.volatile.global.u32 [%rd1+4], 1"
    one, other = (ptxemu.loads(program(body).replace("W: ", "W:\n"), device=device, opt=0)["k"] for body in (reads, writes))
    assert device.checks is not None
    device.checks.clear()
    reader = threading.Thread(target=one[1, 1], args=(x, y))
    reader.start()
    other[1, 1](x, y)
    reader.join()
    assert any("`y`[0x0]" in finding.message for finding in device.checks.findings)
