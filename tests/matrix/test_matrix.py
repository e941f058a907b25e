"""Matrix instructions beyond ``tests/isa``: special values, exactness, programs that feed one another, faults."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import ptxemu
from ptxemu.text.errors import Fault
from tests.support import matrix_model as model
from tests.support.elementwise_oracle import F16, F32, Format
from tests.support.matrix_model import Form
from tests.support.places import CORPUS

HEAD = ".version 9.0\n.target sm_90\n.address_size 64\n"
Array = NDArray[np.generic]


def registers(prefix: str, count: int) -> str:
    return "{" + ", ".join(f"%{prefix}{i}" for i in range(count)) + "}"


def counts(form: Form) -> tuple[int, int, int, int]:
    """Registers of d, a, b and c."""
    if form.quads:
        return 4 if form.d == "f16" else 8, 2, 2, 4 if form.c == "f16" else 8
    sizes = (form.m * form.n, form.d), (form.m * form.k, form.a), (form.n * form.k, form.b), (form.m * form.n, form.c)
    d, a, b, c = (size * model.BITS[type] // (64 if type == "f64" else 32) // 32 for size, type in sizes)
    return d, a // 2 if form.sparse else a, b, c


def kernel(text: str, selector: int = 0) -> str:
    """Every CTA is a warp that multiplies fragments of its own; those of metadata are between C's and D's."""
    form = Form(text)
    nd, *given = counts(form)
    operands = [("d", nd), *zip("abc", given, strict=True), *([("e", 1)] if form.sparse else [])]
    parts = [*operands[1:], operands[0]]
    size = 8 if form.d == "f64" else 4
    bits, step = 8 * size, 32 * size
    lines = [f"{HEAD}.visible .entry k({', '.join(f'.param .u64 {name}' for name, _ in parts)})\n{{",
             "  .reg .b32 %i, %t, %n; .reg .b64 %o, %pa, %pb, %pc, %pd, %pe;",
             f"  mov.u32 %i, %ctaid.x; mov.u32 %t, %tid.x; mul.lo.u32 %t, %t, {size};"]  # fmt: skip
    for name, count in parts:
        lines.append(f"  .reg .b{bits} %{name}<{count}>; ld.param.u64 %p{name}, [{name}]; mad.lo.u32 %n, %i, {count * step}, %t;")
        lines.append(f"  cvt.u64.u32 %o, %n; add.u64 %p{name}, %p{name}, %o;")
        if name != "d":
            lines += [f"  ld.global.b{bits} %{name}{i}, [%p{name}+{step * i}];" for i in range(count)]
    taken = ", ".join(registers(name, count) for name, count in operands[:4])
    lines.append(f"  {text} {taken}{f', %e0, {selector}' if form.sparse else ''};")
    lines += [f"  st.global.b{bits} [%pd+{step * i}], %d{i};" for i in range(nd)]
    return "\n".join([*lines, "  ret;", "}"])


def run(text: str, fragments: Sequence[Array], like: str = "", selector: int = 0, device: ptxemu.Device | None = None) -> Array:
    """D's fragments, one for each CTA, of those of A, B, C and metadata."""
    form = Form(text)
    d = np.zeros((len(fragments[0]), counts(form)[0] * 32 * (2 if form.d == "f64" else 1)), np.uint32)
    module = ptxemu.loads(kernel(text, selector), like=like, **({} if device is None else {"device": device}))
    module["k"][len(d), 32](*fragments, d)
    return d


# ---------------------------------------------------------------- values

SPECIAL = {
    "f16": [0, 0x8000, 1, 0x83FF, 0x7C00, 0xFC00, 0x7E00, 0x7BFF, 0xFBFF, 0x3C00],
    "bf16": [0x8000, 1, 0x7F80, 0xFF80, 0x7FC1, 0x7F7F],
    "tf32": [0x80000000, 1, 0x2000, 0x7F800000, 0xFF800000, 0x7FC02000, 0x7F7FE000, 0x3F801FFF],
    "e4m3": [0x80, 1, 0x7F, 0xFF, 0x7E, 0xFE], "e5m2": [0x80, 1, 0x7C, 0xFC, 0x7D, 0x7B],
    "f32": [0x80000000, 1, 0x80000001, 0x7F800000, 0xFF800000, 0x7FC12345, 0x7F7FFFFF, 0xFF7FFFFF],
}  # fmt: skip


