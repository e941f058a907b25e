"""Multiplications of tcgen05 by one CTA or a pair, beside the model: sparse or not, with the columns over all lanes or not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import ptxemu
from tests.matrix import tcgen05_kernels as kernels
from tests.matrix import tcgen05_model as tcgen05
from tests.matrix.tcgen05_model import FOUR, LANES, LINE, Format, Zeros
from tests.matrix.test_tcgen05 import A_COLUMN, B_AT, COLUMN, Given, Raw, given

METADATA = 496
"""The column in which metadata begin."""

TWO = (0b0100, 0b1110)
"""Metadata of one element of two."""


class Multiplication(NamedTuple):
    """One instruction: its descriptors (A's is None: in tensor memory), how many CTAs take part and which of them executes it.

    What else it has: words of lanes that stay, what to keep, the power of two that divides sums, a descriptor of zero columns,
    whether the rows of A move, and the lane of the first row.
    """

    format: Format | Raw
    ctas: int = 1
    stationary: bool = False
    a: int | None = 0
    b: int = 0
    issuer: int = 0
    off: tuple[int, ...] = ()
    collector: str = ""
    shift: int | None = None
    zeros: Zeros | None = None
    adds: bool = True
    moves: bool = False
    lane: int = 0

    @property
    def text(self) -> str:
        sparse = isinstance(self.format, Format) and self.format.sparse
        words = ".ws" * self.stationary + ".sp" * sparse
        name = f"tcgen05.mma{words}.cta_group::1.kind::{self.format.kind}{'.ashift' * self.moves}{self.collector}"
        lane = self.lane << 16
        a = f"[%r0+{lane + A_COLUMN}]" if self.a is None else "%da"
        metadata = f", [%r0+{lane + METADATA}]" if sparse else ""
        off = f", {{{', '.join(f'%r{i + 1}' for i in range(len(self.off)))}}}" if self.off else ""
        last = "".join(f", {x}" for x in (self.shift, None if self.zeros is None else "%v") if x is not None)
        given = "".join(f"  mov.b32 %r{i + 1}, {word};\n" for i, word in enumerate(self.off))
        given += "" if self.zeros is None else f"  mov.b64 %v, {self.zeros.bits};\n"
        given += f"  add.u64 %da, %base, {self.a or 0}; add.u64 %db, %base, {self.b}; mov.b32 %r0, %b;\n"
        adds = "%p" if self.adds else "%q"
        mma = f"  @%one {name} [%r0+{lane + COLUMN}], {a}, %db{metadata}, {self.format.bits}{off}, {adds}{last};\n"
        body = given + mma + kernels.ARRIVED
        return kernels.pair_kernel(body, self.issuer) if self.ctas > 1 else kernels.kernel(body)

    @property
    def shares(self) -> int:
        """How many parts of the lanes have the same rows."""
        assert isinstance(self.format, Format)
        rows = self.format.rows // self.ctas
        return LANES // rows if self.stationary or (self.ctas > 1 and not self.format.sparse) else 1


def halved(of: Given, format: Format, rng: np.random.Generator) -> tuple[Given, np.ndarray]:
    """With the elements that a sparse A holds, and its metadata: [row][chunk] nibbles."""
    held = of.a[:, : format.k // 2]
    chunks = format.k // (2 if format.a == "tf32" else 4)
    metadata = rng.choice(TWO if format.a == "tf32" else FOUR, (format.rows, chunks))
    return of._replace(a=held), metadata


def in_shared(one: Multiplication, of: Given, mode: int) -> tuple[np.ndarray, Multiplication]:
    """[cta] bytes of shared memory with parts of A and B, and the instruction with their descriptors."""
    format = one.format
    assert isinstance(format, Format)
    memory = np.zeros((one.ctas, kernels.SHARED), np.uint8)
    parts = [(side, len(side) // one.ctas, across) for side, across in zip((of.a, of.b), format.transposed, strict=True)]
    a, b = (tcgen05.layouts(mode, format.size, n, across) for _, n, across in parts)
    for cta in range(one.ctas):
        left, right = (side[cta * n : cta * n + n] for side, n, _ in parts)
        if one.a is not None:
            memory[cta, :B_AT] = tcgen05.image(left, format.a, a, B_AT)
        memory[cta, B_AT:] = tcgen05.image(right, format.b, b, kernels.SHARED - B_AT)
    return memory, one._replace(a=None if one.a is None else a.bits, b=b.bits + B_AT // LINE)


def check(one: Multiplication, seed: int = 1, any: bool = False, mode: int = 0, engine: str = "jit") -> None:
    """Sums of the model in the tensor memory of every CTA, and nothing else there."""
    format, rng = one.format, np.random.default_rng(seed)
    assert isinstance(format, Format)
    of, rows = given(format, seed, any), format.rows // one.ctas
    metadata = None
    if format.sparse:
        of, metadata = halved(of, format, rng)
    if one.zeros is not None:
        more = given(format._replace(columns=one.zeros.ahead + 7 & ~7), seed + 1, any).b
        of = of._replace(b=np.concatenate([of.b, more]))
    memory, one = in_shared(one, of, mode)
    cells = np.full((one.ctas, LANES, tcgen05.COLUMNS), 0xA5A5A5A5, np.uint32)
    left = of.a if metadata is None else tcgen05.expanded(of.a, metadata, format.a)
    right = of.b if one.zeros is None else one.zeros.met(of.b, format.columns)
    result = tcgen05.sums(format, left, right, of.c if one.adds else np.zeros_like(of.c), one.shift or 0)
    lanes, places = tcgen05.spots(rows, format.columns, one.shares)
    lanes += one.lane
    alike = lanes[:, 0] if one.shares == 1 else np.arange(LANES)  # those of rows of A and their metadata
    for cta in range(one.ctas):
        part = slice(cta * rows, cta * rows + rows)
        if metadata is not None:
            words = tcgen05.metadata_cells(metadata[part], format.size, one.shares)
            first = METADATA + format.selector
            cells[cta, alike, first : first + words.shape[1]] = words[: len(alike)]
        if one.a is None:
            words = np.ascontiguousarray(of.a[part].astype(f"u{format.size}")).view(np.uint32)
            cells[cta, alike, A_COLUMN : A_COLUMN + 8] = np.tile(words, (one.shares, 1))
        cells[cta, lanes, places + COLUMN] = of.c[part]
    wanted = cells.copy()
    for cta in range(one.ctas):
        wanted[cta, lanes, places + COLUMN] = result[cta * rows : cta * rows + rows]
    for lane in range(one.ctas * LANES):
        if one.off and one.off[lane // 32] >> lane % 32 & 1:
            wanted[lane // LANES, lane % LANES] = cells[lane // LANES, lane % LANES]
    if one.moves:
        wanted = np.stack([tcgen05.moved(found, A_COLUMN) for found in wanted])
    given_cells, given_memory = (cells, memory) if one.ctas > 1 else (cells[0], memory[0])
    found, _ = kernels.run(one.text, given_cells, memory=given_memory, device=ptxemu.Device(engine=engine))
    np.testing.assert_array_equal(found.reshape(wanted.shape), wanted, err_msg=one.text)


def launch(one: Multiplication, engine: str = "jit", text: str | None = None) -> None:
    """With zeros in all memory."""
    shape = (LANES, tcgen05.COLUMNS) if one.ctas == 1 else (one.ctas, LANES, tcgen05.COLUMNS)
    kernels.run(one.text if text is None else text, np.zeros(shape, np.uint32), device=ptxemu.Device(engine=engine))
