"""Lanes that load and store shared memory at places far apart, where lanes, half a warp or all of it are off."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support.kernel_tools import kernel

LANES, WORDS, STRIDE = 32, 1024, 17
MASKS = (0xFFFFFFFF, 0x0000FFFF, 0xFFFF0000, 0x00000001, 0x80000000, 0x00018000, 0x5A5A0000, 0)
TEXT = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 places, .param .u64 out, .param .u32 mask)
{{
  .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %d<6>; .reg .b{bits} %v<3>;
  .shared .align 16 .b8 s[{room}];
  ld.param.u64 %d0, [places]; ld.param.u64 %d1, [out]; ld.param.u32 %r0, [mask];
  mov.u32 %r1, %tid.x; mov.u32 %r2, s; mov.u32 %r6, %r1;
FILL:
  mad.lo.u32 %r3, %r6, {bytes}, %r2; cvt.u{bits}.u32 %v0, %r6; st.shared.b{bits} [%r3], %v0;
  add.u32 %r6, %r6, {lanes}; setp.lt.u32 %p, %r6, {words}; @%p bra FILL;
  bar.sync 0;
  mul.wide.u32 %d2, %r1, 4; add.u64 %d3, %d0, %d2;
  {place}
  mad.lo.u32 %r3, %r4, {bytes}, %r2;
  mov.b{bits} %v0, 7; mov.b{bits} %v1, 7;
  shr.u32 %r5, %r0, %r1; and.b32 %r5, %r5, 1; setp.eq.u32 %p, %r5, 0;
  @%p bra OFF;
  ld.shared.b{bits} %v0, [%r3]; ld.shared.b{bits} %v1, [%r3+{bytes}];
  add.u{bits} %v2, %v0, 1000; st.shared.b{bits} [%r3+{bytes}], %v2;
OFF:
  bar.sync 0;
  mul.wide.u32 %d2, %r1, {bytes}; add.u64 %d4, %d1, %d2;
  st.global.b{bits} [%d4], %v0; st.global.b{bits} [%d4+{row}], %v1;
  ld.shared.b{bits} %v2, [%r3+{bytes}]; st.global.b{bits} [%d4+{rows}], %v2;
  ret;
}}
"""
PLACES = {
    "loaded": "ld.global.u32 %r4, [%d3];",
    "of the lane": f"mul.lo.u32 %r4, %r1, {STRIDE};",
    "backwards": f"mul.lo.u32 %r4, %r1, {STRIDE}; neg.s32 %r4, %r4; add.u32 %r4, %r4, 600;",
}


def program(bits: int, way: str) -> str:
    size = bits // 8
    return TEXT.format(
        bits=bits,
        bytes=size,
        words=WORDS,
        lanes=LANES,
        room=WORDS * size,
        row=LANES * size,
        rows=2 * LANES * size,
        place=PLACES[way],
    )


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("way", PLACES)
def test_only_lanes_that_are_on_take_part(engine, bits, way):
    size, lanes = bits // 8, np.arange(LANES)
    loaded = np.random.default_rng(1).permutation(WORDS // 2 - 1)[:LANES] * 2
    places = {"loaded": loaded, "of the lane": lanes * STRIDE, "backwards": 600 - lanes * STRIDE}[way]
    text = program(bits, way)
    with ptxemu.Device(engine=engine) as device:
        kernel = ptxemu.loads(text, device=device)["k"]
        for mask in MASKS:
            out = np.zeros((3, LANES), f"u{size}")
            kernel[1, LANES](places.astype("u4"), out, mask)
            on = mask >> lanes & 1 == 1
            wanted = [np.where(on, places, 7), np.where(on, places + 1, 7), places + np.where(on, 1000, 1)]
            assert np.array_equal(out, wanted), hex(mask)


@pytest.mark.parametrize("way", PLACES)
@pytest.mark.parametrize(("bits", "instruction"), [(32, "vpgatherdd"), (64, "vpgatherdq")])
def test_avx2_gathers(bits, instruction, way):
    code = compile.emit(compile.front(program(bits, way)), "k", compile.Options(cpu="x86-64-v3"), "asm")
    assert instruction in str(code)


OUTSIDE = """
  ld.param.u64 %rd1, [out]; ld.param.u32 %r9, [first]; ld.param.u32 %r10, [last];
  mov.u32 %r1, %tid.x; mov.u32 %r2, s; {place}
  setp.lt.u32 %p1, %r1, %r9; setp.gt.u32 %p2, %r1, %r10; or.pred %p1, %p1, %p2; mov.u32 %r5, 0; @%p1 bra OFF;
  mad.lo.u32 %r3, %r1, 3, 1; st.shared.u32 [%r4], %r3; ld.shared.u32 %r5, [%r4];
OFF:
  mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r5;
"""
"""Lanes first to last store and load what lies 68 bytes apart in 1088 bytes: 16 places, the first of which is that of lane 8."""
DIAGONALS = {
    "forwards": "mad.lo.u32 %r4, %r1, 68, %r2; sub.u32 %r4, %r4, 544;",
    "backwards": "mul.lo.u32 %r4, %r1, 68; sub.u32 %r4, 1564, %r4; add.u32 %r4, %r4, %r2;",
}


def diagonal(way):
    body = OUTSIDE.format(place=DIAGONALS[way])
    return kernel(body, ".param .u64 out, .param .u32 first, .param .u32 last", ".shared .align 16 .b8 s[1088];")


@pytest.mark.parametrize("way", DIAGONALS)
def test_lanes_that_are_off_may_lie_outside(way):
    module, lanes = ptxemu.loads(diagonal(way)), np.arange(LANES)
    for first, last in [(8, 23), (8, 8), (23, 23), (15, 16), (31, 0)]:
        out = np.zeros(LANES, "u4")
        module["k"][1, LANES](out, first, last)
        assert np.array_equal(out, np.where((first <= lanes) & (lanes <= last), 3 * lanes + 1, 0))
    for first, last, thread in [(7, 23, 7), (8, 24, 24)]:
        with pytest.raises(ptxemu.Fault, match=rf"thread \({thread},0,0\)"):
            module["k"][1, LANES](np.zeros(LANES, "u4"), first, last)


@pytest.mark.parametrize("cpu", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("way", DIAGONALS)
def test_only_the_ends_of_a_diagonal_are_tested(way, cpu):
    """The lanes that are on are tested as two numbers."""
    code = str(compile.emit(compile.front(diagonal(way)), "k", compile.Options(cpu=cpu), "llvm"))
    assert "call range(i32 0, 33) i32 @llvm.cttz.i32" in code
    assert "llvm.fshr.v32" not in code


def columns(offsets, load="u32 %r3,"):
    """The code of loads at offsets from one place for each lane, 72 bytes apart."""
    loads = "".join(f"ld.shared.{load} [%r2+{offset}]; add.u32 %r4, %r4, %r3;" for offset in offsets)
    body = f"""ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r4, s; mad.lo.u32 %r2, %r1, 72, %r4; {loads}
  mul.wide.u32 %rd2, %r1, 4; add.u64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], %r4;"""
    module = compile.front(kernel(body, declarations=".shared .align 16 .b8 s[4096];"))
    return str(compile.emit(module, "k", compile.Options(cpu="x86-64-v3"), "llvm"))


def test_accesses_off_one_base_are_tested_once():
    assert columns([0, 4, 68]).count("icmp ult i64") == columns([8]).count("icmp ult i64")


def test_pairs_share_the_test_of_a_segment():
    """No lane is tested by itself."""
    assert "llvm.fshr.v32" not in columns(range(0, 56, 8), "v2.u32 {%r3, %r5},")