def patterns(rng: np.random.Generator, shape: tuple[int, ...], type: str, kind: str) -> Array:
    """Bit patterns: all alike (``any``), of similar size (``near``), or special ones among zeros (``special``)."""
    bits = model.BITS[type]
    if kind == "near" and type not in model.INTEGERS:
        numbers = rng.standard_normal(shape).astype(np.float32)
        if type == "f16":
            return numbers.astype(np.float16).view(np.uint16).astype(np.uint32)
        if type in ("e4m3", "e5m2"):
            narrow = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}[type]
            return numbers.astype(narrow).view(np.uint8).astype(np.uint32)
        return numbers.view(np.uint32) >> (16 if type == "bf16" else 0)
    found = rng.integers(0, 1 << bits, shape, np.uint64).astype(np.uint32)
    if kind == "special" and type in SPECIAL:
        chosen = np.array(SPECIAL[type], np.uint32)[rng.integers(0, len(SPECIAL[type]), shape)]
        zero = rng.random(shape) < 0.9
        return np.where(zero, np.uint32(0), chosen)
    return found


def fragments(form: Form, kind: str, cases: int) -> list[Array]:
    rng = np.random.default_rng(7)
    found = []
    for count, type in zip(counts(form)[1:], (form.a, form.b, form.c), strict=True):
        per = model.packed(type)
        bits = patterns(rng, (cases, 32, count * per), type, kind)
        found.append(np.array([model.words(one, type) for one in bits], np.uint32))
    return found


FLOATS = [
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
    "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", "mma.sync.aligned.m16n8k32.row.col.f16.e5m2.e4m3.f16",
    "mma.sync.aligned.m8n8k4.col.row.f32.f16.f16.f16", "mma.sync.aligned.m8n8k4.row.row.f16.f16.f16.f16",
    "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32",
]  # fmt: skip


LIKE = ["exact", "sm_75", "sm_89", "sm_90", "sm_120"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("like", LIKE)
@pytest.mark.parametrize("text", FLOATS)
def test_floats_follow_the_model_bit_for_bit(text: str, like: str) -> None:
    kinds = [fragments(Form(text), kind, 6) for kind in ("near", "any", "special")]
    given = [np.concatenate(parts) for parts in zip(*kinds, strict=True)]
    got = run(text, given, like)
    want = [model.mma(text, *(part[i].tolist() for part in given), like=like) for i in range(len(got))]
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "text",
    ["mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32", "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16",
     "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc", FLOATS[3]],
)  # fmt: skip
def test_nans_of_arithmetic_have_the_bits_that_ptx_gives_them(text: str) -> None:
    """Where a NaN is only seen as other numbers: as bytes, pairs, bits."""
    _, *given = counts(Form(text))
    square_roots = "".join(f"sqrt.rn.f32 %{name}{i}, %{name}{i}; " for name, n in zip("abc", given) for i in range(n))
    minus = [np.full((1, count * 32), 0xC0000000, np.uint32) for count in given]
    d = np.zeros((1, counts(Form(text))[0] * 32), np.uint32)
    ptxemu.loads(kernel(text).replace(text, square_roots + text))["k"][1, 32](*minus, d)
    canonical = [[0x7FFFFFFF] * (count * 32) for count in given]
    np.testing.assert_array_equal(d[0], model.mma(text, *canonical))


@pytest.mark.parametrize(("text", "result"), [(FLOATS[0], F32), (FLOATS[1], F16), (FLOATS[3], F32)])
def test_sums_of_similar_terms_are_correctly_rounded(text: str, result: Format) -> None:
    """Then binary64 holds the sum of the products exactly, so that one rounding is all there is."""
    form = Form(text)
    given = fragments(form, "near", 1)
    a, b, c = (
        model.matrix(model.values(model.elements(part[0].tolist(), type), type), places, shape)
        for part, type, places, shape in zip(
            given,
            (form.a, form.b, form.c),
            (model.places_a(16, form.k, form.a), model.places_b(8, form.k, form.b), model.places_c(16, 8)),
            ((16, form.k), (form.k, 8), (16, 8)),
            strict=True,
        )
    )
    got = model.matrix(model.elements(run(text, given, "exact")[0].tolist(), form.d), model.places_c(16, 8), (16, 8))
    for i in range(16):
        for j in range(8):
            exact = sum((Fraction(a[i, k]) * Fraction(b[k, j]) for k in range(form.k)), Fraction(c[i, j]))
            assert got[i, j] == result.round(exact)


