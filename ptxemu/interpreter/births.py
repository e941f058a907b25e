"""Where NaNs, infinities and subnormal numbers come from: instructions that make one out of operands that are none."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ptxemu.interpreter.lane import WAITING, Lane
from ptxemu.interpreter.translate import Code
from ptxemu.ir.ops import Imm, Op, Reg, items_of
from ptxemu.ir.types import ScalarType

NAN, INFINITY, SUBNORMAL = KINDS = ("NaN", "infinity", "subnormal")
SHAPES = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}  # bits of exponent and fraction
PACKED = "x2"


class Birth(Struct, frozen=True):
    """One of KINDS, which a lane made of operands with these bits."""

    kind: str
    lane: Lane
    operands: tuple[int, ...]
    result: int


class _Plan(Struct, frozen=True):
    """Where the floats of an instruction are: slots or constants of its operands, slots of its results."""

    operands: tuple[tuple[int | None, int, str], ...]
    results: tuple[tuple[int, str], ...]


class Births:
    """Looks at instructions before and after they are executed. Accesses of memory make nothing: they bring what is there."""

    def __init__(self) -> None:
        self._plans: dict[Op, _Plan | None] = {}
        self._operands: list[tuple[Lane, tuple[int, ...], frozenset[str]]] = []

    def before(self, group: list[Lane], code: Code, op: Op) -> None:
        if op not in self._plans:
            self._plans[op] = _plan(code, op)
        plan = self._plans[op]
        self._operands = []
        if plan is None:
            return
        for lane in group if op.guard is None else _guarded(group, code, op):
            bits = tuple(constant if slot is None else lane.r[slot] for slot, constant, _ in plan.operands)
            had = frozenset(kind for one, (_, _, type) in zip(bits, plan.operands, strict=True) for kind in classes(one, type))
            self._operands.append((lane, bits, had))

    def after(self, op: Op) -> Iterator[Birth]:
        """What lanes made, which have not to wait for others to do it with them."""
        plan = self._plans.get(op)
        for lane, bits, had in self._operands if plan is not None else ():
            for slot, type in plan.results if plan is not None and lane.state != WAITING else ():
                for kind in classes(lane.r[slot], type) - had:
                    yield Birth(kind, lane, bits, lane.r[slot])


def _guarded(group: list[Lane], code: Code, op: Op) -> list[Lane]:
    assert op.guard is not None
    slot, negated = code.slots[op.guard[0]], op.guard[1]
    return [lane for lane in group if bool(lane.r[slot]) != negated]


def _plan(code: Code, op: Op) -> _Plan | None:
    """None for an instruction that makes no floats."""
    if op.effects.accesses or op.effects.leaves or op.call is not None:
        return None
    written = zip(op.dsts, op.dst_types, strict=True)
    results = tuple((code.slots[dst], kind.name) for dst, kind in written if dst is not None and _is_float(kind))
    operands = tuple(
        (code.slots[item], 0, kind.name) if isinstance(item, Reg) else (None, item.bits, kind.name)
        for source, kind in zip(op.srcs, op.src_types, strict=True)
        if kind is not None and _is_float(kind)
        for item in items_of(source)
        if isinstance(item, Reg | Imm)
    )
    return _Plan(operands, results) if results else None


def _is_float(kind: ScalarType) -> bool:
    return kind.name.removesuffix(PACKED) in SHAPES


def classes(bits: int, type: str) -> frozenset[str]:
    """Which of KINDS a value is, or the elements of a pair."""
    exponent, fraction = SHAPES[type.removesuffix(PACKED)]
    width = 1 + exponent + fraction
    found = {_class(bits, exponent, fraction)}
    if type.endswith(PACKED):
        found.add(_class(bits >> width, exponent, fraction))
    return frozenset(found - {""})


def _class(bits: int, exponent: int, fraction: int) -> str:
    high, low = bits >> fraction & (1 << exponent) - 1, bits & (1 << fraction) - 1
    if high == (1 << exponent) - 1:
        return NAN if low else INFINITY
    return SUBNORMAL if low and not high else ""
