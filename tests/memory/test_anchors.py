"""The test that accesses off one register share (ptxemu/lower/memory/patterns.py): registers that hold places outside of memory
or between words, of which the accesses are in memory or on words all the same, and the other way round."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support.kernel_tools import GLOBAL_INDEX, kernel

THREADS, COUNT = 32, 256
FAR = 1 << 29
OFFSETS = [FAR, -FAR, FAR + 4, 2, -2, 1, 3, 0]


def text(offset: int, type: str = "u32") -> str:
    """Each thread reads what lies at a constant offset from its place, and behind that, and stores the sum before both."""
    size = int(type[1:]) // 8
    body = f"""ld.param.u64 %rd1, [place]; ld.param.u32 %r5, [count]; mul.wide.u32 %rd2, %r0, {size}; add.u64 %rd1, %rd1, %rd2;
    setp.ge.u32 %p1, %r0, %r5; @%p1 bra E;
    ld.global.{type} %r1, [%rd1+{offset}]; ld.global.{type} %r2, [%rd1+{offset + 64 * size}]; add.u32 %r1, %r1, %r2;
    st.global.{type} [%rd1+{offset - 64 * size}], %r1;
    E:"""
    return kernel(GLOBAL_INDEX + body, ".param .u64 place, .param .u32 count")


@pytest.mark.parametrize("count", [THREADS, 19])
@pytest.mark.parametrize("type", ["u32", "u8"])
@pytest.mark.parametrize("offset", OFFSETS)
def test_the_access_is_in_memory(offset: int, type: str, count: int) -> None:
    data = np.random.default_rng(1).integers(0, 100, COUNT).astype(type.replace("u", "uint"))
    expected = data.copy()
    expected[:count] = (data[64:][:count] + data[128:][:count]).astype(data.dtype)
    with ptxemu.Device(memory="16 MiB") as device:
        buffer = device.to_device(data)
        place = buffer.address + 64 * data.itemsize - offset
        ptxemu.loads(text(offset, type), device=device)["k"][1, THREADS](place, count)
        np.testing.assert_array_equal(buffer.copy_to_host(), expected)


@pytest.mark.parametrize(
    ("offset", "off", "kind"), [(FAR, 0, "illegal"), (-FAR, 0, "illegal"), (2, 0, "misaligned"), (0, 2, "misaligned")]
)
def test_the_register_is_in_memory_and_the_access_is_not(offset: int, off: int, kind: str) -> None:
    program = text(offset)
    line = next(number for number, line in enumerate(program.splitlines(), 1) if "ld.global" in line)
    with ptxemu.Device(memory="16 MiB") as device:
        buffer = device.to_device(np.zeros(COUNT, np.uint32))
        launcher = ptxemu.loads(program, device=device)["k"][1, THREADS]
        with pytest.raises(ptxemu.Fault, match=kind) as fault:
            launcher(buffer.address + 256 + off, THREADS)
    assert fault.value.details.location.line == line


def comparisons_of(program: str) -> int:
    module = compile.front(program)
    code = compile.lower(module, compile.find_entry(module, "k"), "row", compile.Options(cpu="x86-64-v4")).text
    return code.count("call i64 @llvm.fshr.i64")


def test_a_load_more_needs_the_test_alone_that_comes_where_lanes_are_off() -> None:
    """One between words needs another one before."""
    load = "ld.global.u32 %r1, [%rd1+0];"
    one, more, apart = (comparisons_of(text(0).replace(load, load + other)) for other in ("", load, load.replace("0]", "2]")))
    assert apart - one == 2 * (more - one) > 0