@pytest.mark.parametrize("like", ["exact", "sm_70", "sm_90"])
def test_sums_of_any_size_become_f16(like: str) -> None:
    """What is added to is f32, what comes out f16: infinite, rounded or zero."""
    text = "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32"
    zeros = ", ".join(["%z"] * 8)
    loads = "".join(f"ld.global.f32 %c{i}, [%p+{128 * i}]; " for i in range(8))
    stores = "".join(f"st.global.b32 [%p+{128 * i}], %d{i}; " for i in range(4))
    source = f"""{HEAD}.visible .entry k(.param .u64 sums)
{{ .reg .b32 %t, %z, %d<4>; .reg .f32 %c<8>; .reg .b64 %p, %o;
  ld.param.u64 %p, [sums]; mov.u32 %t, %ctaid.x; mul.wide.u32 %o, %t, 1024; add.u64 %p, %p, %o;
  mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 4; add.u64 %p, %p, %o; mov.u32 %z, 0;
  {loads}
  {text} {registers("d", 4)}, {{{zeros}}}, {{{zeros}}}, {registers("c", 8)};
  {stores} ret; }}"""
    exponents, rest = np.meshgrid(np.arange(-32, 128), np.linspace(-2, 2, 32, endpoint=False) + 2**-12)
    sums = np.ldexp(rest, exponents - 1).astype(np.float32).reshape(-1, 8, 32)
    given = sums.view(np.uint32).copy()
    ptxemu.loads(source, like=like)["k"][len(given), 32](given)
    with np.errstate(over="ignore"):
        want = sums.astype(np.float16).view(np.uint16).reshape(-1, 4, 2, 32)
    np.testing.assert_array_equal(given[:, :4], want[:, :, 0] | want[:, :, 1].astype(np.uint32) << 16)


@pytest.mark.parametrize("sat", ["", ".satfinite"])
@pytest.mark.parametrize("types", ["s8.s8", "u8.s8", "u8.u8"])
def test_integers_wrap_or_saturate(types: str, sat: str) -> None:
    text = f"mma.sync.aligned.m16n8k32.row.col{sat}.s32.{types}.s32"
    given = fragments(Form(text), "any", 4)
    given[2][0], given[2][1] = 0x7FFFFFFF, 0x80000000
    got = run(text, given)
    np.testing.assert_array_equal(got, [model.mma(text, *(part[i].tolist() for part in given)) for i in range(4)])
    assert sat or np.any(got[0].view(np.int32) < 0)


# ---------------------------------------------------------------- programs

# One warp multiplies 16x32 by 32x8: rows of A by ldmatrix, rows of B by ldmatrix.trans, the result stored by hand.
GEMM = f"""{HEAD}
.visible .entry gemm(.param .u64 a, .param .u64 b, .param .u64 d)
{{
  .reg .b32 %t, %x, %sa, %sb, %i, %a<4>, %b<2>; .reg .f32 %d<4>; .reg .b64 %pa, %pb, %pd, %o; .reg .pred %more;
  .shared .align 16 .b8 sa[1024], sb[512];
  ld.param.u64 %pa, [a]; ld.param.u64 %pb, [b]; ld.param.u64 %pd, [d];
  mov.u32 %t, %tid.x; mov.u32 %sa, sa; mov.u32 %sb, sb;
  mul.wide.u32 %o, %t, 4; add.u64 %pa, %pa, %o; add.u64 %pb, %pb, %o;
  mad.lo.u32 %x, %t, 4, %sa;
  {" ".join(f"ld.global.b32 %i, [%pa+{128 * i}]; st.shared.b32 [%x+{128 * i}], %i;" for i in range(8))}
  mad.lo.u32 %x, %t, 4, %sb;
  {" ".join(f"ld.global.b32 %i, [%pb+{128 * i}]; st.shared.b32 [%x+{128 * i}], %i;" for i in range(4))}
  bar.warp.sync -1;
  and.b32 %x, %t, 15;              // row of A, 64 bytes long; the upper half of the warp reads columns 8 to 15
  mad.lo.u32 %sa, %x, 64, %sa;
  mad.lo.u32 %sb, %x, 16, %sb;     // row of B
  shr.u32 %x, %t, 4;
  mad.lo.u32 %sa, %x, 16, %sa;
  mov.f32 %d0, 0f00000000; mov.f32 %d1, %d0; mov.f32 %d2, %d0; mov.f32 %d3, %d0;
  mov.u32 %i, 0;
again:
  ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%a0, %a1, %a2, %a3}}, [%sa];
  ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {{%b0, %b1}}, [%sb];
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{%d0, %d1, %d2, %d3}}, {{%a0, %a1, %a2, %a3}}, {{%b0, %b1}},
    {{%d0, %d1, %d2, %d3}};
  add.u32 %sa, %sa, 32; add.u32 %sb, %sb, 256; add.u32 %i, %i, 1;
  setp.lt.u32 %more, %i, 2;
  @%more bra again;
  mul.wide.u32 %o, %t, 8; add.u64 %pd, %pd, %o;   // row t / 4 is 32 bytes long, columns 2 * (t % 4)
  st.global.v2.f32 [%pd], {{%d0, %d1}}; st.global.v2.f32 [%pd+256], {{%d2, %d3}};
  ret;
}}
"""


