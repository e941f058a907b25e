"""Where the address of an atomic operation may lie, by the state space that the instruction names."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from tests.support.kernel_tools import kernel

DECLARED = ".global .align 8 .b8 g[1024];\n.const .align 8 .b8 c[1024];\n"
START = {
    "global": "mov.u64 %rd1, g;",
    "shared": "cvta.shared.u64 %rd1, s;",
    "local": "cvta.local.u64 %rd1, l;",
    "const": "cvta.const.u64 %rd1, c;",
    "param": "mov.b64 %rd1, out; cvta.param.u64 %rd1, %rd1;",
    "none": "mov.u64 %rd1, 0;",
}
FAULTS = {
    "misaligned": "misaligned address",
    "illegal": "illegal address",
    "space": "invalid address space",
    "null": "null pointer",
}
CASES = [
    # space, where the address begins, offset, outcome
    ("global", "global", 8, ""),
    ("generic", "global", 8, ""),
    ("generic", "shared", 8, ""),
    ("shared", "none", 8, ""),
    ("shared", "none", 996, ""),
    ("shared", "none", 1000, "illegal"),
    ("shared", "none", 998, "misaligned"),
    ("generic", "shared", 1000, "illegal"),
    ("shared", "none", 2**32, "illegal"),
    ("global", "shared", 8, "space"),
    ("global", "local", 8, "space"),
    ("generic", "local", 8, "space"),
    ("generic", "const", 8, "space"),
    ("generic", "param", 0, "space"),
    ("generic", "local", 9, "space"),
    ("global", "global", 6, "misaligned"),
    ("generic", "global", 7, "misaligned"),
    ("generic", "shared", 6, "misaligned"),
    ("global", "none", 0, "null"),
    ("generic", "none", 8, "null"),
    ("global", "none", 2**63, "illegal"),
    ("global", "none", 2**64 - 4, "illegal"),
    ("generic", "none", 2, "misaligned"),
]


def text(space: str, start: str, offset: int, operation: str, value: str, first: int | None) -> str:
    """A kernel that changes a word, which is ``first`` before if that is a number, and tells what it is afterwards."""
    atomic = f"atom{'' if space == 'generic' else f'.{space}'}"
    where = f"{START[start]} add.u64 %rd1, %rd1, {offset - (1 << 64) if offset >= 1 << 63 else offset};"
    load = f"ld{'' if space == 'generic' else f'.{space}'}.u32"
    store = f"st{'' if space == 'generic' else f'.{space}'}.u32"
    prepared = "" if first is None else f"{store} [%rd1], {first};"
    body = f""".shared .align 8 .b8 s[1000]; .local .align 8 .b8 l[32]; {where} {prepared}
    {atomic}.{operation} %r1, [%rd1], {value}; {load} %r2, [%rd1]; ld.param.u64 %rd2, [out]; st.global.u32 [%rd2], %r2; ret;"""
    return kernel(body.replace("%r1", "%f1") if operation.endswith("f32") else body, declarations=DECLARED)


def run(program: str) -> int:
    out = np.zeros(1, np.uint32)
    ptxemu.loads(program)["k"][1, 1](out)
    return int(out[0])


@pytest.mark.parametrize(("space", "start", "offset", "outcome"), CASES)
def test_address(space: str, start: str, offset: int, outcome: str) -> None:
    program = text(space, start, offset, "add.u32", "1", None if outcome else 0)
    if not outcome:
        assert run(program) == 1
        return
    with pytest.raises(ptxemu.Fault, match=FAULTS[outcome]) as fault:
        run(program)
    assert fault.value.details.size == 4


@pytest.mark.parametrize(
    ("space", "start", "word"),
    [("global", "global", 0), ("generic", "global", 0), ("generic", "shared", 2), ("shared", "none", 2)],
)
def test_f32_sums_flush_in_global_memory_only(space: str, start: str, word: int) -> None:
    """Sums of the least subnormal and itself."""
    assert run(text(space, start, 0, "add.f32", "0f00000001", 1)) == word


SIGNALLING, QUIET, INFINITY = 0x7FF0000000000001, 0xFFF8000000000005, 0x7FF << 52
NAN_SUMS = [
    # in memory, operand, and what an H200 left in global and in shared memory
    (SIGNALLING, QUIET, QUIET, SIGNALLING | 1 << 51),
    (QUIET, SIGNALLING, SIGNALLING, QUIET),
    (0, SIGNALLING, SIGNALLING, SIGNALLING | 1 << 51),
    (SIGNALLING, 0, SIGNALLING, SIGNALLING | 1 << 51),
    (INFINITY, INFINITY | 1 << 63, 0xFFF8000000000000, 0xFFF8000000000000),
]


@pytest.mark.parametrize(("old", "new", "in_global", "in_shared"), NAN_SUMS)
def test_sums_of_f64_that_are_nan(old: int, new: int, in_global: int, in_shared: int) -> None:
    body = f""".shared .align 8 .b64 s; .reg .b64 %a, %b, %out; .reg .f64 %sum;
    ld.param.u64 %out, [out]; mov.b64 %a, {old:#x}; mov.b64 %b, {new:#x}; mov.b64 %sum, %b;
    st.b64 [%out], %a; st.shared.b64 [s], %a; atom.global.add.f64 %sum, [%out], %sum; mov.b64 %sum, %b;
    atom.shared.add.f64 %sum, [s], %sum; ld.shared.b64 %a, [s]; st.b64 [%out+8], %a; ret;"""
    out = np.zeros(2, np.uint64)
    ptxemu.loads(kernel(body))["k"][1, 1](out)
    assert [hex(x) for x in out] == [hex(in_global), hex(in_shared)]
