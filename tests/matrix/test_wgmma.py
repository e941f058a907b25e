"""wgmma: every row and shape, layouts in shared memory, and sums as hardware makes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle, product
from typing import NamedTuple

import numpy as np
import pytest

import ptxemu
from ptxemu.text.errors import PtxError
from tests.matrix import wgmma_model as wgmma
from tests.matrix.wgmma_kernels import SHARED, Product, bare_kernel, kernel, run
from tests.support import matrix_model as model

LINE = wgmma.LINE
B_AT = 1 << 14
WIDTHS = {"f16": 16, "bf16": 16, "tf32": 8, "e4m3": 32, "e5m2": 32, "s8": 32, "u8": 32, "b1": 256}  # k
COLUMNS = range(8, 257, 8)


class Kind(NamedTuple):
    """A row of the table, but for its shape: types of d and multiplicands, options, what follows the types and what A is."""

    d: str
    a: str
    b: str
    sparse: bool
    in_memory: bool
    option: str = ""

    @property
    def k(self) -> int:
        return WIDTHS[self.a] * (2 if self.sparse else 1)

    @property
    def columns(self) -> list[int]:
        return [n for n in COLUMNS if self.d != "s32" or n in (8, 24) or n % 16 == 0]

    @property
    def lines(self) -> int:
        """Of 16 bytes that B has along k."""
        return self.k * model.BITS[self.a] // 128

    @property
    def transposes(self) -> bool:
        return self.a in ("f16", "bf16")

    def name(self, n: int, aligned: str = ".aligned") -> str:
        sparse = ".sp" if self.sparse else ""
        return f"wgmma.mma_async{sparse}.sync{aligned}.m64n{n}k{self.k}.{self.d}.{self.a}.{self.b}{self.option}"

    def constants(self, signs: tuple[int, int] = (1, 1), transposed: tuple[bool, bool] = (False, False)) -> tuple[int, ...]:
        if self.d == "s32":
            return ()
        return (*signs, *(map(int, transposed if self.in_memory else transposed[1:]) if self.transposes else ()))


def name_of(kind: Kind) -> str:
    return kind.name(8).removeprefix("wgmma.mma_async") + ("" if kind.in_memory else "-registers")


FLOATS = ["f16 f16 f16", "f32 f16 f16", "f32 bf16 bf16", "f32 tf32 tf32", "f16 e4m3 e5m2", "f32 e5m2 e4m3"]
OTHERS = ["f16 e5m2 e4m3", "f16 e4m3 e4m3", "f32 e4m3 e5m2", "f32 e5m2 e5m2"]
WAYS = list(product((False, True), (True, False)))  # sparse, and A in memory


def of_rows() -> Iterator[Kind]:
    """One of each row."""
    for types, way in product(FLOATS, WAYS):
        yield Kind(*types.split(), *way)  # type: ignore[arg-type]
    for way in WAYS:
        yield Kind("s32", "s8", "u8", *way, ".satfinite")
    for in_memory in (True, False):
        yield Kind("s32", "b1", "b1", False, in_memory, ".and.popc")


def of_other_types() -> Iterator[Kind]:
    for types, way in product(OTHERS, WAYS):
        yield Kind(*types.split(), *way)  # type: ignore[arg-type]
    for pair, way in product(("s8 s8", "u8 s8", "u8 u8"), WAYS):
        yield Kind("s32", *pair.split(), *way)  # type: ignore[arg-type]


class Given(NamedTuple):
    """Matrices as bit patterns: A as it is stored, B with a column in each row; of a sparse A metadata, and the row of B's
    transpose that each element multiplies."""

    kind: Kind
    a: np.ndarray
    b: np.ndarray
    e: np.ndarray | None = None
    chosen: np.ndarray | None = None

    @property
    def registers(self) -> np.ndarray:
        per_row = self.a.shape[1]
        return wgmma.by_warp(self.a, self.kind.a, model.places_a(16, per_row, self.kind.a))

    def factors(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Values of A, and of B (k, n), or of a sparse A (64, k, n)."""
        right = model.values(self.b[:n].T, self.kind.b)
        return model.values(self.a, self.kind.a), right if self.chosen is None else right[self.chosen]

    def sums(self, c: np.ndarray, sign: int = 1) -> np.ndarray:
        """The exact ones, as bit patterns, of C's."""
        kind, n = self.kind, c.shape[1]
        left, right = self.factors(n)
        total = model.product(sign * left, right, model.values(c, kind.d))
        if kind.d != "s32":
            return model.patterns(total, kind.d)
        limits = -(2**31), 2**31 - 1
        return (np.clip(total, *limits) if "satfinite" in kind.option else total).astype(np.int64) & 0xFFFFFFFF


