"""tcgen05.mma of kinds with factors: types, shapes, where factors are, A in tensor memory, and what is a fault."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

import ptxemu
from ptxemu.text.errors import Fault
from tests.matrix import scaled_model as scaled
from tests.matrix import tcgen05_kernels as kernels
from tests.matrix import tcgen05_model as tcgen05
from tests.matrix.scaled_model import Form
from tests.matrix.tcgen05_model import FOUR, LINE, Layout, ScaledFormat
from tests.matrix.test_scaled import FOURS, TYPES, patterns

B_AT = 1 << 14
COLUMN, A_FACTORS, B_FACTORS, A_COLUMN, METADATA = 64, 332, 352, 480, 496
WORDS = {
    ("mxf8f6f4", 1): "scale_vec::1X",
    ("mxf4", 2): "scale_vec::2X",
    ("mxf4nvf4", 2): "scale_vec::2X",
    ("mxf4nvf4", 4): "scale_vec::4X",
}
BLOCKS = {("mxf8f6f4", 1): "block32", ("mxf4", 2): "block32", ("mxf4nvf4", 2): "block32", ("mxf4nvf4", 4): "block16"}
LONGEST = [
    Form(f"mxf4{nv}", "e2m1", "e2m1", factor, count, False, True)
    for nv, factor, count in (("", "ue8m0", 3), ("nvf4", "ue8m0", 3), ("nvf4", "ue4m3", 6), ("nvf4", "ue8m0", 6))
]
EIGHTS = [Form("mxf8f6f4", a, b, "ue8m0", 1, True) for a, b in product(TYPES, TYPES)]


class Product(NamedTuple):
    """One instruction: what it multiplies, descriptors of A (or None: in tensor memory) and B, the name of blocks, whether
    sums are added to, and how many CTAs take part."""

    format: ScaledFormat
    a: int | None
    b: int
    blocks: str = ""
    adds: str = "%p"
    collector: str = ""
    ctas: int = 1

    @property
    def kernel(self) -> str:
        return kernels.kernel(self.text) if self.ctas == 1 else kernels.pair_kernel(self.text)

    @property
    def text(self) -> str:
        sparse = ".sp" if self.format.sparse else ""
        name = f"tcgen05.mma{sparse}.cta_group::1.kind::{self.format.form.kind}.block_scale{self.blocks}{self.collector}"
        given = f"  add.u64 %da, %base, {self.a or 0}; add.u64 %db, %base, {self.b}; mov.b32 %r0, %b;\n"
        a = f"[%r0+{A_COLUMN}]" if self.a is None else "%da"
        factors = f"[%r0+{A_FACTORS}], [%r0+{B_FACTORS}]"
        metadata = f", [%r0+{METADATA}]" if self.format.sparse else ""
        operands = f"[%r0+{COLUMN}], {a}, %db{metadata}, {self.format.bits}, {factors}, {self.adds}"
        return f"{given}  @%one {name} {operands};\n{kernels.ARRIVED}"


def names(form: Form) -> list[str]:
    if form.longest:
        return [f".block{form.k // form.factors}"]
    key = form.kind, form.factors
    return [*([""] if form.kind != "mxf4nvf4" else []), f".{WORDS[key]}", f".{BLOCKS[key]}"]


def texts() -> Iterator[str]:
    """Kernels with every form."""
    collectors = ["", *(f".collector::a::{word}" for word in ("fill", "use", "lastuse", "discard"))]
    for form, a, collector in product([EIGHTS[0], FOURS[0], *FOURS[2:]], (0, None), collectors):
        for blocks, ctas, sparse in product(names(form), (1, 2), (False, True)):
            format = ScaledFormat(form, 16, rows=128 * ctas, sparse=sparse)
            yield Product(format, a, 0, blocks, collector=collector, ctas=ctas).kernel


def in_lines(matrix: np.ndarray, form: Form) -> np.ndarray:
    """Bytes of rows: of more than k 32, two elements in each."""
    if form.k == 32:
        return matrix
    nibbles = matrix >> 2
    return nibbles[:, ::2] | nibbles[:, 1::2] << 4


def side(matrix: np.ndarray, type: str, form: Form, layout: Layout, size: int) -> np.ndarray:
    """Shared memory with a matrix."""
    if form.k == 32:
        return tcgen05.image(matrix, type, layout, size)
    return tcgen05.image(in_lines(matrix, form), "u8", layout, size)


def check(format: ScaledFormat, seed: int, engine: str = "jit", blocks: str | None = None, adds: bool = True,
          in_columns: bool = False, mode: int = 0) -> None:  # fmt: skip
    rng, form, n = np.random.default_rng(seed), format.form, format.columns
    a, b = (patterns(rng, type, (rows, form.k), False) for type, rows in ((form.a, 128), (form.b, n)))
    c = (rng.standard_normal((128, n)) * rng.choice([1, 1e-4, 1e5], (128, n))).astype(np.float32).view(np.uint32)
    low, high = (120, 134) if form.factor == "ue8m0" else (0, 127)
    fa, fb = (rng.integers(low, high, (rows, form.factors)) for rows in (128, n))
    cells = rng.integers(0, 1 << 32, (tcgen05.LANES, tcgen05.COLUMNS), np.uint32)
    for at, factors, byte in ((A_FACTORS, fa, format.bytes[0]), (B_FACTORS, fb, format.bytes[1])):
        part = slice(at, at + (16 if form.longest else -(-len(factors) // 32)))
        cells[:, part] = tcgen05.factor_cells(factors, byte, cells[:, part])
    place = slice(COLUMN, COLUMN + n)
    cells[:, place] = c
    if in_columns:
        words = np.ascontiguousarray(in_lines(a, form).astype(np.uint8)).view(np.uint32)
        cells[:, A_COLUMN : A_COLUMN + words.shape[1]] = words
    layouts = [tcgen05.layouts(mode, 1, rows, across) for rows, across in zip((128, n), format.transposed, strict=True)]
    memory = np.zeros(kernels.SHARED, np.uint8)
    memory[:B_AT] = side(a, form.a, form, layouts[0], B_AT)
    memory[B_AT:] = side(b, form.b, form, layouts[1], kernels.SHARED - B_AT)
    wanted = cells.copy()
    given = scaled.product(form, a, b, c if adds else np.zeros_like(c), fa, fb, -1 if format.negated else 1)
    wanted[:, place] = given
    name = names(form)[-1] if blocks is None else blocks
    one = Product(format, None if in_columns else layouts[0].bits, layouts[1].bits + B_AT // LINE, name, "%p" if adds else "%q")
    found, _ = kernels.run(kernels.kernel(one.text), cells, memory=memory, device=ptxemu.Device(engine=engine))
    np.testing.assert_array_equal(found, wanted, err_msg=one.text)


def check_pair(format: ScaledFormat, seed: int, in_columns: bool = False) -> None:
    """Of 128 rows in each CTA, or of 64 with the columns in two halves of the lanes, which then have the factors of theirs."""
    rng, form, n, rows = np.random.default_rng(seed), format.form, format.columns, format.rows // 2
    spread = rows < tcgen05.LANES
    a, b = (patterns(rng, type, (count, form.k), False) for type, count in ((form.a, 2 * rows), (form.b, n)))
    c = (rng.standard_normal((2 * rows, n)) * rng.choice([1, 1e-4, 1e5], (2 * rows, n))).astype(np.float32).view(np.uint32)
    low, high = (120, 134) if form.factor == "ue8m0" else (0, 127)
    fa, fb = (rng.integers(low, high, (count, form.factors)) for count in (2 * rows, n))
    cells = rng.integers(0, 1 << 32, (2, tcgen05.LANES, tcgen05.COLUMNS), np.uint32)
    memory = np.zeros((2, kernels.SHARED), np.uint8)
    left, right = tcgen05.layouts(1, 1, rows, False), tcgen05.layouts(1, 1, n // 2, False)
    lanes, places = tcgen05.spots(rows, n, 2 if spread else 1)
    given = scaled.product(form, a, b, c, fa, fb, 1)
    for cta in range(2):
        mine, own = slice(cta * rows, cta * rows + rows), cells[cta]
        for at, factors, byte, halves in (
            (A_FACTORS, fa[mine], format.bytes[0], False), (B_FACTORS, fb, format.bytes[1], spread),
        ):  # fmt: skip
            part = slice(at, at - (-len(factors) // (64 if halves else 32)))
            own[:, part] = tcgen05.factor_cells(factors, byte, own[:, part], halves)
        if in_columns:
            words = np.ascontiguousarray(in_lines(a[mine], form).astype(np.uint8)).view(np.uint32)
            own[:, A_COLUMN : A_COLUMN + 8] = np.tile(words, (tcgen05.LANES // rows, 1))
        own[lanes, places + COLUMN] = c[mine]
        memory[cta, :B_AT] = side(a[mine], form.a, form, left, B_AT)
        memory[cta, B_AT:] = side(b[cta * n // 2 : (cta + 1) * n // 2], form.b, form, right, kernels.SHARED - B_AT)
    wanted = cells.copy()
    for cta in range(2):
        wanted[cta, lanes, places + COLUMN] = given[cta * rows : cta * rows + rows]
    first = None if in_columns else left.bits
    one = Product(format, first, right.bits + B_AT // LINE, names(form)[-1], ctas=2)
    found, _ = kernels.run(one.kernel, cells, memory=memory)
    np.testing.assert_array_equal(found, wanted, err_msg=one.text)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("rows", "columns", "in_columns"), [(256, 16, True), (256, 80, False), (128, 32, True), (128, 96, False)]
)
@pytest.mark.parametrize("form", [EIGHTS[0], FOURS[0], FOURS[-1]], ids=lambda form: name_of(form))
def test_pairs(form: Form, rows: int, columns: int, in_columns: bool) -> None:
    byte = 4 - form.factors
    check_pair(ScaledFormat(form, columns, (byte, 0), rows=rows), 8, in_columns)


def check_sparse(form: Form, columns: int, byte: int = 0, in_columns: bool = False, engine: str = "jit") -> None:
    """A holds two of four elements, or of four pairs of them; a factor is that of twice as many as A holds."""
    rng, n, pair = np.random.default_rng(9), columns, form.k // 32
    a, b = (patterns(rng, type, (rows, k), False) for type, rows, k in ((form.a, 128, form.k), (form.b, n, 2 * form.k)))
    c = (rng.standard_normal((128, n)) * rng.choice([1, 1e-4, 1e5], (128, n))).astype(np.float32).view(np.uint32)
    low, high = (120, 134) if form.factor == "ue8m0" else (0, 127)
    fa, fb = (rng.integers(low, high, (rows, form.factors)) for rows in (128, n))
    metadata = rng.choice(FOUR, (128, 16))
    cells = rng.integers(0, 1 << 32, (tcgen05.LANES, tcgen05.COLUMNS), np.uint32)
    for at, factors in ((A_FACTORS, fa), (B_FACTORS, fb)):
        part = slice(at, at + -(-len(factors) // 32))
        cells[:, part] = tcgen05.factor_cells(factors, byte, cells[:, part])
    cells[:, METADATA : METADATA + 2] = tcgen05.metadata_cells(metadata, 1, 1)
    cells[:, COLUMN : COLUMN + n] = c
    if in_columns:
        cells[:, A_COLUMN : A_COLUMN + 8] = np.ascontiguousarray(in_lines(a, form).astype(np.uint8)).view(np.uint32)
    left, right = tcgen05.layouts(1, 1, 128, False), tcgen05.layouts(1, 1, n, False)
    memory = np.zeros(kernels.SHARED, np.uint8)
    memory[:B_AT] = side(a, form.a, form, left, B_AT)
    memory[B_AT:] = side(b, form.b, form, right, kernels.SHARED - B_AT)
    wanted = cells.copy()
    for row in range(128):
        places = [4 * chunk + (int(bits) >> 2 * i & 3) for chunk, bits in enumerate(metadata[row]) for i in range(2)]
        met = b.reshape(n, -1, pair)[:, places].reshape(n, form.k)
        one = slice(row, row + 1)
        wanted[one, COLUMN : COLUMN + n] = scaled.product(form, a[one], met, c[one], fa[one], fb)
    format = ScaledFormat(form, n, (byte, byte), sparse=True)
    text = Product(format, None if in_columns else left.bits, right.bits + B_AT // LINE, names(form)[-1]).text
    found, _ = kernels.run(kernels.kernel(text), cells, memory=memory, device=ptxemu.Device(engine=engine))
    np.testing.assert_array_equal(found, wanted, err_msg=text)


@pytest.mark.parametrize("form", [EIGHTS[0], EIGHTS[9], FOURS[0], *FOURS[2:]], ids=lambda form: name_of(form))
def test_sparse_matrices(form: Form) -> None:
    check_sparse(form, 8, 4 - form.factors)
    check_sparse(form, 24, in_columns=form.a in ("e4m3", "e5m2") or form.k == 64)


def test_sparse_matrices_interpreted() -> None:
    check_sparse(FOURS[-1], 8, engine="interpreter")


def name_of(form: Form) -> str:
    return f"{form.kind}.{form.a}.{form.b}.{form.factor}.{form.factors}"


FORMS = [*EIGHTS, FOURS[0], *FOURS[2:]]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("form", FORMS, ids=name_of)
def test_types(form: Form) -> None:
    check(ScaledFormat(form, 8), 1)


@pytest.mark.parametrize("form", [EIGHTS[1], FOURS[0], *FOURS[2:]], ids=name_of)
def test_where_factors_are(form: Form) -> None:
    bytes_of = {1: range(4), 2: (0, 2), 4: (0,)}[form.factors]
    for index, (byte, blocks) in enumerate(product(bytes_of, names(form))):
        check(ScaledFormat(form, 40, (byte, bytes_of[-1 - index % len(bytes_of)])), 2 + index, blocks=blocks, adds=index % 2 == 0)


@pytest.mark.parametrize("form", [EIGHTS[0], FOURS[3]], ids=name_of)
@pytest.mark.parametrize("mode", range(1, 4))
def test_layouts(form: Form, mode: int) -> None:
    check(ScaledFormat(form, 32), 3, mode=mode)


@pytest.mark.parametrize("form", LONGEST, ids=lambda form: name_of(form))
def test_longest_rows(form: Form) -> None:
    """k 96: rows of 48 bytes, whose factors are in two words."""
    check(ScaledFormat(form, 24, (2, 0)), 11, mode=1)
    bytes_of = (0, 2) if form.factors == 6 else (1, 3)
    check(ScaledFormat(form, 136, bytes_of, negated=True), 12, in_columns=True, mode=2)


def test_longest_rows_interpreted() -> None:
    check(ScaledFormat(LONGEST[2], 8, (2, 2)), 13, engine="interpreter")


def test_longest_rows_over_two_patterns() -> None:
    """Lines that follow the end of a pattern of 128 bytes are at an address that the descriptors name."""
    form, n = LONGEST[2], 8
    of = ScaledFormat(form, n)
    rng = np.random.default_rng(14)
    a, b = (patterns(rng, "e2m1", (rows, form.k), False) for rows in (128, n))
    fa, fb = (rng.integers(0, 127, (rows, 6)) for rows in (128, n))
    cells, memory = np.zeros((tcgen05.LANES, tcgen05.COLUMNS), np.uint32), np.zeros(kernels.SHARED, np.uint8)
    for at, factors in ((A_FACTORS, fa), (B_FACTORS, fb)):
        cells[:, at : at + 16] = tcgen05.factor_cells(factors, 0, cells[:, at : at + 16])
    descriptors = []
    for matrix, first, second in ((a, 0, 1 << 14), (b, 1 << 15, (1 << 15) + 2048)):
        lines, layout = in_lines(matrix, form), tcgen05.layouts(1, 1, len(matrix), False)
        for start, bytes_of, at in ((first, lines[:, :32], 96), (second, lines[:, 32:], 0)):
            rows = np.zeros((len(matrix), 128), np.uint8)
            rows[:, at : at + bytes_of.shape[1]] = bytes_of
            image = tcgen05.image(rows, "u8", layout, 128 * len(matrix))
            memory[start : start + len(image)] = image
        descriptors.append(layout._replace(start=first + 96, leading=second // LINE).bits | 1 << 52)
    wanted = cells.copy()
    wanted[:, COLUMN : COLUMN + n] = scaled.product(form, a, b, cells[:, COLUMN : COLUMN + n], fa, fb)
    found, _ = kernels.run(kernels.kernel(Product(of, *descriptors, ".block16").text), cells, memory=memory)
    np.testing.assert_array_equal(found, wanted)


def test_transposed_matrices() -> None:
    for transposed in product((False, True), repeat=2):
        check(ScaledFormat(EIGHTS[0], 32, transposed=transposed), 4, mode=1)


@pytest.mark.parametrize("form", [EIGHTS[0], EIGHTS[12], EIGHTS[24], FOURS[3]], ids=name_of)
def test_a_in_tensor_memory(form: Form) -> None:
    check(ScaledFormat(form, 16), 5, in_columns=True)


@pytest.mark.parametrize("form", [EIGHTS[5], FOURS[3]], ids=name_of)
def test_negated_products(form: Form) -> None:
    check(ScaledFormat(form, 16, negated=True), 6)


@pytest.mark.parametrize("form", [EIGHTS[3], *FOURS[2:]], ids=name_of)
def test_interpreted(form: Form) -> None:
    check(ScaledFormat(form, 16), 7, engine="interpreter")


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize(
    ("form", "bits", "message"),
    [
        (EIGHTS[0], 1 << 23, "no such factors"), (FOURS[0], 1 << 23, "no such factors"), (FOURS[2], 1 << 23, "no such factors"),
        (EIGHTS[0], 12 << 24, "not 128 rows"), (EIGHTS[0], 2 << 17, "columns are not"), (EIGHTS[0], 4, r"needs \.sp"),
        (EIGHTS[0], 1 << 31, "none of k 96"), (FOURS[0], 1 << 7, "no such elements"), (FOURS[0], 1 << 15, "not transposed"),
        (EIGHTS[4], 1 << 16, "not transposed"),
    ],
)  # fmt: skip
def test_descriptors_of_nothing(form: Form, bits: int, message: str, engine: str) -> None:
    format = ScaledFormat(form, 16)
    text = Product(format, 0, 0, names(form)[-1]).text.replace(f" {format.bits},", f" {format.bits ^ bits},")
    with pytest.raises(Fault, match=rf"tensor memory misuse(.|\n)*{message}"):
        kernels.run(kernels.kernel(text), np.zeros((128, 512), np.uint32), device=ptxemu.Device(engine=engine))


def test_a_sparse_matrix_of_64_rows_in_each_cta() -> None:
    one = Product(ScaledFormat(EIGHTS[0], 32, rows=128, sparse=True), 0, 0, ctas=2)
    with pytest.raises(Fault, match=r"tensor memory misuse(.|\n)*has 256 rows"):
        kernels.run(one.kernel, np.zeros((2, 128, 512), np.uint32))


@pytest.mark.parametrize(
    ("place", "message"), [(510, "not allocated"), (1 << 16, "start at lane 0"), ((1 << 30) + 510, "not allocated")]
)
def test_factors_that_are_nowhere(place: int, message: str) -> None:
    for side in (A_FACTORS, B_FACTORS):
        text = Product(ScaledFormat(EIGHTS[0], 96), 0, 0).text.replace(f"[%r0+{side}]", f"[%r0+{place}]")
        with pytest.raises(Fault, match=rf"tensor memory misuse(.|\n)*{message}"):
            kernels.run(kernels.kernel(text), np.zeros((128, 512), np.uint32))


def test_bits_above_an_address_of_factors_do_not_count() -> None:
    """CUTLASS keeps the byte there."""
    text = Product(ScaledFormat(EIGHTS[0], 16), 0, 0).text.replace(f"[%r0+{A_FACTORS}]", f"[%r0+{(3 << 30) + A_FACTORS}]")
    kernels.run(kernels.kernel(text), np.zeros((128, 512), np.uint32))
