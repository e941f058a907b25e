"""Integers that are a pattern within each group of lanes: one base for each group, and constant offsets.

Where a block is 16 wide, ``%tid.y * n`` is one number in each half of a warp, and what is computed from it and ``%tid.x`` is a
row of neighbours in each.  Such a value needs two scalars in place of 32 lanes.  Unlike what :mod:`ptxemu.analysis.runs` expects,
this is certain: the rules are those of patterns (:mod:`ptxemu.analysis.uniformity`), group by group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ptxemu.analysis.runs import Expected, within
from ptxemu.analysis.shape import Shape
from ptxemu.analysis.uniformity import Uniformity, Unknown
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.graph import reads, writes
from ptxemu.ir.ops import Addr, Imm, Op, Operand, Reg, SReg, SymRef
from ptxemu.isa.effects import PURE


class Grouped:
    """``shapes``: of the registers that are kept so, relative to the base of each group of ``width`` lanes."""

    def __init__(self, uniformity: Uniformity) -> None:
        self.shapes: dict[Reg, Shape] = {}
        self.width = LANES
        self.expected = Expected(uniformity)
        runs = [(address, self.expected.of(address, size)) for address, size in _varying(uniformity)]
        widths = Counter(found.width for _, found in runs if found is not None and found.width < LANES)
        if widths:
            self.width = widths.most_common(1)[0][0]
            solved = _Solved(uniformity, self.width)
            self.shapes = _needed(solved, (address.base for address, found in runs if found and found.width == self.width))

    @property
    def firsts(self) -> range:
        """The first lane of each group."""
        return range(0, LANES, self.width)


def _varying(uniformity: Uniformity) -> Iterable[tuple[Addr, int]]:
    """The addresses of loads and stores that are no pattern, with the bytes that are accessed there."""
    for block in uniformity.structure.order:
        for op in block.ops:
            if not _moves(op):
                continue
            address, space, size = op.access.address, op.access.space, op.access.bytes
            if isinstance(address, Addr) and space != "local" and size is not None and uniformity.shape(address) is None:
                yield address, size


def _moves(op: Op) -> bool:
    """Whether an op only moves registers to or from one place in memory."""
    accesses = op.effects.accesses
    return len(accesses) == 1 and accesses[0].kind != "update" and bool(accesses[0].data)


class _Solved(Uniformity):
    """The shapes of all values within groups; control flow is that of the whole warp."""

    def __init__(self, whole: Uniformity, width: int) -> None:
        self.whole = whole
        self.width = width
        self.variant, self.corrections = whole.variant, whole.corrections
        self.structure, self.linear = whole.structure, whole.linear
        self.known, self.news = {}, set()
        self._solve()

    def shape(self, operand: Operand) -> Shape | None:
        found = self.whole.shape(operand)
        if found is not None:
            return within(found, self.width)
        return super().shape(operand)

    def results(self, op: Op) -> Shape | Unknown | None:
        found = [self.whole.shape(dst) for dst in writes(op)]
        if found and found[0] is not None:
            return within(found[0], self.width)
        return super().results(op) if _integer(op) else None


def _integer(op: Op) -> bool:
    """Whether an op is elementwise, and may have a result that is kept so."""
    if op.row.stated or op.effects != PURE or op.guard is not None or len(op.dsts) != 1 or not op.results:
        return False
    if not all(isinstance(source, (Reg, Imm, SReg, SymRef)) for source in op.srcs):
        return False
    kind = op.dst_types[0]
    return kind.kind in "usb" and kind.bits in (32, 64) and kind.bits == op.results[0].type.bits


def _needed(solved: _Solved, roots: Iterable[Operand]) -> dict[Reg, Shape]:
    """The registers that some follow from, themselves included, as far as they are no patterns of the whole warp."""
    makers = {reg: op for block in solved.structure.order for op in block.ops for reg in writes(op)}
    phis = {phi.dst: phi for block in solved.structure.order for phi in block.phis}
    found: dict[Reg, Shape] = {}
    work = list(roots)
    while work:
        reg = work.pop()
        if not isinstance(reg, Reg) or reg in found or solved.whole.shape(reg) is not None:
            continue
        shape = solved.known.get(reg)
        if not isinstance(shape, Shape):
            continue
        found[reg] = shape
        work += reads(makers[reg]) if reg in makers else phis[reg].args.values()
    return found
