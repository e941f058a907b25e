"""Uniformity analysis: the shape of every SSA value, and which branches diverge.

An optimistic fixpoint: values start unknown, branches start uniform.  A branch on a varying predicate diverges; that
changes where lanes wait for each other (:mod:`ptxemu.analysis.linear`), and a phi whose values may arrive at different
times is varying.  The set of divergent branches only grows, so the iteration ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from ptxemu.analysis import shape as shapes
from ptxemu.analysis.geometry import blocks_shape, ntid_shape, tid_shape
from ptxemu.analysis.linear import Linear, Structure, linearize, unordered
from ptxemu.analysis.registering import registering
from ptxemu.analysis.shape import Shape
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.graph import Block, Graph, reads
from ptxemu.ir.ops import Addr, Imm, Op, Operand, Reg, SReg, SymRef, Variable, Vec, items_of
from ptxemu.passes.divergence import LANE_MASKS, varies_by_effect

if TYPE_CHECKING:
    from ptxemu.analysis.grouped import Grouped

UNIFORM = shapes.uniform(LANES)


class Unknown(Enum):
    """Not computed yet (the top of the lattice)."""

    UNKNOWN = 0


UNKNOWN = Unknown.UNKNOWN


class Shapes(Protocol):
    """What a rule asks: shapes of operands, and whether 32-bit patterns may be widened where only a test at run time can tell
    whether lanes wrap."""

    corrections: bool

    def shape(self, operand: Operand) -> Shape | None: ...


Transfer = Callable[[Shapes, Op], Shape | None]


class Uniformity:
    """Shapes by register (``shape``) and the linearized control flow they lead to (``linear``).

    ``corrections``: patterns may be widened where only a test at run time can tell whether lanes wrap.  ``grouped``: the values
    that are kept by groups of lanes, where code may do so.  ``structure``: that of the graph, if it is known already.
    """

    grouped: Grouped | None = None

    def __init__(
        self,
        graph: Graph,
        variant: str,
        independent: bool = False,
        corrections: bool = True,
        structure: Structure | None = None,
    ) -> None:
        self.variant = variant
        self.corrections = corrections
        self.structure = structure or Structure(graph)
        self.known: dict[Reg, Shape | None] = {}
        self.news: set[Reg] = set()  # registers of which something else is known than when their readers were looked at
        divergent: set[Block] = set()
        while True:
            self.linear: Linear = (unordered if independent else linearize)(self.structure, divergent)
            self._solve()
            grown = divergent | {block for block in self.structure.order if self._diverges(block)}
            if grown == divergent:
                return
            divergent = grown

    def shape(self, operand: Operand) -> Shape | None:
        """The shape of an operand's value; unknown (unreachable) values count as uniform."""
        if isinstance(operand, Reg):
            return self.known.get(operand, UNIFORM)
        if isinstance(operand, Imm):
            return shapes.constant(LANES, operand.bits)
        if isinstance(operand, SReg):
            return self._special(operand.name)
        if isinstance(operand, Addr):
            base = self.shape(operand.base)
            if base is None or not operand.offset:
                return base
            return shapes.add(base, shapes.constant(LANES, operand.offset % 2**64), 64)
        if isinstance(operand, SymRef):
            return self._symbol(operand)
        return UNIFORM

    def varies(self, operand: Operand) -> bool:
        """Whether lanes may differ."""
        found = self.shape(operand)
        return found is None or not found.uniform

    def _symbol(self, operand: SymRef) -> Shape:
        symbol = operand.symbol
        align = symbol.align if isinstance(symbol, Variable) else 1
        return shapes.uniform(LANES, shapes.trailing_zeros(align | operand.offset | 4096))

    def _special(self, name: str) -> Shape | None:
        stem, _, axis = name.partition(".")
        if stem == "tid":
            return tid_shape(self.variant, axis)
        if stem == "ntid":
            return ntid_shape(self.variant, axis)
        if stem in ("ctaid", "nctaid"):
            return blocks_shape(self.variant, axis)
        if stem == "laneid":
            return Shape(tuple(range(LANES)), 64, LANES - 1)
        if stem in LANE_MASKS:
            return None
        high = {"warpid": 31, "nwarpid": 32}.get(stem)
        return shapes.uniform(LANES, 0, high)

    def _diverges(self, block: Block) -> bool:
        if block.cond is None or len(block.succs) < 2:
            return False
        return self.varies(block.cond)

    # -- the fixpoint over values

    def _solve(self) -> None:
        """Look at all values in linear order, then at what comes back to the loops, and at what follows from that.

        What varied while fewer branches diverged varies now, too.
        """
        self.known = dict.fromkeys(reg for reg, shape in self.known.items() if shape is None)
        latches = {loop.header: latch for latch, loop in self.structure.latches.items()}
        for block in self.structure.order:
            self._phis(block, block.phis.rows())
            self._ops(block.ops)
        while self._come_round(latches):
            for block in self.structure.order:  # each value is chosen when all before it have been looked at
                self._phis(block, (row for row in block.phis.rows() if not self.news.isdisjoint(row[1])))
                self._ops(op for op in block.ops if not self.news.isdisjoint(reads(op)))

    def _come_round(self, latches: Mapping[Block, Block]) -> bool:
        """Look at the values that come back to the headers of loops; whether they are news there."""
        self.news.clear()
        known = self.known
        for header, latch in latches.items():
            phis = header.phis
            come = zip(phis.rows(), map(known.get, phis.dsts), map(known.get, phis.args.get(latch, ())))  # type: ignore[arg-type]
            self._phis(header, [row for row, old, new in come if old is not new])
        return bool(self.news)

    def _ops(self, ops: Iterable[Op]) -> None:
        known = self.known
        for op in ops:
            if [known.get(dst, UNKNOWN) for dst in op.dsts] == [None]:  # type: ignore[arg-type]
                continue
            results = self.results(op)
            for dst in op.dsts:
                if dst is not None:
                    self._update(dst, results)
            if op.call is not None:
                for value in op.call.returns:
                    if isinstance(value, Reg):
                        self._update(value, None)

    def _update(self, reg: Reg, new: Shape | Unknown | None) -> None:
        if new is UNKNOWN:
            return
        if reg in self.known:
            old = self.known[reg]
            if old is new or old == new:
                return
            new = shapes.meet(old, new)
            if old is new or old == new:
                return
        self.known[reg] = new
        self.news.add(reg)

    def _phis(self, block: Block, phis: Iterable[tuple[Reg, tuple[Reg | Imm, ...]]]) -> None:
        """Look at phis of a block: results and arguments."""
        if not block.phis:
            return
        waits = any(self.linear.waits(pred, block) for pred in block.preds)
        known = self.known
        for dst, args in phis:
            old = known.get(dst, UNKNOWN)
            if old is not None and (new := self._phi(args, waits)) is not old:
                self._update(dst, new)

    def _phi(self, args: tuple[Reg | Imm, ...], waits: bool) -> Shape | Unknown | None:
        """What all arguments have in common.

        The corrections of a widening are those of its last run, so that no value may have them still when it runs again. None
        has: such a value would go round a loop that the widening is in, through the phi of its header. What enters the loop there
        does not follow from the widening, or it would come round a loop further out, and the same holds for that one's header; so
        the two have no shape in common.
        """
        if waits and not (isinstance(args[0], Imm) and _same(args)):
            return None  # lanes arrive at different times, perhaps with one register's values of different iterations
        known = self.known
        result: Shape | Unknown | None = UNKNOWN
        for arg in args:
            found = known.get(arg, UNKNOWN) if isinstance(arg, Reg) else self.shape(arg)
            if found is None:
                return None
            if found is not result and found is not UNKNOWN:
                result = found if result is UNKNOWN else shapes.meet(result, found)
        if isinstance(result, Shape) and result.high is not None and not _same(args):
            result = shapes.unbounded(result)
        return result

    def results(self, op: Op) -> Shape | Unknown | None:
        """The common shape of an op's results."""
        if any(isinstance(reg, Reg) and reg not in self.known for reg in _inputs(op)):
            return UNKNOWN
        result = self._unguarded(op)
        if op.guard is None:
            return result
        guard = self.shape(op.guard[0])
        if guard is None or not guard.uniform:
            return None
        for kept in op.old:
            if isinstance(kept, (Reg, Imm)):
                if isinstance(kept, Reg) and kept not in self.known:
                    continue
                result = shapes.meet(result, self.shape(kept))
        return None if result is None else shapes.unbounded(result)

    def _unguarded(self, op: Op) -> Shape | None:
        if op.effects.results == "uniform":
            return self._one_group(op)
        if varies_by_effect(op):
            return None
        rule = RULES.get(op.opcode)
        sources = [self.shape(source) for source in op.srcs]
        if any(source is None for source in sources):
            return None
        if rule is not None and not op.negs and (found := rule(self, op)) is not None:
            return found
        everything = [item for source in op.srcs for item in items_of(source)]
        same = all((found := self.shape(item)) is not None and found.uniform for item in everything)
        return UNIFORM if same else None

    def _one_group(self, op: Op) -> Shape | None:
        """The results of an instruction among lanes: uniform if they all give the same membermask."""
        members = self.shape(op["membermask"]) if op.effects.meets == "membermask" else UNIFORM
        return UNIFORM if members is not None and members.uniform else None