def pattern(values: np.ndarray, type: str) -> np.ndarray:
    """The bit patterns of numbers that a type holds exactly."""
    if type in ("s8", "u8", "b1", "s32"):
        return values.astype(np.int64) & (1 << model.BITS[type]) - 1
    if type == "f16":
        return values.astype(np.float16).view(np.uint16).astype(np.int64)
    if type in ("e4m3", "e5m2"):
        return values.astype(model.NARROW[type][0]).view(np.uint8).astype(np.int64)
    words = values.astype(np.float32).view(np.uint32).astype(np.int64)
    return words >> 16 if type == "bf16" else words


def small(rng: np.random.Generator, shape: tuple[int, int], type: str) -> np.ndarray:
    """Bit patterns of small integers."""
    low, high = {"u8": (0, 256), "s8": (-128, 128), "b1": (0, 2)}.get(type, (-3, 4))
    return pattern(rng.integers(low, high, shape), type)


def metadata(rng: np.random.Generator, type: str) -> np.ndarray:
    """A word for each of 128 threads."""
    pairs = [0b0100, 0b1110] if type == "tf32" else [i | j << 2 for i in range(4) for j in range(i + 1, 4)]
    chosen = rng.choice(pairs, (128, 8)).astype(np.uint64)
    return (chosen << (4 * np.arange(8, dtype=np.uint64))).sum(axis=1).astype(np.uint32)


def given(kind: Kind, seed: int, selector: int = 0) -> Given:
    rng = np.random.default_rng(seed)
    a, b = small(rng, (64, WIDTHS[kind.a]), kind.a), small(rng, (256, kind.k), kind.b)
    if not kind.sparse:
        return Given(kind, a, b)
    e = metadata(rng, kind.a)
    return Given(kind, a, b, e, chosen(kind, e, selector))


def chosen(kind: Kind, e: np.ndarray, selector: int) -> np.ndarray:
    form = model.Form(f"mma.sp.sync.aligned.m16n8k{kind.k}.row.col.f32.{kind.a}.{kind.a}.f32")
    words = [int(word) for word in e]
    return np.concatenate([model.chosen(form, words[32 * w : 32 * w + 32], selector) for w in range(4)])


def in_shared(of: Given, a: wgmma.Layout, b: wgmma.Layout) -> np.ndarray:
    """Shared memory with both matrices."""
    memory = np.zeros(SHARED, np.uint8)
    memory[:B_AT] = wgmma.image(of.a, of.kind.a, a, B_AT)
    memory[B_AT:] = wgmma.image(of.b, of.kind.b, b, SHARED - B_AT)
    return memory


