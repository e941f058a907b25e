"""Addresses in a few runs: lanes lie side by side in groups of some lanes each, or a group has one place.

Threads of a block of 16x16 that read a matrix are such: two rows of 16 neighbours, whose distance only the launch knows; and so
are neighbours in a grid where bounds keep the indexes of the outermost lanes from going beyond it, or a remainder takes them to
the other side.  A *group shape* is the shape of a value within each group, relative to a base of the group.  Nothing relies on
it: code for runs tests at run time whether the addresses are as expected, so wraps and guards do not matter here.
"""

from __future__ import annotations

from itertools import pairwise, product

from msgspec import Struct

from ptxemu.analysis.assumed import AT_LEAST, AT_MOST, REMAINDER
from ptxemu.analysis.quotients import ESTIMATES
from ptxemu.analysis.shape import Shape, trailing_zeros
from ptxemu.analysis.trips import makers
from ptxemu.analysis.uniformity import RULES, UNIFORM, Uniformity
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.graph import Phi
from ptxemu.ir.ops import Addr, Imm, Op, Operand, Reg, items_of
from ptxemu.ir.types import B64
from ptxemu.isa.table import ADD
from ptxemu.passes.internal import MOVED
from ptxemu.process.lazy import lazy_property

WIDTHS = (32, 16, 8)
"""Lanes of a group: with fewer, runs are no faster than gathers."""
DEPTH = 64  # of instructions that are looked through
CHOICES = {AT_MOST, AT_LEAST, "selp"}  # instructions whose result is one of two operands


class Runs(Struct, frozen=True):
    """Groups of ``width`` lanes, whose addresses step by ``step`` bytes: 0, or what a lane accesses."""

    width: int
    step: int

    @property
    def firsts(self) -> range:
        """The first lane of each group."""
        return range(0, LANES, self.width)


