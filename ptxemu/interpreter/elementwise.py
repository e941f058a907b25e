"""Instructions that only compute: their lowerings, as Python that loops over lanes.

A function is written once for each form (row, modifiers, types) and takes the places of the operands as arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from ptxemu.interpreter.evaluator import NAMESPACE, Evaluator
from ptxemu.interpreter.lane import Lane, Step
from ptxemu.interpreter.translate import CARRY, Translator, bits_of
from ptxemu.ir.numerics import Numerics
from ptxemu.ir.ops import Imm, Op, Operand, Reg, SReg, SymRef, Vec, items_of
from ptxemu.ir.types import PRED, ScalarType
from ptxemu.lower.core.emit import ELEMENTWISE

Maker = Callable[..., Step]
_makers: dict[Hashable, Maker] = {}


def elementwise(t: Translator, op: Op) -> Step:
    op = _with_carry(op)
    items = list(_items(op))
    computed: list[tuple[int, Callable[[Lane], int]]] = []
    places = [_place(t, item, kind, computed) for item, kind, _ in items]
    places += [0 if dst is None else t.slot(dst) for dst in op.dsts]
    places += [t.slot(op.guard[0])] if op.guard else []
    key = _form(op, items), t.numerics
    if key not in _makers:
        _makers[key] = _make(op, items, t.numerics)
    step = _makers[key](*places)
    return _prepared(step, computed) if computed else step


def _with_carry(op: Op) -> Op:
    """The carry flag is one more source or destination."""
    from msgspec.structs import replace

    if "cc" in op.row.effects.implicit.reads:
        op = replace(op, srcs=(*op.srcs, CARRY), src_types=(*op.src_types, PRED))
    if "cc" in op.row.effects.implicit.writes:
        op = replace(op, dsts=(*op.dsts, CARRY), dst_types=(*op.dst_types, PRED))
    return op


def _items(op: Op) -> Any:
    """Each source with its type and whether it is a negated predicate; vectors by element."""
    for index, (source, kind) in enumerate(zip(op.srcs, op.src_types, strict=True)):
        negated = index < len(op.negs) and op.negs[index]
        for item in items_of(source):
            yield item, kind, negated


def _place(t: Translator, item: Operand, kind: ScalarType, computed: list[tuple[int, Callable[[Lane], int]]]) -> int:
    """The slot where a source is found; that of one that has to be computed first is a new register's."""
    if isinstance(item, Reg):
        return t.slot(item)
    if isinstance(item, Imm):
        return t.constant(item.bits & bits_of(kind))
    assert isinstance(item, (SReg, SymRef)), item
    place = t.slot(Reg("%operand", kind))
    computed.append((place, t.reader(item, kind)))
    return place


def _prepared(step: Step, computed: list[tuple[int, Callable[[Lane], int]]]) -> Step:
    def prepare(warp: Any, group: list[Lane]) -> int | None:
        for lane in group:
            for place, read in computed:
                lane.r[place] = read(lane)
        return step(warp, group)

    return prepare


def _form(op: Op, items: list[tuple[Operand, ScalarType, bool]]) -> Hashable:
    """What the text of the function depends on."""
    fixed = any(pattern.name.startswith("imm") for pattern in op.row.operands)
    sources = tuple(
        (
            kind.name,
            negated,
            item.type.bits if isinstance(item, Reg) else 0,
            item.bits if fixed and isinstance(item, Imm) else None,
        )
        for item, kind, negated in items
    )
    targets = tuple(dst.type.bits if dst is not None else 0 for dst in op.dsts)
    vectors = tuple(len(source.items) if isinstance(source, Vec) else 0 for source in op.srcs)
    types = tuple(kind.name for kind in op.dst_types)
    guard = op.guard and op.guard[1]
    return id(op.row), tuple(op.mods.items()), sources, vectors, targets, types, op.guard is None, guard


def _make(op: Op, items: list[tuple[Operand, ScalarType, bool]], numerics: Numerics) -> Maker:
    names = [f"a{index}" for index in range(len(items))]
    evaluator = Evaluator(names)
    evaluator.numerics = numerics
    results = ELEMENTWISE[op.row.lower](evaluator, op, *names)
    results = (results,) if isinstance(results, str) else results
    lines = [_read(index, *item) for index, item in enumerate(items)] + evaluator.lines
    for index, (dst, kind, value) in enumerate(zip(op.dsts, op.dst_types, results, strict=True)):
        if dst is not None:
            lines.append(f"r[D{index}] = {_extended(evaluator.value(kind.llvm, value), kind, dst)}")
    places = [f"A{index}" for index in range(len(items))] + [f"D{index}" for index in range(len(op.dsts))]
    places += ["G"] if op.guard else []
    test = [f"if {'' if op.guard[1] else 'not '}r[G]: continue"] if op.guard else []
    inner = "\n            ".join(["r = lane.r", *test, *lines])
    text = "def make({}):\n    def step(warp, group):\n        for lane in group:\n            {}\n    return step\n"
    namespace = dict(NAMESPACE)
    exec(compile(text.format(", ".join(places), inner), f"<{op.row.text}>", "exec"), namespace)
    maker: Maker = namespace["make"]
    return maker


def _read(index: int, item: Operand, kind: ScalarType, negated: bool) -> str:
    cut = f" & {bits_of(kind)}" if isinstance(item, Reg) and item.type.bits > kind.bits else ""
    return f"a{index} = r[A{index}]{cut}" + (" ^ 1" if negated else "")


def _extended(value: str, kind: ScalarType, dst: Reg) -> str:
    """A result as the bits of its register."""
    if dst.type.bits == kind.bits:
        return value
    if dst.type.bits < kind.bits or not kind.is_signed:
        return f"{value} & {bits_of(dst.type)}"
    sign = 1 << (kind.bits - 1)
    return f"(({value} ^ {sign}) - {sign}) & {bits_of(dst.type)}"
