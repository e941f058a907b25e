"""``.ftz`` in kernels for which the processor itself reads subnormals as zeros, and in those for which it must not."""

from __future__ import annotations

import numpy as np
import pytest

import ptxemu
from ptxemu.driver import compile
from tests.support.elementwise_oracle import F32, arithmetic

THREADS = 64
TINY = np.array(
    [0x00000001, 0x007FFFFF, 0x00800000, 0x00800001, 0x00FFFFFF, 0x01000000, 0x3F800000, 0x34000000, 0x3F000000, 0x3F7FFFFF,
     0x00000000, 0x7F800000, 0x7FC00001, 0x7F7FFFFF, 0x33FFFFFF, 0x1F800000],
    np.uint32,
)  # fmt: skip
VALUES = np.concatenate([TINY, TINY | 0x80000000])
FLUSHING = """
    mul.ftz.f32 %f3, %f1, %f2;
    add.ftz.f32 %f4, %f3, %f1;
    fma.rn.ftz.f32 %f5, %f4, %f2, %f3;
    st.global.f32 [%d1], %f3; st.global.f32 [%d1+4], %f4; st.global.f32 [%d1+8], %f5;
"""


def text_of(body: str, more: str = "") -> str:
    """A kernel whose threads read f1 and f2 and have 12 bytes at d1 to write."""
    return f"""
.version 8.0
.target sm_80
.address_size 64
{more}
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c) {{
    .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %d<9>; .reg .f64 %g<3>; .reg .b16 %h<3>; .reg .pred %p<3>;
    ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b]; ld.param.u64 %d3, [c];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %ctaid.x; mad.lo.u32 %r1, %r3, %r2, %r1;
    mul.wide.u32 %d4, %r1, 4; add.u64 %d1, %d1, %d4; add.u64 %d2, %d2, %d4;
    ld.global.f32 %f1, [%d1]; ld.global.f32 %f2, [%d2];
    mul.wide.u32 %d4, %r1, 12; add.u64 %d1, %d3, %d4;
    {body}
    ret;
}}
"""


def uses_the_mode(body: str, more: str = "") -> bool:
    return compile.kernel(compile.front(text_of(body, more)), "k", compile.Options()).facts.daz


def canonical(x: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(x), np.uint32(0x7FFFFFFF), x.view(np.uint32))


def pairs() -> tuple[np.ndarray, np.ndarray]:
    a, b = (grid.ravel().view(np.float32) for grid in np.meshgrid(VALUES, VALUES))
    return np.ascontiguousarray(a), np.ascontiguousarray(b)


def run(body: str, a: np.ndarray, b: np.ndarray, more: str = "", engine: str = "jit") -> np.ndarray:
    found = np.zeros((len(a), 3), np.uint32)
    with ptxemu.Device("64 MiB", engine=engine) as device:
        kernel = ptxemu.loads(text_of(body, more), device=device, tier="best")["k"]
        kernel[len(a) // THREADS, THREADS](a, b, found)
    return found


@pytest.mark.skipif(not compile.jit.target_of(None).daz, reason="a mode of x86")
def test_arithmetic_that_all_flushes_uses_the_mode() -> None:
    assert uses_the_mode(FLUSHING)
    assert uses_the_mode(f"{FLUSHING} setp.lt.ftz.f32 %p1, %f1, %f2; selp.f32 %f6, %f1, %f2, %p1; mov.f32 %f7, %f6;")
    assert uses_the_mode(f"{FLUSHING} cvt.rn.f32.s32 %f6, %r1; cvt.rzi.ftz.s32.f32 %r4, %f6; rsqrt.approx.ftz.f32 %f6, %f6;")
    assert uses_the_mode(f"{FLUSHING} bar.sync 0; atom.global.add.u32 %r5, [%d1], 1; shfl.sync.idx.b32 %r5, %r1, 0, 31, -1;")


@pytest.mark.parametrize(
    "other",
    [
        "add.f32 %f6, %f1, %f2;",
        "setp.lt.f32 %p1, %f1, %f2;",
        "min.f32 %f6, %f1, %f2;",
        "neg.f32 %f6, %f1;",
        "tanh.approx.f32 %f6, %f1;",
        "cvt.f64.f32 %g1, %f1;",
        "add.f64 %g1, %g1, %g2;",
        "cvt.rn.f16.f32 %h1, %f1;",
        "add.ftz.f16 %h1, %h1, %h2;",
        "cvt.rzi.s32.f32 %r4, %f1;",
        "fma.rm.ftz.f32 %f6, %f1, %f2, %f1;",
        "atom.global.add.f32 %f6, [%d1], %f1;",
        "red.global.add.f32 [%d1], %f1;",
        "suld.b.1d.b32.zero %r4, [s, {%r1}];",
        "sust.p.1d.b32.zero [s, {%r1}], %r4;",
        "tex.1d.v4.f32.f32 {%f5, %f6, %f7, %f8}, [t, {%f1}];",
        "{ .param .b64 x; .param .b64 y; .param .b32 z; st.param.b64 [x], %d1; st.param.b64 [y], %d1;"
        " call (z), vprintf, (x, y); }",
        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%g1, %g2}, {%g1}, {%g2}, {%g1, %g2};",
    ],
)
def test_other_arithmetic_keeps_a_kernel_from_the_mode(other: str) -> None:
    more = ".global .surfref s; .global .texref t; .extern .func (.param .b32 z) vprintf (.param .b64 x, .param .b64 y);"
    seen = """selp.u32 %r5, 1, 2, %p1; st.global.u32 [%d1], %r5; st.global.f32 [%d1], %f6; st.global.u32 [%d1], %r4;
        st.global.f64 [%d1], %g1; st.global.b16 [%d1], %h1;"""
    assert not uses_the_mode(f"{FLUSHING} {other} {seen}", more)
    assert not uses_the_mode(f"{other} {seen}", more)


