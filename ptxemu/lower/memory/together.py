"""Plain accesses that one of them makes for all, where it may: of loads the first one, of stores the last one. Where it may not,
each is made alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from ptxemu.analysis.walks import only_loads
from ptxemu.ir.observed import tells_order
from ptxemu.ir.ops import STRONG, Addr, Op, Reg
from ptxemu.ir.types import B64
from ptxemu.isa.table import LOADS_AND_STORES
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import EFFECTS, Effect
from ptxemu.lower.core.known import Neighbours

PAGE_BYTES = 4096
"""What is in one page can be read if any of it can."""
Load = Callable[[], list[str]]
Loads = Mapping[int, Op]
"""By their offsets from one base."""


def loads_off_one_base(ctx: Context, ops: Sequence[Op], loading: Collection[Effect]) -> Iterator[Loads]:
    """Those of device memory among ops that are lowered one after another, between which nothing but loads touches memory, or, if
    nobody writes what they read, nothing but loads and stores."""
    begun: dict[bool, dict[Reg, dict[int, Op]]] = {True: {}, False: {}}
    for op in ops if _may_look_ahead(ctx) and ctx.unit.observed != "all" else ():
        if EFFECTS.get(op.row.lower) in loading and _is_of_lanes(ctx, op) and (base := _base(ctx, op)) is not None:
            begun[_reads_constants(op)].setdefault(base, {}).setdefault(op.access.address.offset, op)
        elif not only_loads(op):
            for constant in (False,) if _only_stores(op) else (False, True):
                yield from begun[constant].values()
                begun[constant] = {}
    for loads in begun.values():
        yield from loads.values()


def grouped(loads: Loads, joins: Callable[[list[int], int], bool], fewest: int) -> Iterator[list[Op]]:
    """Loads in the order of their offsets, in groups of at least so many: whether an offset ``joins`` a group of others."""
    group: list[int] = []
    for offset in [*sorted(loads), None]:
        if offset is not None and (not group or joins(group, offset)):
            group.append(offset)
            continue
        if len(group) >= fewest:
            yield [loads[each] for each in group]
        group = [] if offset is None else [offset]


def stores_off_one_base(ctx: Context, ops: Sequence[Op], storing: Collection[Effect]) -> Iterator[list[Op]]:
    """Those of device memory among such ops, between which nothing touches memory that anybody writes."""
    run: list[Op] = []
    before: Reg | None = None
    for op in ops if _may_look_ahead(ctx) and not tells_order(ctx.unit.observed) else ():
        base = _base(ctx, op) if EFFECTS.get(op.row.lower) in storing else None
        if base is None and (op.effects.pure or _reads_constants(op)):
            continue
        if base is None or base is not before:
            yield run
            run, before = [], base
        run += [op] if base is not None else []
    yield run


def _may_look_ahead(ctx: Context) -> bool:
    return not (ctx.checking or ctx.in_one_lane)


def _reads_constants(op: Op) -> bool:
    """Whether an op only loads what nobody writes as long as the kernel runs."""
    return only_loads(op) and bool(op.accesses) and all(access.stated.object == "constant" for access in op.accesses)


def _only_stores(op: Op) -> bool:
    """Whether an op writes memory, and orders nothing."""
    return op.row.lower in LOADS_AND_STORES and STRONG.isdisjoint(op.mods.values())


def _base(ctx: Context, op: Op) -> Reg | None:
    """What a plain access to device memory by all lanes that are on is off."""
    if op.guard is not None or not STRONG.isdisjoint(op.mods.values()) or op in (ctx.strays or ()) or op.access.space != "global":
        return None
    address = op.access.address
    if not isinstance(address, Addr) or not isinstance(address.base, Reg) or address.base.type.bits != B64.bits:
        return None
    return address.base


def _is_of_lanes(ctx: Context, op: Op) -> bool:
    """Whether a load is of one element for each lane."""
    return len(op.dsts) == 1 and all(dst is not None and not ctx.is_scalar(dst) for dst in op.dsts)


def load(ctx: Context, op: Op, alone: Load, prepare: Callable[[Neighbours], tuple[str, Load]]) -> list[str]:
    """The value of a load that has neighbours, as integers. ``prepare`` is for the first one: whether it may load for all, an i1,
    and how it does; ``alone`` loads this one."""
    group = ctx.pairs.neighbours[op]
    if group.together:
        return ctx.when(group.together, lambda: [group.loaded[op]], alone, [group.type], likely=True)
    group.together, for_all = prepare(group)

    def first_alone() -> list[str]:
        return [value for each in group.ops for value in (alone() if each is op else ["zeroinitializer"])]

    values = ctx.when(group.together, for_all, first_alone, [group.type] * len(group.ops), likely=True)
    group.loaded = dict(zip(group.ops, values, strict=True))
    return [group.loaded[op]]
