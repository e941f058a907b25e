"""wgmma with NumPy: matrices in shared memory as CUTLASS states the canonical layouts of its descriptors, and products.

A layout of CuTe is a shape and strides, in lines of 16 bytes; a swizzle exchanges bits of byte addresses.  Nothing here knows
ptxemu.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tests.support import matrix_model as model
from tests.support.tensor_core_model import block

LINE = 16
WIDE = {0: 1, 1: 8, 2: 4, 3: 2}  # lines of an atom, by the swizzle mode of a descriptor
COUNT = 1 << 20  # of what goes on as far as the matrix does


class Layout(NamedTuple):
    """Of a matrix in shared memory: the swizzle mode, whether it is transposed (MN-major), offsets in lines, the first byte."""

    mode: int
    transposed: bool
    leading: int
    stride: int
    start: int = 0
    phase: int = 0

    @property
    def bits(self) -> int:
        """The descriptor of one at address 0."""
        return self.start // LINE | self.leading << 16 | self.stride << 32 | self.phase << 49 | self.mode << 62

    def shape_and_strides(self) -> tuple[object, object]:
        """What CUTLASS says "in units of uint128_t" (include/cute/atom/mma_traits_sm90_gmma.hpp)."""
        wide = WIDE[self.mode]
        if not self.transposed:
            return ((8, COUNT), COUNT), ((wide, self.stride), self.leading if self.mode == 0 else 1)
        if self.mode == 0:
            return ((1, COUNT), (8, COUNT)), ((0, self.stride), (1, self.leading))
        return ((wide, COUNT), (8, COUNT)), ((1, self.leading), (wide, self.stride))

    def address(self, first: int, second: int) -> int:
        """Of a line, by its coordinates: row and line along k, or line along the rows and k."""
        shape, strides = self.shape_and_strides()
        return self.swizzled(self.start + LINE * index((first, second), shape, strides))

    def swizzled(self, address: int) -> int:
        """Swizzle<B, 4, 3>, from the start of the pattern on."""
        bits = {1: 0, 2: 1, 4: 2, 8: 3}[WIDE[self.mode]]
        return address ^ ((address - 128 * self.phase >> 7 & (1 << bits) - 1) << 4)


def index(coordinate: object, shape: object, strides: object) -> int:
    """What CuTe calls crd2idx."""
    if isinstance(shape, tuple):
        if isinstance(coordinate, tuple):
            return sum(index(*parts) for parts in zip(coordinate, shape, strides, strict=True))  # type: ignore[call-overload]
        total = 0
        for one, stride in zip(shape, strides, strict=True):  # type: ignore[call-overload]
            total += index(coordinate % one, one, stride)  # type: ignore[operator]
            coordinate //= one  # type: ignore[operator]
        return total
    return coordinate * strides  # type: ignore[operator]


def image(matrix: np.ndarray, type: str, layout: Layout, size: int) -> np.ndarray:
    """Shared memory with the bit patterns of a matrix, whose rows go along k."""
    memory = np.full(size, 0xA5, np.uint8)
    if layout.transposed:
        matrix = matrix.T
    lines = as_bytes(matrix, type).reshape(len(matrix), -1, LINE)
    for i, j in np.ndindex(*lines.shape[:2]):
        at = layout.address(j, i) if layout.transposed else layout.address(i, j)
        memory[at : at + LINE] = lines[i, j]
    return memory


def as_bytes(matrix: np.ndarray, type: str) -> np.ndarray:
    bits = model.BITS[type]
    if bits == 1:
        return np.packbits(matrix.astype(np.uint8), axis=1, bitorder="little")
    return np.ascontiguousarray(matrix.astype({8: np.uint8, 16: np.uint16, 32: np.uint32}[bits])).view(np.uint8)


def layouts(mode: int, transposed: bool, rows: int, lines: int) -> Layout:
    """One without gaps of a matrix of so many rows and so many lines along k; transposed, of 16-bit elements."""
    wide = WIDE[mode]
    if not transposed:  # the second column of tiles behind all of the first
        return Layout(mode, False, rows if mode == 0 else 1, 8 * wide)
    if mode == 0:
        return Layout(mode, True, rows, 8)
    atoms = -(-rows // 8 // wide)
    return Layout(mode, True, 8 * wide, 8 * wide * atoms)


# ---------------------------------------------------------------- registers


def places_d(n: int) -> list[model.Place]:
    """Row and column of the elements of d in a warp's 16 rows ("WGMMA .m64nNk16 register fragment layout for matrix D")."""
    return [
        (model.GROUP + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * model.THREAD + i % 2) for i in range(n // 2)
    ]  # fmt: skip


def by_warp(matrix: np.ndarray, type: str, places: list[model.Place]) -> np.ndarray:
    """The registers of 128 threads, [register][thread], of a matrix of 64 rows of bit patterns."""
    warps = [model.words(model.fragment(matrix[16 * w : 16 * w + 16], places), type) for w in range(4)]
    return np.concatenate([np.array(one, np.uint32).reshape(-1, 32) for one in warps], axis=1)


def from_warps(registers: np.ndarray, type: str, n: int) -> np.ndarray:
    """The matrix of bit patterns of such registers of d."""
    rows = []
    for w in range(4):
        found = model.elements(registers[:, 32 * w : 32 * w + 32].ravel(), type)
        rows.append(model.matrix(found, places_d(n), (16, n)))
    return np.concatenate(rows)


# ---------------------------------------------------------------- products


def product(a: np.ndarray, b: np.ndarray, c: np.ndarray, types: tuple[str, str, str]) -> np.ndarray:
    """As sm_90 adds them, of values; ``types`` are those of a, b and d. Of a sparse A, B is (m, k, n)."""
    size = {8: 32, 16: 16, 32: 8}[model.BITS[types[0]]]
    narrow = model.BITS[types[0]] == 8
    for start in range(0, a.shape[1], size):
        part = slice(start, start + size)
        least = -133 if narrow or types[2] == "f32" else -21
        c = block(a[:, part], b[..., part, :], c, types, 13 if narrow else 25, least, 13 if narrow else 23)
    return c