def start_sums(kind: Kind, n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if kind.d == "s32":
        return rng.choice([0, 1000, -1000, 2**31 - 5, -(2**31)], (64, n)) & 0xFFFFFFFF
    return pattern(rng.integers(-100, 101, (64, n)), kind.d)


def check(
    kind: Kind, products: list[Product], of: Given, memory: np.ndarray, signs: list[tuple[int, bool]], **options: object
) -> None:
    """Results of products of one kind against exact sums; ``signs`` are those of each, and whether C is added."""
    starts = [start_sums(kind, one.n, index) for index, one in enumerate(products)]
    c = [wgmma.by_warp(start, kind.d, wgmma.places_d(one.n)) for start, one in zip(starts, products, strict=True)]
    found = run(products, memory, c, of.registers, of.e, **options)  # type: ignore[arg-type]
    for one, start, registers, (sign, added) in zip(products, starts, found, signs, strict=True):
        want = of.sums(start if added else np.zeros_like(start), sign)
        np.testing.assert_array_equal(wgmma.from_warps(registers, kind.d, one.n), want, err_msg=one.text)


def plain(kind: Kind) -> tuple[wgmma.Layout, wgmma.Layout]:
    """Layouts of A and B that are not swizzled."""
    return wgmma.layouts(0, False, 64, 2), wgmma.layouts(0, False, 256, kind.lines)


def products_of(kind: Kind, columns: Sequence[int]) -> list[Product]:
    a, b = plain(kind)
    aligned = cycle([".aligned", ""])
    return [
        Product(kind.name(n, next(aligned)), a.bits if kind.in_memory else None, b.bits + B_AT // LINE,
                0 if kind.sparse else None, "1", kind.constants())
        for n in columns
    ]  # fmt: skip


def texts() -> Iterator[str]:
    """Kernels with every instruction of the tests of rows, shapes and types."""
    for kind in of_rows():
        yield bare_kernel(products_of(kind, kind.columns))
    for kind in of_other_types():
        yield kernel(products_of(kind, [8, 16]))


def check_shapes(kind: Kind, columns: Sequence[int], **options: object) -> None:
    of = given(kind, 1)
    products = products_of(kind, columns)
    check(kind, products, of, in_shared(of, *plain(kind)), [(1, True)] * len(products), **options)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("first", range(4))
@pytest.mark.parametrize("kind", list(of_rows()), ids=name_of)
def test_all_shapes(kind: Kind, first: int) -> None:
    """A quarter of them."""
    check_shapes(kind, kind.columns[first::4])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", list(of_other_types()), ids=name_of)
def test_other_types(kind: Kind) -> None:
    check_shapes(kind, [8, 128])


@pytest.mark.parametrize("kind", list(of_rows()), ids=name_of)
def test_interpreted(kind: Kind) -> None:
    check_shapes(kind, [8, 24], device=ptxemu.Device(engine="interpreter"))


# ---------------------------------------------------------------- operands


@pytest.mark.parametrize("scale", ["0", "1", "%p", "%q"])
@pytest.mark.parametrize("kind", [Kind("f32", "f16", "f16", False, True), Kind("f16", "e4m3", "e5m2", True, False),
                                  Kind("s32", "s8", "s8", False, True)], ids=lambda kind: name_of(kind))  # fmt: skip
def test_scale_of_c(kind: Kind, scale: str) -> None:
    of, added = given(kind, 2), scale in ("1", "%p")
    (one,) = products_of(kind, [40 if kind.d != "s32" else 48])
    check(kind, [one._replace(scale=scale)], of, in_shared(of, *plain(kind)), [(1, added)])


@pytest.mark.parametrize("like", ["", "exact"])
@pytest.mark.parametrize("types", FLOATS)
def test_negated_products(types: str, like: str) -> None:
    kind = Kind(*types.split(), True, True)  # type: ignore[arg-type]
    of, signs = given(kind, 3), list(product((1, -1), repeat=2))
    products = [products_of(kind, [24])[0]._replace(constants=kind.constants(pair)) for pair in signs]
    check(kind, products, of, in_shared(of, *plain(kind)), [(x * y, True) for x, y in signs], like=like)


@pytest.mark.parametrize("type", ["f16", "bf16", "tf32"])
def test_sparsity_selectors(type: str) -> None:
    kind = Kind("f32", type, type, True, True)
    (one,) = products_of(kind, [16])
    for selector in range(2):
        of = given(kind, 4, selector)
        check(kind, [one._replace(selector=selector)], of, in_shared(of, *plain(kind)), [(1, True)])
    with pytest.raises(PtxError, match=r"operand 5 .* must be"):
        ptxemu.loads(kernel([one._replace(selector=2)]))


@pytest.mark.parametrize(
    ("types", "sparse", "version"),
    [("f32 e4m3 e5m2", False, "8.0"), ("f32 e4m3 e5m2", True, "8.2"), ("s32 u8 u8", True, "8.2"),
     ("s32 s8 s8", False, "8.0"), ("s32 s8 u8", False, "8.4"), ("s32 u8 s8", True, "8.4")],
)  # fmt: skip
def test_versions_that_have_them(types: str, sparse: bool, version: str) -> None:
    """As ptxas 13.0 says."""
    kind = Kind(*types.split(), sparse, True)  # type: ignore[arg-type]
    text = kernel(products_of(kind, [8]))
    before = "7.8" if version == "8.0" else f"8.{int(version[-1]) - 1}"
    ptxemu.loads(text.replace(".version 8.4", f".version {version}"), strict=True)
    with pytest.raises(PtxError, match=f"needs PTX {version} "):
        ptxemu.loads(text.replace(".version 8.4", f".version {before}"), strict=True)


# ---------------------------------------------------------------- layouts


@pytest.mark.sampled(6)
@pytest.mark.parametrize("b_mode", range(4))
@pytest.mark.parametrize("a_mode", range(4))
@pytest.mark.parametrize("transposed", list(product((False, True), repeat=2)))
def test_layouts(a_mode: int, b_mode: int, transposed: tuple[bool, bool]) -> None:
    kind = Kind("f32", "f16", "f16", False, True)
    of = given(kind, 5)
    a, b = wgmma.layouts(a_mode, transposed[0], 64, 2), wgmma.layouts(b_mode, transposed[1], 256, 2)
    name = kind.name(256)
    one = Product(name, a.bits, b.bits + B_AT // LINE, constants=kind.constants(transposed=transposed))
    check(kind, [one], of, in_shared(of, a, b), [(1, True)])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize("type", ["tf32", "e4m3", "s8", "b1"])
def test_layouts_of_other_types(type: str, mode: int) -> None:
    kind = Kind("s32" if type in ("s8", "b1") else "f32", type, type, False, True, ".and.popc" if type == "b1" else "")
    of = given(kind, 6)
    a, b = wgmma.layouts(mode, False, 64, 2), wgmma.layouts(mode, False, 256, 2)
    one = Product(kind.name(48), a.bits, b.bits + B_AT // LINE, constants=kind.constants())
    check(kind, [one], of, in_shared(of, a, b), [(1, True)])


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_layouts_of_sparse_products(mode: int) -> None:
    """Where a line of B along k has room in an atom."""
    kind = Kind("f32", "f16", "f16", True, True)
    of = given(kind, 7)
    for transposed in (False, True):
        a, b = wgmma.layouts(mode, False, 64, 2), wgmma.layouts(mode, transposed, 256, 4)
        constants = kind.constants(transposed=(False, transposed))
        one = Product(kind.name(64), a.bits, b.bits + B_AT // LINE, 0, constants=constants)
        check(kind, [one], of, in_shared(of, a, b), [(1, True)])


def test_slices_of_an_atom_along_k() -> None:
    """Of rows of 128 bytes, 32 at a time: their descriptors start within the atom."""
    kind = Kind("f32", "f16", "f16", False, True)
    rng = np.random.default_rng(8)
    a, b = small(rng, (64, 64), "f16"), small(rng, (64, 64), "f16")
    layout = wgmma.layouts(1, False, 64, 8)
    memory = np.concatenate([wgmma.image(one, "f16", layout, size) for one, size in ((a, B_AT), (b, SHARED - B_AT))])
    for part in range(4):
        columns = slice(16 * part, 16 * part + 16)
        of = Given(kind, a[:, columns], b[:, columns])
        one = Product(kind.name(64), layout.bits + 2 * part, layout.bits + B_AT // LINE + 2 * part, constants=kind.constants())
        check(kind, [one], of, memory, [(1, True)])


@pytest.mark.parametrize("mode", [1, 2, 3])
def test_patterns_that_start_off_their_boundary(mode: int) -> None:
    """The base offset of a descriptor (PTX ISA, "Matrix Descriptor Format")."""
    kind = Kind("f32", "f16", "f16", False, True)
    of = given(kind, 9)
    for phase in range(1, 8):
        a, b = (wgmma.layouts(mode, False, rows, 2)._replace(start=128 * phase, phase=phase) for rows in (64, 64))
        of = of._replace(b=of.b[:64])
        one = Product(kind.name(64), a.bits, b.bits + B_AT // LINE, constants=kind.constants())
        check(kind, [one], of, in_shared(of, a, b), [(1, True)])


# ---------------------------------------------------------------- sums


def near(rng: np.random.Generator, shape: tuple[int, int], type: str) -> np.ndarray:
    return pattern(rng.standard_normal(shape).astype(np.float32) * rng.choice([0.01, 1, 30], shape), type)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("types", [*FLOATS, *OTHERS])
def test_sums_are_those_of_sm_90(types: str, sparse: bool) -> None:
    """By the model of tests/support/tensor_core_model.py."""
    kind = Kind(*types.split(), sparse, True)  # type: ignore[arg-type]
    rng, of = np.random.default_rng(10), given(kind, 10)
    of = of._replace(a=near(rng, of.a.shape, kind.a), b=near(rng, of.b.shape, kind.b))
    start = near(rng, (64, 32), kind.d)
    (one,) = products_of(kind, [32])
    (got,) = run([one], in_shared(of, *plain(kind)), [wgmma.by_warp(start, kind.d, wgmma.places_d(32))], e=of.e)
    want = wgmma.product(*of.factors(32), model.values(start, kind.d), (kind.a, kind.b, kind.d))
    np.testing.assert_array_equal(wgmma.from_warps(got, kind.d, 32), model.patterns(want, kind.d))
