"""tcgen05.mma.ws: of few rows, whose columns are spread over all lanes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

from ptxemu.text.errors import Fault
from tests.matrix import tcgen05_products as products
from tests.matrix.tcgen05_model import Format
from tests.matrix.tcgen05_products import Multiplication
from tests.matrix.test_tcgen05 import SOME, Raw

WORDS = [f".collector::b{buffer}::{word}" for buffer in range(4) for word in ("fill", "use", "lastuse", "discard")]
NO_ZEROS = 1 << 39


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
    check(Format("f16", "f16", "f32", rows, 64), engine="interpreter", zeros=NO_ZEROS)


@pytest.mark.parametrize("collector", WORDS[::5])
def test_what_hardware_keeps_changes_nothing(collector: str) -> None:
    check(Format("s8", "s8", "s32", 32, 64), collector=collector)


PLAIN = Format("f16", "f16", "f32", 32, 64)


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize(
    ("bits", "message"),
    [(PLAIN._replace(rows=16).bits, "not 32, 64 or 128"), (PLAIN._replace(rows=0).bits, "not 32, 64 or 128"),
     (PLAIN._replace(rows=256).bits, "not 32, 64 or 128"), (PLAIN._replace(columns=96).bits, "not 64, 128 or 256"),
     (PLAIN._replace(columns=0).bits, "not 64, 128 or 256"), (PLAIN.bits | 1 << 30, "shifts of columns"),
     (PLAIN.bits | 2 << 30, "shifts of columns")],
)  # fmt: skip
def test_descriptors_of_nothing(bits: int, message: str, engine: str) -> None:
    with pytest.raises(Fault, match=rf"tensor memory misuse(.|\n)*{message}"):
        products.launch(Multiplication(Raw("f16", bits), stationary=True), engine)


@pytest.mark.parametrize("engine", ["jit", "interpreter"])
@pytest.mark.parametrize("zeros", [0, 3 << 48, NO_ZEROS | 1 << 56, NO_ZEROS | 1 << 61])
def test_zero_columns_are_not_supported(zeros: int, engine: str) -> None:
    with pytest.raises(Fault, match=r"tensor memory misuse(.|\n)*taken for zero"):
        products.launch(Multiplication(PLAIN, stationary=True, zeros=zeros), engine)