def within(found: Shape, width: int) -> Shape:
    """A shape relative to the first lane of each group of ``width``."""
    firsts = found.offsets[::width]
    offsets = tuple(offset - firsts[lane // width] for lane, offset in enumerate(found.offsets))
    return Shape(offsets, min(found.zeros, *map(trailing_zeros, map(abs, firsts))), found.high, found.widenings)


def runs_of(offsets: tuple[int, ...], size: int, widest: int = LANES) -> Runs | None:
    """The runs that offsets of lanes form with accesses of ``size`` bytes; the widest ones, of ``widest`` lanes at most."""
    for width in (width for width in WIDTHS if width <= widest):
        for step in (size, 0):
            groups = (offsets[first : first + width] for first in range(0, LANES, width))
            if all(group == tuple(group[0] + step * lane for lane in range(width)) for group in groups):
                return Runs(width, step)
    return None


class Expected:
    """The runs that varying addresses of a graph are expected to form."""

    def __init__(self, uniformity: Uniformity) -> None:
        self._uniformity = uniformity
        self._groups: dict[tuple[bool, int], _Groups] = {}

    @lazy_property
    def _makers(self) -> dict[Reg, Op | Phi]:
        return makers(self._uniformity.structure.graph.blocks)

    def of(self, address: Addr, size: int) -> Runs | None:
        """Those of accesses of ``size`` bytes at an address; None without any."""
        for bounded, width in product((False, True), WIDTHS):
            groups = self._groups.setdefault((bounded, width), _Groups(self._uniformity, self._makers, width, bounded))
            found = groups.shape(address.base)
            if found is not None and (runs := runs_of(found.offsets, size, width)) is not None and runs.width == width:
                return runs
        return None

    def apart(self, address: Reg) -> tuple[Reg, Reg | Imm] | None:
        """A varying address as another one, which forms the same runs, and what all lanes share, if it is their sum."""
        maker = self._makers.get(address)
        if not isinstance(maker, Op) or not adds(maker):
            return None
        varying = [source for source in maker.srcs if isinstance(source, Reg) and self._uniformity.shape(source) is None]
        others = [source for source in maker.srcs if isinstance(source, Reg | Imm) and not self._uniformity.varies(source)]
        return (varying[0], others[0]) if varying and others else None

    def moved(self, address: Reg) -> Op | None:
        """The op that makes an address which a loop moves on (:mod:`ptxemu.passes.inductions`)."""
        maker = self._makers.get(address)
        return maker if isinstance(maker, Op) and maker.row is MOVED else None


def adds(op: Op) -> bool:
    """Whether an op adds two numbers of 64 bits, and nothing else."""
    plain = op.row.lower == ADD and op.guard is None and not any(op.negs) and len(op.dsts) == 1 and len(op.srcs) == 2
    return plain and all(kind is not None and kind.bits == B64.bits for kind in (*op.dst_types, *op.src_types))


def expected_of(uniformity: Uniformity) -> Expected:
    """Those that have been found for groups of lanes, if there are any."""
    return uniformity.grouped.expected if uniformity.grouped else Expected(uniformity)


class _Groups:
    """Group shapes for one width, found when they are asked for. ``bounded``: bounds are expected to concern few lanes."""

    corrections = True

    def __init__(self, whole: Uniformity, makers: dict[Reg, Op | Phi], width: int, bounded: bool) -> None:
        self._whole = whole
        self._makers = makers
        self._width = width
        self._bounded = bounded
        self._aligned = _Aligned(self, width)
        self._known: dict[Reg, Shape | None] = {}
        self._depth = 0

    def shape(self, operand: Operand) -> Shape | None:
        """The group shape of an operand, with no widenings; None if it varies within groups."""
        if isinstance(operand, Addr):
            return self.shape(operand.base)
        found = self._whole.shape(operand)
        if found is not None or not isinstance(operand, Reg):
            return found and self._within(found)
        if operand not in self._known:
            self._known[operand] = None
            self._known[operand] = self._made(self._makers.get(operand))
        return self._known[operand]

    def _within(self, found: Shape) -> Shape:
        found = within(found, self._width)
        return Shape(found.offsets, found.zeros, found.high)

    def _made(self, maker: Op | Phi | None) -> Shape | None:
        if maker is None or self._depth == DEPTH:
            return None
        self._depth += 1
        found = self._phi(maker) if isinstance(maker, Phi) else self._result(maker)
        self._depth -= 1
        return found and self._within(found)

    def _phi(self, phi: Phi) -> Shape | None:
        """What its arguments have in common, as far as they do not follow from it."""
        found = [shape for arg in phi.args.values() if (shape := self.shape(arg)) is not None]
        return found[0] if found and all(shape.offsets == found[0].offsets for shape in found) else None

    def _result(self, op: Op) -> Shape | None:
        if self._bounded and op.opcode in CHOICES:
            return self._chosen(op)
        if self._bounded and op.opcode == REMAINDER:
            return self._wrapped(op)
        if op.effects.results == "varying" or (op.effects.results and op.mods.get("space") == "local"):
            return None
        if op.row is MOVED:
            return self.shape(op["a"])
        sources = [self.shape(item) for source in op.srcs for item in items_of(source)]
        if any(source is None for source in sources):
            return None
        rule = RULES.get(op.opcode)
        if rule is not None and not op.negs:
            for known in (self, self._aligned):
                if (found := rule(known, op)) is not None:
                    return Shape(found.offsets, found.zeros)
        if self._bounded and op.opcode in ESTIMATES and not op.negs and (found := ESTIMATES[op.opcode](self, op)) is not None:
            return found
        return UNIFORM if all(source is not None and source.uniform for source in sources) else None

    def _chosen(self, op: Op) -> Shape | None:
        """An index that is kept within bounds is what it was in most lanes, if it grows from lane to lane."""
        found = self.shape(op["a"]), self.shape(op["b"])
        steps = [shape.offsets for shape in found if shape is not None and not shape.uniform]
        if None in found or any(offsets != steps[0] or not self._grows(offsets) for offsets in steps):
            return None
        return Shape(steps[0]) if steps else UNIFORM

    def _wrapped(self, op: Op) -> Shape | None:
        """An index that goes round is what it was in most lanes but for a number of rounds, if it grows from lane to lane."""
        found, divisor = self.shape(op["a"]), self.shape(op["b"])
        if found is None or divisor is None or not divisor.uniform:
            return None
        return Shape(found.offsets) if found.uniform or self._grows(found.offsets) else None

    def _grows(self, offsets: tuple[int, ...]) -> bool:
        return all(one < next for one, next in pairwise(offsets[: self._width]))


class _Aligned:
    """Group shapes, if groups begin at multiples of their width, as the numbers of threads do: what all lanes of a warp have in
    common, such as its number, changes between groups."""

    corrections = True

    def __init__(self, groups: _Groups, width: int) -> None:
        self._groups = groups
        self._zeros = width.bit_length() - 1

    def shape(self, operand: Operand) -> Shape | None:
        found = self._groups.shape(operand)
        if found is None or found.uniform:
            return found
        return Shape(found.offsets, max(found.zeros, self._zeros), found.high)
