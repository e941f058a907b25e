"""tcgen05.ld.red: a load whose registers are reduced to one, for each thread."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

import ptxemu
from tests.matrix import tcgen05_kernels as kernels
from tests.matrix import tcgen05_model as tcgen05
from tests.support.elementwise_oracle import F32

NAN = 0x7FFFFFFF
KINDS = [("u32", ""), ("s32", ""), *(("f32", modifiers) for modifiers in ("", ".abs", ".NaN", ".abs.NaN"))]


class Load(NamedTuple):
    """By each of four warps, from a column on."""

    shape: str
    number: int
    operation: str
    type: str
    modifiers: str
    column: int
    apart: int

    @property
    def text(self) -> str:
        name = f"tcgen05.ld.red.sync.aligned.{self.shape}.x{self.number}.{self.operation}{self.modifiers}.{self.type}"
        apart = f", {self.apart}" if self.shape == "16x32bx2" else ""
        return f"  {name} {kernels.registers(self.number)}, %x6, [%at+{self.column}]{apart};\n"


def loads(numbers: list[int]) -> Iterator[Load]:
    """Every operation on every type, in shapes and numbers that take turns."""
    forms = list(product(("32x32b", "16x32bx2"), numbers))
    for index, ((kind, modifiers), operation) in enumerate(product(KINDS, ("min", "max"))):
        for shape, number in forms:
            yield Load(shape, number, operation, kind, modifiers, (7 * index) % 50, 130 + index)


def text_of(load: Load) -> str:
    body = f"{load.text}  tcgen05.wait::ld.sync.aligned;\n  st.global.b32 [%values], %x6;\n" + kernels.to_host(
        min(load.number, 8), 1
    )
    return kernels.kernel(body).replace(".target sm_100a", ".target sm_103a")


def texts() -> Iterator[str]:
    """Kernels with every form."""
    for load in loads([2, 4, 8, 16, 32, 64, 128]):
        yield text_of(load)


def reduced(load: Load, words: list[int]) -> int:
    """What the words of one thread are reduced to."""
    best = max if load.operation == "max" else min
    if load.type != "f32":
        return best(words, key=lambda word: word - (word >> 31 << 32 if load.type == "s32" else 0))
    words = [word & 0x7FFFFFFF for word in words] if "abs" in load.modifiers else words
    numbers = [word for word in words if not F32.is_nan(word)]
    if not numbers or ("NaN" in load.modifiers and len(numbers) < len(words)):
        return NAN
    return best(numbers, key=lambda word: -(word & 0x7FFFFFFF) - 1 if word >> 31 else word)  # -0 is less than +0


def cells_of(seed: int) -> np.ndarray:
    """Random words, zeros of both signs, infinities, subnormal numbers and NaNs; in some lanes nothing but NaNs."""
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, 1 << 32, (tcgen05.LANES, tcgen05.COLUMNS), np.uint32)
    special = np.array([0, 1 << 31, 0x7F800000, 0xFF800000, 1, 0x80000001, 0x7FC00001, 0xFFFFFFFF], np.uint32)
    cells = np.where(rng.random(cells.shape) < 0.02, rng.choice(special, cells.shape), cells)
    cells[3::8] = rng.choice(special[:2], cells[3::8].shape)
    cells[5::16] = 0x7FC12345
    return cells


def check(load: Load, engine: str) -> None:
    cells = cells_of(load.number)
    _, values = kernels.run(text_of(load), cells, device=ptxemu.Device(engine=engine))
    places = tcgen05.places(load.shape, load.number, False, load.apart)
    words = np.concatenate([tcgen05.loaded(cells, places, 32 * warp, load.column) for warp in range(4)], axis=1)
    shown = min(load.number, 8)
    np.testing.assert_array_equal(values[1 : 1 + shown], words[:shown])
    assert values[0].tolist() == [reduced(load, words[:, thread].tolist()) for thread in range(128)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("load", list(loads([2, 8, 128])), ids=str)
def test_reductions(load: Load) -> None:
    check(load, "jit")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("load", list(loads([4])), ids=str)
def test_interpreted(load: Load) -> None:
    check(load, "interpreter")