def _same(args: Sequence[Reg | Imm]) -> bool:
    """Whether all edges bring the same to a phi."""
    return args.count(args[0]) == len(args)


def _inputs(op: Op) -> list[Operand]:
    found: list[Operand] = [op.guard[0]] if op.guard is not None else []
    for source in op.srcs:
        if isinstance(source, Addr):
            found.append(source.base)
        elif isinstance(source, Vec):
            found.extend(source.items)
        else:
            found.append(source)
    return found


# ---------------------------------------------------------------- patterns through arithmetic

RULES: dict[str, Transfer] = {}


pattern = registering(RULES)
"""Register how a pattern goes through instructions; the rule gives None where it may not."""


def _integer(op: Op) -> bool:
    kind = op.dst_types[0] if op.dst_types else None
    return kind is not None and kind.kind in "usb" and kind.bits in (16, 32, 64) and len(op.dsts) == 1 and "sat" not in op.mods


def _shape(known: Shapes, operand: Operand) -> Shape:
    found = known.shape(operand)
    assert found is not None
    return found


def keeps_widths(known: Shapes, op: Op) -> bool:
    """Sources have the width of the operation (no hidden truncation or extension of a wider register)."""
    for source, kind in zip(op.srcs, op.src_types):
        if isinstance(source, Reg) and (kind is None or source.type.bits != kind.bits):
            return False
    return all(dst is None or dst.type.bits == kind.bits for dst, kind in zip(op.dsts, op.dst_types))


