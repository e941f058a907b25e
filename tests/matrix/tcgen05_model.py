"""tcgen05 with NumPy: tensor memory as CUTLASS states what instructions move, matrices by its canonical layouts, and products.

Layouts are those of CuTe (tests/matrix/wgmma_model.py).  Nothing here knows ptxemu.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tests.matrix import scaled_model as scaled
from tests.matrix import wgmma_model as wgmma
from tests.support import matrix_model as model
from tests.support.tensor_core_model import block

LINE = wgmma.LINE
LANES, COLUMNS = 128, 512
PAIRS = 4
"""The layout of transposed 32-bit elements, SWIZZLE_128B_BASE32B; others have the numbers of wgmma_model.WIDE."""

# ---------------------------------------------------------------- loads and stores

SHAPES = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}  # registers of x1
COLUMNS_OF = {"32x32b": 1, "16x64b": 2, "16x128b": 4, "16x256b": 8, "16x32bx2": 1}


def bits_in_order(shape: str, number: int) -> tuple[object, object]:
    """Shape and strides from (thread, bit of its registers) to a bit of a window of tensor memory, whose lanes follow each other.

    Destinations of include/cute/atom/copy_traits_sm100.hpp, for which 16x32bx2 has its halves side by side.
    """
    lane = 32 * number * (2 if shape == "16x32bx2" else COLUMNS_OF[shape])  # bits of the window in a lane
    return {
        "32x32b": ((32, 32 * number), (lane, 1)),
        "16x64b": (((2, 2, 8), (32, number)), ((8 * lane, 32, lane), (1, 64))),
        "16x128b": (((4, 8), (32, 2, number)), ((32, lane), (1, 8 * lane, 128))),
        "16x256b": (((4, 8), (64, 2, number)), ((64, lane), (1, 8 * lane, 256))),
        "16x32bx2": (((16, 2), 32 * number), ((lane, 32 * number), 1)),
    }[shape]  # type: ignore[return-value]


def places(shape: str, number: int, packed: bool, apart: int) -> np.ndarray:
    """[register][thread][half]: the number of a 16-bit half in tensor memory whose first lane and column the window has.

    A packed register holds halves of two columns, of which each has one.
    """
    layout, registers = bits_in_order(shape, number), SHAPES[shape] * number
    per_lane = 2 * number * (2 if shape == "16x32bx2" else COLUMNS_OF[shape])  # halves
    found = np.zeros((registers, 32, 2), np.int64)
    for register, thread, half in np.ndindex(*found.shape):
        lane, at = divmod(wgmma.index((thread, 32 * register + 16 * half), *layout) // 16, per_lane)
        second, at = divmod(at, 2 * number) if shape == "16x32bx2" else (0, at)
        column = 2 * at if packed else at
        found[register, thread, half] = lane * 2 * COLUMNS + column + 2 * second * apart
    return found


def loaded(memory: np.ndarray, places: np.ndarray, lane: int, column: int) -> np.ndarray:
    """[register][thread] of words, from [lane][column] words, of a warp's window."""
    halves = np.ascontiguousarray(memory).view(np.uint16).ravel()
    found = halves[places + lane * 2 * COLUMNS + 2 * column].astype(np.uint32)
    return found[..., 0] | found[..., 1] << np.uint32(16)


def stored(memory: np.ndarray, places: np.ndarray, lane: int, column: int, packed: bool, registers: np.ndarray) -> np.ndarray:
    """Tensor memory after a store; the upper half of a word whose lower half a packed register gives is zero."""
    halves = np.ascontiguousarray(memory).copy().view(np.uint16).reshape(-1)
    at = places + lane * 2 * COLUMNS + 2 * column
    halves[at] = np.stack([registers & 0xFFFF, registers >> 16], axis=-1)
    if packed:
        halves[at + 1] = 0
    return halves.view(np.uint32).reshape(memory.shape)


# ---------------------------------------------------------------- matrices in shared memory


