"""tcgen05.mma.ws: of few rows, whose columns are spread over all lanes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from ptxemu.text.errors import Fault
from tests.matrix import tcgen05_kernels as kernels
from tests.matrix import tcgen05_model as tcgen05
from tests.matrix import tcgen05_products as products
from tests.matrix.tcgen05_model import Format, Zeros
from tests.matrix.tcgen05_products import Multiplication
from tests.matrix.test_tcgen05 import SOME, Raw

WORDS = [f".collector::b{buffer}::{word}" for buffer in range(4) for word in ("fill", "use", "lastuse", "discard")]
NO_ZEROS = Zeros((0, 0), (False, False), 1, 1, on=False)


def check(format: Format, in_columns: bool = False, any: bool = False, mode: int = 0, engine: str = "jit",
          **options: object) -> None:  # fmt: skip
    one = Multiplication(format, stationary=True, a=None if in_columns else 0, **options)  # type: ignore[arg-type]
    products.check(one, any=any, mode=mode, engine=engine)


def texts() -> Iterator[str]:
    """Kernels with every form."""
    for (a, b, d), inside, sparse, collector in product(SOME, (0, None), (False, True), ("", *WORDS)):
        zeros = None if collector else NO_ZEROS
        format = Format(a, b, d, 64, 64, sparse=sparse)
        yield Multiplication(format, stationary=True, a=inside, collector=collector, zeros=zeros).text


@pytest.mark.sampled(3)
@pytest.mark.parametrize("rows", [32, 64, 128])
@pytest.mark.parametrize("columns", [64, 128, 256])
@pytest.mark.parametrize("types", [*SOME, ("f16", "f16", "f16")], ids=".".join)
def test_shapes(types: tuple[str, str, str], rows: int, columns: int) -> None:
    check(Format(*types, rows, columns), any=columns == 128, adds=columns != 256)


@pytest.mark.parametrize("rows", [32, 64, 128])
@pytest.mark.parametrize("types", SOME, ids=".".join)
def test_a_in_tensor_memory(types: tuple[str, str, str], rows: int) -> None:
    """The lanes of each part of the columns have all of it."""
    check(Format(*types, rows, 64), in_columns=True)


@pytest.mark.parametrize("rows", [32, 64])
def test_layouts(rows: int) -> None:
    for mode, *transposed in product(range(1, 4), (False, True), (False, True)):
        check(Format("bf16", "bf16", "f32", rows, 64, transposed=(transposed[0], transposed[1])), mode=mode)


@pytest.mark.parametrize("rows", [32, 64, 128])
def test_interpreted(rows: int) -> None:
    parts = 128 // rows
    zeros = Zeros((0, 1, 2, 1)[:parts], (True, True, False, False)[:parts], 3, 4, 2)
    check(Format("f16", "f16", "f32", rows, 64, most_ahead=8), engine="interpreter", zeros=zeros)


@pytest.mark.parametrize("collector", WORDS[::5])
def test_what_hardware_keeps_changes_nothing(collector: str) -> None:
    check(Format("s8", "s8", "s32", 32, 64), collector=collector)


PLAIN = Format("f16", "f16", "f32", 32, 64)


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize(
    ("bits", "message"),
    [(PLAIN._replace(rows=16).bits, "not 32, 64 or 128"), (PLAIN._replace(rows=0).bits, "not 32, 64 or 128"),
     (PLAIN._replace(rows=256).bits, "not 32, 64 or 128"), (PLAIN._replace(columns=96).bits, "not 64, 128 or 256"),
     (PLAIN._replace(columns=0).bits, "not 64, 128 or 256")],
)  # fmt: skip
def test_descriptors_of_nothing(bits: int, message: str, engine: str) -> None:
    with pytest.raises(Fault, match=rf"tensor memory misuse(.|\n)*{message}"):
        products.launch(Multiplication(Raw("f16", bits), stationary=True), engine)


# ---------------------------------------------------------------- columns that are taken for zero

EXAMPLES = [
    (Zeros((0,), (False,), 3, 4, on=False), ["0000"]), (Zeros((0,), (False,), 3, 4), ["111 0000 111 0000"]),
    (Zeros((0, 0), (True, False), 3, 4), ["111 0000 111 0000 111", "0000 111 0000 111 0000"]),
    (Zeros((0, 1, 2, 1), (True, True, False, False), 3, 4, 2),
     ["0000 111 0000 111", "0000 111 0000 11", "111 0000 111 00", "111 0000 111 000"]),
]  # fmt: skip
"""Those of the manual, with the last bits that it prints of each part."""


@pytest.mark.parametrize(("zeros", "parts"), EXAMPLES)
def test_the_model_has_the_examples_of_the_manual(zeros: Zeros, parts: list[str]) -> None:
    for found, wanted in zip(np.split(zeros.mask(128), len(parts)), parts, strict=True):
        bits = wanted.replace(" ", "")[::-1]
        assert "".join(str(int(one)) for one in found[: len(bits)]) == bits


@pytest.mark.parametrize("rows", [32, 64, 128])
def test_columns_that_are_zero(rows: int) -> None:
    """Spans of all lengths, first ones that would start behind their end, and columns that are left out."""
    rng, parts = np.random.default_rng(5), 128 // rows
    for types, ahead in product(SOME, (0, 5, 8)):
        zeros, others = (int(n) for n in rng.choice((1, 2, 7, 100, 256), 2))
        starts = tuple(int(n) for n in rng.integers(0, 12, parts))
        taken = Zeros(starts, tuple(bool(x) for x in rng.integers(0, 2, parts)), zeros, others, ahead)
        sparse, transposed = bool(rng.integers(0, 2)), (False, types[0] == "f16")
        check(Format(*types, rows, 64, sparse=sparse, transposed=transposed, most_ahead=ahead + 7 & ~7), zeros=taken)


def test_columns_that_are_zero_are_not_read() -> None:
    """Not in whole tiles."""
    b = tcgen05.layouts(0, 2, 8, False)._replace(leading=8)
    one = Multiplication(PLAIN._replace(rows=128), stationary=True, b=(kernels.SHARED >> 4) - 16 + b.bits)
    with pytest.raises(Fault, match="illegal address"):
        products.launch(one)
    products.launch(one._replace(zeros=Zeros((0,), (False,), 256, 8)))


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize(
    ("rows", "most", "bits", "message"),
    [(64, 0, 1 << 56, "shifted further"), (64, 16, 17 << 56, "shifted further"), (32, 32, 17 << 56, "shifted further"),
     (64, 0, 1 << 36, "without a meaning"), (64, 0, 1 << 63, "without a meaning")],
)  # fmt: skip
def test_zero_columns_that_are_none(rows: int, most: int, bits: int, message: str, engine: str) -> None:
    one = Multiplication(PLAIN._replace(rows=rows, most_ahead=most), stationary=True, zeros=NO_ZEROS)
    with pytest.raises(Fault, match=rf"tensor memory misuse(.|\n)*{message}"):
        products.launch(one, engine, one.text.replace(f"%v, {NO_ZEROS.bits};", f"%v, {bits};"))