def widen(known: Shapes, op: Op, source: Operand, signed: bool) -> Shape | None:
    """A 32-bit pattern as 64 bits: a widening unless the bound proves that nothing wraps."""
    found = _number(known, source, signed, 32)
    if not any(found.offsets):
        return Shape(found.offsets, min(found.zeros, 32) if found.zeros < 64 else 64, found.high)
    low = found.spread[0]
    if found.high is not None and found.high < 1 << 31 and low >= 0:
        return found
    if not known.corrections:
        return None
    return Shape(found.offsets, min(found.zeros, 31), None, ((op, 1),))


def _number(known: Shapes, operand: Operand, signed: bool, bits: int) -> Shape:
    """The shape of an operand that is a number of ``bits`` bits; what may be negative has no bound."""
    found = _shape(known, operand)
    return shapes.unbounded(found) if signed and found.high is not None and found.high >> (bits - 1) else found


def _scale_by_constant(known: Shapes, a: Operand, b: Operand, bits: int, signed: bool) -> Shape | None:
    for value, factor in ((a, b), (b, a)):
        if isinstance(factor, Imm):
            found = _shape(known, value)
            number = factor.bits
            if signed and number >> (factor.type.bits - 1):
                number -= 1 << factor.type.bits
            return shapes.scale(found, number, bits)
    return None


@pattern("mov", "_move")
def _mov(known: Shapes, op: Op) -> Shape | None:
    if len(op.srcs) != 1 or len(op.dsts) != 1 or isinstance(op["a"], Vec):
        return None
    source = op["a"]
    if isinstance(source, SymRef) and isinstance(source.symbol, Variable):
        return known.shape(source)
    return known.shape(source) if keeps_widths(known, op) or isinstance(source, SReg) else None


@pattern("add")
def _add(known: Shapes, op: Op) -> Shape | None:
    if not _integer(op) or not keeps_widths(known, op) or len(op.srcs) != 2:
        return None
    return shapes.add(_shape(known, op["a"]), _shape(known, op["b"]), op.dst_types[0].bits)


@pattern("sub")
def _sub(known: Shapes, op: Op) -> Shape | None:
    if not _integer(op) or not keeps_widths(known, op) or len(op.srcs) != 2:
        return None
    return shapes.sub(_shape(known, op["a"]), _shape(known, op["b"]))


@pattern("neg", "not")
def _neg(known: Shapes, op: Op) -> Shape | None:
    """``not`` is ``neg`` minus one."""
    if not _integer(op) or not keeps_widths(known, op):
        return None
    return shapes.scale(_shape(known, op["a"]), -1, op.dst_types[0].bits)