def test_ldmatrix_feeds_mma() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.integers(-9, 10, (16, 32)).astype(np.float16), rng.integers(-9, 10, (32, 8)).astype(np.float16)
    d = np.zeros((16, 8), np.float32)
    ptxemu.loads(GEMM)["gemm"][1, 32](a, b, d)
    np.testing.assert_array_equal(d, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize(
    ("name", "type", "result", "shape"),
    [("wm", np.float16, np.float32, (16, 16, 16)), ("wmi", np.int8, np.int32, (16, 16, 16)),
     ("wmb", ml_dtypes.bfloat16, np.float32, (16, 16, 16)), ("wmd", np.float64, np.float64, (8, 8, 4))],
)  # fmt: skip
def test_wmma_of_cuda(name: str, type: type, result: type, shape: tuple[int, int, int]) -> None:
    """CUDA's fragment classes: a row-major matrix by a column-major one."""
    m, n, k = shape
    rng = np.random.default_rng(4)
    a, b = rng.integers(-9, 10, (m, k)).astype(type), rng.integers(-9, 10, (n, k)).astype(type)
    c = np.full((m, n), 77, result)
    ptxemu.load(CORPUS / "wmma.ptx")[name][1, 32](
        a.view(np.uint16) if name == "wmb" else a, b.view(np.uint16) if name == "wmb" else b, c
    )
    np.testing.assert_array_equal(c, a.astype(result) @ b.astype(result).T)


def test_mma_of_inline_assembly() -> None:
    """Fragments in memory, lane by lane."""
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-9, 10, shape).astype(np.float16) for shape in ((16, 16), (16, 8)))
    lanes = [
        model.fragment(x.view(np.uint16), p) for x, p in ((a, model.places_a(16, 16, "f16")), (b, model.places_b(8, 16, "f16")))
    ]
    d = np.zeros((32, 4), np.float32)
    ptxemu.load(CORPUS / "mma_asm.ptx")["mma16816"][1, 32](*(np.ascontiguousarray(x).view(np.uint32) for x in lanes), d)
    np.testing.assert_array_equal(model.matrix(d, model.places_c(16, 8), (16, 8)), a.astype(np.float32) @ b.astype(np.float32))


def test_ldmatrix_after_an_asynchronous_copy() -> None:
    rows = np.arange(256, dtype=np.uint16).reshape(32, 8)
    out = np.zeros((32, 4), np.uint32)
    ptxemu.load(CORPUS / "mma_asm.ptx")["ldm"][1, 32](rows.view(np.uint32), out)
    np.testing.assert_array_equal(
        out.T.ravel(), model.ldmatrix(rows.view(np.uint32).ravel().tolist(), list(range(0, 512, 16)), 4, False)
    )


