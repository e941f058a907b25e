"""Loads and stores: ``ld ldu st prefetch`` in every state space.

An access whose addresses form a pattern gets plain vector memory instructions after its test (:mod:`ptxemu.lower.core.access`);
the rare failing case goes lane by lane.  Varying addresses are gathered or scattered.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ptxemu.analysis.runs import Runs, runs_of
from ptxemu.ir.block_shape import LANES
from ptxemu.ir.ops import Op, Operand, Reg, items_of
from ptxemu.ir.types import ScalarType
from ptxemu.lower.core.access import (
    SPACES,
    Access,
    access,
    address_of,
    assure,
    checked_lanes,
    contiguous,
    host_pointer,
    operand_addresses,
    tested_lanes,
)
from ptxemu.lower.core.context import Context
from ptxemu.lower.core.effects import effect
from ptxemu.lower.core.gather import gather, gather_pattern, gather_stored, scatter, scatter_stored, sum_of
from ptxemu.lower.core.known import Pairs
from ptxemu.lower.core.reach import foresee
from ptxemu.lower.core.runs import as_expected, expected, first_addresses, in_groups, pieces_of
from ptxemu.lower.core.telling import admit, admit_load, tell_release
from ptxemu.lower.memory import (
    ahead,
    at_once,
    consecutive,
    fields,
    halves,
    local_words,
    narrow,
    neighbours,
    pairs,
    patterns,
    pieces,
    runs,
    strided,
    together,
    twins,
    windows,
)
from ptxemu.lower.memory.patterns import Made, Ways, by_lanes_on


def pairs_of(ctx: Context, ops: Sequence[Op]) -> Pairs:
    """The loads and stores among some ops, lowered one after another, that are lowered together."""
    found = pairs.pairs_of(ctx, ops, {load, store})
    loads = list(together.loads_off_one_base(ctx, ops, {load}))
    found.neighbours = narrow.loads_of(ctx, loads) | neighbours.neighbours_of(ctx, loads) | fields.loads_of(ctx, loads)
    found.stores = fields.stores_of(ctx, ops, {store})
    return found


# ---------------------------------------------------------------- loads


@effect("ld", size=40)
def load(ctx: Context, op: Op) -> None:
    """ld, ldu (PTX ISA "ld"): scalar and vector loads; no order is implied but that of acquire."""
    if pairs.load(ctx, op):
        return
    kind = op.dst_types[0]
    count = len(op.dsts)
    found = access(ctx, op, "a")
    vector = any(dst is not None and not ctx.is_scalar(dst) for dst in op.dsts) or found.shape is None
    twins.settle(ctx, found)
    foresee(ctx, found)
    if not vector or (found.shape is not None and found.shape.uniform and found.space != "local"):
        values = admit_load(ctx, found, partial(_uniform_load, ctx, op, kind), [kind.llvm] * count)
        if vector:
            values = [ctx.splat(kind.llvm, value) for value in values]
    elif local_words.serves(ctx, found):
        types = [f"<{LANES} x i{kind.bits}>"] * count
        words = _if_wanted(ctx, found, partial(local_words.load, ctx, found, kind, count), types)
        values = [ctx.vector.cast("bitcast", f"i{kind.bits}", word, kind.llvm) for word in words]
    elif op in ctx.pairs.neighbours:
        values = _neighbouring_load(ctx, found, kind)
    else:
        values = _lane_load(ctx, found, kind, count)
    for index, value in enumerate(values):
        ctx.define(op, index, value)
    if "acquire" in op.mods.values():
        ctx.stmt("fence acquire")


def _item_of(ctx: Context, pointer: str, kind: ScalarType, index: int) -> str:
    """Where an item of a vector is."""
    return ctx.inst(f"getelementptr i8, ptr {pointer}, i64 {index * kind.bytes}") if index else pointer


def _scalar_loads(ctx: Context, op: Op, found: Access, kind: ScalarType) -> list[str]:
    bits = f"i{kind.bits}"
    constant = ", !invariant.load !2" if found.space in ("param", "const") else ""
    pointer = host_pointer(ctx, found, 0)
    if found.at_once:
        values = at_once.load(ctx, bits, len(op.dsts), pointer)
    else:
        places = [_item_of(ctx, pointer, kind, index) for index in range(len(op.dsts))]
        values = [ctx.inst(f"load {bits}, ptr {at}, align {kind.bytes}{constant}") for at in places]
    return [ctx.convert(value, bits, kind.llvm, False) for value in values]


def _uniform_load(ctx: Context, op: Op, kind: ScalarType, found: Access, guarded: bool) -> Sequence[str]:
    """One load for the warp."""

    def run() -> list[str]:
        if not found.safe:
            assure(ctx, found)
        return _scalar_loads(ctx, op, found, kind)

    return _if_wanted(ctx, found, run, [kind.llvm] * len(op.dsts), guarded)


def _if_wanted(ctx: Context, found: Access, run: Made, types: Sequence[str], guarded: bool = False) -> Sequence[str]:
    """An access that is made only if some lane is on; in code that no lane runs there is none."""
    if not guarded and found.op.guard is None:
        return run()
    return ctx.when(ctx.any(found.mask), run, None, types)


def _neighbouring_load(ctx: Context, found: Access, kind: ScalarType) -> list[str]:
    """A load that others may be made with."""
    bits = f"i{kind.bits}"

    def alone() -> list[str]:
        return [ctx.vector.cast("bitcast", kind.llvm, value, bits) for value in _lane_load(ctx, found, kind, 1)]

    if fields.serves(ctx, found.op):
        values = fields.load(ctx, found, alone)
    elif kind.bytes in narrow.SIZES:
        values = narrow.load(ctx, found, alone)
    else:
        values = neighbours.load(ctx, found, alone if found.shape is not None else partial(_gathered, ctx, found))
    return [ctx.vector.cast("bitcast", bits, value, kind.llvm) for value in values]


def _gathered(ctx: Context, found: Access) -> list[str]:
    """A word of each lane, from addresses of which nothing is known."""
    admit(ctx, found)
    host, start = tested_lanes(ctx, found, rare=False)
    return [gather(ctx, neighbours.WORD, host, 0, found.mask, start=start, rare=False)]


def _lane_load(ctx: Context, found: Access, kind: ScalarType, count: int) -> list[str]:
    """A load of each lane, of which is told what has to be."""
    ways = _pattern_load(ctx, found, kind, count) if found.shape is not None and found.space != "local" else None
    bits = f"i{kind.bits}"
    if ways is not None and ways.partly is not None and (test := patterns.whole_test(ctx, found)):
        _ask_ahead(ctx, found)
        with_care = partial(_load_with_care, ctx, found, kind, count, Ways(ways.partly), False)
        values = ctx.when(test, ways.whole, with_care, [f"<{LANES} x {bits}>"] * count, likely=True)
    else:
        only_whole = ways is not None and ways.partly is None and _is_whole_window(ctx, found, kind, count)
        values = _load_with_care(ctx, found, kind, count, ways, only_whole)
    return [ctx.vector.cast("bitcast", bits, value, kind.llvm) for value in values]


def _load_with_care(ctx: Context, found: Access, kind: ScalarType, count: int, ways: Ways | None, only_whole: bool) -> list[str]:
    """As integers; ``ways``: of a pattern that vector instructions load, ``only_whole`` if they do so for all lanes only."""
    admit(ctx, found)
    bits, mask = f"i{kind.bits}", found.mask
    types = [f"<{LANES} x {bits}>"] * count

    def lanes(rare: bool = True) -> list[str]:
        if found.at_once:
            return at_once.gather(ctx, bits, count, mask, *_places_at_once(ctx, found, rare))
        if rare and found.space != "local":
            stored, plus = checked_lanes(ctx, found)
            places = [sum_of(ctx, plus, index * kind.bytes) for index in range(count)]
            return [gather_stored(ctx, bits, stored, place, mask) for place in places]
        host, start = tested_lanes(ctx, found, rare)
        return [gather(ctx, bits, host, index * kind.bytes, mask, start=start, rare=rare) for index in range(count)]

    formed = expected(ctx, found) if found.shape is None and kind.bits <= 64 else None
    if ctx.checking and not found.safe:
        return lanes()
    if count == 1 and strided.serves(ctx, found, kind.bytes):
        return ctx.when(strided.test(ctx, found), lambda: [strided.load(ctx, found, bits)], lanes, types, likely=True)
    if formed is not None:
        starts = first_addresses(ctx, found, formed)
        all_lanes = found.space != "shared" and _all_or_none(ctx, found, kind, count)

        def in_runs(pointers: list[str]) -> list[str]:
            return by_lanes_on(ctx, found, _load_runs(ctx, found, kind, count, formed, lambda: pointers), types)

        if found.grouped:
            _ask_ahead_rows(ctx, found, formed, starts)
            ready = in_groups(ctx, found, formed, starts, all_lanes)
        else:
            ready = as_expected(ctx, found, formed, starts, all_lanes or (not formed.step and found.space != "shared"))
        through, apart = partial(runs.through, ctx, found, starts, in_runs), partial(lanes, rare=found.grouped)
        if pieces.serves(ctx, found, formed, count, kind.bits):
            apart = partial(pieces.load, ctx, found, formed, pieces_of(ctx, found, formed), starts[0], bits, apart)
        return ctx.when(ready, through, apart, types, likely=True)
    if ways is None:
        return lanes(rare=found.space == "local" and found.safe)
    _ask_ahead(ctx, found)
    all_or_none = _all_or_none(ctx, found, kind, count) or only_whole
    by_lanes: Made = partial(lanes, rare=not only_whole)
    if count == 1:
        by_lanes = strided.at_border(ctx, [found], kind.bytes, lambda: [strided.load(ctx, found, bits)], lanes, types)
    return patterns.access(ctx, found, ways, by_lanes, types, all_lanes=found.space != "shared" and all_or_none)


def _places_at_once(ctx: Context, found: Access, rare: bool) -> tuple[str, str]:
    """Where lanes access all their items at once: the addresses of a vector of i64 that holds them, and what is to be added."""
    if rare and found.space != "local":
        return checked_lanes(ctx, found)
    addresses, plus = tested_lanes(ctx, found, rare)
    return ctx.in_memory("i64", addresses), plus


def _pattern_load(ctx: Context, found: Access, kind: ScalarType, count: int) -> Ways | None:
    """How to load a pattern with vector instructions, or None if it has to be gathered."""
    shape, bits = found.shape, f"i{kind.bits}"
    assert shape is not None
    in_runs = partial(_load_pattern_runs, ctx, found, kind, count)
    if contiguous(shape, kind.bytes * count) and kind.bits <= 64:
        return in_runs(Runs(LANES, kind.bytes * count))
    if count == 1 and found.space == "shared" and windows.is_short(shape, kind.bytes):
        return Ways(lambda: [windows.load(ctx, found, bits, kind.bytes)])
    formed = runs_of(shape.offsets, kind.bytes * count)
    if formed is not None and formed.step and kind.bits <= 64:
        return in_runs(formed)
    gathers = ctx.target.gathers(kind.bits) and not (found.strong or (found.at_once and count > 1))
    gathered = partial(_gathered_pattern, ctx, found, kind, count)
    if _is_whole_window(ctx, found, kind, count):
        some: Made | None = gathered if gathers else None
        if windows.can_load_some(ctx, found, kind.bytes):
            some = partial(windows.load_some, ctx, found, bits, kind.bytes)
        return Ways(lambda: [windows.load(ctx, found, bits, kind.bytes)], some)
    in_places = count == 1 and kind.bits <= 64 and windows.is_of_elements(shape, kind.bytes)
    if in_places and found.space == "shared" and not ctx.target.avx512:  # gathers are calls
        return Ways(lambda: [windows.load_places(ctx, found, bits, kind.bytes)])
    if gathers:
        few = count == 1 and windows.are_few(shape, kind.bytes)
        return Ways(lambda: [windows.load_places(ctx, found, bits, kind.bytes)], gathered) if few else Ways(gathered)
    return None


def _is_whole_window(ctx: Context, found: Access, kind: ScalarType, count: int) -> bool:
    """Whether all lanes of a warp load from one window outside of shared memory, and not from consecutive places."""
    assert found.shape is not None
    if count > 1 or not windows.is_whole(ctx, found, kind.bytes):
        return False
    formed = runs_of(found.shape.offsets, kind.bytes)
    return formed is None or not formed.step


def _gathered_pattern(ctx: Context, found: Access, kind: ScalarType, count: int) -> list[str]:
    assert found.shape is not None
    pointers = (host_pointer(ctx, found, index * kind.bytes) for index in range(count))
    return [gather_pattern(ctx, f"i{kind.bits}", pointer, found.shape.offsets, found.mask) for pointer in pointers]


def _load_pattern_runs(ctx: Context, found: Access, kind: ScalarType, count: int, formed: Runs) -> Ways:
    return _load_runs(ctx, found, kind, count, formed, partial(runs.pattern_pointers, ctx, found, formed))


def _load_runs(ctx: Context, found: Access, kind: ScalarType, count: int, formed: Runs, pointers: Made) -> Ways:
    """How to load from runs that begin at some pointers."""
    bits = f"i{kind.bits}"

    def whole() -> list[str]:
        return runs.load(ctx, bits, count, formed, pointers(), found.volatile)

    types = [f"<{LANES} x {bits}>"] * count

    def masked(starts: list[str]) -> list[str]:
        if not ctx.target.masked(kind.bits, count):
            return consecutive.load_rows(ctx, bits, starts, found.mask)
        return runs.load(ctx, bits, count, formed, starts, mask=found.mask)

    def partly() -> list[str]:
        starts = pointers()
        if not halves.serves(ctx, count, len(starts)):
            return masked(starts)
        half = partial(halves.load, ctx, bits, starts, found.mask)
        return ctx.when(halves.is_half(ctx, found.mask), half, partial(masked, starts), types)

    if found.space == "shared" or not formed.step or _all_or_none(ctx, found, kind, count):  # the test covers lanes that are off
        return Ways(whole)
    return Ways(whole, partly)


def _ask_ahead(ctx: Context, found: Access) -> None:
    """Prefetch for loads of consecutive elements, once for those off one base."""
    assert found.shape is not None
    if found.space in ("global", "generic") and contiguous(found.shape, found.size):
        base = found.address.base
        key = base.name if isinstance(base, Reg) else found.base
        ahead.prefetch(ctx, key, host_pointer(ctx, found, found.shape.offsets[0]), LANES * found.size)


def _ask_ahead_rows(ctx: Context, found: Access, formed: Runs, starts: list[str]) -> None:
    """The same for loads of the rows of a narrow block."""
    base = found.address.base
    if found.space in ("global", "generic") and formed.step and isinstance(base, Reg):
        for row, start in enumerate(starts):
            pointer = ctx.inst(f"inttoptr i64 {start} to ptr")
            ahead.prefetch(ctx, f"{base.name} {row}", pointer, formed.width * formed.step)


def _all_or_none(ctx: Context, found: Access, kind: ScalarType, count: int) -> bool:
    """Whether a contiguous pattern is accessed as a whole only if every lane is on."""
    return bool(found.strong) or (count > 1 and not ctx.target.masked(kind.bits, count))


# ---------------------------------------------------------------- stores


@effect("st", size=30)
def store(ctx: Context, op: Op) -> None:
    """st (PTX ISA "st"): lanes that store to one place leave the value of the highest lane."""
    if pairs.store(ctx, op):
        return
    if op not in ctx.pairs.stores:
        _store_alone(ctx, op)
    elif ops := ctx.pairs.stores[op]:
        _store_fields(ctx, ops)


def _store_fields(ctx: Context, ops: Sequence[Op]) -> None:
    """Several stores, each of an element of a structure."""
    found = access(ctx, ops[0], "a")
    foresee(ctx, found)
    kinds = [kind for op in ops if (kind := op.type_of("v")) is not None]
    values = [_stored_bits(ctx, op["v"], kind) for op, kind in zip(ops, kinds, strict=True)]
    fields.store(ctx, found, ops, values, partial(_store_alone, ctx))


def _store_alone(ctx: Context, op: Op) -> None:
    kind, items = op.type_of("v"), items_of(op["v"])
    assert kind is not None
    found = access(ctx, op, "a")
    if "release" in op.mods.values():
        ctx.stmt("fence release")
    twins.settle(ctx, found)
    foresee(ctx, found)
    tell_release(ctx, found)
    whole = len(items) == 1
    guarded = admit(ctx, found, lambda: ctx.in_memory(f"i{kind.bits}", _stored_bits(ctx, items[0], kind)) if whole else "null")

    def run() -> list[str]:
        if local_words.serves(ctx, found):
            local_words.store(ctx, found, kind, [_stored_bits(ctx, item, kind) for item in items])
        elif found.shape is not None and found.shape.uniform and found.space != "local":
            if not found.safe:
                assure(ctx, found)
            _uniform_store(ctx, found, kind, items)
        else:
            _lane_store(ctx, found, kind, items)
        return []

    if guarded or op.guard is not None:
        ctx.when(ctx.any(found.mask), run, None, [])
    else:
        run()


@effect("_aligned")
def aligned(ctx: Context, op: Op) -> None:
    """Of a store whose parts are stored: its address is a multiple of the size of them all."""
    space = op.mods.get("space", "generic")
    addresses, size = operand_addresses(ctx, op["a"], space), op["size"].bits
    low = ctx.vector.bin("and", "i64", addresses, ctx.vector.int(64, size - 1))
    off = ctx.bits_of(ctx.vector.icmp("ne", "i64", low, ctx.vector.int(64, 0)))
    wild = ctx.scalar.bin("and", f"i{LANES}", ctx.bits_of(ctx.mask_of(op)), off)

    def refuse() -> None:
        ctx.call(
            "void", "pe_refuse_misaligned", ("ptr", "%w"), ("i32", ctx.position(op)), ("i32", str(SPACES[space])),
            ("i32", str(size)), ("i32", wild), ("ptr", ctx.in_memory("i64", addresses)), attributes="cold noreturn",
        )  # fmt: skip

    ctx.leave_if(ctx.scalar.icmp("ne", f"i{LANES}", wild, "0"), refuse)


def _stored_bits(ctx: Context, item: Operand, kind: ScalarType) -> str:
    """What all lanes store, as a vector of integers."""
    return ctx.convert(ctx.vector_of(item, kind), kind.llvm, f"i{kind.bits}", True)


def _uniform_store(ctx: Context, found: Access, kind: ScalarType, items: Sequence[Operand]) -> None:
    bits = f"i{kind.bits}"
    last, values = "", []
    pointer = host_pointer(ctx, found, 0)
    for item in items:
        shape = ctx.shape(item)
        if shape is not None and shape.uniform:
            value = ctx.convert(ctx.scalar_of(item, kind), kind.llvm, bits, False)
        else:
            if not last:
                leading = ctx.scalar.intrinsic("ctlz", f"i{LANES}", ctx.bits_of(found.mask), extra="i1 true")
                last = ctx.scalar.bin("sub", "i32", str(LANES - 1), leading)
            whole = _stored_bits(ctx, item, kind)
            value = ctx.inst(f"extractelement <{LANES} x {bits}> {whole}, i32 {last}")
        values.append(value)
    if found.at_once:
        at_once.store(ctx, bits, values, pointer)
        return
    for index, value in enumerate(values):
        ctx.stmt(f"store {bits} {value}, ptr {_item_of(ctx, pointer, kind, index)}, align {kind.bytes}")


def _lane_store(ctx: Context, found: Access, kind: ScalarType, items: Sequence[Operand]) -> None:
    bits, mask, count = f"i{kind.bits}", found.mask, len(items)
    values = [_stored_bits(ctx, item, kind) for item in items]

    def lanes(rare: bool = True) -> list[str]:
        if found.at_once:
            at_once.scatter(ctx, bits, values, mask, *_places_at_once(ctx, found, rare))
            return []
        if rare and found.space != "local":
            stored, plus = checked_lanes(ctx, found)
            for index, value in enumerate(values):
                scatter_stored(ctx, bits, stored, sum_of(ctx, plus, index * kind.bytes), value, mask)
            return []
        return _scattered(ctx, found, kind, values, rare)

    def in_runs(formed: Runs, pointers: Made) -> Ways:
        def registers(starts: list[str]) -> list[str]:
            return consecutive.weave(ctx, values, bits, len(starts))

        def whole() -> list[str]:
            starts = pointers()
            return consecutive.store(ctx, bits, registers(starts), count, starts, found.volatile)

        def masked(starts: list[str]) -> list[str]:
            if blend or ctx.target.avx512:
                return consecutive.store(ctx, bits, registers(starts), count, starts, mask=mask, blend=blend)
            return consecutive.store_rows(ctx, bits, values[0], starts, mask)

        def partly() -> list[str]:
            starts = pointers()
            if not halves.serves(ctx, count, len(starts)):
                return masked(starts)
            half = partial(halves.store, ctx, bits, values[0], starts, mask)
            return ctx.when(halves.is_half(ctx, mask), half, partial(masked, starts), [])

        return Ways(whole, None if all_or_none else partly)

    def pattern() -> Ways:
        if formed is not None:
            return in_runs(formed, partial(runs.pattern_pointers, ctx, found, formed))
        return Ways(in_a_window) if in_window else Ways(all_in_a_window, partial(lanes, rare=False))

    def in_a_window() -> list[str]:
        windows.store(ctx, [found], bits, kind.bytes, values)
        return []

    def all_in_a_window() -> list[str]:
        windows.store_all(ctx, found, bits, kind.bytes, values[0])
        return []

    blend = found.space == "shared" and not found.strong and not ctx.target.avx512  # a CTA stays on one thread
    all_or_none = _all_or_none(ctx, found, kind, count) and not blend
    formed = _stored_runs(ctx, found, kind, count)
    in_window = formed is None and count == 1 and windows.can_store(ctx, found, kind.bytes)
    all_in_window = formed is None and count == 1 and not in_window and windows.can_store_all(ctx, found, kind.bytes)

    def in_strides() -> list[str]:
        strided.store(ctx, found, bits, values[0])
        return []

    if ctx.checking and not found.safe:
        lanes()
    elif count == 1 and strided.serves(ctx, found, kind.bytes):
        ctx.when(strided.test(ctx, found), in_strides, lanes, [], likely=True)
    elif formed is None and not in_window and not all_in_window:
        lanes(rare=found.space == "local" and found.safe)
    elif found.shape is None:
        assert formed is not None
        starts = first_addresses(ctx, found, formed)

        def by_runs(pointers: list[str]) -> list[str]:
            return by_lanes_on(ctx, found, in_runs(formed, lambda: pointers), [])

        whole = partial(runs.through, ctx, found, starts, by_runs)
        if found.grouped:
            ready = in_groups(ctx, found, formed, starts, all_or_none)
        else:
            ready = as_expected(ctx, found, formed, starts, all_or_none)
        ctx.when(ready, whole, partial(lanes, rare=found.grouped), [], likely=True)
    else:
        ways = pattern()
        by_lanes: Made = strided.at_border(ctx, [found], kind.bytes, in_strides, lanes) if count == 1 else lanes
        by_pattern = partial(patterns.access, ctx, found, lanes=by_lanes, types=[], all_lanes=all_or_none and formed is not None)
        test = patterns.whole_test(ctx, found) if ways.partly is not None and not found.admitted else ""
        if ways.partly is not None and test:
            ctx.when(test, ways.whole, partial(by_pattern, Ways(ways.partly)), [], likely=True)
        else:
            by_pattern(ways)


def _scattered(ctx: Context, found: Access, kind: ScalarType, values: Sequence[str], rare: bool) -> list[str]:
    """A store of each lane, after the test; of the first one alone, where that is the rule, without a scatter."""
    bits, mask = f"i{kind.bits}", found.mask
    host, start = tested_lanes(ctx, found, rare)

    def all_lanes() -> list[str]:
        for index, value in enumerate(values):
            scatter(ctx, bits, host, index * kind.bytes, value, mask, start=start, rare=rare)
        return []

    def first() -> list[str]:
        pointer = ctx.inst(f"inttoptr i64 {ctx.scalar.bin('add', 'i64', address_of(ctx, host, 0), start)} to ptr")
        for index, value in enumerate(values):
            own = ctx.inst(f"extractelement <{LANES} x {bits}> {value}, i64 0")
            ctx.stmt(f"store {found.volatile}{bits} {own}, ptr {_item_of(ctx, pointer, kind, index)}, align {kind.bytes}")
        return []

    if rare or not _is_for_one(ctx, found):
        return all_lanes()
    return ctx.when(ctx.scalar.icmp("eq", f"i{LANES}", ctx.bits_of(mask), "1"), first, all_lanes, [])


def _is_for_one(ctx: Context, found: Access) -> bool:
    """Whether a store is to one place for the warp, as it seems, so that the first lane makes it alone as a rule."""
    formed = expected(ctx, found) if found.shape is None else None
    return formed is not None and formed.width == LANES and not formed.step


def _stored_runs(ctx: Context, found: Access, kind: ScalarType, count: int) -> Runs | None:
    """The runs of a store by vector instructions."""
    if found.space == "local" or kind.bits > 64:
        return None
    formed = expected(ctx, found) if found.shape is None else runs_of(found.shape.offsets, kind.bytes * count)
    return formed if formed is not None and formed.step else None


@effect("prefetch", size=10)
def prefetch(ctx: Context, op: Op) -> None:
    """prefetch, prefetchu: a hint without effect; an address that is not mapped is not a fault (PTX ISA "prefetch")."""