@pattern("mul")
def _mul(known: Shapes, op: Op) -> Shape | None:
    modes = op.mods.values()
    if not _integer(op) or not keeps_widths(known, op) or "hi" in modes or len(op.srcs) < 2:
        return None
    kind = op.type_of("a")
    assert kind is not None
    a, b = op["a"], op["b"]
    first, second = (_number(known, factor, kind.is_signed, kind.bits) for factor in (a, b))
    if (both := shapes.product(first, second, op.dst_types[0].bits)) is not None:
        return both
    if "lo" in modes:
        return _scale_by_constant(known, a, b, kind.bits, True)
    if "wide" in modes and kind.bits == 32:
        value, factor = (a, b) if isinstance(b, Imm) else (b, a)
        if not isinstance(factor, Imm):
            return None
        wide = widen(known, op, value, kind.is_signed)
        number = factor.bits - (1 << 32) if kind.is_signed and factor.bits >> 31 else factor.bits
        return None if wide is None else shapes.scale(wide, number, 64)
    return None


@pattern("mad")
def _mad(known: Shapes, op: Op) -> Shape | None:
    if len(op.srcs) != 3:
        return None
    product = _mul(known, op)
    return None if product is None else shapes.add(product, _shape(known, op["c"]), op.dst_types[0].bits)


@pattern("shl")
def _shl(known: Shapes, op: Op) -> Shape | None:
    amount = op["b"]
    if not _integer(op) or not isinstance(amount, Imm) or amount.bits >= op.dst_types[0].bits:
        return None
    if isinstance(op["a"], Reg) and op["a"].type.bits != op.dst_types[0].bits:
        return None
    return shapes.scale(_shape(known, op["a"]), 1 << amount.bits, op.dst_types[0].bits)


@pattern("shr")
def _shr(known: Shapes, op: Op) -> Shape | None:
    amount = op["b"]
    if not _integer(op) or not isinstance(amount, Imm) or amount.bits >= op.dst_types[0].bits:
        return None
    if isinstance(op["a"], Reg) and op["a"].type.bits != op.dst_types[0].bits:
        return None
    kind = op.dst_types[0]
    return shapes.shift_right(_shape(known, op["a"]), amount.bits, kind.bits - 1 if kind.is_signed else None)


@pattern("and")
def _and(known: Shapes, op: Op) -> Shape | None:
    if not _integer(op) or not keeps_widths(known, op):
        return None
    for value, other in ((op["a"], op["b"]), (op["b"], op["a"])):
        if isinstance(other, Imm):
            return shapes.mask(_shape(known, value), other.bits)
    return None


@pattern("or")
def _or(known: Shapes, op: Op) -> Shape | None:
    if not _integer(op) or not keeps_widths(known, op):
        return None
    return shapes.disjoint_or(_shape(known, op["a"]), _shape(known, op["b"]))


@pattern("cvt")
def _cvt(known: Shapes, op: Op) -> Shape | None:
    if not _integer(op) or len(op.srcs) != 1:
        return None
    to, source_type = op.dst_types[0], op.type_of("a")
    if source_type is None or source_type.kind not in "us" or not keeps_widths(known, op):
        return None
    source = op["a"]
    if to.bits == source_type.bits:
        return known.shape(source)
    if source_type.bits == 32 and to.bits == 64:
        return widen(known, op, source, source_type.is_signed)
    if source_type.bits == 64 and to.bits == 32:
        found = _shape(known, source)
        return Shape(found.offsets, min(found.zeros, 32) if found.zeros < 64 else 64, None)
    return None


@pattern("cvta")
def _cvta(known: Shapes, op: Op) -> Shape | None:
    if not keeps_widths(known, op):
        return None
    found = _shape(known, op["a"])
    return Shape(found.offsets, min(found.zeros, 8), None, found.widenings)


# Comparisons that change between k - 1 and k, and between k and k + 1.
BELOW, ABOVE = {"lt", "ge", "lo", "hs"}, {"le", "gt", "ls", "hi"}


@pattern("setp")
def _setp(known: Shapes, op: Op) -> Shape | None:
    """A pattern within an aligned interval, compared with a bound of such intervals: uniform, as the base tells for all."""
    kind, bound = op.type_of("a"), op["b"]
    if kind is None or kind.kind not in "us" or len(op.srcs) != 2 or not isinstance(bound, Imm) or not _widths_agree(op):
        return None
    found = _shape(known, op["a"])
    low, high = found.spread
    unit = 1 << high.bit_length()
    if low < 0 or 1 << found.zeros < unit or found.widenings:
        return None
    edge = {**dict.fromkeys(BELOW, 0), **dict.fromkeys(ABOVE, 1)}.get(op.mods["cmp"])
    return UNIFORM if edge is not None and (bound.bits + edge) % unit == 0 else None


def _widths_agree(op: Op) -> bool:
    source, kind = op["a"], op.type_of("a")
    return isinstance(source, Reg) and kind is not None and source.type.bits == kind.bits