SMALL = f"""{HEAD}
.visible .entry guarded(.param .u64 d, .param .u32 wanted)
{{
  .reg .b32 %t, %n, %x<2>; .reg .b64 %pd, %o; .reg .pred %p;
  ld.param.u64 %pd, [d]; ld.param.u32 %n, [wanted];
  mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, %n;
  mov.u32 %x0, 5; mov.u32 %x1, 6;
  @%p mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {{%x0, _}}, {{%t}}, {{%t}}, {{%x0, %x1}};
  mul.wide.u32 %o, %t, 4; add.u64 %pd, %pd, %o; st.global.b32 [%pd], %x0;
  ret;
}}
.visible .entry uniform(.param .u64 d)
{{
  .reg .b32 %t, %x; .reg .b64 %pd, %o;
  ld.param.u64 %pd, [d]; mov.u32 %t, %tid.x;
  movmatrix.sync.aligned.m8n8.trans.b16 %x, %t;
  mul.wide.u32 %o, %t, 4; add.u64 %pd, %pd, %o; st.global.b32 [%pd], %x;
  ret;
}}
.visible .entry defaults(.param .u64 a, .param .u64 d)
{{
  .reg .b32 %x<4>; .reg .b64 %pa, %pd;
  ld.param.u64 %pa, [a]; ld.param.u64 %pd, [d];
  wmma.load.c.sync.aligned.row.m8n32k16.global.f16 {{%x0, %x1, %x2, %x3}}, [%pa];
  wmma.store.d.sync.aligned.col.m8n32k16.global.f16 [%pd], {{%x0, %x1, %x2, %x3}};
  ret;
}}
.visible .entry load(.param .u64 a, .param .u32 stride)
{{
  .reg .b32 %x<4>, %n; .reg .b64 %pa;
  ld.param.u64 %pa, [a]; ld.param.u32 %n, [stride];
  wmma.load.a.sync.aligned.row.m16n16k16.bf16 {{%x0, %x1, %x2, %x3}}, [%pa], %n;
  ret;
}}
.visible .entry rows(.param .u32 start)
{{
  .reg .b32 %x<4>, %n, %t; .shared .align 16 .b8 s[512];
  ld.param.u32 %n, [start]; mov.u32 %t, %tid.x; mad.lo.u32 %n, %t, 16, %n;
  ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%x0, %x1, %x2, %x3}}, [%n];
  stmatrix.sync.aligned.m8n8.x4.shared.b16 [%n], {{%x0, %x1, %x2, %x3}};
  ret;
}}
"""


def test_more_instructions_than_slots_that_are_remembered() -> None:
    """Each of 300 products adds to the last; every third is read in between, and the loop goes round twice."""
    step = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {d}, {{%a0, %a1, %a2, %a3}}, {{%b0, %b1}}, {c};"
    body = []
    for i in range(300):
        c, d = (registers("cd"[(i + j) % 2], 4) for j in range(2))
        body.append(step.format(c=c, d=d))
        if i % 3 == 0:
            body.append(f"add.u32 %sum, %sum, %{'dc'[i % 2]}0;")
    text = f"""{HEAD}.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 d)
{{
  .reg .b32 %t, %i, %sum, %a<4>, %b<2>, %c<4>, %d<4>; .reg .b64 %o, %pa, %pb, %pd; .reg .pred %p;
  ld.param.u64 %pa, [a]; ld.param.u64 %pb, [b]; ld.param.u64 %pd, [d];
  mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 4; add.u64 %pa, %pa, %o; add.u64 %pb, %pb, %o; add.u64 %pd, %pd, %o;
  {" ".join(f"ld.global.b32 %a{i}, [%pa+{128 * i}]; mov.u32 %c{i}, {i};" for i in range(4))}
  ld.global.b32 %b0, [%pb]; ld.global.b32 %b1, [%pb+128]; mov.u32 %sum, 0; mov.u32 %i, 0;
again:
  {" ".join(body)}
  add.u32 %i, %i, 1; setp.lt.u32 %p, %i, 2; @%p bra again;
  {" ".join(f"st.global.b32 [%pd+{128 * i}], %c{i};" for i in range(4))} st.global.b32 [%pd+512], %sum;
  ret;
}}
"""
    form = "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
    a, b, _ = (part[0] for part in fragments(Form(form), "any", 1))
    got = np.zeros(160, np.uint32)
    ptxemu.loads(text)["k"][1, 32](a, b, got)
    once = np.array(model.mma(form, a.tolist(), b.tolist(), [0] * 128), np.uint32)
    np.testing.assert_array_equal(got[:128], np.repeat(np.arange(4, dtype=np.uint32), 32) + once * np.uint32(600))
    seen = sum(300 * turn + i + 1 for turn in range(2) for i in range(0, 300, 3))
    np.testing.assert_array_equal(got[128:], once[:32] * np.uint32(seen))


def test_a_guard_that_is_false_everywhere_leaves_the_destination() -> None:
    d = np.zeros(32, np.uint32)
    ptxemu.loads(SMALL)["guarded"][1, 32](d, 0)
    assert np.all(d == 5)