class Layout(wgmma.Layout):
    """As the same of wgmma, but for the bits of the descriptor and a layout more (include/cute/arch/mma_sm100_desc.hpp)."""

    @property
    def bits(self) -> int:
        kind = {0: 0, 1: 2, 2: 4, 3: 6, PAIRS: 1}[self.mode]
        return self.start // LINE | self.leading << 16 | self.stride << 32 | 1 << 46 | self.phase << 49 | kind << 61

    def shape_and_strides(self) -> tuple[object, object]:
        if self.mode != PAIRS:
            return super().shape_and_strides()
        return ((8, wgmma.COUNT), (4, wgmma.COUNT)), ((1, self.leading), (8, self.stride))

    def swizzled(self, address: int) -> int:
        """Swizzle<2, 5, 2> of what PAIRS names."""
        return address ^ (address >> 7 & 3) << 5 if self.mode == PAIRS else super().swizzled(address)


def layouts(mode: int, size: int, rows: int, transposed: bool) -> Layout:
    """One without gaps of a matrix of so many rows of 32 bytes, of elements of so many bytes."""
    wide, deep = (8, 4) if mode == PAIRS else (wgmma.WIDE[mode], 8)
    if not transposed:
        return Layout(mode, False, rows if mode == 0 else 1, 8 * wide)
    lines = -(-rows * size // LINE)
    atoms = -(-lines // wide)
    if mode == 0:
        return Layout(mode, True, 8 * lines, 8)
    return Layout(mode, True, deep * wide, deep * wide * atoms)


def image(matrix: np.ndarray, type: str, layout: Layout, size: int) -> np.ndarray:
    """Shared memory with bit patterns; those of 6 and 4 bits lie side by side in the first 12 and 8 bytes of a line."""
    if type in ("e2m1", "e2m3", "e3m2"):
        return wgmma.image(side_by_side(matrix, type), "u8", layout, size)
    return wgmma.image(matrix, type, layout, size)


def side_by_side(matrix: np.ndarray, type: str) -> np.ndarray:
    """Bytes of lines, of elements as ``mma`` takes them, in bytes."""
    _, first, width = model.NARROW[type]
    result = np.zeros(matrix.shape, np.uint8)
    for i, line in np.ndindex(len(matrix), matrix.shape[1] // LINE):
        part = slice(LINE * line, LINE * line + LINE)
        whole = sum((int(x) >> first) << width * j for j, x in enumerate(matrix[i, part]))
        result[i, part] = np.frombuffer(whole.to_bytes(LINE, "little"), np.uint8)
    return result


COPIES: dict[str, tuple[object, object]] = {
    "128x256b": (((128,), 1), ((1,), 0)), "128x128b": (((128,), 1), ((1,), 0)), "4x256b": (((4,), 1), ((32,), 0)),
    "32x128b.warpx4": (((32,), 4), ((1,), 32)), "64x128b.warpx2::02_13": (((64,), 2), ((1,), 64)),
    "64x128b.warpx2::01_23": (((32, 2), 2), ((1, 64), 32)),
}  # fmt: skip
"""Of a tcgen05.cp: shape and strides from (row, repetition) to a lane.

ValID of the UTCCP of copy_traits_sm100.hpp; of 4x256b its DstLayout.
"""


def copied(cells: np.ndarray, lines: np.ndarray, how: str, column: int) -> np.ndarray:
    """Tensor memory after a copy of rows of words."""
    (shape, strides), result = COPIES[how], cells.copy()
    for row in range(len(lines)):
        for again in range(shape[1]):  # type: ignore[index]
            lane = wgmma.index((row, again), shape, strides)
            result[lane, column : column + lines.shape[1]] = lines[row]
    return result


def moved(cells: np.ndarray, column: int) -> np.ndarray:
    """Tensor memory after a tcgen05.shift of 32 bytes of its rows, as cicuvc/nvidia-sass-document has measured a B200.

    Of the 32 lanes of each warp the last keeps what it has (notes/sm100/instr/utcshift.md).
    """
    result, part = cells.copy(), slice(column, column + 8)
    for first in range(0, LANES, 32):
        result[first : first + 31, part] = cells[first + 1 : first + 32, part]
    return result


# ---------------------------------------------------------------- products


class Format(NamedTuple):
    """What an instruction descriptor says (PTX ISA, "Instruction descriptor")."""

    a: str
    b: str
    d: str
    rows: int
    columns: int
    negated: tuple[bool, bool] = (False, False)
    transposed: tuple[bool, bool] = (False, False)
    saturates: bool = False
    sparse: bool = False
    selector: int = 0
    most_ahead: int = 0

    @property
    def bits(self) -> int:
        numbers = {"f16": 0, "bf16": 1, "tf32": 2, "e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5, "u8": 0, "s8": 1}
        fields = [
            (self.selector, 0), (self.sparse, 2), (self.saturates, 3), ({"f16": 0, "f32": 1, "s32": 2}[self.d], 4),
            (numbers[self.a], 7), (numbers[self.b], 10), (self.negated[0], 13), (self.negated[1], 14),
            (self.transposed[0], 15), (self.transposed[1], 16),
            (self.columns // 8, 17), (self.rows // 16, 24), ({0: 0, 8: 1, 16: 2, 32: 3}[self.most_ahead], 30),
        ]  # fmt: skip
        return sum(int(value) << shift for value, shift in fields)

    @property
    def kind(self) -> str:
        if self.d == "s32":
            return "i8"
        return {16: "f16", 32: "tf32", 8: "f8f6f4"}[model.BITS[self.a]]

    @property
    def k(self) -> int:
        return (512 if self.sparse else 256) // model.BITS[self.a]

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return model.BITS[self.a] // 8


class Zeros(NamedTuple):
    """A descriptor of columns of B that are taken for zero: in each part of the columns, spans of zeros and of others take turns.

    PTX ISA, "Zero-Column Mask Descriptor", by its examples: where the first span of each part starts, whether it is zeros, how
    many columns a span of either has, and how many columns of B are before the first.
    """

    starts: tuple[int, ...]
    zero_first: tuple[bool, ...]
    zeros: int
    others: int
    ahead: int = 0
    on: bool = True

    @property
    def bits(self) -> int:
        parts = sum(start << 8 * i | first << 32 + i for i, (start, first) in enumerate(zip(self.starts, self.zero_first)))
        return parts | self.on << 39 | self.zeros - 1 << 40 | self.others - 1 << 48 | self.ahead << 56

    def mask(self, columns: int) -> np.ndarray:
        """Whether each column is zero."""
        found = []
        for start, first in zip(self.starts, self.zero_first, strict=True):
            turn = [first] * (self.zeros if first else self.others) + [not first] * (self.others if first else self.zeros)
            dropped = min(start, turn.count(first) - 1)
            found += (turn * columns)[dropped : dropped + columns // len(self.starts)]
        return np.array(found) & self.on

    def met(self, b: np.ndarray, columns: int) -> np.ndarray:
        """The columns of B that are multiplied, each in a row, of those in memory."""
        found = b[self.ahead : self.ahead + columns].copy()
        found[self.mask(columns)] = 0
        return found


class ScaledFormat(NamedTuple):
    """The same of kinds with factors; the bytes at which those of A and B begin."""

    form: scaled.Form
    columns: int
    bytes: tuple[int, int] = (0, 0)
    negated: bool = False
    transposed: tuple[bool, bool] = (False, False)
    rows: int = LANES
    sparse: bool = False

    @property
    def bits(self) -> int:
        numbers = {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5} if self.form.kind == "mxf8f6f4" else {"e2m1": 1}
        fields = [
            (self.sparse, 2), (self.bytes[1], 4), (numbers[self.form.a], 7), (numbers[self.form.b], 10), (self.negated, 13),
            (self.transposed[0], 15), (self.transposed[1], 16), (self.columns // 8, 17), (self.form.factor == "ue8m0", 23),
            (self.rows // 16, 24), (self.bytes[0], 29), (self.form.longest, 31),
        ]  # fmt: skip
        return sum(int(value) << shift for value, shift in fields)


def factor_cells(factors: np.ndarray, byte: int, fill: np.ndarray, halves: bool = False) -> np.ndarray:
    """[lane][column] words that hold the factors of rows, 32 in each column, in every 32 lanes; other bytes stay.

    What a word does not hold is in another, behind those of 128 or 256 rows: four factors of all these rows come first.

    ``halves``: the first 64 lanes have those of half the rows, the others the rest (tmem_sf_frg of mma_traits_sm100_frag.hpp,
    ScaleFactorDuplicated2by2).
    """
    if halves:
        parts = zip(np.split(factors, 2), np.split(fill, 2), strict=True)
        both = [factor_cells(part, byte, np.tile(lanes, (2, 1)))[: LANES // 2] for part, lanes in parts]
        return np.concatenate(both)
    cells = fill.copy().view(np.uint8).reshape(LANES, -1, 4)
    behind = -(-len(factors) // LANES) * LANES // 32
    for row, found in enumerate(factors):
        for place, one in enumerate(found, byte):
            cells[row % 32 :: 32, row // 32 + behind * (place // 4), place % 4] = one
    return cells.reshape(LANES, -1).view(np.uint32)


def lanes_of(rows: int, first: int = 0) -> np.ndarray:
    """The lanes of the rows of a matrix: of 64 rows, 16 of each warp's."""
    row = np.arange(rows)
    return first + (row if rows == LANES else row // 16 * 32 + row % 16)


def paths(rows: int, columns: int, shares: int = 1) -> tuple[object, object]:
    """Shape and strides from (row, column) of a CTA's sums to 128 * column + lane of tensor memory.

    Rows of a CTA that all lanes are shared by: the "4x1", "2x2" and "1x4" layouts of include/cute/atom/mma_traits_sm100_frag.hpp,
    with as many shares. ``shares`` of 1 and 64 rows: lanes are left out.
    """
    if rows == LANES:
        return (LANES, columns), (1, LANES)
    if shares == 1:
        return ((16, 4), columns), ((1, 32), LANES)
    return (rows, (columns // shares, shares)), (1, (LANES, rows))


def spots(rows: int, columns: int, shares: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """[row][column]: the lanes and columns of a CTA's sums."""
    layout = paths(rows, columns, shares)
    found = np.array([[wgmma.index((row, column), *layout) for column in range(columns)] for row in range(rows)])
    return found % LANES, found // LANES


FOUR = (0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110)
"""Metadata of two elements of four: their indices, the lower one first."""


def expanded(a: np.ndarray, metadata: np.ndarray, type: str) -> np.ndarray:
    """A with the zeros that a sparse one does not hold: it has two of four elements, or one of two tf32; [row][chunk] nibbles."""
    result = np.zeros((len(a), 2 * a.shape[1]), a.dtype)
    for row, chunk in np.ndindex(*metadata.shape):
        bits = int(metadata[row, chunk])
        if type == "tf32":
            result[row, 2 * chunk + (bits >> 1 & 1)] = a[row, chunk]
        else:
            result[row, 4 * chunk + (bits & 3)], result[row, 4 * chunk + (bits >> 2)] = a[row, 2 * chunk : 2 * chunk + 2]
    return result


def metadata_cells(metadata: np.ndarray, size: int, shares: int) -> np.ndarray:
    """[lane][column] words with the metadata of a CTA's rows.

    Layouts of tmem_e_frg and tmem_e_frg_ws of mma_traits_sm100_frag.hpp, in which an element along k has one bit, or two of tf32.
    """
    rows, chunks = metadata.shape
    if size == 1:  # 64 elements along k, each with a bit
        layout: tuple[object, object] = ((rows, 64), (1, LANES))
        per_chunk, words = 4, 2
    else:  # 32 with a bit, or 16 with two
        half = 16 if size == 2 else 8
        layout = (((8, 2, rows // 16), (half, 2)), ((1, half * LANES, 16), (LANES, 8)))
        per_chunk, words = half // 4, 1
    cells = np.zeros((LANES, words), np.uint64)
    width = 32 * words // (2 * half if size > 1 else 64)  # bits of an element
    for row, chunk in np.ndindex(rows, chunks):
        column, lane = divmod(wgmma.index((row, chunk * per_chunk), *layout), LANES)
        bit = column * width
        cells[lane, bit // 32] |= np.uint64(int(metadata[row, chunk]) << bit % 32)
    part = cells[: LANES // shares].astype(np.uint32)
    return np.tile(part, (shares, 1))


def sums(format: Format, a: np.ndarray, b: np.ndarray, c: np.ndarray, shift: int = 0) -> np.ndarray:
    """Bit patterns of d, from those of a, of b with a column of the matrix in each row, and of c, as sm_100 adds them."""
    if shift:
        c = model.patterns(model.values(c, format.d) / 2**shift, format.d)
    left, right, start = model.values(a, format.a), model.values(b, format.b), model.values(c, format.d)
    if format.negated[0] != format.negated[1]:
        left = -left
    if format.d == "s32":
        total = start.astype(np.int64) + (left @ right.T).astype(np.int64)
        return (np.clip(total, -(2**31), 2**31 - 1) if format.saturates else total) & 0xFFFFFFFF
    least = -21 if format.d == "f16" else -133
    return model.patterns(block(left, right.T, start, (format.a, format.b, format.d), 25, least, 23), format.d)
