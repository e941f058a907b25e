"""Which registers of 32 bits hold numbers of 16 bits, and are made by instructions that do the same in 16 bits.

Sums, products and the like give the lower half of what they would give whatever is in the upper halves of their operands;
comparisons, bounds and shifts to the right, if 16 bits of one kind hold these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise

from ptxemu.analysis.ranges import Range, of_kind, ranges
from ptxemu.analysis.registering import registering
from ptxemu.analysis.uniformity import Uniformity
from ptxemu.ir.graph import given, reads
from ptxemu.ir.ops import Imm, Op, Operand, Reg, items_of
from ptxemu.ir.types import PRED, TYPES, ScalarType
from ptxemu.passes.narrow import HALF, Narrowing

WHOLE = 32
S16, U16, B16 = TYPES["s16"], TYPES["u16"], TYPES["b16"]
OP, LOAD, STORE, CONVERSION, EXTENSION = 2, 1, 4, 4, 6
"""Instructions that are saved on 32 lanes with AVX2, or that are needed to extend a register."""


def narrowing(uniformity: Uniformity) -> Narrowing:
    """What is worth it."""
    return _Search(uniformity).plan()


class _Search:
    def __init__(self, uniformity: Uniformity) -> None:
        self.uniformity = uniformity
        self.ranges = ranges(uniformity.structure)
        self.kinds: dict[Reg, ScalarType] = {}
        self.typed: dict[Op, ScalarType] = {}
        self.moved: dict[Op, None] = {}
        self.converted: dict[Op, None] = {}

    def plan(self) -> Narrowing:
        """Ops are looked at in linear order, each after those that its operands come from."""
        for block in self.uniformity.structure.order:
            for op in block.ops:
                rule = RULES.get(op.row.lower)
                if rule is not None and op.guard is None and not any(op.negs):
                    rule(self, op)
        wide = self._wide() if self.kinds else set()
        self._choose(wide)
        return Narrowing(self.kinds, wide & self.kinds.keys(), self.typed, set(self.moved), set(self.converted))

    # -- what can be narrow

    def fits(self, reg: Reg) -> bool:
        """Whether lanes have different numbers in a register that 16 bits hold."""
        found = self.ranges.found.get(reg)
        varies = self.uniformity.shape(reg) is None
        return reg.type.bits == WHOLE and varies and found is not None and kind_of([found]) is not None

    def note(self, regs: Iterable[Reg]) -> None:
        """These become narrow."""
        for reg in regs:
            kind = kind_of([self.ranges.found[reg]])
            assert kind is not None
            self.kinds[reg] = kind

    def compute(self, op: Op, kind: ScalarType | None) -> None:
        """An op is computed in 16 bits, if they hold its results."""
        results = [reg for reg in op.results if reg.type is not PRED]
        if kind is not None and all(map(self.fits, results)) and not {"sat", "relu"} & op.mods.keys():
            self.typed[op] = kind
            self.note(results)

    def is_narrow(self, source: Operand) -> bool:
        return source in self.kinds or (isinstance(source, Reg) and source.type.bits == HALF)

    def has_low(self, op: Op, names: Iterable[str]) -> bool:
        """Whether the lower halves of operands are at hand, one of which is narrow."""
        sources = [op[name] for name in names]
        at_hand = all(isinstance(source, Imm) or self.is_narrow(source) or self._is_shared(source) for source in sources)
        return at_hand and any(map(self.is_narrow, sources))

    def _is_shared(self, source: Operand) -> bool:
        return isinstance(source, Reg) and source.type.bits == WHOLE and not self.uniformity.varies(source)

    def numbers(self, op: Op, names: Iterable[str]) -> list[Range]:
        """What an instruction of 32 bits takes operands for; none where one of them is not narrow."""
        sources, kinds = [op[name] for name in names], [op.type_of(name) for name in names]
        whole = all(kind is not None and kind.bits == WHOLE and kind.kind in "usb" for kind in kinds)
        narrow = [source in self.kinds for source in sources]
        at_hand = all(known or isinstance(source, Imm) for known, source in zip(narrow, sources))
        return [self.ranges.read(op, name) for name in names] if whole and at_hand and any(narrow) else []

    # -- what is worth it

    def stored(self, op: Op) -> list[Reg]:
        """The narrow registers that an op stores as 16 bits or fewer."""
        small = (source for source, kind in zip(op.srcs, op.src_types) if kind is not None and kind.bits <= HALF)
        return [item for source in small for item in items_of(source) if isinstance(item, Reg) and item in self.kinds]

    def _read(self, op: Op) -> list[Reg]:
        """The narrow registers that an op reads as such."""
        if op in self.moved:
            return self.stored(op)
        return [reg for reg in reads(op) if reg in self.kinds] if op in self.typed or op in self.converted else []

    def _wide(self) -> set[Reg]:
        """The narrow registers that somebody reads as they are."""
        found: set[Reg] = set()
        for block in self.uniformity.structure.order:
            for op in block.ops:
                own = set(self._read(op))
                found.update(reg for reg in reads(op) if reg in self.kinds and reg not in own)
            found.update(reg for reg in given(block) if reg in self.kinds)
        return found

    def _choose(self, wide: set[Reg]) -> None:
        """Leave those that belong together as they are if little is gained."""
        groups, gains = _Groups(self.kinds), Counter[Reg]()
        ops = {**dict.fromkeys(self.typed, OP), **dict.fromkeys(self.converted, CONVERSION)}
        ops |= {op: LOAD if op.results else STORE for op in self.moved}
        regs = {op: [*(reg for reg in op.results if reg in self.kinds), *self._read(op)] for op in ops}
        for found in regs.values():
            groups.join(found)
        for op, gain in ops.items():
            if regs[op]:
                gains[groups.of(regs[op][0])] += gain
        for reg in wide:
            gains[groups.of(reg)] -= EXTENSION
        self._drop({reg for reg in self.kinds if gains[groups.of(reg)] <= 0})

    def _drop(self, regs: set[Reg]) -> None:
        for reg in regs:
            del self.kinds[reg]
        self.typed = {op: kind for op, kind in self.typed.items() if regs.isdisjoint([*op.results, *reads(op)])}
        for ops in (self.moved, self.converted):
            for op in [op for op in ops if self.kinds.keys().isdisjoint([*op.results, *reads(op)])]:
                del ops[op]


def kind_of(found: list[Range], kinds: Iterable[ScalarType] = (S16, U16)) -> ScalarType | None:
    """The first type of 16 bits that holds numbers, of which there are some, if one does."""
    for kind in kinds:
        if found and all(one.within(of_kind(kind.is_signed, HALF)) for one in found):
            return kind
    return None


class _Groups:
    """Registers that belong together."""

    def __init__(self, regs: Iterable[Reg]) -> None:
        self.parent = {reg: reg for reg in regs}

    def of(self, reg: Reg) -> Reg:
        while self.parent[reg] is not reg:
            self.parent[reg] = self.parent[self.parent[reg]]
            reg = self.parent[reg]
        return reg

    def join(self, regs: list[Reg]) -> None:
        for one, other in pairwise(regs):
            self.parent[self.of(one)] = self.of(other)


# ---------------------------------------------------------------- instructions

Rule = Callable[[_Search, Op], None]
RULES: dict[str, Rule] = {}


narrowed = registering(RULES)
"""Register how instructions give in 16 bits what they give in 32, by their lowerings."""


@narrowed("ld")
def _load(search: _Search, op: Op) -> None:
    small = (reg for reg, kind in zip(op.dsts, op.dst_types) if kind.bits <= HALF and kind.kind in "usb")
    if found := [reg for reg in small if reg is not None and search.fits(reg)]:
        search.moved[op] = None
        search.note(found)


@narrowed("st")
def _store(search: _Search, op: Op) -> None:
    if search.stored(op):
        search.moved[op] = None


@narrowed("cvt.int")
def _convert(search: _Search, op: Op) -> None:
    """Between 16 and 32 bits."""
    source, dst, before, after = op["a"], op["d"], op.type_of("a"), op.type_of("d")
    if before is None or after is None or "sat" in op.mods or not isinstance(source, Reg):
        return
    if (before.bits, after.bits) == (HALF, WHOLE) and source.type.bits == HALF and search.fits(dst):
        search.converted[op] = None
        search.note([dst])
    elif (before.bits, after.bits) == (WHOLE, HALF) and source in search.kinds and dst.type.bits == HALF:
        search.converted[op] = None


@narrowed("add.int", "sub.int", "and", "or", "xor", "selp")
def _of_two(search: _Search, op: Op) -> None:
    """The lower half of the result follows from those of the operands."""
    if op.type().kind in "usb" and search.has_low(op, "ab"):
        search.compute(op, U16 if op.type().kind in "us" else B16)


@narrowed("mul.int")
def _product(search: _Search, op: Op) -> None:
    if "hi" not in op.mods.values() and search.has_low(op, "ab"):
        search.compute(op, U16)


@narrowed("mad.int")
def _product_sum(search: _Search, op: Op) -> None:
    if "hi" not in op.mods.values() and search.has_low(op, "abc"):
        search.compute(op, U16)


@narrowed("neg.int")
def _negative(search: _Search, op: Op) -> None:
    if search.has_low(op, "a"):
        search.compute(op, S16)


@narrowed("not")
def _complement(search: _Search, op: Op) -> None:
    if search.has_low(op, "a"):
        search.compute(op, B16)


@narrowed("shl")
def _shift_left(search: _Search, op: Op) -> None:
    amount = op["b"]
    if isinstance(amount, Imm) and amount.bits < HALF and search.has_low(op, "a"):
        search.compute(op, B16)


@narrowed("shr")
def _shift_right(search: _Search, op: Op) -> None:
    amount = op["b"]
    if isinstance(amount, Imm) and amount.bits < HALF:
        search.compute(op, kind_of(search.numbers(op, "a")))


@narrowed("abs.int")
def _size(search: _Search, op: Op) -> None:
    found = kind_of(search.numbers(op, "a"))
    search.compute(op, S16 if found is S16 else None)


@narrowed("min.int", "max.int", "setp")
def _comparison(search: _Search, op: Op) -> None:
    """Of numbers without signs, the orders have names of their own."""
    kind = op.type_of("a")
    search.compute(op, kind_of(search.numbers(op, "ab"), (S16, U16) if kind is not None and kind.is_signed else (U16, S16)))