def test_all_lanes_must_take_part() -> None:
    d = np.zeros(32, np.uint32)
    module = ptxemu.loads(SMALL)
    for block, wanted in ((32, 31), (16, 32)):
        with pytest.raises(Fault, match="partial warp"):
            module["guarded"][1, block](d, wanted)
    module["guarded"][1, 32](d, 32)


def test_fragments_differ_between_lanes_whatever_they_are_made_of() -> None:
    d = np.zeros(32, np.uint32)
    ptxemu.loads(SMALL)["uniform"][1, 32](d)
    lane = np.arange(32)
    np.testing.assert_array_equal(
        d, np.where(lane // 4 % 2, 0, 2 * (lane % 4) * 4 + lane // 8 | ((2 * (lane % 4) + 1) * 4 + lane // 8) << 16)
    )


def test_lines_follow_each_other_by_default() -> None:
    a = np.arange(256, dtype=np.float16).reshape(8, 32)
    d = np.zeros((32, 8), np.float16)
    ptxemu.loads(SMALL)["defaults"][1, 32](a, d)
    np.testing.assert_array_equal(d, a.T)


def test_faults_of_matrices_in_memory() -> None:
    module, device = ptxemu.loads(SMALL), ptxemu.default_device()
    a = device.to_device(np.zeros((16, 16), np.uint16))
    module["load"][1, 32](a, 16)
    for stride, message in ((1 << 30, "illegal address"), (20, "misaligned")):
        with pytest.raises(Fault, match=message):
            module["load"][1, 32](a, stride)
    for address in (0, 16, (1 << 64) - 32, 1 << 47):
        with pytest.raises(Fault, match=r"null pointer|illegal address"):
            module["load"][1, 32](np.uint64(address), 16)
    module["rows"][1, 32](0)
    for start, message in ((16, "illegal address"), (8, "misaligned"), (0xFFFFFF00, "illegal address")):
        with pytest.raises(Fault, match=message):
            module["rows"][1, 32](start)


# ---------------------------------------------------------------- forms


@pytest.mark.parametrize(
    "text",
    ["mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%f0,%f1,%f2,%f3};",
     "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f32 {%r0,%r1}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%f0,%f1,%f2,%f3};",
     "mma.sync.aligned.m16n8k8.row.col.f32.bf16.tf32.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1}, {%r4}, {%f0,%f1,%f2,%f3};",
     "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f0,%f1,%f2,%f3}, {%f0,%f1,%f2,%f3}, {%r4,%r5}, {%f0,%f1,%f2,%f3};",
     "mma.sync.m8n8k16.row.col.s32.s8.s8.s32 {%r0,%r1}, {%r2}, {%r3}, {%r4,%r5};",
     "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r0,%r1}, %r2, %r3, {%r4,%r5};",
     "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r0,%r1}, {%f2}, {%r3}, {%r4,%r5};",
     "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r0,%r1}, {%r2,%r3}, {%r3}, {%r4,%r5};",
     "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor {%r0,%r1}, {%r2}, {%r3}, {%r4,%r5};",
     "mma.sync.aligned.m16n8k16.row.col.rn.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%f0,%f1,%f2,%f3};",
     "mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32 {%r0,%r1,%r2,%r3}, {%r0,%r1,%r2,%r3}, {%r0,%r1,%r2,%r3}, "
     "{%r0,%r1,%r2,%r3}, %r4, 1;",
     "wmma.load.a.sync.aligned.row.m16n16k16.local.bf16 {%r0,%r1,%r2,%r3}, [%l0];",
     "wmma.load.a.sync.aligned.m16n16k16.bf16 {%r0,%r1,%r2,%r3}, [%l0];",
     "wmma.sync.load.a.aligned.row.m16n16k16.bf16 {%r0,%r1,%r2,%r3}, [%l0];",
     "wmma.load.a.sync.aligned.col.m8n8k32.s4 {%r0}, [%l0];",
     "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0}, [%r1];", "ldmatrix.sync.aligned.m8n8.x1.global.b16 {%r0}, [%l0];",
     "movmatrix.sync.aligned.m8n8.b16 %r0, %r1;"],
)  # fmt: skip
def test_illegal_forms(text: str) -> None:
    """ptxas rejects each of these."""
    source = f"{HEAD}.visible .entry k()\n{{\n  .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %l<2>;\n  {text}\n  ret;\n}}\n"
    with pytest.raises(ptxemu.PtxError, match=":7:"):
        ptxemu.loads(source)
