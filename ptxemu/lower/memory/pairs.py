"""Two accesses to shared memory that fill each other's gaps, such as both keys of each comparison in a sorting network.

They are one access to a window (:mod:`ptxemu.lower.memory.windows`).  One by one, vector instructions would go twice through the
same lines of the cache, at odd addresses, and what reads them next would wait for both.  The second of two loads is made with
the first one, the first of two stores with the second one; so nothing that touches memory may lie between.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ptxemu.analysis.runs import runs_of
from ptxemu.analysis.shape import Shape
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.observed import leaves_stamps
from ptxemu.ir.ops import STRONG, Addr, Op, Reg
from ptxemu.ir.types import ScalarType
from ptxemu.lower.core.access import Access, Span, access, checked_lanes, pattern_test
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import EFFECTS, Effect
from ptxemu.lower.core.gather import gather_stored, scatter_stored
from ptxemu.lower.core.known import Pairs
from ptxemu.lower.core.telling import WHOLE_WORDS, admit, unseen
from ptxemu.lower.memory import strided, windows

Key = tuple[bool, Reg, int]  # whether it writes, base and size


def pairs_of(ctx: Context, ops: Sequence[Op], moving: Collection[Effect]) -> Pairs:
    """The pairs of some ops that are lowered one after another; what ``moving`` lowers asks :func:`load` or :func:`store`."""
    found = Pairs()
    if ctx.unit.observed == "all" or ctx.checking or ctx.in_one_lane:
        return found
    waiting: dict[Key, Op] = {}
    for op in ops:
        lowering = EFFECTS.get(op.row.lower)
        if lowering is None:
            continue
        key = _key(ctx, op) if lowering in moving else None
        if key is None:
            waiting = {}
            continue
        first = waiting.pop(key, None)
        waiting = {} if key[0] else {other: load for other, load in waiting.items() if not other[0]}
        if first is not None and _fill(ctx, first, op):
            found.second[first], found.first[op] = op, first
        else:
            waiting[key] = op
    return found


def _key(ctx: Context, op: Op) -> Key | None:
    """What two ops of a pair have in common; None for an op that is in none."""
    if op.guard is not None or not STRONG.isdisjoint(op.mods.values()):
        return None
    stated = op.access
    if stated.space != "shared" or not isinstance(stated.address, Addr) or not isinstance(stated.address.base, Reg):
        return None
    kind, writes = _kind(op), stated.stated.writes
    if stated.bytes != kind.bytes or kind.bits > 64 or (leaves_stamps(ctx.unit.observed) and kind.bytes not in WHOLE_WORDS):
        return None
    shape = ctx.shape(stated.address)
    if shape is None or not windows.is_short(shape, kind.bytes) or _in_registers(ctx, shape, kind.bytes):
        return None
    return writes, stated.address.base, kind.bytes


def _kind(op: Op) -> ScalarType:
    kind = op.dst_types[0] if op.dsts else op.type_of("v")
    assert kind is not None
    return kind


def _in_registers(ctx: Context, shape: Shape, size: int) -> bool:
    """Whether the lanes lie side by side in groups that fill registers, as they are."""
    formed = runs_of(shape.offsets, size)
    return formed is not None and (not formed.step or formed.width * size >= ctx.target.vector_bytes)


def _fill(ctx: Context, first: Op, second: Op) -> bool:
    """Whether two accesses fill a window, with a place for each."""
    size = _kind(first).bytes
    offsets = _offsets(ctx, first, second)
    return sorted(offsets) == list(range(min(offsets), min(offsets) + 2 * LANES * size, size))


def _offsets(ctx: Context, first: Op, second: Op) -> list[int]:
    """Of all lanes in both accesses, from the base of the first."""
    addresses = [op.access.address for op in (first, second)]
    shape = ctx.shape(addresses[0])
    assert shape is not None
    return [offset for own in windows.offsets_of(addresses, shape) for offset in own]


# ---------------------------------------------------------------- lowering


def load(ctx: Context, op: Op) -> bool:
    """Lower a load of a pair; False if it is in none."""
    if op in ctx.pairs.loaded:
        ctx.define(op, 0, ctx.pairs.loaded[op])
    elif op in ctx.pairs.second:
        second = ctx.pairs.second[op]
        value, ctx.pairs.loaded[second] = _load_both(ctx, [op, second])
        ctx.define(op, 0, value)
    else:
        return False
    return True


def _load_both(ctx: Context, ops: Sequence[Op]) -> list[str]:
    found = [access(ctx, op, "a") for op in ops]
    size = _kind(ops[0]).bytes
    bits = f"i{8 * size}"

    def alone(item: Access) -> str:
        admit(ctx, item)
        return gather_stored(ctx, bits, *checked_lanes(ctx, item), item.mask)

    def lane_by_lane() -> list[str]:
        return [alone(item) for item in found]

    def those_on() -> list[str]:
        return [strided.load(ctx, item, bits) for item in found]

    def together() -> list[str]:
        return windows.load_both(ctx, found, bits, size)

    ready, types = _ready(ctx, found), [f"<{LANES} x {bits}>"] * 2
    apart = strided.at_border(ctx, found, size, those_on, lane_by_lane, types)
    values = ctx.when(ready, together, apart, types, likely=True) if ready else together()
    return [ctx.vector.cast("bitcast", bits, value, _kind(op).llvm) for op, value in zip(ops, values)]


def store(ctx: Context, op: Op) -> bool:
    """Lower a store of a pair; False if it is in none."""
    if op in ctx.pairs.first:
        ops = [ctx.pairs.first[op], op]
        _store_both(ctx, ops)
    return op in ctx.pairs.first or op in ctx.pairs.second


def _store_both(ctx: Context, ops: Sequence[Op]) -> None:
    found = [access(ctx, op, "a") for op in ops]
    size = _kind(ops[0]).bytes
    bits = f"i{8 * size}"
    values = [ctx.convert(ctx.vector_of(op["v"], _kind(op)), _kind(op).llvm, bits, True) for op in ops]

    def lane_by_lane() -> list[str]:
        for item, value in zip(found, values):
            admit(ctx, item)
            scatter_stored(ctx, bits, *checked_lanes(ctx, item), value, item.mask)
        return []

    def together() -> list[str]:
        windows.store(ctx, found, bits, size, values)
        return []

    def those_on() -> list[str]:
        for item, value in zip(found, values):
            strided.store(ctx, item, bits, value)
        return []

    if ready := _ready(ctx, found):
        ctx.when(ready, together, strided.at_border(ctx, found, size, those_on, lane_by_lane), [], likely=True)
    else:
        together()


def _ready(ctx: Context, found: Sequence[Access]) -> str:
    """i1: both accesses are aligned and in range, and nobody need be told of them; "" if that is always so."""
    needed = unseen(ctx, found)
    if not all(item.safe for item in found):
        first, second = found
        assert first.shape is not None
        both = Shape(tuple(_offsets(ctx, first.op, second.op)), widenings=first.shape.widenings)
        needed.append(pattern_test(ctx, Span("shared", first.base, both, first.size)))
    return ctx.scalar.conjunction(needed)
