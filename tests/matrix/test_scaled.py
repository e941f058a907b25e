"""mma with .block_scale: every form, where factors are, special values, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

import ptxemu
from tests.matrix import scaled_model as scaled
from tests.matrix.scaled_model import Form
from tests.support import matrix_model as model

TYPES = ["e4m3", "e5m2", "e2m3", "e3m2", "e2m1"]
FOURS = [
    Form("mxf4", "e2m1", "e2m1", "ue8m0", 2, False), Form("mxf4", "e2m1", "e2m1", "ue8m0", 2, True),
    Form("mxf4nvf4", "e2m1", "e2m1", "ue8m0", 2, True), Form("mxf4nvf4", "e2m1", "e2m1", "ue4m3", 4, True),
    Form("mxf4nvf4", "e2m1", "e2m1", "ue8m0", 4, True),
]  # fmt: skip
FORMS = [*(Form("mxf8f6f4", a, b, "ue8m0", 1, a != b) for a, b in product(TYPES, TYPES)), *FOURS]
HEAD = """\
.version 8.8
.target sm_120a
.address_size 64
.visible .entry k(.param .u64 words, .param .u64 out)
{
  .reg .b32 %t, %r<13>; .reg .f32 %f<8>; .reg .b16 %h<4>; .reg .b64 %words, %out, %o;
  ld.param.u64 %words, [words]; ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 4;
  add.u64 %words, %words, %o; add.u64 %out, %out, %o;
"""
RESULT = "".join(f"  st.global.f32 [%out+{128 * i}], %f{i + 4};\n" for i in range(4)) + "  ret;\n}\n"


def text_of(form: Form, places: tuple[int, int, int, int], registers: bool, sparse: bool = False) -> str:
    """A kernel of one multiplication: words are those of A, B, factors, C and metadata; registers say where factors are, or
    constants."""
    words, name = (11, sparse_name(form)) if sparse else (8, form.name)
    loads = "".join(f"  ld.global.b32 %r{i}, [%words+{128 * i}];\n" for i in range(words))
    loads += "".join(f"  ld.global.f32 %f{i}, [%words+{128 * (words + i)}];\n" for i in range(4))
    loads += "".join(f"  mov.b16 %h{i}, {place};\n" for i, place in enumerate(places))
    chosen = [f"%h{i}" if registers else str(place) for i, place in enumerate(places)]
    d, c = ("{" + ", ".join(f"%f{i}" for i in range(first, first + 4)) + "}" for first in (4, 0))
    a, b = "{%r0, %r1, %r2, %r3}", "{%r4, %r5, %r6, %r7}" if sparse else "{%r4, %r5}"
    metadata, last = (", %r10, 0", 8) if sparse else ("", 6)
    factors = f"%r{last}, {{{chosen[0]}, {chosen[1]}}}, %r{last + 1}, {{{chosen[2]}, {chosen[3]}}}"
    return f"{HEAD}{loads}  {name} {d}, {a}, {b}, {c}{metadata}, {factors};\n{RESULT}"


def sparse_name(form: Form) -> str:
    """The instruction with a sparse A that holds as many elements."""
    return form.name.replace("mma.", "mma.sp::ordered_metadata.").replace(f"n8k{form.k}", f"n8k{2 * form.k}")


def texts() -> Iterator[str]:
    """Kernels with every form."""
    for form in FORMS:
        yield text_of(form, (0, 0, 0, 0), False)
        yield text_of(form, (0, 0, 0, 0), False, sparse=True)


def words_of(patterns: np.ndarray, form: Form, places: list[model.Place]) -> list[int]:
    """The registers of a fragment, of elements in bytes, or of more than k 32 in four bits."""
    if form.k == 32:
        return model.words(model.fragment(patterns, places), "u8")
    return model.words(model.fragment(patterns >> 2, places), "u4")


def factor_words(factors: np.ndarray, byte: int, lanes: list[int], rng: np.random.Generator) -> np.ndarray:
    """A register whose lanes have the factors of rows, and others anything."""
    found = rng.integers(0, 1 << 32, 32, np.uint32).view(np.uint8).reshape(32, 4)
    for row, lane in enumerate(lanes):
        found[lane, byte : byte + factors.shape[1]] = factors[row]
    return found.reshape(-1).view(np.uint32)


def check(form: Form, places: tuple[int, int, int, int], seed: int, engine: str = "jit", registers: bool = False,
          special: bool = False, sparse: bool = False) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    k = form.k << sparse  # of B
    a, b = (patterns(rng, type, shape, special) for type, shape in ((form.a, (16, form.k)), (form.b, (8, k))))
    c = (rng.standard_normal((16, 8)) * rng.choice([0, 1, 1e-4, 1e5], (16, 8))).astype(np.float32)
    if special:
        c[rng.random((16, 8)) < 0.1] = np.inf
    low, high = ((100, 150) if special else (120, 134)) if form.factor == "ue8m0" else (0, 127)
    fa, fb = (rng.integers(low, high, (rows, form.factors)) for rows in (16, 8))
    if special:
        fa[3, 0] = 255
    kind = "u8" if form.k == 32 else "u4"
    lanes_a = [row % 8 * 4 + places[1] * 2 + row // 8 for row in range(16)]
    lanes_b = [column * 4 + places[3] for column in range(8)]
    given = [
        *words_of(a, form, model.places_a(16, form.k, kind)), *words_of(b.T, form, model.places_b(8, k, kind)),
        *factor_words(fa, places[0], lanes_a, rng), *factor_words(fb, places[2], lanes_b, rng),
    ]  # fmt: skip
    metadata = [model.metadata(lane, kind, seed) for lane in range(32)] if sparse else []
    given += [*metadata, *model.words(model.fragment(c.view(np.uint32), model.places_c(16, 8)), "f32")]
    out = np.zeros(128, np.uint32)
    module = ptxemu.loads(text_of(form, places, registers, sparse), device=ptxemu.Device(engine=engine))
    module["k"][1, 32](np.array(given, np.uint32), out)
    found = model.matrix(model.elements(out, "f32"), model.places_c(16, 8), (16, 8))
    like = model.Form(f"mma.sp.m16n8k{k}.s32.{kind}.{kind}.s32")
    met = [b[:, columns] for columns in model.chosen(like, metadata, 0)] if sparse else [b] * 16
    rows = [scaled.product(form, a[[i]], met[i], c.view(np.uint32)[[i]], fa[[i]], fb)[0] for i in range(16)]
    np.testing.assert_array_equal(found, rows)


def patterns(rng: np.random.Generator, type: str, shape: tuple[int, int], special: bool) -> np.ndarray:
    """Any elements; NaNs and infinities if those are wanted, and then few."""
    _, first, width = model.NARROW[type]
    found = rng.integers(0, 1 << width, shape) << first
    unusual = ~np.isfinite(model.values(found, type))
    return np.where(unusual & (rng.random(shape) > (0.05 if special else 0)), 0, found)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name.split(".", 3)[3])
def test_forms(form: Form) -> None:
    check(form, (0, 0, 0, 0), 1)
    check(form, (0, 0, 0, 0), 2, special=True)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name.split(".", 3)[3])
def test_sparse_forms(form: Form) -> None:
    """Each row of A meets those elements of B that its metadata name; factors are those of the elements that it holds."""
    check(form, (0, 0, 0, 0), 1, sparse=True)
    check(form, (0, 1, 0, 2), 2, special=True, sparse=True)


@pytest.mark.parametrize("form", [FORMS[1], *FOURS], ids=lambda form: form.name.split(".", 3)[3])
@pytest.mark.parametrize("registers", [False, True])
def test_where_factors_are(form: Form, registers: bool) -> None:
    bytes_of = {1: range(4), 2: (0, 2), 4: (0,)}[form.factors]
    for index, (a_byte, b_byte) in enumerate(product(bytes_of, repeat=2)):
        check(form, (a_byte, index % 2, b_byte, index % 4), 3 + index, registers=registers)


@pytest.mark.parametrize("form", [FORMS[7], *FOURS], ids=lambda form: form.name.split(".", 3)[3])
def test_interpreted(form: Form) -> None:
    check(form, (0, 1, 0, 3), 5, engine="interpreter")
    check(form, (0, 1, 0, 3), 6, engine="interpreter", sparse=True)


def test_a_whole_warp_takes_part() -> None:
    text = text_of(FORMS[0], (0, 0, 0, 0), False).replace(
        "mov.u32 %t, %tid.x;", "mov.u32 %t, %tid.x; setp.gt.u32 %p, %t, 7; @%p exit;"
    )
    module = ptxemu.loads(text.replace(".reg .b32 %t,", ".reg .pred %p; .reg .b32 %t,"))
    with pytest.raises(ptxemu.Fault, match="partial warp"):
        module["k"][1, 32](np.zeros(384, np.uint32), np.zeros(128, np.uint32))
