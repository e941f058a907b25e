"""What values of a block would be if bounds and remainders changed no pattern.

Neighbours in a grid are found by indexes that are kept within it: ``min(max(x - 1, 0), width - 1)``, or
``(x + width - 1) % width`` where it is closed.  In most warps all lanes are inside, and then such an index is a pattern as it
was, or but for a multiple of the divisor.  Unlike what :mod:`ptxemu.analysis.runs` expects of addresses, this is a condition that
the operands tell before anything is computed (lower/core/assumptions.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ptxemu.analysis.shape import Shape
from ptxemu.analysis.uniformity import RULES, keeps_widths
from ptxemu.ir.ops import Addr, Op, Operand, Reg

AT_LEAST, AT_MOST, REMAINDER = "max", "min", "rem"  # instructions that keep an index within bounds
BITS = 32


class Assumed:
    """Shapes of results, by register, of pure ops that are looked at in order; ``outer`` are those that are certain.

    ``kept``: ops that are assumed to keep the pattern of an operand, with that.  ``exact``: ops that widen patterns of 32 bits,
    assumed not to wrap.
    """

    corrections = True

    def __init__(self, outer: Callable[[Operand], Shape | None], ops: Iterable[Op]) -> None:
        self._outer = outer
        self.shapes: dict[Reg, Shape] = {}
        self.kept: dict[Op, Reg] = {}
        self.exact: set[Op] = set()
        for op in ops:
            if len(op.dsts) == 1 and op.results and self._outer(op.results[0]) is None:
                self._add(op, op.results[0])

    def shape(self, operand: Operand) -> Shape | None:
        """The shape of an operand's value; of an address that of its base."""
        base = operand.base if isinstance(operand, Addr) else operand
        return self.shapes[base] if isinstance(base, Reg) and base in self.shapes else self._outer(base)

    def _add(self, op: Op, dst: Reg) -> None:
        if op.guard is not None or any(op.negs) or op.effects.results:
            return
        if any(self.shape(source) is None for source in op.srcs):
            return
        kept = self._kept(op)
        rule = RULES.get(op.opcode)
        found = self.shape(kept) if kept is not None else rule(self, op) if rule is not None else None
        if found is None:
            return
        if kept is not None:
            self.kept[op] = kept
            found = Shape(found.offsets)
        others = tuple((widening, factor) for widening, factor in found.widenings if widening is not op)
        if others != found.widenings:
            self.exact.add(op)
        self.shapes[dst] = Shape(found.offsets, found.zeros, found.high, others)

    def _kept(self, op: Op) -> Reg | None:
        """The operand whose pattern an op keeps, if it is within bounds that all lanes share."""
        if op.opcode not in (AT_LEAST, AT_MOST, REMAINDER) or len(op.srcs) != 2 or "relu" in op.mods:
            return None
        if (kind := op.type()).kind not in "us" or kind.bits != BITS:
            return None
        a, b = op["a"], op["b"]
        if op.opcode != REMAINDER and self._is_uniform(a):
            a, b = b, a
        found = self.shape(a)
        if found is None or found.widenings or not any(found.offsets) or not self._is_uniform(b):
            return None
        return a if isinstance(a, Reg) and keeps_widths(self, op) else None

    def _is_uniform(self, operand: Operand) -> bool:
        found = self.shape(operand)
        return found is not None and found.uniform
