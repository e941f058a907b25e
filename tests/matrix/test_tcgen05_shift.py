"""tcgen05.shift, and tcgen05.mma with .ashift: rows in tensor memory that move to the lanes before theirs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

import ptxemu
from ptxemu.text.errors import Fault
from tests.matrix import tcgen05_kernels as kernels
from tests.matrix import tcgen05_model as tcgen05
from tests.matrix import tcgen05_products as products
from tests.matrix.tcgen05_model import Format
from tests.matrix.tcgen05_products import Multiplication
from tests.matrix.test_tcgen05 import COLLECTORS, SOME

LAST = COLLECTORS[2:]


def texts() -> Iterator[str]:
    """Kernels with every form."""
    yield kernels.kernel("  @%one tcgen05.shift.cta_group::1.down [%b];\n")
    yield kernels.pair_kernel("  @%one tcgen05.shift.cta_group::2.down [%b];\n")
    for sums, sparse, ctas, masked in product(SOME, (False, True), (1, 2), (False, True)):
        for number, collector in enumerate(["", *LAST]):
            shift = number if number and sums[0] in ("f16", "tf32") else None
            format, off = Format(*sums, 128 * ctas, 32, sparse=sparse), (1,) * 4 * ctas * masked
            yield Multiplication(format, ctas, a=None, off=off, collector=collector, shift=shift, moves=True).text


def random_cells(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 1 << 32, (*shape, tcgen05.LANES, tcgen05.COLUMNS), np.uint32)


@pytest.mark.parametrize(("lane", "engine"), [(0, "jit"), (96, "jit"), (32, "interpreter")])
def test_rows_move(lane: int, engine: str) -> None:
    """Those of all lanes, once for each thread."""
    shift = f"  setp.lt.u32 %more, %t, 2;\n  @%more tcgen05.shift.cta_group::1.down [%b+{(lane << 16) + 33}];\n"
    found, _ = kernels.run(kernels.kernel(shift + kernels.ARRIVED), random_cells(), device=ptxemu.Device(engine=engine))
    np.testing.assert_array_equal(found, tcgen05.moved(tcgen05.moved(random_cells(), 33), 33))


def test_rows_of_both_ctas_move() -> None:
    shift = f"  @%one tcgen05.shift.cta_group::2.down [%b+504];\n{kernels.ARRIVED}"
    found, _ = kernels.run(kernels.pair_kernel(shift, 1), random_cells(2))
    np.testing.assert_array_equal(found, [tcgen05.moved(one, 504) for one in random_cells(2)])


@pytest.mark.parametrize(
    ("place", "message"), [(16 << 16, "multiple of 32 lanes"), (505, "not allocated"), (128 << 16, "not all")]
)
def test_rows_that_are_nowhere(place: int, message: str) -> None:
    text = kernels.kernel(f"  @%one tcgen05.shift.cta_group::1.down [%b+{place}];\n")
    with pytest.raises(Fault, match=rf"tensor memory misuse(.|\n)*{message}"):
        kernels.run(text, np.zeros((tcgen05.LANES, tcgen05.COLUMNS), np.uint32))


@pytest.mark.parametrize(("ctas", "rows"), [(1, 128), (2, 128), (2, 256)])
@pytest.mark.parametrize("types", SOME, ids=".".join)
def test_a_moves_after_it_was_multiplied(types: tuple[str, str, str], ctas: int, rows: int) -> None:
    products.check(Multiplication(Format(*types, rows, 32), ctas, a=None, moves=True))


@pytest.mark.parametrize("ctas", [1, 2])
def test_a_sparse_matrix_moves(ctas: int) -> None:
    off = (1,) * 4 * ctas
    products.check(Multiplication(Format("f16", "f16", "f32", 128 * ctas, 32, sparse=True), ctas, a=None, off=off, moves=True))


@pytest.mark.parametrize(("ctas", "sparse"), [(1, False), (2, True)])
def test_rows_in_half_the_lanes_do_not_move(ctas: int, sparse: bool) -> None:
    with pytest.raises(Fault, match=r"tensor memory misuse(.|\n)*that have all lanes"):
        products.launch(Multiplication(Format("f16", "f16", "f32", 64 * ctas, 32, sparse=sparse), ctas, a=None, moves=True))


def test_interpreted() -> None:
    products.check(Multiplication(Format("bf16", "bf16", "f32", 128, 16), a=None, moves=True), engine="interpreter")
