"""PTX around a kernel body, launches of it, and thread coordinates as NumPy sees them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import ptxemu
from tests.support.places import KERNELS

HEADER = ".version 8.0\n.target sm_80\n.address_size 64\n"
REGISTERS = """\
  .reg .pred %p<24>; .reg .b16 %h<24>; .reg .b32 %r<64>; .reg .b64 %rd<64>; .reg .f32 %f<32>; .reg .f64 %d<16>;
"""
GLOBAL_INDEX = """\
  mov.u32 %r60, %tid.x; mov.u32 %r61, %ctaid.x; mov.u32 %r62, %ntid.x;
  mad.lo.s32 %r0, %r61, %r62, %r60;
"""

Extent = tuple[int, int, int]


def kernel(body: str, parameters: str = ".param .u64 out", declarations: str = "", name: str = "k") -> str:
    """A module with one entry; ``%p0-23 %h0-23 %r0-63 %rd0-63 %f0-31 %d0-15`` are declared."""
    return f"{HEADER}{declarations}\n.visible .entry {name}({parameters})\n{{\n{REGISTERS}{body}\n}}\n"


def module_of(name: str, workers: int = 2, **options: object) -> ptxemu.Module:
    """A file of the tests' kernels, on a device of its own."""
    device = ptxemu.Device(memory="64 MiB", workers=workers, **options)  # type: ignore[arg-type]
    return ptxemu.load(KERNELS / name, device=device)


def extent(value: int | Sequence[int]) -> Extent:
    x, y, z = [*([value] if isinstance(value, int) else value), 1, 1][:3]
    return x, y, z


class Threads:
    """The coordinates of every thread of a launch, in launch order: CTA by CTA, x fastest."""

    def __init__(self, grid: int | Sequence[int], block: int | Sequence[int]) -> None:
        self.grid, self.block = extent(grid), extent(block)
        self.per_block = int(np.prod(self.block))
        self.count = int(np.prod(self.grid)) * self.per_block
        index = np.arange(self.count)
        self.rank = index % self.per_block
        self.tid = _coordinates(self.rank, self.block)
        self.ctaid = _coordinates(index // self.per_block, self.grid)
        self.lane = self.rank % 32


def _coordinates(index: NDArray[np.int64], shape: Extent) -> tuple[NDArray[np.int64], ...]:
    return index % shape[0], index // shape[0] % shape[1], index // (shape[0] * shape[1])


def run(text: str, grid: int | Extent, block: int | Extent, *args: object, **options: object) -> object:
    """Load a module and launch its kernel ``k``."""
    return ptxemu.loads(text, filename="test.ptx")["k"][grid, block](*args, **options)


def ragged(seed: int, count: int, below: int) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Words in ``count`` rows, each of fewer than ``below``: where rows start and the last one ends, all words, and the rows."""
    random = np.random.default_rng(seed)
    starts = np.concatenate([[0], random.integers(0, below, count).cumsum()]).astype(np.uint32)
    words = random.integers(0, 1 << 16, starts[-1]).astype(np.uint32)
    return starts, words, np.split(words, starts[1:-1].astype(np.int64))