def test_results_are_flushed_at_each_step() -> None:
    """Products, sums and fused ones of numbers about the least normal one, bit by bit, by exact arithmetic."""
    a, b = pairs()
    expected = []
    for x, y in zip(a.view(np.uint32).tolist(), b.view(np.uint32).tolist(), strict=True):
        product = arithmetic("mul", F32, (x, y), ftz=True)
        total = arithmetic("add", F32, (product, x), ftz=True)
        expected.append([product, total, arithmetic("fma", F32, (total, y, product), ftz=True)])
    found = run(FLUSHING, a, b)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(run(f"{FLUSHING} add.f32 %f6, %f1, %f2;", a, b), expected)  # without the mode


BODIES = {
    "a loop": """
        mov.u32 %r4, 0; mov.f32 %f3, %f1;
        AGAIN: mul.ftz.f32 %f3, %f3, 0f3F000000; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 5; @%p1 bra AGAIN;
        st.global.f32 [%d1], %f3;""",
    "a subnormal constant": """
        setp.lt.ftz.f32 %p1, %f1, %f2; mov.f32 %f3, 0f00000005; @%p1 bra DONE; mul.ftz.f32 %f3, %f1, %f2;
        DONE: st.global.f32 [%d1], %f3;""",
    "bits": """
        mul.ftz.f32 %f3, %f1, %f2; mov.b32 %r4, %f3; xor.b32 %r4, %r4, 1; st.global.u32 [%d1], %r4;
        neg.ftz.f32 %f4, %f3; st.global.f32 [%d1+4], %f4;""",
    "a guard": """
        mov.f32 %f3, %f2; setp.gt.ftz.f32 %p1, %f1, %f2; @%p1 mul.ftz.f32 %f3, %f1, %f2; st.global.f32 [%d1], %f3;""",
    "the least and the largest": """
        mul.ftz.f32 %f3, %f1, %f2; min.ftz.f32 %f4, %f3, %f1; max.ftz.f32 %f5, %f3, %f2; abs.ftz.f32 %f6, %f3;
        st.global.f32 [%d1], %f4; st.global.f32 [%d1+4], %f5; st.global.f32 [%d1+8], %f6;""",
    "comparisons": """
        mul.ftz.f32 %f3, %f1, %f2; set.eq.ftz.u32.f32 %r4, %f3, 0f00000000; set.ltu.ftz.u32.f32 %r5, %f1, %f2;
        slct.ftz.u32.f32 %r6, 7, 9, %f3; st.global.u32 [%d1], %r4; st.global.u32 [%d1+4], %r5; st.global.u32 [%d1+8], %r6;""",
    "saturation": """
        mul.ftz.sat.f32 %f3, %f1, %f2; add.ftz.sat.f32 %f4, %f1, %f2; st.global.f32 [%d1], %f3; st.global.f32 [%d1+4], %f4;""",
    "division": """
        div.rn.ftz.f32 %f3, %f1, %f2; div.full.ftz.f32 %f4, %f1, %f2; rcp.rn.ftz.f32 %f5, %f1;
        st.global.f32 [%d1], %f3; st.global.f32 [%d1+4], %f4; st.global.f32 [%d1+8], %f5;""",
    "a function": """
        { .param .f32 x; .param .f32 y; mul.ftz.f32 %f3, %f1, %f2; st.param.f32 [x], %f3; call (y), smaller, (x);
        ld.param.f32 %f4, [y]; st.global.f32 [%d1], %f4; }""",
}
SMALLER = """.func (.param .f32 y) smaller (.param .f32 x) {
    .reg .f32 %f<5>; .reg .pred %p1; .param .f32 u; .param .f32 v;
    ld.param.f32 %f1, [x]; min.ftz.f32 %f1, %f1, 0f41000000; mul.ftz.f32 %f2, %f1, 0f00800000;
    setp.lt.ftz.f32 %p1, %f1, 0f40000000; @%p1 bra DONE;
    mul.ftz.f32 %f3, %f1, 0f3E800000; st.param.f32 [u], %f3; call (v), smaller, (u); ld.param.f32 %f2, [v];
    DONE: st.param.f32 [y], %f2; ret; }"""
"""It calls itself, so that it cannot be inlined."""


@pytest.mark.parametrize("name", BODIES)
def test_the_interpreter_agrees(name: str) -> None:
    """It knows no mode: it flushes operands and results by their bits."""
    a, b = pairs()
    more = SMALLER if name == "a function" else ""
    assert uses_the_mode(BODIES[name], more) == compile.jit.target_of(None).daz
    np.testing.assert_array_equal(run(BODIES[name], a, b, more), run(BODIES[name], a, b, more, "interpreter"))


def test_the_mode_ends_with_the_launch() -> None:
    """Neither another kernel nor the program that launches notices anything."""
    a, b = pairs()
    with np.errstate(all="ignore"):
        before = (a * b).view(np.uint32)
    with ptxemu.Device("64 MiB") as device:
        kernels = [
            ptxemu.loads(text_of(body), device=device, tier="best")["k"][len(a) // THREADS, THREADS]
            for body in (FLUSHING, "mul.f32 %f3, %f1, %f2; st.global.f32 [%d1], %f3;")
        ]
        for _ in range(3):
            found = np.zeros((len(a), 3), np.uint32)
            for kernel in kernels:
                kernel(a, b, found)
                with np.errstate(all="ignore"):
                    assert ((a * b).view(np.uint32) == before).all()
            np.testing.assert_array_equal(found[:, 0], canonical(before.view(np.float32)))
