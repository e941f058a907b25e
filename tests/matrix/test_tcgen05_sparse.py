"""tcgen05.mma.sp: A holds half of its elements, and metadata in tensor memory tell which."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from ptxemu.text.errors import Fault
from tests.matrix import tcgen05_products as products
from tests.matrix.tcgen05_model import Format
from tests.matrix.tcgen05_products import METADATA, Multiplication
from tests.matrix.test_tcgen05 import COLLECTORS, SOME

TYPES = [
    *SOME, ("f16", "f16", "f16"), ("bf16", "f16", "f32"), ("e5m2", "e2m1", "f16"), ("e2m3", "e3m2", "f32"), ("u8", "s8", "s32"),
]  # fmt: skip


def sparse(types: tuple[str, str, str], rows: int, columns: int, **options: object) -> Format:
    return Format(*types, rows, columns, sparse=True, **options)  # type: ignore[arg-type]


def texts() -> Iterator[str]:
    """Kernels with every form for one CTA."""
    for types, inside, off in product(SOME, (0, None), ((), (1,) * 4)):
        for number, collector in enumerate(["", *COLLECTORS]):
            shift = number if number and types[0] in ("f16", "tf32") else None
            yield Multiplication(sparse(types, 128, 16), a=inside, off=off, collector=collector, shift=shift).text


@pytest.mark.sampled(3)
@pytest.mark.parametrize("columns", [16, 80, 256])
@pytest.mark.parametrize("types", TYPES, ids=".".join)
def test_types(types: tuple[str, str, str], columns: int) -> None:
    products.check(Multiplication(sparse(types, 128, columns)), any=columns == 80)


@pytest.mark.parametrize("types", SOME, ids=".".join)
def test_a_in_tensor_memory(types: tuple[str, str, str]) -> None:
    products.check(Multiplication(sparse(types, 128, 32), a=None))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("types", TYPES, ids=".".join)
def test_pairs(types: tuple[str, str, str]) -> None:
    products.check(Multiplication(sparse(types, 256, 64), 2), any=True)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rows", [32, 64, 128])
@pytest.mark.parametrize("types", SOME, ids=".".join)
def test_few_rows(types: tuple[str, str, str], rows: int) -> None:
    for a in (0, None):
        products.check(Multiplication(sparse(types, rows, 64), stationary=True, a=a))


@pytest.mark.parametrize("ctas", [1, 2])
@pytest.mark.parametrize("types", SOME, ids=".".join)
def test_64_rows_in_half_the_lanes(types: tuple[str, str, str], ctas: int) -> None:
    """Of a CTA, or of each of a pair; metadata are in the same lanes."""
    selector = int(types[0] == "f16")
    products.check(Multiplication(sparse(types, 64 * ctas, 32, selector=selector), ctas), any=True)
    products.check(Multiplication(sparse(types, 64 * ctas, 32), ctas, a=None, lane=16, off=(0xF0F0F0F0,) * 4 * ctas))


@pytest.mark.parametrize("types", [("f16", "f16", "f32"), ("tf32", "tf32", "f32")], ids=".".join)
@pytest.mark.parametrize("selector", [0, 1])
def test_two_columns_of_metadata(selector: int, types: tuple[str, str, str]) -> None:
    products.check(Multiplication(sparse(types, 128, 16, selector=selector)), seed=3)


@pytest.mark.parametrize("mode", range(4))
def test_layouts(mode: int) -> None:
    for types, *transposed in product([("f16", "f16", "f32"), ("s8", "s8", "s32")], (False, True), (False, True)):
        format = sparse(types, 128, 64, transposed=(transposed[0], transposed[1]))
        if mode == 3 and not transposed[1]:
            continue  # a row of B takes 64 bytes
        products.check(Multiplication(format), mode=mode)


def test_operands() -> None:
    format = sparse(("f16", "f16", "f32"), 128, 16, negated=(True, False))
    products.check(Multiplication(format, off=(1, 2, 4, 0xFFFF), shift=2, collector=COLLECTORS[0]))
    products.check(Multiplication(sparse(("s8", "s8", "s32"), 128, 16, saturates=True), adds=False))


@pytest.mark.parametrize("types", SOME, ids=".".join)
def test_interpreted(types: tuple[str, str, str]) -> None:
    products.check(Multiplication(sparse(types, 128, 16)), engine="interpreter")


PLAIN = sparse(("f16", "f16", "f32"), 128, 16)
BYTES = sparse(("s8", "s8", "s32"), 128, 16)


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize(
    ("format", "bits", "message"),
    [(PLAIN, 4, "needs a descriptor of a sparse"), (PLAIN, 2, "no metadata of that number"), (BYTES, 1, "no metadata of that")],
)  # fmt: skip
def test_descriptors_of_nothing(format: Format, bits: int, message: str, engine: str) -> None:
    one = Multiplication(format)
    with pytest.raises(Fault, match=rf"tensor memory misuse(.|\n)*{message}"):
        products.launch(one, engine, one.text.replace(f" {format.bits},", f" {format.bits ^ bits},"))


@pytest.mark.parametrize(
    ("format", "place", "message"),
    [
        (PLAIN, 512, "not allocated"),
        (BYTES, 511, "not allocated"),
        (PLAIN, 1 << 16, "starts at lane 0"),
        (PLAIN._replace(rows=64), (16 << 16) + METADATA, "in the lanes of the sums"),
    ],
)
def test_metadata_that_are_nowhere(format: Format, place: int, message: str) -> None:
    one = Multiplication(format)
    with pytest.raises(Fault, match=rf"tensor memory misuse(.|\n)*{message}"):
        products.launch(one, text=one.text.replace(f"[%r0+{METADATA}]", f"[%r0+{place}]"))


@pytest.mark.parametrize("ctas", [1, 2])
def test_any_descriptor_multiplies_or_faults(ctas: int) -> None:
    """Programs may make them of anything, of pairs, of sparse matrices, and of few rows."""
    rng, outcomes = np.random.default_rng(13), set()
    for number in range(30):
        few = ctas == 1 and number % 2 == 0
        format = Format("f16", "f16", "f32", 128 if few else 128 * ctas, 64, sparse=bool(rng.integers(0, 2)))
        a, b = (int(x) & 0x1_00FF_00FF_00FF for x in rng.integers(0, 1 << 64, 2, np.uint64))
        one = Multiplication(format, ctas, few, a if number % 3 else None, b)
        bits = format.bits ^ (1 << int(rng.integers(0, 32)) if number % 4 else 0)
        place = int(rng.integers(0, 1 << 32)) if number % 5 == 0 else METADATA
        text = one.text.replace(f" {format.bits},", f" {bits},").replace(f"[%r0+{METADATA}]", f"[%r0+{place}]")
        try:
            products.launch(one, text=text)
            outcomes.add("multiplied")
        except Fault as fault:
            outcomes.add(fault.details.kind)
    assert outcomes == {"multiplied", "illegal address", "tensor memory misuse"}
