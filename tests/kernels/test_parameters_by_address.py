"""Parameters of device functions whose addresses are chosen at run time, as LLVM does for a ``select`` of two of them."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu

HEADER = ".version 8.3\n.target sm_80\n.address_size 64\n"
REGISTERS = ".reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %d<9>;"
THREADS = 40
CHOICE = "and.b32 %r1, %r0, 1; setp.ne.u32 %p0, %r1, 0; mov.b64 %d1, a; mov.b64 %d2, b; selp.b64 %d3, %d2, %d1, %p0;"
WORD, STRUCT = ".param .b32 {}", ".param .align 4 .b8 {}[200]"  # in registers, and in the frame of the callee


def choosing(kind: str, load: str, vain: str = "") -> str:
    """pick(n, a, b): a of even n, b of odd ones."""
    signature = f".func (.param .b32 r) pick (.param .b32 n, {kind.format('a')}, {kind.format('b')})"
    return f"""{signature};
{signature} {{ {REGISTERS}
  ld.param.b32 %r0, [n]; {vain} {CHOICE}
  {load} %r2, [%d3]; st.param.b32 [r], %r2; ret; }}"""


def recursing(kind: str) -> str:
    """What makes pick call itself, for no n that is given to it."""
    scope = f".param .b32 m, z; {kind.format('x')}; {kind.format('y')};"
    return (
        f"setp.eq.u32 %p1, %r0, 0xffffffff; @!%p1 bra GO; {{ {scope} st.param.b32 [m], 1; st.param.b32 [x], 2; "
        "st.param.b32 [y], 3; call (z), pick, (m, x, y); ld.param.b32 %r0, [z]; } GO:"
    )


def run(function: str, body: str, engine: str) -> list[int]:
    text = f"""{HEADER}{function}
.visible .entry k (.param .u64 out) {{ {REGISTERS}
  ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; mad.wide.u32 %d0, %r0, 4, %d0; add.u32 %r4, %r0, 1000;
  {body}
  st.global.u32 [%d0], %r3; ret; }}"""
    out = np.zeros(THREADS, np.uint32)
    with ptxemu.Device(engine=engine) as device:
        ptxemu.loads(text, filename="chosen.ptx", device=device)["k"][1, THREADS](out)
    return out.tolist()


def call(kind: str) -> str:
    scope = f".param .b32 n, r; {kind.format('a')}; {kind.format('b')};"
    stores = "st.param.b32 [n], %r0; st.param.b32 [a], 7; st.param.b32 [b], %r4;"
    return f"{{ {scope} {stores} call (r), pick, (n, a, b); ld.param.b32 %r3, [r]; }}"


@pytest.fixture(params=["jit", "interpreter"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("load", ["ld.param.b32", "ld.param::func.b32"])
@pytest.mark.parametrize("recursive", [False, True], ids=["copied", "called"])
@pytest.mark.parametrize("kind", [WORD, STRUCT], ids=["word", "struct"])
def test_parameters_are_read_where_a_register_says(kind: str, recursive: bool, load: str, engine: str) -> None:
    found = run(choosing(kind, load, recursing(kind) if recursive else ""), call(kind), engine)
    assert found == [1000 + lane if lane % 2 else 7 for lane in range(THREADS)]


def test_a_kernels_own_parameters_stay(engine: str) -> None:
    distance = "mov.b64 %d4, out; ld.param.u64 %d5, [%d4]; sub.u64 %d5, %d0, %d5; cvt.u32.u64 %r5, %d5;"
    found = run(choosing(WORD, "ld.param.b32"), f"{distance} {call(WORD)} add.u32 %r3, %r3, %r5;", engine)
    assert found == [(1000 + lane if lane % 2 else 7) + 4 * lane for lane in range(THREADS)]
